//! The verdict of a comparison in each cell and over all, at each look.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleetdiff_schemas::identity::{MERGED, stable_hash};
use fleetdiff_schemas::number::table_count;
use fleetdiff_schemas::rows::{CellKey, CellRow, ComparisonKey, ComparisonRow};
use fleetdiff_schemas::tables::calendar::rfc3339;
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::{BaseKind, ComparisonVerdict, Support, Verdict};

use fleetdiff_schemas::profile::{CountKind, ProfileType};
use fleetdiff_statistics::normalization::Mode;

use super::aa_check::Checked;
use super::advice::{plural, without_ratio};
use super::lifecycle::LiveRule;
use super::wording::Wording;
use crate::evidence::imbalance::Imbalance;
use crate::evidence::look::KindLook;
use crate::evidence::row::RowEvidence;
use crate::evidence::strata_detail::History;

/// Share of the base's self samples that must be in equivalent functions for a clean cell.
pub const CLEAN_SHARE: f64 = 0.7;

/// ln of the p-value up to which the cost per request of all samples together has moved.
const LN_P_MOVED: f64 = -2.995_732_273_553_991;

/// What all rows of one look have in common.
#[derive(Clone, Debug)]
pub struct SummaryFrame {
    /// Which builds of what.
    pub comparison: ComparisonKey,
    /// Start of the epoch.
    pub window_start_at: Nanos,
    /// End of the hop.
    pub window_end_at: Nanos,
    /// Time blocks since the epoch began.
    pub blocks: u64,
}

/// What a report says about the cells besides their rows; empty at a look without a report.
#[derive(Debug, Default)]
pub struct Reported {
    /// The A/A check, by cell.
    pub checked: BTreeMap<CellKey, Checked>,
    /// Imbalances of the arms, by cell.
    pub imbalance: BTreeMap<CellKey, Vec<Imbalance>>,
}

/// The rows of one kind of count: one per cell, then the one over all cells.
pub fn summarise(
    frame: &SummaryFrame,
    cells: &BTreeMap<CellKey, KindLook>,
    live: &LiveRule,
    reported: &Reported,
) -> Vec<ComparisonRow> {
    let Some(kind) = cells.values().next().map(|look| look.count_kind) else { return Vec::new() };
    let mut significant: BTreeMap<&CellKey, SignificantRows<'_>> = BTreeMap::new();
    for of in CountKind::ALL {
        for (cell, evidence, standing) in live.rows(&frame.comparison, of) {
            if of == kind {
                significant.entry(cell).or_default().standing += usize::from(standing);
            }
            // The row of all samples together concerns both kinds of count.
            if of == kind || evidence.of_all {
                significant.entry(cell).or_default().rows.push(SignificantRow::of_live(evidence));
            }
        }
    }
    rows_of(frame, cells, &significant, reported)
}

/// The rows of one kind of count if the base is history, from the rows of the window.
pub fn summarise_history(
    frame: SummaryFrame,
    cells: &BTreeMap<CellKey, KindLook>,
    histories: &BTreeMap<&CellKey, &History>,
    rows: &[Arc<CellRow>],
) -> Vec<ComparisonRow> {
    let Some(kind) = cells.values().next().map(|look| look.count_kind) else { return Vec::new() };
    let mut significant: BTreeMap<&CellKey, SignificantRows<'_>> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.count_kind == kind && row.verdict.is_significant()) {
        significant.entry(&row.cell).or_default().rows.push(SignificantRow::of_window(row));
    }
    let all = History::of_cells(histories.values().copied());
    let hours = u64::try_from(all.as_ref().map_or(0, |history| history.hours.len())).unwrap_or(0);
    let mut summaries = rows_of(&SummaryFrame { blocks: hours, ..frame }, cells, &significant, &Reported::default());
    for row in &mut summaries {
        let words = histories.get(&row.cell).copied().or(all.as_ref()).map(History::words).unwrap_or_default();
        let sentence = match row.verdict {
            ComparisonVerdict::NotComparable => "no hour of the day and hardware has samples of both builds",
            _ => &row.sentence,
        };
        row.sentence = format!("{words}; {sentence}");
        row.warnings.push(words);
        row.base_kind = BaseKind::History;
    }
    summaries
}

