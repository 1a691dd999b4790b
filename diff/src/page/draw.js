// The picture: frames that are wider than half a pixel and on the screen, and nothing else.

const ROW = 20;
const NARROWEST = 0.5;
const FONT = '12px ui-sans-serif, system-ui, "Segoe UI", "DejaVu Sans", sans-serif';

const canvas = document.getElementById('frames');
const scroller = document.getElementById('scroller');
const spacer = document.getElementById('spacer');
const context = canvas.getContext('2d', { alpha: false });

/** A name without its folders: what comes after the last slash that is not within brackets. */
function withoutFolders(name) {
  const open = name.search(/[([<{]/);
  return name.slice(name.lastIndexOf('/', open < 0 ? name.length : open) + 1);
}

const NAMESPACES = /^(?:\w+::)+(?=\w)/;
const PACKAGE = /^\w[\w-]*\.(?=[(\w])(?!(?:part|cold|isra|constprop|lto_priv)\b|\d)/;

/**
 * Without its package or namespaces too, and a Go receiver without brackets. Compilers end names of C with parts of their own, which
 * are no package's.
 */
function bare(name) {
  const own = name.replace(NAMESPACES, '').replace(PACKAGE, '');
  return own.replace(/^\(\*?(\w+)\)\./, '$1.');
}

/** Each name in three lengths, and the pixels each takes; -1 is not measured yet. */
const lengths = [(name) => name, withoutFolders, (name) => bare(withoutFolders(name))].map((shorten) => ({
  texts: names.map(shorten),
  pixels: new Float32Array(names.length).fill(-1),
}));

/** The window through which samples are seen: the first, and pixels a sample. */
function windowNow() {
  const { layout, zoom, window: stretch } = state;
  const wide = canvas.clientWidth;
  return {
    first: stretch ? stretch.first : layout.start[zoom],
    scale: wide / ((stretch ? stretch.width : layout.width[zoom]) || 1),
    top: scroller.scrollTop,
    wide,
    high: scroller.clientHeight,
    ratio: window.devicePixelRatio || 1,
  };
}

/** Left edge and width on the screen, cut to it. */
function span(node, view) {
  const left = Math.max(0, (state.layout.start[node] - view.first) * view.scale);
  const right = Math.min(view.wide, (state.layout.start[node] + state.layout.width[node] - view.first) * view.scale);
  return { left, width: right - left };
}

function fitToScreen() {
  const ratio = window.devicePixelRatio || 1;
  const height = (state.tree.deepest + 1) * ROW + 4;
  spacer.style.height = `${height}px`;
  scroller.style.setProperty('--content', `${height + 2}px`);
  // The canvas stays where it is while the spacer, which is as high as the picture, scrolls beneath it.
  canvas.style.height = `${scroller.clientHeight}px`;
  canvas.style.marginBottom = `-${scroller.clientHeight}px`;
  const [wide, high] = [Math.round(canvas.clientWidth * ratio), Math.round(scroller.clientHeight * ratio)];
  if (canvas.width !== wide || canvas.height !== high) Object.assign(canvas, { width: wide, height: high });
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
}

function draw() {
  fitToScreen();
  const view = windowNow();
  context.globalAlpha = 1;
  context.fillStyle = getComputedStyle(scroller).backgroundColor;
  context.fillRect(0, 0, view.wide, view.high);
  context.font = FONT;
  context.textBaseline = 'middle';
  drawFrames(view, hatching());
  outline(state.hover, view, 1);
  if (document.activeElement === canvas) outline(state.focus, view, 2.5);
}

function drawFrames(view, hatch) {
  const { tree, layout } = state;
  const last = view.first + view.wide / view.scale;
  const bottom = view.top + view.high;
  let node = 0;
  while (node < tree.size) {
    const start = layout.start[node];
    const top = tree.depth[node] * ROW;
    // Left edges never fall in the order of the picture.
    if (start >= last) break;
    if (layout.width[node] * view.scale < NARROWEST || start + layout.width[node] <= view.first || top >= bottom) {
      node = tree.end[node];
      continue;
    }
    if (top + ROW > view.top) drawFrame(node, top - view.top, view, hatch);
    node++;
  }
}

function drawFrame(node, top, view, hatch) {
  const { tree, layout, paint, colours, matches, zoom } = state;
  // Edges on whole pixels of the screen: sharp, and cheap to draw.
  const left = Math.round(Math.max(0, (layout.start[node] - view.first) * view.scale) * view.ratio) / view.ratio;
  const end = Math.min(view.wide, (layout.start[node] + layout.width[node] - view.first) * view.scale);
  const right = Math.max(Math.round(end * view.ratio) / view.ratio, left + 1 / view.ratio);
  const width = right - left > 2 ? right - left - 1 : right - left;
  const isMatch = matches !== null && matches[tree.name[node]] === 1;
  const opacity = matches !== null && !isMatch ? 0.45 : node < zoom ? 0.65 : 1;
  context.globalAlpha = opacity;
  context.fillStyle = colours.fills[paint[node]];
  context.fillRect(left, top, width, ROW - 1);
  if (width > 4 && isSplit(tree.name[node]) && node > 0) {
    context.fillStyle = hatch;
    context.fillRect(left, top, width, ROW - 1);
  }
  if (isMatch) {
    context.fillStyle = colours.inks[paint[node]];
    context.fillRect(left, top + ROW - 3, width, 2);
  }
  // What is faded comes near to the paper, where the ink of a full colour cannot be read.
  const ink = opacity < 1 ? colours.inks[0] : colours.inks[paint[node]];
  if (width > 26) drawName(tree.name[node], ink, left, top, width);
}

function drawName(name, ink, left, top, width) {
  const room = width - 9;
  const text = fitting(name, room);
  if (text === '') return;
  context.fillStyle = ink;
  context.fillText(text, left + 5, top + ROW / 2, room);
}

/** The longest form of a name that has room, or the beginning of the shortest. */
function fitting(name, room) {
  for (const { texts, pixels } of lengths) {
    if (pixels[name] < 0) pixels[name] = context.measureText(texts[name]).width;
    if (pixels[name] <= room) return texts[name];
  }
  const { texts, pixels } = lengths[lengths.length - 1];
  const letters = Math.floor((room / pixels[name]) * texts[name].length) - 1;
  return letters < 2 ? '' : `${texts[name].slice(0, letters)}…`;
}

/** The last pattern, and what it was made for. */
let hatched = { ratio: 0, colour: '', pattern: null };

/** Lines over what is not known, as fine on a screen with many pixels as on one with few. */
function hatching() {
  const ratio = window.devicePixelRatio || 1;
  const colour = state.colours.hatch;
  if (hatched.ratio !== ratio || hatched.colour !== colour) hatched = { ratio, colour, pattern: hatch(ratio, colour) };
  return hatched.pattern;
}

function hatch(ratio, colour) {
  const size = Math.round(8 * ratio);
  const tile = new OffscreenCanvas(size, size);
  const pen = tile.getContext('2d');
  pen.strokeStyle = colour;
  pen.lineWidth = 1.2 * ratio;
  for (const shift of [-size, 0, size]) {
    pen.moveTo(shift - 1, size + 1);
    pen.lineTo(shift + size + 1, -1);
  }
  pen.stroke();
  const pattern = context.createPattern(tile, 'repeat');
  pattern.setTransform(new DOMMatrix().scale(1 / ratio));
  return pattern;
}

function outline(node, view, thickness) {
  if (node < 0) return;
  const { left, width } = span(node, view);
  if (width < 0) return;
  context.globalAlpha = 1;
  context.strokeStyle = getComputedStyle(scroller).color;
  context.lineWidth = thickness;
  context.strokeRect(left + 0.5, state.tree.depth[node] * ROW - view.top + 0.5, Math.max(2, width - 2), ROW - 2);
}

let isWaiting = false;

/** Draws in the next frame, once however often it was asked for. */
function redraw() {
  if (isWaiting) return;
  isWaiting = true;
  requestAnimationFrame(() => {
    isWaiting = false;
    draw();
    drawMap();
  });
}
