// What is looked at, in the address, so that it can be sent to somebody else. A frame is named by its function and by a hash of the
// names on the way to it, which hold in another page of the same programs too.

/** FNV-1a over the code units of a text, from where another hash ended. */
function hashed(text, from) {
  let hash = from;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return Math.imul(hash ^ 0x3b, 0x01000193) >>> 0;
}

const START = 0x811c9dc5;

const hashOfPath = (path) => path.reduce((hash, name) => hashed(name, hash), START).toString(16);

/** The frame with this function and path; else the widest of the function; else the root. */
function frameAt(name, path) {
  const { tree } = state;
  const number = names.indexOf(name, 1);
  if (number < 0) return 0;
  for (let node = 1; node < tree.size; node++) {
    if (tree.name[node] === number && hashOfPath(pathOf(tree, node)) === path) return node;
  }
  return Math.max(0, widestOf(tree, number));
}

function hashOfState() {
  const parts = new URLSearchParams();
  if (state.inverted) parts.set('mode', 'inverted');
  if (state.collapsed) parts.set('collapse', '1');
  if (state.side !== 'both') parts.set('widths', state.side);
  if (state.palette !== 'safe') parts.set('palette', state.palette);
  if (state.query !== '') parts.set('search', state.query);
  if (state.zoom > 0) {
    parts.set('frame', names[state.tree.name[state.zoom]]);
    parts.set('path', hashOfPath(pathOf(state.tree, state.zoom)));
  }
  return parts.toString();
}

let written = '';

/** Writes the address, without a step in the browser's history for each key. */
function writeLink() {
  const now = hashOfState();
  // A page within another page has no address of its own.
  if (now === written || location.protocol === 'about:') return;
  written = now;
  history.replaceState(null, '', `#${now}`);
}

/** Looks at what the address says. */
function readLink() {
  const parts = new URLSearchParams(location.hash.slice(1));
  const side = parts.get('widths');
  const turned = reshape({
    inverted: parts.get('mode') === 'inverted',
    collapsed: parts.get('collapse') === '1',
    side: side !== null && Object.hasOwn(SIDES, side) ? side : 'both',
    zoom: 0,
    focus: 0,
  });
  paintWith(parts.get('palette') === 'redgreen' ? 'redgreen' : 'safe');
  searchFor(parts.get('search') ?? '');
  const name = parts.get('frame');
  const frame = () => zoomTo(name === null ? 0 : frameAt(name, parts.get('path') ?? ''));
  if (turningBar.hidden) frame();
  else turned.then(frame);
}