fn rows_of(
    frame: &SummaryFrame,
    cells: &BTreeMap<CellKey, KindLook>,
    significant: &BTreeMap<&CellKey, SignificantRows<'_>>,
    reported: &Reported,
) -> Vec<ComparisonRow> {
    let none = SignificantRows::default();
    let row = |(cell, look)| cell_row(frame, cell, look, significant.get(cell).unwrap_or(&none), reported);
    let mut rows: Vec<ComparisonRow> = cells.iter().map(row).collect();
    let all = CellKey { region: MERGED.into(), cohort: MERGED.into() };
    if !cells.contains_key(&all) {
        rows.push(row_over_all(frame, all, cells, &rows, &reported.imbalance));
    }
    rows
}

/// The selected rows of a cell, and how many of them are flagged.
#[derive(Default)]
struct SignificantRows<'a> {
    rows: Vec<SignificantRow<'a>>,
    standing: usize,
}

/// A selected row, by how much it changed, and the hash that orders equal changes.
#[derive(Clone, Copy)]
struct SignificantRow<'a> {
    theta: f64,
    hash: u64,
    row: &'a CellRow,
    /// Whether it is the row of all samples together.
    of_all: bool,
}

impl<'a> SignificantRow<'a> {
    /// A row that the live rule has selected.
    fn of_live(evidence: &'a RowEvidence) -> Self {
        Self { theta: evidence.theta, hash: evidence.hash, row: &evidence.row, of_all: evidence.of_all }
    }

    /// A row of a window that is significant by its verdict; a row without a ratio has samples in one arm only.
    fn of_window(row: &'a CellRow) -> Self {
        let size = row.adjusted_ratio.map_or(f64::INFINITY, |ratio| libm::log(ratio.value).abs());
        let theta = if row.verdict == Verdict::Regressed { size } else { -size };
        Self { theta, hash: stable_hash(row.function.as_bytes()), row, of_all: false }
    }
}

fn cell_row(
    frame: &SummaryFrame,
    cell: &CellKey,
    look: &KindLook,
    significant: &SignificantRows<'_>,
    reported: &Reported,
) -> ComparisonRow {
    let verdict = cell_verdict(look, &significant.rows);
    let checked = reported.checked.get(cell);
    ComparisonRow {
        comparison: frame.comparison.clone(),
        count_kind: look.count_kind,
        cell: cell.clone(),
        is_roll_up: false,
        window_start_at: frame.window_start_at,
        window_end_at: frame.window_end_at,
        head_total: look.head_total,
        base_total: look.base_total,
        head_pods: table_count(look.head_pods.len()),
        base_pods: table_count(look.base_pods.len()),
        functions_tested: table_count(look.tests),
        normalization_factor: look.scales.first().map(|scale| libm::exp(scale.ln_scale)),
        admissible_factors: if look.scales.len() > 1 { look.scales.iter().map(factor).collect() } else { Vec::new() },
        head_pod_variance: look.pod_variance.map(|(head, _)| head),
        base_pod_variance: look.pod_variance.map(|(_, base)| base),
        flags: table_count(significant.standing),
        time_blocks: table_count(look.time_blocks),
        strata_dropped: table_count(look.strata_dropped),
        equivalent_share: look.equivalent_share,
        verdict,
        sentence: sentence(verdict, look, &significant.rows),
        action: None,
        aa_check_tests: checked.map(|checked| table_count(checked.tests)),
        aa_check_flags: checked.map(|checked| table_count(checked.flags)),
        warnings: reported.imbalance.get(cell).into_iter().flatten().map(ToString::to_string).collect(),
        base_kind: BaseKind::Concurrent,
    }
}

/// One of several normalization factors, in words.
fn factor(scale: &Mode) -> String {
    format!("x {:.3} ({:.0} % of cost)", libm::exp(scale.ln_scale), scale.mass * 100.0)
}

