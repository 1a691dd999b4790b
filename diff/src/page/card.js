// What is known of one frame: on a card beside the pointer or the focus, and as a sentence for those who listen.

const card = document.getElementById('card');
const live = document.getElementById('live');

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

/** Samples or time of a frame, by side: the average of its runs, and the share of all. */
function figuresOf(node) {
  const { tree } = state;
  const side = (totals, of) => ({
    average: of.runs > 0 ? totals[node] / of.runs : 0,
    share: totals[0] > 0 ? totals[node] / totals[0] : 0,
  });
  return { base: side(tree.base, data.base), head: side(tree.head, data.head), change: changeOf(tree, node) };
}

const perRun = (side) => (side.runs === 1 ? '' : ` a ${side.replicate}`);

const of = (side, share, samples) => `${percent(share)} of ${side}${samples === null ? '' : ` (${count(samples)})`}`;

/** The lines of a card about the test of a function: [term, words]. */
function findings(row) {
  if (!row) return [['verdict', 'not tested']];
  const kind = row.counted === 'self' ? 'at leaves' : 'anywhere on the stack';
  const lines = [
    ['verdict', verdict(row)],
    ['function', `${kind}: ${of('base', row.base_share, row.base_count)}, ${of('head', row.head_share, row.head_count)}`],
  ];
  if (row.ratio) lines.push(['head / base', `${factor(row.ratio.estimate)}, interval ${interval(row.ratio)}`]);
  lines.push(['p', probability(row.ln_p)], ['q', rate(row.q_value)]);
  return lines;
}

function fillCard(node) {
  const name = state.tree.name[node];
  const { base, head, change } = figuresOf(node);
  const list = element('dl');
  const line = (term, words) => list.append(element('dt', term), element('dd', words));
  line('base', `${quantity(base.average)}${perRun(data.base)}, ${percent(base.share)}`);
  line('head', `${quantity(head.average)}${perRun(data.head)}, ${percent(head.share)}`);
  line('this frame', `${signedPercent(change)} of the base’s total`);
  if (node > 0) findings(rowOfName[name]).forEach(([term, words]) => line(term, words));
  const title = element('strong', names[name]);
  const row = rowOfName[name];
  card.replaceChildren(title, element('span', row ? ` ${row.class}` : '', 'class'), list);
}

/** Shows the card of a frame below a point of the window, or above it where there is no room. */
function showCard(node, x, y) {
  fillCard(node);
  card.hidden = false;
  const { offsetWidth: wide, offsetHeight: high } = card;
  const left = Math.max(8, Math.min(x + 14, innerWidth - wide - 8));
  const top = y + 22 + high < innerHeight ? y + 22 : Math.max(8, y - high - 14);
  card.style.transform = `translate(${left}px, ${top}px)`;
}

function hideCard() {
  card.hidden = true;
}

/** A frame in a sentence. */
function spoken(node) {
  const { tree } = state;
  const name = tree.name[node];
  const { base, head } = figuresOf(node);
  const shares = `base ${percent(base.share)}, head ${percent(head.share)}`;
  if (node === 0) return `${names[name]}: ${isTimed ? 'all time' : 'every sample'}. Level 0.`;
  const row = rowOfName[name];
  const found = findings(row).filter(([term]) => term !== 'function').map(([term, words]) => `${term}: ${words}`);
  return `${names[name]}. Level ${tree.depth[node]}. This frame: ${shares}. ${found.join('. ')}.`;
}

function announce(node) {
  live.textContent = spoken(node);
}
