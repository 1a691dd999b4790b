// What the page looks at, and the ways in which that changes. Each change redraws once, in the next frame.

const state = {
  inverted: false,
  collapsed: false,
  side: 'both',
  palette: 'safe',
  query: '',
  /** Node whose width fills the picture. */
  zoom: 0,
  /** The stretch of samples that is looked at, if it is not that of a node. */
  window: null,
  /** Node that the keyboard is at, and the one under the pointer, or -1. */
  focus: 0,
  hover: -1,
  tree: recorded,
  layout: layOut(recorded, SIDES.both),
  paint: paints(recorded, painting),
  matches: null,
  colours: coloursOf(dark.matches, 'safe'),
};

/** Run after each change: functions that bring a part of the page up to date. */
const watchers = [];

function changed() {
  for (const watcher of watchers) watcher();
}

/** Other samples in the same picture: shape or side. The frames that were zoomed into and focused are found again. */
function reshape(change) {
  Object.assign(state, change);
  tellSwitches();
  return new Promise((done) => {
    shaped(state.inverted, state.collapsed, state.side, (shape) => {
      showShape(shape);
      done();
    });
  });
}

/** Shows a shape in the place of the one that is shown. */
function showShape(shape) {
  const { tree, zoom, focus } = state;
  state.tree = shape.tree;
  state.window = null;
  state.layout = shape.layout;
  if (state.tree !== tree) {
    state.paint = shape.paint;
    state.zoom = counterpart(tree, zoom);
    state.focus = counterpart(tree, focus);
  }
  state.hover = -1;
  state.zoom = withWidth(state.zoom);
  changed();
}

/** The widest frame of the same function in the tree that is shown now; the root if there is none. */
function counterpart(tree, node) {
  return node === 0 ? 0 : Math.max(0, widestOf(state.tree, tree.name[node]));
}

/** A node, or the nearest caller that the shown side has. */
function withWidth(node) {
  let at = node;
  while (at > 0 && state.layout.width[at] === 0) at = state.tree.parent[at];
  return at;
}

function zoomTo(node) {
  state.zoom = withWidth(node);
  state.window = null;
  state.focus = node;
  changed();
}

function focusOn(node) {
  state.focus = node;
  state.window = null;
  if (!isInWindow(node)) state.zoom = withWidth(state.tree.parent[node]);
  changed();
}

/** Whether a node lies within the zoom, or is a caller of it. */
function isInWindow(node) {
  const { tree, zoom } = state;
  return (node >= zoom && node < tree.end[zoom]) || (zoom >= node && zoom < tree.end[node]);
}

function searchFor(query) {
  const { matches, fault } = matching(query);
  Object.assign(state, { query, matches, fault });
  changed();
}

function paintWith(palette) {
  state.palette = palette;
  state.colours = coloursOf(dark.matches, palette);
  changed();
}

dark.addEventListener('change', () => paintWith(state.palette));
