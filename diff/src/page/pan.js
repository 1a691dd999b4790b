// Zoom by wheel and drag, and the map of the whole picture above it.

const map = document.getElementById('map');
const mapPen = map.getContext('2d', { alpha: false });
const band = document.getElementById('band');

/** Narrowest window, in pixels of the window a sample: beyond that frames are single samples anyhow. */
const CLOSEST = 1e6;

/** Looks through another window, within the whole. */
function lookAt(first, width) {
  const whole = state.layout.width[0];
  const wide = Math.min(whole, Math.max(width, whole / CLOSEST));
  state.window = wide >= whole ? null : { first: Math.min(Math.max(0, first), whole - wide), width: wide };
  if (state.window === null) state.zoom = 0;
  hideCard();
  changed();
}

/** Makes the window wider or narrower around a point of the canvas. */
function zoomAround(x, by) {
  const view = windowNow();
  const width = (view.wide / view.scale) * by;
  lookAt(view.first + x / view.scale - (x / view.wide) * width, width);
}

// The wheel zooms with Ctrl, as a pinch does, or once the picture has the focus; otherwise it scrolls as anywhere.
canvas.addEventListener('wheel', (event) => {
  const isPan = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
  if (!isPan && !event.ctrlKey && document.activeElement !== canvas) return;
  event.preventDefault();
  const view = windowNow();
  const along = event.deltaX || event.deltaY;
  if (isPan) lookAt(view.first + along / view.scale, view.wide / view.scale);
  else zoomAround(event.clientX - canvas.getBoundingClientRect().left, Math.exp(Math.max(-1, Math.min(1, event.deltaY / 300))));
}, { passive: false });

/** Where a drag of the mouse began, and whether it went far enough to be one. */
let drag = null;
const FAR = 6;

canvas.addEventListener('pointerdown', (event) => {
  if (event.pointerType === 'touch' || event.button !== 0) return;
  drag = { from: event.clientX, isFar: false };
});

addEventListener('pointermove', (event) => {
  if (drag === null) return;
  drag.isFar ||= Math.abs(event.clientX - drag.from) > FAR;
  if (!drag.isFar) return;
  hideCard();
  const { left } = scroller.getBoundingClientRect();
  band.hidden = false;
  band.style.left = `${Math.min(drag.from, event.clientX) - left}px`;
  band.style.width = `${Math.abs(event.clientX - drag.from)}px`;
});

addEventListener('pointerup', (event) => {
  const ended = drag;
  drag = null;
  band.hidden = true;
  if (!ended?.isFar) return;
  // The click that follows belongs to the drag.
  const swallow = (click) => click.stopPropagation();
  addEventListener('click', swallow, { capture: true });
  setTimeout(() => removeEventListener('click', swallow, { capture: true }));
  const view = windowNow();
  const { left } = canvas.getBoundingClientRect();
  const [from, to] = [ended.from - left, event.clientX - left].sort((a, b) => a - b);
  lookAt(view.first + from / view.scale, (to - from) / view.scale);
});

/** The whole picture, small; drawn anew only if it is another one. */
let drawn = { layout: null, colours: null, wide: 0, picture: null };

function drawMap() {
  const ratio = window.devicePixelRatio || 1;
  const [wide, high] = [Math.round(map.clientWidth * ratio), Math.round(map.clientHeight * ratio)];
  if (wide === 0) return;
  if (map.width !== wide || map.height !== high) Object.assign(map, { width: wide, height: high });
  if (drawn.layout !== state.layout || drawn.colours !== state.colours || drawn.wide !== wide) {
    drawn = { layout: state.layout, colours: state.colours, wide, picture: mapPicture(wide, high) };
  }
  mapPen.drawImage(drawn.picture, 0, 0);
  const view = windowNow();
  const scale = wide / (state.layout.width[0] || 1);
  const [left, right] = [view.first * scale, (view.first + view.wide / view.scale) * scale];
  mapPen.globalAlpha = 0.55;
  mapPen.fillStyle = getComputedStyle(scroller).backgroundColor;
  mapPen.fillRect(0, 0, left, high);
  mapPen.fillRect(right, 0, wide - right, high);
  mapPen.globalAlpha = 1;
  mapPen.strokeStyle = getComputedStyle(scroller).color;
  mapPen.lineWidth = ratio;
  mapPen.strokeRect(left + ratio / 2, ratio / 2, Math.max(2 * ratio, right - left - ratio), high - ratio);
}

function mapPicture(wide, high) {
  const picture = new OffscreenCanvas(wide, high);
  const pen = picture.getContext('2d', { alpha: false });
  pen.fillStyle = getComputedStyle(scroller).backgroundColor;
  pen.fillRect(0, 0, wide, high);
  const { tree, layout, paint, colours } = state;
  const scale = wide / (layout.width[0] || 1);
  // Rows as high as fit: of levels on which something is wide enough to be seen.
  let deepest = 0;
  for (let node = 0; node < tree.size;) {
    const isSeen = layout.width[node] * scale >= 4;
    if (isSeen) deepest = Math.max(deepest, tree.depth[node]);
    node = isSeen ? node + 1 : tree.end[node];
  }
  const row = Math.max(1, Math.min(high / 6, high / (deepest + 1)));
  for (let node = 0; node < tree.size;) {
    const width = layout.width[node] * scale;
    if (width < 1 || tree.depth[node] * row >= high) {
      node = tree.end[node];
      continue;
    }
    pen.fillStyle = colours.fills[paint[node]];
    pen.fillRect(layout.start[node] * scale, tree.depth[node] * row, width, row);
    node++;
  }
  return picture;
}

/** The map moves the window to where it is pressed. */
function moveOnMap(event) {
  const { left, width } = map.getBoundingClientRect();
  const view = windowNow();
  const wide = view.wide / view.scale;
  if (state.layout.width[0] > wide) lookAt(((event.clientX - left) / width) * state.layout.width[0] - wide / 2, wide);
}

map.addEventListener('pointerdown', (event) => {
  map.setPointerCapture(event.pointerId);
  moveOnMap(event);
});
map.addEventListener('pointermove', (event) => {
  if (map.hasPointerCapture(event.pointerId)) moveOnMap(event);
});
