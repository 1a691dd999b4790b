// The functions that are called changed, as a table: for those who look for figures, and for those who do not see the picture.

/** Called functions, the largest change of share first. */
const calledRows = data.functions
  .filter((row) => row.called)
  .sort((a, b) => Math.abs(b.head_share - b.base_share) - Math.abs(a.head_share - a.base_share));

function fillTable() {
  const body = document.querySelector('#called tbody');
  const reach = reachOf(calledRows);
  body.replaceChildren(...calledRows.map((row) => tableRow(row, reach)));
  document.getElementById('called').hidden = calledRows.length === 0;
  document.getElementById('none-called').hidden = calledRows.length > 0;
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
  const more = row.head_share > row.base_share;
  line.append(
    name,
    element('td', `${more ? '▲' : '▼'} ${verdict(row)}`, more ? 'more' : 'less'),
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

/** What stands in the place of a ratio that cannot be taken. */
function presence(row) {
  if (row.base_count === 0) return 'new';
  return row.head_count === 0 ? 'gone' : '';
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

/** How many functions are not called, by verdict. */
function othersInWords() {
  const tally = new Map();
  for (const row of data.functions.filter((one) => !one.called)) {
    const words = VERDICTS[row.verdict] ?? row.verdict;
    tally.set(words, (tally.get(words) ?? 0) + 1);
  }
  const parts = [...tally].sort((a, b) => b[1] - a[1]).map(([words, many]) => `${count(many)} ${words}`);
  return parts.length > 0 ? `Not called: ${parts.join('; ')}.` : '';
}
