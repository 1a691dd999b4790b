// Shapes are made beside the page, so that it answers while a large tree is turned round: in a worker, made of the functions
// themselves. Where a browser makes none, the page makes the shape itself.

/** Trees below this many nodes are turned round within a frame or two; a worker would only flicker. */
const FEW = 20000;

/** What was made of the recorded tree: tree, layout and paint, and the side whose widths the layout has. */
const shapes = new Map();
const turningBar = document.getElementById('turning');
const rank = alphabet();
const folding = Uint8Array.from(names, (_, number) => {
  const row = rowOfName[number];
  return classOfName[number] > 0 && !(row !== null && differs(row)) ? 1 : 0;
});

/** Makes a shape; `tell` hears which part is done, 0 to 1. */
function makeShape(recordedTree, { isInverted, isCollapsed, side, weights, ranks, folds, look }, tell) {
  const whole = isCollapsed ? collapsed(recordedTree, folds) : recordedTree;
  const tree = isInverted ? inverted(whole, ranks, tell) : whole;
  return { tree, side, layout: layOut(tree, weights), paint: paints(tree, look) };
}

/** What runs in the worker. */
function work({ data: order }) {
  let told = 0;
  const tell = (part) => {
    if (performance.now() - told < 50) return;
    told = performance.now();
    postMessage({ part });
  };
  const shape = makeShape(makeTree(...order.columns), order, tell);
  const { tree, layout, paint } = shape;
  const columns = [...Object.values(tree), layout.start, layout.width, ...Object.values(layout.levels), paint];
  postMessage({ shape }, columns.filter(ArrayBuffer.isView).map(({ buffer }) => buffer));
}

const WORKER = [makeTree, Columns, inverted, leavesOf, admit, sortByName, groups, collapsed, inOrder, layOut, levelsOf,
  paints, makeShape, work];

let current = null;

/** Ends what is being made. */
function stopTurning() {
  current?.terminate();
  current = null;
  turningBar.hidden = true;
}

function startWorker() {
  try {
    const address = URL.createObjectURL(new Blob(["'use strict';\n", WORKER.join('\n'), '\nonmessage = work;']));
    const worker = new Worker(address);
    URL.revokeObjectURL(address);
    return worker;
  } catch {
    return null;
  }
}

/** A shape, made once; `then` gets it, at once if there is nothing to wait for, never if another is asked for before. */
function shaped(isInverted, isCollapsed, side, then) {
  stopTurning();
  const key = `${isInverted} ${isCollapsed}`;
  const order = { isInverted, isCollapsed, side, weights: SIDES[side], ranks: rank, folds: folding, look: painting };
  const done = (shape) => {
    shapes.set(key, shape);
    stopTurning();
    then(shape);
  };
  const known = shapes.get(key);
  if (known) return done(known.side === side ? known : { ...known, side, layout: layOut(known.tree, SIDES[side]) });
  const here = () => done(makeShape(recorded, order, () => {}));
  current = recorded.size < FEW || !(isInverted || isCollapsed) ? null : startWorker();
  if (current === null) return here();
  turningBar.hidden = false;
  turningBar.value = 0;
  current.onmessage = ({ data: { shape, part } }) => (shape ? done(shape) : (turningBar.value = part));
  current.onerror = here;
  current.postMessage({ ...order, columns: [recorded.name, recorded.depth, recorded.ownBase, recorded.ownHead] });
}
