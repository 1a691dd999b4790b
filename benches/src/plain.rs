//! The expected flags: a plain evaluation at every look.
//!
//! Nothing here is incremental, encoded or screened: counts are whole columns per (cell, stratum, arm, bucket), every
//! function of every cell is tested again at every look, and e-BH sorts all rows. It shares only the pure statistics
//! with the dataflow ([`fleetdiff_statistics`], which are checked against outside programs). At the last look the rows
//! are also checked against the oracle's own statistics, which share nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use fleetdiff_oracle::statistics as oracle;
use fleetdiff_schemas::number::float;
use fleetdiff_statistics::evalue::ln_e_normalized;
use fleetdiff_statistics::{Arm, BucketRow, Contrast, Model, Moments, Stratum};

use crate::drive::Raised;
use crate::spread::milliseconds;
use crate::workload::Workload;

/// False-discovery rate, smallest change and smallest count, as in the configuration's defaults.
const Q: f64 = 0.05;
const MIN_EFFECT: f64 = 0.01;
const MIN_COUNT: f64 = 30.0;

/// Counts of one bucket in one stratum.
#[derive(Clone, Debug, Default)]
struct Column {
    samples: u64,
    pods: BTreeSet<usize>,
    counts: Vec<u32>,
}

/// By (block, kind of machine), then head and base, then bucket.
type Strata = BTreeMap<(usize, String), [BTreeMap<u8, Column>; 2]>;

/// One cell.
#[derive(Clone, Debug, Default)]
struct Cell {
    strata: Strata,
    joined: BTreeSet<usize>,
}

/// A tested row: function, ln p and ln e, theta after normalization.
#[derive(Clone, Copy, Debug)]
struct Row {
    function: usize,
    ln_p: f64,
    ln_e: f64,
    theta: f64,
}

/// The results of the plain evaluation.
#[derive(Clone, Debug, Default)]
pub struct Plain {
    /// Its flags; hops are counted from 0, and the last one, which is incomplete, is left out.
    pub raised: Raised,
    /// Milliseconds of each look: every test of every cell, and e-BH.
    pub look: Vec<f64>,
}

/// Evaluates a workload plainly at each of its looks.
///
/// # Panics
/// If the oracle's statistics differ at the last look.
#[must_use]
pub fn evaluate(workload: &Workload, threads: usize) -> Plain {
    let mut cells = vec![Cell::default(); workload.cells()];
    let mut raised = BTreeMap::new();
    let mut plain = Plain::default();
    for hop in 0..workload.hops() - 1 {
        each_cell(&mut cells, threads, |number, cell| cell.add(workload, number, hop));
        if !workload.looks_at(hop) {
            continue;
        }
        let begun = Instant::now();
        let rows = each_cell(&mut cells, threads, |_, cell| cell.test());
        let family = cells.iter().map(|cell| cell.joined.len()).sum();
        let significant = significant(&rows, family);
        plain.look.push(milliseconds(begun));
        for (cell, row) in significant {
            if row.theta.abs() >= MIN_EFFECT {
                raised.entry((cell, row.function)).or_insert(hop);
            }
        }
        if hop + 2 == workload.hops() {
            hold_against_oracle(&cells, &rows);
        }
    }
    let named = raised
        .into_iter()
        .map(|((cell, function), hop)| (hop, workload.cell(cell), workload.name(function).to_string()));
    plain.raised = named.collect();
    plain
}

/// Calls a function for every cell, on several threads.
fn each_cell<T: Send>(cells: &mut [Cell], threads: usize, act: impl Fn(usize, &mut Cell) -> T + Sync) -> Vec<T> {
    let each = cells.len().div_ceil(threads.max(1));
    let act = &act;
    std::thread::scope(|scope| {
        let parts = cells.chunks_mut(each).enumerate().map(|(part, cells)| {
            scope.spawn(move || (part * each..).zip(cells).map(|(number, cell)| act(number, cell)).collect::<Vec<_>>())
        });
        let parts: Vec<_> = parts.collect();
        parts.into_iter().flat_map(|part| part.join().unwrap_or_default()).collect()
    })
}

impl Cell {
    fn add(&mut self, workload: &Workload, number: usize, hop: u64) {
        for (id, pod) in workload.pods.iter().enumerate().filter(|(_, pod)| pod.cell == number) {
            let key = (workload.block(hop), pod.identity.hardware.to_string());
            let arms = self.strata.entry(key).or_default();
            let column = arms[usize::from(!pod.head)].entry(pod.identity.bucket().0).or_default();
            column.counts.resize(usize::try_from(workload.size.functions).unwrap_or(0), 0);
            column.pods.insert(id);
            for (function, count) in workload.samples(pod, hop) {
                column.samples += u64::from(count);
                if let Some(sum) = usize::try_from(function).ok().and_then(|function| column.counts.get_mut(function)) {
                    *sum += count;
                }
            }
        }
    }

    /// Pods of an arm by bucket, over all strata.
    fn pods(&self, arm: usize) -> BTreeMap<u16, u32> {
        let mut pods: BTreeMap<u16, BTreeSet<usize>> = BTreeMap::new();
        for (bucket, column) in self.strata.values().flat_map(|arms| &arms[arm]) {
            pods.entry(u16::from(*bucket)).or_default().extend(&column.pods);
        }
        pods.into_iter().map(|(bucket, pods)| (bucket, u32::try_from(pods.len()).unwrap_or(0))).collect()
    }

