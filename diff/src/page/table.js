// The functions that are significant or stand out, as a table: for readers who need figures, and for those who cannot see the picture.

/** Functions that are significant or stand out, in the order of every output: callers behind what explains them. */
const significantRows = data.functions.filter(differs);

/** Rows that are shown before all are asked for: those that matter most come first. */
const MATTER = 10;
let areAllShown = false;

function fillTable() {
  const body = document.querySelector('#significant tbody');
  const reach = reachOf(significantRows);
  body.replaceChildren(...significantRows.slice(0, areAllShown ? Infinity : MATTER).map((row) => tableRow(row, reach)));
  document.getElementById('significant').hidden = significantRows.length === 0;
  document.getElementById('none-significant').hidden = significantRows.length > 0;
  const more = document.getElementById('more-significant');
  more.hidden = areAllShown || significantRows.length <= MATTER;
  more.textContent = `Show all ${count(significantRows.length)}`;
  more.onclick = () => {
    areAllShown = true;
    fillTable();
  };
  document.getElementById('others').textContent = othersInWords();
}

function tableRow(row, reach) {
  const line = element('tr');
  const name = element('th');
  name.scope = 'row';
  const button = element('button', row.name);
  button.type = 'button';
  button.addEventListener('click', () => show(row.name));
  name.append(button);
  if (row.cause) name.className = 'follows';
  const more = row.head_share > row.base_share;
  line.append(
    name,
    element('td', `${more ? '▲' : '▼'} ${verdict(row)}`, more ? 'more' : 'less'),
    element('td', row.counted),
    element('td', percent(row.base_share), 'number'),
    element('td', percent(row.head_share), 'number'),
    element('td', row.ratio ? factor(row.ratio.estimate) : presence(row), 'number'),
    pictureCell(row, reach),
    element('td', row.ratio ? interval(row.ratio) : '', 'number'),
    element('td', probability(row.ln_p), 'number'),
    element('td', rate(row.q_value), 'number'),
  );
  return line;
}

/** Shown instead of a ratio that cannot be computed. */
function presence(row) {
  if (row.base_share === 0) return 'new';
  return row.head_share === 0 ? 'gone' : '';
}

function pictureCell(row, reach) {
  const cell = element('td', '', 'number');
  if (row.ratio) cell.append(intervalPicture(row.ratio, reach));
  return cell;
}

/** Searches a function and zooms to its widest frame. */
function show(name) {
  const number = names.indexOf(name, 1);
  searchFor(literally(name));
  if (number < 0) return;
  const node = Math.max(0, widestOf(state.tree, number));
  zoomTo(node);
  reveal(node);
  announce(node);
  scroller.scrollIntoView({ block: 'nearest' });
}

/** How many functions are not significant, by verdict. */
function othersInWords() {
  const tally = new Map();
  for (const row of data.functions.filter((one) => !differs(one))) {
    const words = VERDICTS[row.verdict] ?? row.verdict;
    tally.set(words, (tally.get(words) ?? 0) + 1);
  }
  const parts = [...tally].sort((a, b) => b[1] - a[1]).map(([words, many]) => `${count(many)} ${words}`);
  return parts.length > 0 ? `Not significant: ${parts.join('; ')}.` : '';
}
