// Intervals as pictures: a line from the least to the most that the samples allow, a dot at the best guess, and a mark at ×1, on one
// scale of factors for all rows.

/** How far from ×1 the scale of a table reaches, as a logarithm; at least a factor of two. */
function reachOf(rows) {
  const bounds = rows.flatMap(({ ratio }) => (ratio ? [ratio.low, ratio.high, ratio.estimate] : []));
  const sizes = bounds.filter((bound) => bound !== null && bound > 0).map((bound) => Math.abs(Math.log(bound)));
  return Math.max(Math.log(2), ...sizes);
}

/** Place of a factor on the scale in percent; what is beyond stands at its end, as do 0 and infinity. */
function placeOf(value, reach) {
  if (value === null) return 100;
  return 50 + 50 * Math.max(-1, Math.min(1, Math.log(value) / reach));
}

/** The picture of an interval. The same figures are text beside it, so screen readers skip it. */
function intervalPicture(ratio, reach) {
  const picture = element('span', undefined, 'interval');
  picture.setAttribute('aria-hidden', 'true');
  const line = element('i', undefined, 'line');
  const dot = element('i', undefined, 'dot');
  const [low, high] = [placeOf(ratio.low, reach), placeOf(ratio.high, reach)];
  line.style.left = `${low}%`;
  line.style.width = `${high - low}%`;
  dot.style.left = `${placeOf(ratio.estimate, reach)}%`;
  picture.append(element('i', undefined, 'one'), line, dot);
  return picture;
}