    fn test(&mut self) -> Vec<Row> {
        let (head, base) = (self.pods(0), self.pods(1));
        let of_arm = |pods: &BTreeMap<u16, u32>| pods.values().sum::<u32>();
        if of_arm(&head) < 2 || of_arm(&base) < 2 {
            return Vec::new();
        }
        let arm = |columns| Arm { rows: rows(columns) };
        let strata = self.strata.values().map(|[head, base]| Stratum { head: arm(head), base: arm(base) });
        let functions =
            self.strata.values().flatten().flat_map(BTreeMap::values).map(|column| column.counts.len()).max();
        let contrast = Contrast::new(functions.unwrap_or(0), strata.collect(), head, base);
        let moments = Moments::measure(&contrast, Model::Share, MIN_COUNT);
        let (share, adjusted) = (moments.normalized(1.0), moments.normalized(moments.normalization()));
        let tested = (0..moments.a.len()).filter(|&f| moments.tested[f]);
        let row = |f: usize| {
            let part = (moments.a[f] + moments.b[f]) / (moments.n_head + moments.n_base);
            let (ln_p, theta) = (adjusted.ln_p[f], adjusted.theta[f]);
            Row { function: f, ln_p, ln_e: ln_e_normalized(ln_p, share.se[f], part), theta }
        };
        let rows: Vec<Row> = tested.map(row).collect();
        self.joined.extend(rows.iter().map(|row| row.function));
        rows
    }

    /// The cell's arm as input of the oracle, for these functions.
    fn oracle_arm(&self, arm: usize, functions: &[usize]) -> oracle::strata::Arm {
        let pods = self.pods(arm);
        let of = |columns: &BTreeMap<u8, Column>, bucket: &u16| {
            u8::try_from(*bucket).ok().and_then(|bucket| columns.get(&bucket)).cloned()
        };
        let counts = |column: Option<Column>| {
            functions.iter().map(|&f| column.as_ref().map_or(0.0, |column| f64::from(column.counts[f]))).collect()
        };
        let samples = |column: Option<Column>| column.map_or(0.0, |column| float(column.samples));
        let strata = || self.strata.values().map(|arms| &arms[arm]);
        oracle::strata::Arm {
            counts: strata().map(|columns| pods.keys().map(|bucket| counts(of(columns, bucket))).collect()).collect(),
            samples: strata().map(|columns| pods.keys().map(|bucket| samples(of(columns, bucket))).collect()).collect(),
            pods: pods.values().map(|&pods| f64::from(pods)).collect(),
            imbalance: false,
        }
    }
}

fn rows(columns: &BTreeMap<u8, Column>) -> Vec<BucketRow<'_>> {
    let row = |(bucket, column): (&u8, &'_ Column)| BucketRow {
        bucket: u16::from(*bucket),
        exposure: column.samples,
        counts: Vec::new(),
    };
    let mut rows: Vec<BucketRow<'_>> = columns.iter().map(row).collect();
    for (row, column) in rows.iter_mut().zip(columns.values()) {
        row.counts.push(&column.counts);
    }
    rows
}

/// e-BH over all rows of all cells: the k rows with the largest e, where k is the largest number with ln e >= ln(m/(q
/// k)).
fn significant(rows: &[Vec<Row>], family: usize) -> Vec<(usize, Row)> {
    let numbered = rows.iter().enumerate().flat_map(|(cell, rows)| rows.iter().map(move |&row| (cell, row)));
    let mut all: Vec<(usize, Row)> = numbered.collect();
    all.sort_by(|a, b| b.1.ln_e.total_cmp(&a.1.ln_e));
    let threshold =
        |k: usize| (float(u64::try_from(family).unwrap_or(0)) / (Q * float(u64::try_from(k).unwrap_or(1)))).ln();
    let k = (1..=all.len()).rev().find(|&k| all[k - 1].1.ln_e >= threshold(k)).unwrap_or(0);
    all.truncate(k);
    all
}

/// Tests every cell by the oracle's statistics and compares ln p of every row, to 1e-6.
fn hold_against_oracle(cells: &[Cell], rows: &[Vec<Row>]) {
    for (cell, rows) in cells.iter().zip(rows) {
        for (row, (ln_p, theta)) in rows.iter().zip(by_oracle(cell, rows)) {
            let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * b.abs().max(1.0);
            assert!(
                near(row.ln_p, ln_p) && near(row.theta, theta),
                "the oracle's statistics differ: {row:?}, ln p {ln_p}, theta {theta}"
            );
        }
    }
}

/// ln p and theta of these rows after normalization.
fn by_oracle(cell: &Cell, rows: &[Row]) -> Vec<(f64, f64)> {
    let functions: Vec<usize> = rows.iter().map(|row| row.function).collect();
    if functions.is_empty() {
        return Vec::new();
    }
    let (head, base) = (cell.oracle_arm(0, &functions), cell.oracle_arm(1, &functions));
    let share = oracle::strata::strata_test(&head, &base, oracle::strata::Model::Share, 1.0, MIN_COUNT);
    let both: Vec<usize> =
        (0..functions.len()).filter(|&i| share.tested[i] && share.a[i] > 0.0 && share.b[i] > 0.0).collect();
    let theta: Vec<f64> = both.iter().map(|&i| share.theta[i]).collect();
    let variances: Vec<f64> = both.iter().map(|&i| share.se[i] * share.se[i]).collect();
    let normalization = oracle::moderation::normalization_from(&theta, &variances);
    let adjusted = oracle::strata::strata_test(&head, &base, oracle::strata::Model::Share, normalization, MIN_COUNT);
    adjusted.ln_p.into_iter().zip(adjusted.theta).collect()
}
