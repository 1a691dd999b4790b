//! False discovery: which of many tested rows may be flagged, in one family and on two levels.
//!
//! Functions are selected first, over all cells at once; inside a selected function its cells are. Selecting cells only inside
//! selected functions keeps the promise for what is read: the rows of the functions that are shown (Benjamini & Bogomolov 2014). A
//! function that costs more is worth more of the level: weights with mean 1 over the family leave the promise as it is (Genovese,
//! Roeder & Wasserman 2006), since the pooled share from which they come says nothing of the ratio. Families take ln p, so that p
//! below 1e-308 still has a rank; NaN is no member.

#![expect(clippy::as_conversions, reason = "ranks and family sizes become floats")]

use crate::median::ascending;

/// Whether a q-value is within the level `q`; a few units in the last place are allowed, so that p = q m^-1 k exactly is in.
#[inline]
#[must_use]
pub fn selected(q_value: f64, q: f64) -> bool {
    q_value <= q * (1.0 + 1e-12)
}

/// Shares of cost below this weigh as much as this.
const LEAST_SHARE: f64 = 0.0005;
/// Shares of cost above this weigh as much as this.
const MOST_SHARE: f64 = 0.02;

/// The largest [`importance`]: how many times more than the least a function can weigh.
pub const MOST_IMPORTANCE: f64 = 6.324_555_320_336_759;

/// How much more a function with this share of cost weighs than the least: sqrt(share/.0005) between 1 and
/// [`MOST_IMPORTANCE`]; NaN of NaN. Weights are this over its mean.
#[inline]
#[must_use]
pub fn importance(share: f64) -> f64 {
    if share.is_nan() { share } else { libm::sqrt(share.clamp(LEAST_SHARE, MOST_SHARE) / LEAST_SHARE) }
}

/// The weights of functions by their shares of cost, mean 1 over those that are not NaN.
///
/// u/mean(u), u = sqrt(min(max(share, .0005), .02)): the largest over the smallest is 6.3. Checked against the reference program
/// (`families.json`) to 1e-11.
#[must_use]
pub fn weights(shares: &[f64]) -> Vec<f64> {
    let all: Vec<f64> = shares.iter().map(|&share| importance(share)).collect();
    let members = || all.iter().filter(|weight| !weight.is_nan());
    let mean = members().sum::<f64>() / members().count().max(1) as f64;
    all.iter().map(|weight| weight / mean).collect()
}

/// ln of weighted p-values, p/w: what [`bh`] takes for a weighted family.
#[must_use]
pub fn weighted(ln_p: &[f64], weights: &[f64]) -> Vec<f64> {
    ln_p.iter().zip(weights).map(|(ln_p, weight)| ln_p - libm::log(*weight)).collect()
}

/// Benjamini-Hochberg q-values of `ln_p`: q_(k) = min over j >= k of min(1, m p_(j) / j), NaN where ln p is NaN.
///
/// m counts the ln p that are not NaN; ties keep their order and get the same value. Holds for independent and positively
/// dependent tests. Checked against statsmodels `fdr_bh` (`bh.json`) to 1e-12, rejections exactly, and [`weighted`] against the
/// reference program (`families.json`) to 1e-11.
#[must_use]
pub fn bh(ln_p: &[f64]) -> Vec<f64> {
    bh_among(ln_p, ln_p.iter().filter(|p| !p.is_nan()).count())
}

/// [`bh`] in a family of `members`, at least those of `ln_p`, of whom all others have p = 1.
#[must_use]
pub fn bh_among(ln_p: &[f64], members: usize) -> Vec<f64> {
    let order = ascending(ln_p.iter().copied().enumerate().filter(|(_, p)| !p.is_nan()));
    let m = members as f64;
    let mut q = vec![f64::NAN; ln_p.len()];
    let mut lowest = 1.0_f64;
    for (rank, &i) in order.iter().enumerate().rev() {
        lowest = lowest.min(libm::exp(ln_p[i]) * m / (rank + 1) as f64);
        q[i] = lowest;
    }
    q
}

/// ln of Simes' p-value of the intersection of all hypotheses in `ln_p`: min over k of m p_(k) / k; NaN of none.
///
/// Sorts its argument, NaN last. Simes (1986). Checked through `families.json`.
#[must_use]
pub fn simes(ln_p: &mut [f64]) -> f64 {
    ln_p.sort_unstable_by(|a, b| a.is_nan().cmp(&b.is_nan()).then(a.total_cmp(b)));
    let m = ln_p.iter().take_while(|p| !p.is_nan()).count();
    let ln_m = libm::log(m as f64);
    let least = ln_p[..m].iter().enumerate().map(|(i, &p)| p + (ln_m - libm::log((i + 1) as f64)));
    if m == 0 { f64::NAN } else { least.fold(f64::INFINITY, f64::min) }
}

