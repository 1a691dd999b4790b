// Pointer and keyboard.

const search = document.getElementById('search');
const help = document.getElementById('help');

/** The frame under a point of the canvas, or -1. */
function frameUnder(x, y) {
  const view = windowNow();
  return nodeAt(state.layout, Math.floor((y + view.top) / ROW), view.first + x / view.scale);
}

function underPointer(event) {
  const { left, top } = canvas.getBoundingClientRect();
  return frameUnder(event.clientX - left, event.clientY - top);
}

/** The frame that a finger tapped last. */
let tapped = -1;

canvas.addEventListener('pointermove', (event) => {
  if (event.pointerType === 'touch' || drag?.isFar) return;
  const node = underPointer(event);
  canvas.style.cursor = node >= 0 ? 'pointer' : 'default';
  if (node >= 0) showCard(node, event.clientX, event.clientY);
  else hideCard();
  if (node !== state.hover) {
    state.hover = node;
    redraw();
  }
});

canvas.addEventListener('pointerleave', (event) => {
  if (event.pointerType === 'touch') return;
  state.hover = -1;
  hideCard();
  redraw();
});

canvas.addEventListener('click', (event) => {
  const node = underPointer(event);
  if (node < 0) return;
  // The first tap shows the card, which a pointer shows by itself; the second zooms.
  const isFirst = event.pointerType === 'touch' && node !== tapped;
  tapped = event.pointerType === 'touch' ? node : -1;
  if (isFirst) {
    state.hover = node;
    showCard(node, event.clientX, event.clientY);
    announce(node);
    redraw();
    return;
  }
  hideCard();
  tapped = -1;
  zoomTo(node);
  announce(node);
});

/** Scrolls the picture so that the row of a node is seen. */
function reveal(node) {
  const top = state.tree.depth[node] * ROW;
  if (top < scroller.scrollTop) scroller.scrollTop = Math.max(0, top - ROW);
  else if (top + 2 * ROW > scroller.scrollTop + scroller.clientHeight) {
    scroller.scrollTop = top + 2 * ROW - scroller.clientHeight;
  }
}

/** Moves the focus, and says where it is. */
function moveTo(node) {
  if (node < 0) return;
  focusOn(node);
  reveal(node);
  announce(node);
  showFocus();
}

/** The card of the focused frame, under it. */
function showFocus() {
  const view = windowNow();
  const { left, top } = canvas.getBoundingClientRect();
  const at = span(state.focus, view);
  showCard(state.focus, left + at.left, top + state.tree.depth[state.focus] * ROW - view.top);
}

function resetView() {
  if (state.query !== '' && state.zoom === 0) searchFor('');
  zoomTo(0);
  hideCard();
  announce(0);
}

/** The next or previous frame with a match, in the order of the picture, around the ends. */
function moveToMatch(step) {
  const { tree, matches, focus, layout } = state;
  if (matches === null) return;
  for (let tried = 0, node = focus; tried < tree.size; tried++) {
    node = (node + step + tree.size) % tree.size;
    if (matches[tree.name[node]] && layout.width[node] > 0) {
      moveTo(node);
      return;
    }
  }
}

const IN_PICTURE = {
  '+': () => zoomAround(canvas.clientWidth / 2, 0.5),
  '-': () => zoomAround(canvas.clientWidth / 2, 2),
  ArrowUp: () => moveTo(state.tree.parent[state.focus]),
  ArrowDown: () => moveTo(widestChild(state.tree, state.layout, state.focus)),
  ArrowLeft: () => moveTo(neighbour(state.tree, state.layout, state.focus, -1)),
  ArrowRight: () => moveTo(neighbour(state.tree, state.layout, state.focus, 1)),
  Home: () => moveTo(0),
  Enter: () => {
    zoomTo(state.focus);
    announce(state.focus);
    showFocus();
  },
  n: () => moveToMatch(1),
  N: () => moveToMatch(-1),
};

const ANYWHERE = {
  '/': () => search.focus(),
  '?': () => help.showModal(),
  Escape: resetView,
  b: () => reshape({ side: 'base' }),
  m: () => reshape({ side: 'both' }),
  h: () => reshape({ side: 'head' }),
  i: () => reshape({ inverted: !state.inverted }),
  c: () => reshape({ collapsed: !state.collapsed }),
};

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
  const isTyping = event.target === search || event.target === everyFilter;
  if (isTyping && event.key !== 'Escape') return;
  const action = (event.target === canvas && IN_PICTURE[event.key]) || ANYWHERE[event.key];
  if (!action) return;
  event.preventDefault();
  if (isTyping) canvas.focus();
  else action();
});

canvas.addEventListener('focus', () => {
  announce(state.focus);
  redraw();
});

canvas.addEventListener('blur', () => {
  hideCard();
  redraw();
});

search.addEventListener('input', () => searchFor(search.value));
search.addEventListener('keydown', (event) => {
  if (event.key !== 'Enter') return;
  canvas.focus();
  moveToMatch(1);
});

for (const choice of document.querySelectorAll('input[name=side]')) {
  choice.addEventListener('change', () => reshape({ side: choice.value }));
}
for (const choice of document.querySelectorAll('input[name=palette]')) {
  choice.addEventListener('change', () => paintWith(choice.value));
}
document.getElementById('inverted').addEventListener('change', (event) => reshape({ inverted: event.target.checked }));
document.getElementById('collapsed').addEventListener('change', (event) => reshape({ collapsed: event.target.checked }));
document.getElementById('reset').addEventListener('click', resetView);
document.getElementById('keys').addEventListener('click', () => help.showModal());
