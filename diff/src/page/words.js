// Numbers and findings in words.

const COUNT = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const LN_10 = Math.log(10);

const LARGE = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });

/** From a million on with three digits: nobody reads nine. */
const count = (value) => (value >= 1e6 ? LARGE : COUNT).format(value);

/** A share, 0 to 1, in percent; three digits that mean something. */
function percent(share) {
  const value = 100 * share;
  const digits = Math.abs(value) >= 10 ? 1 : Math.abs(value) >= 0.1 || value === 0 ? 2 : 4;
  return `${value.toFixed(digits)} %`;
}

const signedPercent = (share) => (share > 0 ? `+${percent(share)}` : percent(share).replace('-', '−'));

/** A factor with three digits; null is infinite. */
function factor(value) {
  if (value === null) return '∞';
  if (value === 0) return '×0';
  return `×${value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(value < 0.1 ? 3 : 2)}`;
}

const interval = (ratio) => `${factor(ratio.low)} to ${factor(ratio.high)}`;

/** A probability by its natural logarithm, which has room for the smallest. */
function probability(ln) {
  if (ln === null) return 'not tested';
  if (ln > Math.log(0.0001)) return Math.exp(ln).toPrecision(2);
  let power = Math.floor(ln / LN_10);
  let leading = Math.exp(ln - power * LN_10).toFixed(1);
  if (leading === '10.0') [leading, power] = ['1.0', power + 1];
  return `${leading}e${power}`;
}

const rate = (q) => (q === null ? 'not tested' : q === 0 ? '< 1e-300' : probability(Math.log(q)));

const VERDICTS = {
  regressed: 'more expensive',
  improved: 'cheaper',
  stands_out: 'stands out',
  compositional: 'unchanged: its share moved only because other shares did',
  moved: 'unchanged: moved, renamed or inlined',
  equivalent: 'equivalent',
  inconclusive: 'inconclusive',
  too_rare: 'too rare to test',
  untestable: 'cannot be tested',
  not_comparable: 'cannot be compared',
  some_pods_outlying: 'some replicates differ, the side as a whole does not',
};

const REASONS = { only_in_head: 'only in the head', only_in_base: 'only in the base' };

/** The result of the test of a function. */
function verdict(row) {
  if (!row) return 'not tested';
  const significantly = row.significant ? 'significantly ' : '';
  const reason = row.reason ? ` (${REASONS[row.reason] ?? row.reason.replaceAll('_', ' ')})` : '';
  return `${significantly}${VERDICTS[row.verdict] ?? row.verdict}${reason}`;
}

const runs = (side) => `${count(side.runs)} ${side.replicate}${side.runs === 1 ? '' : 's'}`;

const SCALES = {
  nanoseconds: [[6e10, 'min'], [1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']],
  bytes: [[2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB'], [1, 'B']],
};

/** What samples stand for, in a unit that is read at a glance. */
function amount(value, unit) {
  const scale = SCALES[unit]?.find(([size]) => value >= size);
  return scale ? `${count(value / scale[0])} ${scale[1]}` : `${count(value)} ${unit === 'count' ? '' : unit}`.trim();
}

/** What a frame holds: samples, or a time. */
const quantity = (value) => (isTimed ? amount(value, 'nanoseconds') : `${count(value)} samples`);
