// Turns the picture round and watches the frames meanwhile: milliseconds until it is there, the longest gap between two frames, the
// largest progress that was shown, and how many frames came.
(async () => {
    const start = performance.now();
    let [last, gap, frames, part, isOver] = [start, 0, 0, 0, false];
    const watch = (now) => {
        gap = Math.max(gap, now - last);
        last = now;
        frames++;
        if (!turningBar.hidden) part = Math.max(part, turningBar.value);
        if (!isOver) requestAnimationFrame(watch);
    };
    requestAnimationFrame(watch);
    await reshape({ inverted: true });
    const made = performance.now() - start;
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    isOver = true;
    return [Math.round(made), Math.round(gap), part, frames];
})()
