// Where frames stand. Left edges and widths are in samples, so that a zoom moves nothing but the window that is looked through.

/** Left edge and width of each node, by how much a sample of each side counts, and the nodes of each level from left to right. */
function layOut(tree, [ofBase, ofHead]) {
  const start = new Float64Array(tree.size);
  const width = new Float64Array(tree.size);
  const next = new Float64Array(tree.size);
  for (let node = 0; node < tree.size; node++) {
    const caller = tree.parent[node];
    width[node] = tree.base[node] * ofBase + tree.head[node] * ofHead;
    start[node] = caller < 0 ? 0 : next[caller];
    next[node] = start[node];
    if (caller >= 0) next[caller] += width[node];
  }
  return { start, width, levels: levelsOf(tree, width) };
}

/** Nodes that have a width, level by level: those of level d are order[from[d]] to order[from[d + 1] - 1]. */
function levelsOf(tree, width) {
  const from = new Int32Array(tree.deepest + 2);
  for (let node = 0; node < tree.size; node++) if (width[node] > 0) from[tree.depth[node] + 1]++;
  for (let level = 1; level < from.length; level++) from[level] += from[level - 1];
  const order = new Int32Array(from[from.length - 1]);
  const next = Int32Array.from(from);
  for (let node = 0; node < tree.size; node++) if (width[node] > 0) order[next[tree.depth[node]]++] = node;
  return { from, order };
}

/** The node of a level at a place in samples, or -1: binary search. */
function nodeAt(layout, level, place) {
  const { from, order } = layout.levels;
  if (level < 0 || level + 1 >= from.length) return -1;
  let low = from[level];
  let high = from[level + 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (layout.start[order[middle]] <= place) low = middle + 1;
    else high = middle;
  }
  const node = low > from[level] ? order[low - 1] : -1;
  return node >= 0 && place < layout.start[node] + layout.width[node] ? node : -1;
}

/** The nearest node with a width on the same level, in a direction, under the same caller; or -1. */
function neighbour(tree, layout, node, step) {
  const { from, order } = layout.levels;
  const level = tree.depth[node];
  let low = from[level];
  let high = from[level + 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (order[middle] < node) low = middle + 1;
    else high = middle;
  }
  // A node without a width is not in its level; the one that stands where it would is its right neighbour.
  const at = order[low] === node || step < 0 ? low + step : low;
  const found = at >= from[level] && at < from[level + 1] ? order[at] : -1;
  return found >= 0 && tree.parent[found] === tree.parent[node] ? found : -1;
}

/** The widest child, or -1 if none has a width. */
function widestChild(tree, layout, node) {
  let widest = -1;
  for (let child = node + 1; child < tree.end[node]; child = tree.end[child]) {
    if (layout.width[child] > (widest < 0 ? 0 : layout.width[widest])) widest = child;
  }
  return widest;
}