/// The two-level decision over functions and cells.
#[derive(Clone, Debug, Default)]
pub struct TwoLevel {
    /// ln p by function: that nothing changed in any cell. NaN where neither a cell nor the roll-up was tested.
    pub ln_p_f: Vec<f64>,
    /// Weight of each function, mean 1 over those with a `ln_p_f`; NaN for the others.
    pub weights: Vec<f64>,
    /// BH q-value over functions.
    pub q_f: Vec<f64>,
    /// By cell, then function: the smallest q at which the row is selected; NaN where it was not tested.
    pub q_value: Vec<Vec<f64>>,
}

/// Two-level selection from `cells[cell][function]` and `roll_up[function]`, each ln of p_row, NaN for "not in the family";
/// `shares` of cost by function weigh the first level, `None` for equal weights.
///
/// p_f = min(1, 2 min(Simes over cells, p of the row over all cells)), the cell's own p with one cell, the roll-up's where no
/// cell was tested. BH over functions; inside the R selected at q, BH over cells at q R/F. `q_value` is the smallest q that
/// selects the row: min over j of max(j-th smallest q_f, q_cell F/j), and at least q_f. One falls and the other rises in j, so
/// it lies where they cross, found by bisection. Checked against the reference program (`families.json`) to 1e-11.
#[must_use]
pub fn two_level(cells: &[&[f64]], roll_up: &[f64], shares: Option<&[f64]>) -> TwoLevel {
    let functions = roll_up.len();
    let mut column = vec![f64::NAN; cells.len()];
    let mut ln_p_f = Vec::with_capacity(functions);
    for (f, &roll) in roll_up.iter().enumerate() {
        gather(cells, f, &mut column);
        ln_p_f.push(any_cell(&mut column, roll));
    }
    let known = |share: f64, p: f64| if p.is_nan() { f64::NAN } else { share };
    let shares = (0..functions).map(|f| known(shares.map_or(1.0, |shares| shares[f]), ln_p_f[f]));
    let weights = weights(&shares.collect::<Vec<_>>());
    let q_f = bh(&weighted(&ln_p_f, &weights));
    let q_value = within_selected(&q_f, cells);
    TwoLevel { ln_p_f, weights, q_f, q_value }
}

/// The second level: q-values of rows inside functions whose first-level q-values are `q_f`.
///
/// `rows[cell][function]` holds ln p, NaN for "not in the family"; the answer has the same shape. See [`two_level`]. A row
/// whose function is in no first-level family (`q_f` NaN) gets 1: its function cannot be selected.
#[must_use]
pub fn within_selected(q_f: &[f64], rows: &[&[f64]]) -> Vec<Vec<f64>> {
    let mut ascending: Vec<f64> = q_f.iter().copied().filter(|q| !q.is_nan()).collect();
    ascending.sort_unstable_by(f64::total_cmp);
    let mut q_value = vec![vec![f64::NAN; q_f.len()]; rows.len()];
    let mut column = vec![f64::NAN; rows.len()];
    for f in 0..q_f.len() {
        gather(rows, f, &mut column);
        let q_function = if q_f[f].is_nan() { 1.0 } else { q_f[f] };
        for (cell, &q) in bh(&column).iter().enumerate() {
            if !q.is_nan() {
                q_value[cell][f] = smallest_q(&ascending, q).max(q_function).min(1.0);
            }
        }
    }
    q_value
}

fn gather(cells: &[&[f64]], function: usize, column: &mut [f64]) {
    for (slot, cell) in column.iter_mut().zip(cells) {
        *slot = cell[function];
    }
}

/// ln p_f of one function from its cells and its roll-up row.
fn any_cell(column: &mut [f64], roll_up: f64) -> f64 {
    if column.iter().all(|p| p.is_nan()) {
        roll_up
    } else if let [only] = column {
        *only
    } else {
        (std::f64::consts::LN_2 + simes(column).min(roll_up)).min(0.0)
    }
}

/// min over j of max(`ascending[j-1]`, n/j `q_cell`), n = `ascending.len()`, which is at least 1.
fn smallest_q(ascending: &[f64], q_cell: f64) -> f64 {
    let n = ascending.len();
    let inside = |j: usize| n as f64 / j as f64 * q_cell;
    let (mut low, mut high) = (0, n);
    while low < high {
        let middle = usize::midpoint(low, high);
        if ascending[middle] >= inside(middle + 1) { high = middle } else { low = middle + 1 }
    }
    let crossed = if low < n { ascending[low] } else { f64::INFINITY };
    let before = if low > 0 { inside(low) } else { f64::INFINITY };
    crossed.min(before)
}
