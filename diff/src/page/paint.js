// Which colour a frame has. Only significant functions are saturated; the same frame has the same colour whichever
// side's widths are shown.

const UNKNOWN = CLASSES.length;
const APART = 2 * CLASSES.length;
const RAMPS = APART + 2;

const dark = matchMedia('(prefers-color-scheme: dark)');

/** Fills and inks in the order of the numbers that paints() gives: quiet, unknown, standing out, more, less. */
function coloursOf(isDark, palette) {
  const colours = data.colours[isDark ? 1 : 0][palette === 'redgreen' ? 1 : 0];
  const fills = [...colours.quiet, ...colours.unknown, ...colours.apart, ...colours.more, ...colours.less];
  return { fills: fills.map(({ fill }) => fill), inks: fills.map(({ ink }) => ink), hatch: colours.hatch };
}

/** The largest change of a significant frame of the recorded tree: what the fullest colour stands for in every shape. */
const strongest = (() => {
  let most = 0;
  for (let node = 1; node < recorded.size; node++) {
    if (isSignificant(recorded.name[node])) most = Math.max(most, Math.abs(changeOf(recorded, node)));
  }
  return most;
})();

/** The number of each frame's colour. */
function paints(tree) {
  const paint = new Uint8Array(tree.size);
  for (let node = 1; node < tree.size; node++) paint[node] = paintOf(tree, node);
  return paint;
}

function paintOf(tree, node) {
  const row = rowOfName[tree.name[node]];
  if (!row) return UNKNOWN;
  const kind = classOfName[tree.name[node]];
  if (!differs(row)) return KNOWN.has(row.verdict) ? kind : UNKNOWN + kind;
  const change = changeOf(tree, node);
  if (change === 0) return kind;
  if (!row.significant) return APART + (change > 0 ? 0 : 1);
  const step = Math.min(data.steps - 1, Math.floor((Math.abs(change) / strongest) * (data.steps - 1) + 0.5));
  return RAMPS + (change > 0 ? 0 : data.steps) + step;
}

const isHatched = (paint) => paint >= UNKNOWN && paint < APART;
