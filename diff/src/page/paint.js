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

/** Whether frames of a function have one grey, the pale colours, or those of a ramp. */
const GREY = 0;
const PALE = 1;
const RAMP = 2;

/** What decides colours, as plain values: a worker has nothing else. */
const painting = {
  greys: Uint8Array.from(rowOfName, (row, name) => {
    if (!row) return UNKNOWN;
    return classOfName[name] + (differs(row) || KNOWN.has(row.verdict) ? 0 : UNKNOWN);
  }),
  modes: Uint8Array.from(rowOfName, (row) => (!row || !differs(row) ? GREY : row.significant ? RAMP : PALE)),
  weights: data.weights,
  whole: recorded.base[0] * data.weights[0],
  steps: data.steps,
  strongest,
  apart: APART,
  ramps: RAMPS,
};

/** The number of each frame's colour. */
function paints(tree, { greys, modes, weights, whole, steps, strongest: most, apart, ramps }) {
  const paint = new Uint8Array(tree.size);
  for (let node = 1; node < tree.size; node++) {
    const name = tree.name[node];
    paint[node] = greys[name];
    if (modes[name] === 0 || whole <= 0) continue;
    const change = (tree.head[node] * weights[1] - tree.base[node] * weights[0]) / whole;
    if (change === 0) continue;
    if (modes[name] === 1) paint[node] = apart + (change > 0 ? 0 : 1);
    else paint[node] = ramps + (change > 0 ? 0 : steps) + Math.min(steps - 1, Math.floor((Math.abs(change) / most) * (steps - 1) + 0.5));
  }
  return paint;
}

/** Whether replicates of a side disagree about a function: the only thing that hatching says. */
const isSplit = (name) => rowOfName[name]?.verdict === 'some_pods_outlying';
