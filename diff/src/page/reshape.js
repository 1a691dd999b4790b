// Other shapes of the same samples: callers below leaves, and runs of runtime and system frames as one.

/** Columns that grow. */
class Columns {
  constructor(room) {
    this.size = 0;
    this.name = new Int32Array(room);
    this.depth = new Int32Array(room);
    this.base = new Float64Array(room);
    this.head = new Float64Array(room);
  }

  push(name, depth, base, head) {
    if (this.size === this.name.length) this.#double();
    const at = this.size++;
    this.name[at] = name;
    this.depth[at] = depth;
    this.base[at] = base;
    this.head[at] = head;
    return at;
  }

  #double() {
    for (const column of ['name', 'depth', 'base', 'head']) {
      const wider = new this[column].constructor(2 * this[column].length);
      wider.set(this[column]);
      this[column] = wider;
    }
  }

  tree() {
    const cut = (column) => this[column].slice(0, this.size);
    return makeTree(cut('name'), cut('depth'), cut('base'), cut('head'));
  }
}

/** Place of each name in the alphabet, by code points, so that it is the same for every reader. */
function alphabet() {
  const order = names.map((_, number) => number).sort((a, b) => (names[a] < names[b] ? -1 : names[a] > names[b] ? 1 : 0));
  const rank = new Int32Array(names.length);
  order.forEach((number, place) => { rank[number] = place; });
  return rank;
}

/**
 * The inverted tree: below the root the functions at leaves, below each who called it, levels alphabetical. The own count of a
 * node is what has no further caller.
 *
 * A group of leaves whose paths upwards are equal so far is one node; `cursor` says how far up each leaf's path is followed.
 */
function inverted(tree, rank, tell) {
  const leaves = leavesOf(tree);
  const cursor = Int32Array.from(leaves);
  const out = new Columns(2 * tree.size + 16);
  out.push(0, 0, tree.ownBase[0], tree.ownHead[0]);
  const waiting = [{ from: 0, to: leaves.length, depth: 0 }];
  while (waiting.length > 0) {
    const { from, to, depth } = waiting.pop();
    if (depth === 1) tell(from / leaves.length);
    if (depth > 0) admit(tree, leaves, cursor, from, to, depth, out);
    sortByName(tree, rank, leaves, cursor, from, to);
    waiting.push(...groups(tree, cursor, from, to, depth + 1).reverse());
  }
  return out.tree();
}

function leavesOf(tree) {
  const leaves = [];
  for (let node = 1; node < tree.size; node++) {
    if (tree.ownBase[node] > 0 || tree.ownHead[node] > 0) leaves.push(node);
  }
  return Int32Array.from(leaves);
}

/** Writes the node of a group, and moves its leaves one caller up. */
function admit(tree, leaves, cursor, from, to, depth, out) {
  let base = 0;
  let head = 0;
  const name = tree.name[cursor[from]];
  for (let at = from; at < to; at++) {
    cursor[at] = tree.parent[cursor[at]];
    if (cursor[at] > 0) continue;
    base += tree.ownBase[leaves[at]];
    head += tree.ownHead[leaves[at]];
  }
  out.push(name, depth, base, head);
}

/** Sorts a stretch of leaves by the name at their cursors; those at the root come first. */
function sortByName(tree, rank, leaves, cursor, from, to) {
  if (to - from < 2) return;
  const key = (at) => (cursor[at] > 0 ? rank[tree.name[cursor[at]]] : -1);
  const order = [];
  for (let at = from; at < to; at++) order.push({ key: key(at), leaf: leaves[at], cursor: cursor[at] });
  order.sort((a, b) => a.key - b.key);
  order.forEach((entry, place) => {
    leaves[from + place] = entry.leaf;
    cursor[from + place] = entry.cursor;
  });
}

/** Stretches of leaves with the same name at their cursors. */
function groups(tree, cursor, from, to, depth) {
  const found = [];
  let start = from;
  while (start < to && cursor[start] <= 0) start++;
  while (start < to) {
    const name = tree.name[cursor[start]];
    let end = start + 1;
    while (end < to && tree.name[cursor[end]] === name) end++;
    found.push({ from: start, to: end, depth });
    start = end;
  }
  return found;
}

/**
 * Runtime and system frames that follow one another as one frame, that of the first. A function that is significant or stands out keeps its frames: what is
 * in colour is never folded away.
 */
function collapsed(tree, folding) {
  const folds = (node) => folding[tree.name[node]] === 1;
  // Nodes of the new tree as they are met; each old node's is in `into`.
  const into = new Int32Array(tree.size);
  const met = new Columns(tree.size);
  const below = [[]];
  const found = new Map();
  met.push(tree.name[0], 0, tree.ownBase[0], tree.ownHead[0]);
  for (let node = 1; node < tree.size; node++) {
    const caller = tree.parent[node];
    const above = into[caller];
    if (caller > 0 && folds(node) && folds(caller)) {
      into[node] = above;
    } else {
      const key = above * folding.length + tree.name[node];
      into[node] = found.get(key) ?? met.push(tree.name[node], met.depth[above] + 1, 0, 0);
      if (!found.has(key)) {
        found.set(key, into[node]);
        below[above].push(into[node]);
        below.push([]);
      }
    }
    met.base[into[node]] += tree.ownBase[node];
    met.head[into[node]] += tree.ownHead[node];
  }
  return inOrder(met, below);
}

/** The nodes depth first. */
function inOrder(met, below) {
  const out = new Columns(met.size);
  const waiting = [0];
  while (waiting.length > 0) {
    const node = waiting.pop();
    out.push(met.name[node], met.depth[node], met.base[node], met.head[node]);
    for (let child = below[node].length - 1; child >= 0; child--) waiting.push(below[node][child]);
  }
  return out.tree();
}
