// A call tree as columns, a number a node, in the order of the picture: a node, then all below it, then its right neighbour.

/** Adds to columns of names, depths and own counts: the caller, where all below ends, and totals. */
function makeTree(name, depth, ownBase, ownHead) {
  const size = name.length;
  const tree = {
    size, name, depth, ownBase, ownHead,
    parent: new Int32Array(size),
    end: new Int32Array(size),
    base: Float64Array.from(ownBase),
    head: Float64Array.from(ownHead),
    deepest: 0,
  };
  const callers = [0];
  for (let node = 0; node < size; node++) {
    tree.parent[node] = depth[node] === 0 ? -1 : callers[depth[node] - 1];
    tree.end[node] = node + 1;
    tree.deepest = Math.max(tree.deepest, depth[node]);
    callers[depth[node]] = node;
  }
  for (let node = size - 1; node > 0; node--) {
    const caller = tree.parent[node];
    tree.end[caller] = Math.max(tree.end[caller], tree.end[node]);
    tree.base[caller] += tree.base[node];
    tree.head[caller] += tree.head[node];
  }
  return tree;
}

/** The tree of whole stacks, root first, as it was recorded. */
const recorded = makeTree(
  Int32Array.from(data.tree.name),
  Int32Array.from(data.tree.depth),
  Float64Array.from(data.tree.base),
  Float64Array.from(data.tree.head),
);

/** The change of a frame as a share of the base: (head × weight − base) / total of the base. */
function changeOf(tree, node) {
  const whole = recorded.base[0] * data.weights[0];
  return whole > 0 ? (tree.head[node] * data.weights[1] - tree.base[node] * data.weights[0]) / whole : 0;
}

/** Names from below the root to a node. */
function pathOf(tree, node) {
  const path = [];
  for (let at = node; at > 0; at = tree.parent[at]) path.push(names[tree.name[at]]);
  return path.reverse();
}

/** The frame of a name that is widest: by the mean of both sides, so that it does not depend on which are shown. */
function widestOf(tree, name) {
  let widest = -1;
  let most = -1;
  for (let node = 1; node < tree.size; node++) {
    if (tree.name[node] !== name) continue;
    const width = tree.base[node] * SIDES.both[0] + tree.head[node] * SIDES.both[1];
    if (width > most) [widest, most] = [node, width];
  }
  return widest;
}