fn cell_verdict(look: &KindLook, raised: &[SignificantRow<'_>]) -> ComparisonVerdict {
    if !look.comparable {
        ComparisonVerdict::NotComparable
    } else if raised.iter().any(|row| row.theta > 0.0) {
        ComparisonVerdict::Regressed
    } else if raised.iter().any(|row| row.of_all) {
        ComparisonVerdict::Improved
    } else if look.equivalent_share.is_some_and(|share| share >= CLEAN_SHARE)
        && look.all_ln_p.is_none_or(|ln_p| ln_p > LN_P_MOVED)
    {
        ComparisonVerdict::Clean
    } else {
        ComparisonVerdict::Inconclusive
    }
}

fn row_over_all(
    frame: &SummaryFrame,
    cell: CellKey,
    cells: &BTreeMap<CellKey, KindLook>,
    rows: &[ComparisonRow],
    imbalance: &BTreeMap<CellKey, Vec<Imbalance>>,
) -> ComparisonRow {
    let sum = |of: fn(&ComparisonRow) -> i64| rows.iter().map(of).sum::<i64>();
    let distinct =
        |of: fn(&KindLook) -> &Vec<u64>| table_count(cells.values().flat_map(of).collect::<BTreeSet<_>>().len());
    let verdict = verdict_over_all(rows);
    ComparisonRow {
        comparison: frame.comparison.clone(),
        count_kind: rows[0].count_kind,
        cell,
        is_roll_up: true,
        window_start_at: frame.window_start_at,
        window_end_at: frame.window_end_at,
        head_total: sum(|row| row.head_total),
        base_total: sum(|row| row.base_total),
        head_pods: distinct(|look| &look.head_pods),
        base_pods: distinct(|look| &look.base_pods),
        functions_tested: sum(|row| row.functions_tested),
        normalization_factor: None,
        admissible_factors: Vec::new(),
        head_pod_variance: None,
        base_pod_variance: None,
        flags: sum(|row| row.flags),
        time_blocks: table_count(frame.blocks),
        strata_dropped: sum(|row| row.strata_dropped),
        equivalent_share: None,
        verdict,
        sentence: format!("{}{}", verdicts_of(rows), unseen(frame.comparison.profile_type, cells)),
        action: None,
        aa_check_tests: known_sum(rows, |row| row.aa_check_tests),
        aa_check_flags: known_sum(rows, |row| row.aa_check_flags),
        warnings: imbalance_in(imbalance, rows.len()),
        base_kind: BaseKind::Concurrent,
    }
}

/// How many cells have which verdict.
fn verdicts_of(rows: &[ComparisonRow]) -> String {
    let words = [
        (ComparisonVerdict::Regressed, "regressed"),
        (ComparisonVerdict::Improved, "improved"),
        (ComparisonVerdict::Clean, "unchanged"),
        (ComparisonVerdict::Inconclusive, "inconclusive"),
        (ComparisonVerdict::NotComparable, "not comparable"),
    ];
    let mut of = format!(" of {} {}", rows.len(), plural(rows.len(), "cell"));
    let counted = words.into_iter().filter_map(|(verdict, word)| {
        let count = rows.iter().filter(|row| row.verdict == verdict).count();
        (count > 0).then(|| format!("{count}{} {word}", std::mem::take(&mut of)))
    });
    counted.collect::<Vec<_>>().join(", ")
}

/// What cannot be detected without request counts.
fn unseen(profile_type: ProfileType, cells: &BTreeMap<CellKey, KindLook>) -> String {
    let Some(unseen) = Wording::of(profile_type).unseen() else { return String::new() };
    match cells.values().filter(|look| !look.requests_known).count() {
        0 => String::new(),
        all if all == cells.len() => format!("; without request counts {unseen}"),
        some => format!("; in {some} without request counts {unseen}"),
    }
}

/// How many cells have which warning.
fn imbalance_in(imbalance: &BTreeMap<CellKey, Vec<Imbalance>>, cells: usize) -> Vec<String> {
    let mut warned: BTreeMap<&str, usize> = BTreeMap::new();
    for subjects in
        imbalance.values().map(|imbalance| imbalance.iter().map(Imbalance::subject).collect::<BTreeSet<_>>())
    {
        subjects.into_iter().for_each(|subject| *warned.entry(subject).or_default() += 1);
    }
    let of = format!("{cells} {}", plural(cells, "cell"));
    warned.into_iter().map(|(subject, here)| format!("{subject}: imbalance in {here} of {of}")).collect()
}

/// The sum of the known values; `None` if none is known.
fn known_sum(rows: &[ComparisonRow], of: fn(&ComparisonRow) -> Option<i64>) -> Option<i64> {
    rows.iter().filter_map(of).fold(None, |sum, value| Some(sum.unwrap_or(0) + value))
}

fn verdict_over_all(rows: &[ComparisonRow]) -> ComparisonVerdict {
    let any = |verdict| rows.iter().any(|row| row.verdict == verdict);
    let all = |verdict| rows.iter().all(|row| row.verdict == verdict);
    if all(ComparisonVerdict::NotComparable) {
        ComparisonVerdict::NotComparable
    } else if any(ComparisonVerdict::Regressed) {
        ComparisonVerdict::Regressed
    } else if any(ComparisonVerdict::Improved) {
        ComparisonVerdict::Improved
    } else if all(ComparisonVerdict::Clean) {
        ComparisonVerdict::Clean
    } else {
        ComparisonVerdict::Inconclusive
    }
}

fn sentence(verdict: ComparisonVerdict, look: &KindLook, raised: &[SignificantRow<'_>]) -> String {
    let (head, base) = (look.head_pods.len(), look.base_pods.len());
    let pods = format!("{head} {} of the head against {base} of the base", plural(head, "pod"));
    let percent =
        |share: Option<f64>| share.map_or_else(|| "0 %".to_owned(), |share| format!("{:.0} %", share * 100.0));
    match verdict {
        ComparisonVerdict::NotComparable => format!("no time block and hardware has samples of both arms ({pods})"),
        ComparisonVerdict::Regressed | ComparisonVerdict::Improved => {
            format!("{}{}", named(raised), provisional(raised))
        }
        ComparisonVerdict::Clean => format!(
            "no function flagged; functions with {} of the base's samples are equivalent (within 5 %)",
            percent(look.equivalent_share)
        ),
        ComparisonVerdict::Inconclusive if look.support == Support::Untestable => {
            format!("inconclusive: {pods}, and a test needs at least 2 pods in each")
        }
        ComparisonVerdict::Inconclusive if look.support == Support::Tentative => {
            format!("inconclusive: {pods}, and equivalence needs at least 5 in each")
        }
        ComparisonVerdict::Inconclusive if look.equivalent_share.is_some_and(|share| share >= CLEAN_SHARE) => format!(
            "inconclusive: functions with {} of the base's samples are equivalent, but the cost of a request of all functions together may \
             have changed ({pods})",
            percent(look.equivalent_share)
        ),
        ComparisonVerdict::Inconclusive => {
            format!(
                "inconclusive: functions with {} of the base's samples are equivalent, 70 % are needed ({pods})",
                percent(look.equivalent_share)
            )
        }
    }
}

/// Until when these rows may be a warm-up, if pods of different ages are compared.
fn provisional(raised: &[SignificantRow<'_>]) -> String {
    let until_at = raised.iter().filter_map(|significant| significant.row.provisional_until_at).max();
    until_at.map_or_else(String::new, |at| {
        format!("; provisional: pods are young, a warm-up cannot be excluded before {}", rfc3339(at))
    })
}

/// The flagged rows in words, the largest change first.
fn named(raised: &[SignificantRow<'_>]) -> String {
    let mut raised = raised.to_vec();
    raised.sort_by(|a, b| b.theta.abs().total_cmp(&a.theta.abs()).then(a.hash.cmp(&b.hash)));
    let words = raised.iter().take(3).map(|significant| {
        let function = &significant.row.function;
        match significant.row.effect() {
            Some(ratio) => format!("{function} x {:.3} ({:.3} to {:.3})", ratio.value, ratio.low, ratio.high),
            None => format!("{function} {}", without_ratio(significant.row)),
        }
    });
    let words: Vec<_> = words.collect();
    let more = raised.len().saturating_sub(words.len());
    if more > 0 { format!("{} and {more} more", words.join(", ")) } else { words.join(", ") }
}
