// Draws a hundred times, each with another zoom, and waits until the pixels are there: milliseconds of each, ascending.
(() => {
    const times = [];
    const pixel = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
    const widest = [...Array(state.tree.size).keys()].sort((a, b) => state.layout.width[b] - state.layout.width[a]);
    for (let turn = 0; turn < 100; turn++) {
        state.zoom = turn % 2 === 0 ? 0 : widest[turn];
        const start = performance.now();
        draw();
        pixel.drawImage(canvas, 0, 0, 1, 1);
        pixel.getImageData(0, 0, 1, 1);
        times.push(performance.now() - start);
    }
    state.zoom = 0;
    times.sort((a, b) => a - b);
    return times;
})()
