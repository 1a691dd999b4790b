//! Plain differences in columns, as `perf diff` prints them, together with the test results.

use std::collections::BTreeMap;
use std::io::{self, Write};

use fleetdiff_diff::columns::{ByRun, Compute, Row, rows, standard_deviation};
use fleetdiff_diff::compare::{Compared, Finding, Recording};
use fleetdiff_diff::figures;
use fleetdiff_schemas::number::length_float;
use fleetdiff_schemas::profile::CountKind;

use super::arguments::DiffArgs;
use super::lines::{Head, Line};

/// A head as a column.
pub(crate) struct Column<'a> {
    /// Its runs.
    pub(crate) runs: &'a [Recording],
    /// Its differences from the base.
    pub(crate) compared: &'a Compared,
}

/// Prints one line per function; gives how many more there are.
pub(crate) fn print(
    out: &mut impl Write,
    base: &[Recording],
    columns: &[Column<'_>],
    args: &DiffArgs,
) -> io::Result<usize> {
    let (kind, wanted) = (args.table.count_kind(), &args.columns);
    let compute = wanted.compute.map_or(Compute::DeltaAbs, |name| name.0);
    let heads: Vec<&[Recording]> = columns.iter().map(|column| column.runs).collect();
    let are_weights = columns.iter().all(|column| column.compared.weights.is_some());
    if !args.table.is_quiet() {
        print_units(out, columns, are_weights)?;
    }
    let mut rows = rows(base, &heads, kind, compute, wanted.order.unwrap_or(1), are_weights);
    rows.retain(|row| !args.table.hides(row.base.own));
    let shown = args.table.shown(usize::MAX).min(rows.len());
    let spreads = (compute == Compute::Spread)
        .then(|| Spreads { base: ByRun::of(base), heads: heads.iter().map(|head| ByRun::of(head)).collect() });
    let printer = Printer {
        compute,
        kind,
        period: wanted.shows_values(),
        formula: wanted.formula,
        spreads,
        verdicts: columns.iter().map(|column| verdicts(column.compared, kind)).collect(),
    };
    let lines: Vec<Line> = rows
        .iter()
        .take(shown)
        .map(|row| Line { cells: printer.line(row), is_strong: printer.is_strong(row) })
        .collect();
    args.table.layout(args.screen()).print(out, &printer.heads(), lines)?;
    Ok(rows.len() - shown)
}

/// The unit of shares and differences.
fn print_units(out: &mut impl Write, columns: &[Column<'_>], are_weights: bool) -> io::Result<()> {
    let unit = columns.first().filter(|_| are_weights).and_then(|column| column.compared.weights.as_ref());
    let values = unit.map_or("samples", |weighed| &weighed.unit);
    writeln!(
        out,
        "Shares and differences are of {values}, as they are; verdicts and ratios in them are of the tests.\n"
    )
}

fn verdicts(compared: &Compared, kind: CountKind) -> BTreeMap<&str, &Finding> {
    compared.of_kind(kind).map(|finding| (&*finding.function, finding)).collect()
}

struct Spreads<'a> {
    base: ByRun<'a>,
    heads: Vec<ByRun<'a>>,
}

struct Printer<'a> {
    compute: Compute,
    kind: CountKind,
    period: bool,
    formula: bool,
    spreads: Option<Spreads<'a>>,
    verdicts: Vec<BTreeMap<&'a str, &'a Finding>>,
}

impl Printer<'_> {
    fn heads(&self) -> Vec<Head> {
        let computed = match self.compute {
            Compute::Delta | Compute::Spread => "delta",
            Compute::DeltaAbs => "delta-abs",
            Compute::Ratio => "ratio",
            Compute::WeightedDiff { .. } => "weighted diff",
        };
        let mut heads = vec![Head::figures("baseline")];
        heads.extend(self.period.then(|| Head::figures("base period")));
        heads.extend(self.spreads.is_some().then(|| Head::words("base runs")));
        for number in 1..=self.verdicts.len() {
            let titled =
                |title: &str| if self.verdicts.len() > 1 { format!("{title}/{number}") } else { title.to_owned() };
            heads.push(Head::figures(titled(computed)));
            heads.extend(self.spreads.is_some().then(|| Head::words(titled("head runs"))));
            heads.extend(self.formula.then(|| Head::figures(titled("formula"))));
            heads.extend(self.period.then(|| Head::figures(titled("period"))));
            heads.push(Head::words(titled("verdict")));
        }
        heads.push(Head::words("function"));
        heads
    }

    fn line(&self, row: &Row<'_>) -> Vec<String> {
        let mut line = vec![if row.base.own > 0 { format!("{:.2}%", row.base.percent()) } else { String::new() }];
        line.extend(self.period.then(|| row.base.own.to_string()));
        line.extend(self.spreads.as_ref().map(|spreads| spread(&spreads.base.shares(self.kind, row.function))));
        for (place, (head, verdicts)) in row.heads.iter().zip(&self.verdicts).enumerate() {
            line.push(self.computed(self.compute.of(row.base, *head)));
            line.extend(
                self.spreads
                    .as_ref()
                    .and_then(|spreads| spreads.heads.get(place))
                    .map(|runs| spread(&runs.shares(self.kind, row.function))),
            );
            line.extend(self.formula.then(|| self.compute.formula(row.base, *head)));
            line.extend(self.period.then(|| head.own.to_string()));
            line.push(verdicts.get(row.function).map_or_else(|| "too_rare".to_owned(), |finding| verdict(finding)));
        }
        line.push(row.function.to_owned());
        line
    }

    /// Whether any head has it significant or standing out.
    fn is_strong(&self, row: &Row<'_>) -> bool {
        self.verdicts.iter().filter_map(|verdicts| verdicts.get(row.function)).any(|finding| finding.is_shown_first())
    }

    /// With as many digits as perf prints.
    fn computed(&self, computed: Option<f64>) -> String {
        match (self.compute, computed) {
            (_, None) => "N/A".to_owned(),
            (Compute::Delta | Compute::DeltaAbs | Compute::Spread, Some(points)) => format!("{points:+.2}%"),
            (Compute::Ratio, Some(ratio)) => format!("{ratio:.6}"),
            (Compute::WeightedDiff { .. }, Some(amount)) => format!("{amount:.0}"),
        }
    }
}

/// Verdict, with the ratio if the finding is significant or stands out.
fn verdict(finding: &Finding) -> String {
    match finding.ratio.filter(|_| finding.is_shown_first()) {
        Some(ratio) => format!("{} {}", figures::of_runs(finding.verdict.name()), figures::ratio(ratio)),
        None => figures::of_runs(finding.verdict.name()),
    }
}

/// The shares of the runs as bars, and their standard deviation in points.
fn spread(shares: &[f64]) -> String {
    const BARS: [char; 8] =
        ['\u{2581}', '\u{2582}', '\u{2583}', '\u{2584}', '\u{2585}', '\u{2586}', '\u{2587}', '\u{2588}'];
    let most = shares.iter().copied().fold(0.0, f64::max);
    let bar = |share: f64| {
        BARS.iter()
            .enumerate()
            .rev()
            .find(|(place, _)| most > 0.0 && share / most * 8.0 > length_float(*place))
            .map_or(' ', |(_, bar)| *bar)
    };
    let bars: String = shares.iter().map(|share| bar(*share)).collect();
    match standard_deviation(shares) {
        Some(deviation) => format!("± {deviation:.2} {bars}"),
        None => "one run".to_owned(),
    }
}
