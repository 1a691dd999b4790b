// Brings the rest of the page up to date with what is looked at, and begins.

function tellSides() {
  for (const key of ['base', 'head']) {
    const side = data[key];
    const box = document.getElementById(`side-${key}`);
    const stands = side.unit === 'samples' ? ` of ${side.sample_type}` : `, ${amount(side.total, side.unit)} of ${side.sample_type}`;
    const counted = isTimed ? '' : `, ${count(side.samples)} samples`;
    const figures = `${runs(side)}${counted}${stands}`;
    box.replaceChildren(element('span', key, 'which'), element('strong', side.label), element('span', figures));
  }
}

/** A root of one side alone must have this share of it to be worth a word. */
const ROOT = 0.05;

/** Says if stacks of the sides begin in different threads or programs: their frames stand side by side and are not compared. */
function tellRoots() {
  const only = { base: [], head: [] };
  for (let node = 1; node < recorded.size; node = recorded.end[node]) {
    for (const [side, other] of [['base', 'head'], ['head', 'base']]) {
      const isAlone = recorded[other][node] === 0 && recorded[side][node] >= ROOT * recorded[side][0];
      if (isAlone && recorded[side][node] > 0) only[side].push(names[recorded.name[node]]);
    }
  }
  const box = document.getElementById('roots');
  box.hidden = only.base.length === 0 || only.head.length === 0;
  box.textContent = `Stacks begin in different threads or programs: only the base has ${only.base.join(', ')}, only the head `
    + `${only.head.join(', ')}. Frames below them are drawn apart; functions are compared all the same.`;
}

/** The switches show what is looked at, also where a key or the address changed it. */
function tellSwitches() {
  for (const choice of document.querySelectorAll('input[name=side]')) choice.checked = choice.value === state.side;
  for (const choice of document.querySelectorAll('input[name=palette]')) choice.checked = choice.value === state.palette;
  document.getElementById('inverted').checked = state.inverted;
  document.getElementById('collapsed').checked = state.collapsed;
  document.getElementById('reset').disabled = state.zoom === 0 && state.window === null;
  document.documentElement.dataset.palette = state.palette;
  if (document.activeElement !== search) search.value = state.query;
}

function tellSearch() {
  const found = document.getElementById('found');
  search.setAttribute('aria-invalid', String(Boolean(state.fault)));
  if (state.matches === null) found.textContent = '';
  else if (state.fault) found.textContent = `not a pattern: ${state.fault}`;
  else {
    const { base, head, functions } = matchedShare(state.matches);
    const noun = functions === 1 ? 'function' : 'functions';
    found.textContent = `${count(functions)} ${noun}: ${percent(base)} of base, ${percent(head)} of head`;
  }
}

/** The ramp of the legend: the colours themselves, as they are drawn. */
function tellLegend() {
  const { fills, hatch } = state.colours;
  const areSingle = data.functions.some(standsOut);
  const more = fills.slice(RAMPS, RAMPS + data.steps);
  const less = fills.slice(RAMPS + data.steps);
  const root = document.documentElement.style;
  root.setProperty('--ramp', `linear-gradient(to right, ${[...less.reverse(), ...more].join(', ')})`);
  root.setProperty('--quiet', fills[0]);
  root.setProperty('--more-apart', fills[APART]);
  root.setProperty('--less-apart', fills[APART + 1]);
  document.getElementById('apart').hidden = !areSingle;
  root.setProperty('--unknown', fills[UNKNOWN]);
  root.setProperty('--split', `repeating-linear-gradient(135deg, ${fills[UNKNOWN]} 0 4px, ${hatch} 4px 5px)`);
  for (const part of ['ramp', 'strength']) document.getElementById(part).hidden = strongest === 0;
  document.getElementById('split').hidden = !data.functions.some(({ verdict: is }) => is === 'some_pods_outlying');
  document.getElementById('least').textContent = signedPercent(-strongest);
  document.getElementById('most').textContent = signedPercent(strongest);
}

watchers.push(tellSwitches, tellSearch, tellLegend, writeLink, redraw);

scroller.addEventListener('scroll', () => {
  hideCard();
  redraw();
});
new ResizeObserver(redraw).observe(scroller);
addEventListener('resize', redraw);
addEventListener('hashchange', readLink);

tellSides();
tellRoots();
fillTable();
readLink();
