// All functions of the tree, also those without a test: sorted, filtered, and one of them between its callers and its callees.

const everyTable = document.getElementById('every');
const everyFilter = document.getElementById('every-filter');
const everyMore = document.getElementById('every-more');
const sandwich = document.getElementById('sandwich');

/** Rows that a table shows before it is asked for more. */
const PAGE = 50;

/** Own and total samples by number of the name, each sample once however often a function recurs. */
function sumsByName() {
  const made = () => new Float64Array(names.length);
  const sums = { ownBase: made(), ownHead: made(), base: made(), head: made() };
  const on = new Int32Array(names.length);
  const path = [];
  for (let node = 1; node < recorded.size; node++) {
    while (path.length > 0 && recorded.end[path[path.length - 1]] <= node) on[recorded.name[path.pop()]]--;
    const name = recorded.name[node];
    sums.ownBase[name] += recorded.ownBase[node];
    sums.ownHead[name] += recorded.ownHead[node];
    if (on[name]++ === 0) {
      sums.base[name] += recorded.base[node];
      sums.head[name] += recorded.head[node];
    }
    path.push(node);
  }
  return sums;
}

const shareOf = (part, side) => (recorded[side][0] > 0 ? part / recorded[side][0] : 0);

let every = null;
const look = { by: 'change', isUp: false, shown: PAGE };

/** The rows of the table, made when it is first opened. */
function everyRow() {
  if (every !== null) return every;
  const sums = sumsByName();
  every = [];
  for (let name = 1; name < names.length; name++) {
    const row = {
      name,
      function: names[name],
      self_base: shareOf(sums.ownBase[name], 'base'),
      self_head: shareOf(sums.ownHead[name], 'head'),
      total_base: shareOf(sums.base[name], 'base'),
      total_head: shareOf(sums.head[name], 'head'),
      verdict: verdict(rowOfName[name]),
    };
    row.change = row.total_head - row.total_base;
    row.self_change = row.self_head - row.self_base;
    every.push(row);
  }
  return every;
}

/** Names in the order of the alphabet, figures by size. */
function compareBy(by) {
  if (by === 'function' || by === 'verdict') return (a, b) => (a[by] < b[by] ? -1 : a[by] > b[by] ? 1 : a.name - b.name);
  return by.includes('change') ? (a, b) => Math.abs(a[by]) - Math.abs(b[by]) : (a, b) => a[by] - b[by];
}

function fillEvery() {
  const { matches, fault } = matching(everyFilter.value);
  everyFilter.setAttribute('aria-invalid', String(Boolean(fault)));
  const rows = everyRow().filter(({ name }) => matches === null || matches[name] === 1).sort(compareBy(look.by));
  if (!look.isUp) rows.reverse();
  everyTable.tBodies[0].replaceChildren(...rows.slice(0, look.shown).map(everyLine));
  everyMore.hidden = rows.length <= look.shown;
  everyMore.textContent = `Show all ${count(rows.length)}`;
  for (const head of everyTable.tHead.querySelectorAll('th')) {
    const isIt = head.dataset.by === look.by;
    head.setAttribute('aria-sort', isIt ? (look.isUp ? 'ascending' : 'descending') : 'none');
  }
}

function nameButton(name, action) {
  const cell = element('th');
  cell.scope = 'row';
  const button = element('button', names[name]);
  button.type = 'button';
  button.addEventListener('click', action);
  cell.append(button);
  return cell;
}

function everyLine(row) {
  const line = element('tr');
  line.append(nameButton(row.name, () => showSandwich(row.name)));
  for (const share of ['self_base', 'self_head']) line.append(element('td', percent(row[share]), 'number'));
  line.append(element('td', signedPercent(row.self_change), 'number'));
  for (const share of ['total_base', 'total_head']) line.append(element('td', percent(row[share]), 'number'));
  line.append(element('td', signedPercent(row.change), 'number'), element('td', row.verdict));
  return line;
}

/** Samples on stacks with the function by who called it, or by what it called, each sample once a neighbour. */
function neighbours(name, areCallers) {
  const sums = new Map();
  const add = (other, base, head) => {
    const sum = sums.get(other) ?? { base: 0, head: 0 };
    sum.base += base;
    sum.head += head;
    sums.set(other, sum);
  };
  for (let node = 1; node < recorded.size; node++) {
    if (recorded.name[node] !== name) continue;
    if (areCallers) add(recorded.name[recorded.parent[node]], recorded.base[node], recorded.head[node]);
    else {
      for (let child = node + 1; child < recorded.end[node]; child = recorded.end[child]) {
        add(recorded.name[child], recorded.base[child], recorded.head[child]);
      }
    }
  }
  const shares = [...sums].map(([other, { base, head }]) => [other, shareOf(base, 'base'), shareOf(head, 'head')]);
  return shares.sort((a, b) => b[1] + b[2] - a[1] - a[2]);
}

function neighbourTable(title, rows) {
  const table = element('table');
  table.append(element('caption', title));
  for (const [name, base, head] of rows.slice(0, PAGE)) {
    const line = element('tr');
    const own = name === 0 ? element('th', 'no caller: bottom of the stack') : nameButton(name, () => showSandwich(name));
    line.append(own, element('td', percent(base), 'number'), element('td', percent(head), 'number'),
      element('td', signedPercent(head - base), 'number'));
    table.append(line);
  }
  if (rows.length === 0) table.append(element('tr'));
  return table;
}

/** A function between its callers and its callees: shares of base and head, and the difference. */
function showSandwich(name) {
  const title = element('h3', names[name]);
  const inPicture = element('button', 'Show in the picture');
  inPicture.type = 'button';
  inPicture.addEventListener('click', () => show(names[name]));
  const close = element('button', 'Close');
  close.type = 'button';
  close.addEventListener('click', () => { sandwich.hidden = true; });
  const middle = element('p', `Self and what it calls: ${verdict(rowOfName[name])}`);
  const buttons = element('p');
  buttons.append(inPicture, close);
  sandwich.replaceChildren(neighbourTable('Callers: base, head, change', neighbours(name, true)), title, middle, buttons,
    neighbourTable('Callees: base, head, change', neighbours(name, false)));
  sandwich.hidden = false;
  sandwich.scrollIntoView({ block: 'nearest' });
}

document.getElementById('every-box').addEventListener('toggle', (event) => {
  if (event.target.open) fillEvery();
});
everyFilter.addEventListener('input', () => {
  look.shown = PAGE;
  fillEvery();
});
everyMore.addEventListener('click', () => {
  look.shown = Infinity;
  fillEvery();
});
for (const head of everyTable.tHead.querySelectorAll('th')) {
  head.querySelector('button').addEventListener('click', () => {
    look.isUp = look.by === head.dataset.by ? !look.isUp : head.dataset.by === 'function';
    look.by = head.dataset.by;
    fillEvery();
  });
}
