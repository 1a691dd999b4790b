//! The table that `calibrate` prints: bounds and measured figures with errors, and the result of the plain test.

use clap::ValueEnum;
use fleetdiff_simulation::calibration::{Bound, Effort, Estimate, Measured, MeasuredFigure, Row, Statistic};
use serde_json::{Value, json};

use crate::columns::{Column, aligned};

/// The method whose figures must keep to the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Judged {
    /// fleetdiff's own statistics
    Honest,
    /// G test on merged counts with Benjamini-Hochberg: shows that the bounds can be missed
    Article,
}

/// How the table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned table
    Table,
    /// One JSON object for each row
    Json,
    /// Markdown table
    Markdown,
}

/// Figure, bound, measured, in or out of bounds, and the plain test. Rows are printed one by one, so their columns have
/// fixed widths.
const COLUMNS: [Column; 5] = [
    Column::WORDS.at_least(66),
    Column::WORDS.at_least(10),
    Column::WORDS.at_least(34),
    Column::WORDS.at_least(8),
    Column::WORDS,
];

/// Writes rows one by one and remembers what was outside.
pub(crate) struct Report {
    format: Format,
    judged: Judged,
    begun: bool,
    required: usize,
    outside: Vec<String>,
}

impl Report {
    /// Nothing is written.
    pub(crate) fn new(format: Format, judged: Judged) -> Self {
        Self { format, judged, begun: false, required: 0, outside: Vec::new() }
    }

    /// Figures outside their bounds, as `row: figure`.
    pub(crate) fn outside(&self) -> &[String] {
        &self.outside
    }

    /// A row before it is measured.
    pub(crate) fn listed(&self, row: &Row) -> String {
        match self.format {
            Format::Json => {
                let figures: Vec<Value> = row
                    .figures
                    .iter()
                    .map(|figure| json!({ "figure": figure.name, "required": figure.required.map(bound) }))
                    .collect();
                format!("{}\n", json!({ "row": row.name, "simulates": row.simulates, "figures": figures }))
            }
            Format::Table | Format::Markdown => {
                let cells = row.figures.iter().map(|figure| vec![figure.name.to_owned(), required(figure.required)]);
                let lines = aligned(&COLUMNS, 1, &cells.collect::<Vec<_>>());
                let figures: String = lines.iter().map(|line| format!("    {line}\n")).collect();
                format!("{}\n  {}\n{figures}", row.name, row.simulates)
            }
        }
    }

    /// A row as measured.
    pub(crate) fn row(&mut self, row: &Row, measured: &Measured) -> String {
        for figure in &measured.figures {
            let Some(is_met) = self.is_met(figure) else { continue };
            self.required += 1;
            if !is_met {
                self.outside.push(format!("{}: {}", row.name, figure.figure.name));
            }
        }
        let first = !std::mem::replace(&mut self.begun, true);
        match self.format {
            Format::Table => self.text(row, measured),
            Format::Json => format!("{}\n", self.json(row, measured)),
            Format::Markdown => format!("{}{}", if first { HEADER } else { "" }, self.markdown(row, measured)),
        }
    }

    /// What comes last.
    pub(crate) fn end(&self, effort: Effort) -> String {
        let summary = format!(
            "fleetdiff {}, seed {}, {} runs of a row: {} of {} required figures are within their bounds\n",
            env!("CARGO_PKG_VERSION"),
            effort.seed,
            effort.runs,
            self.required - self.outside.len(),
            self.required,
        );
        match self.format {
            Format::Table => format!("\n{summary}"),
            Format::Markdown => format!("\n{summary}"),
            Format::Json => String::new(),
        }
    }

    /// Whether a figure is within its bound; none if there is no bound, or the tested method has no such figure.
    fn is_met(&self, figure: &MeasuredFigure) -> Option<bool> {
        match self.judged {
            Judged::Honest => figure.figure.required.map(|_| figure.is_met()),
            Judged::Article => figure.is_met_by_the_plain_test(),
        }
    }

    fn word(&self, figure: &MeasuredFigure) -> &'static str {
        match self.is_met(figure) {
            None => "",
            Some(true) => "ok",
            Some(false) => "OUTSIDE",
        }
    }

    fn text(&self, row: &Row, measured: &Measured) -> String {
        let cells = measured.figures.iter().map(|figure| {
            let statistic = figure.figure.statistic;
            vec![
                figure.figure.name.to_owned(),
                required(figure.figure.required),
                with_errors(figure.ours, statistic),
                self.word(figure).to_owned(),
                figure.plain.map_or_else(String::new, |plain| format!("plain G + BH {}", value(plain, statistic))),
            ]
        });
        let lines = aligned(&COLUMNS, 1, &cells.collect::<Vec<_>>());
        let figures: String = lines.iter().map(|line| format!("  {line}\n")).collect();
        format!("\n{}: {} ({} runs)\n{figures}", row.name, row.simulates, measured.runs)
    }

    fn markdown(&self, row: &Row, measured: &Measured) -> String {
        let mut text = format!("| **`{}`** {} ({} runs) | | | | |\n", row.name, row.simulates, measured.runs);
        for figure in &measured.figures {
            let statistic = figure.figure.statistic;
            text.push_str(&format!(
                "| {} | {} | {} | {} | {} |\n",
                figure.figure.name,
                figure.plain.map_or_else(String::new, |plain| value(plain, statistic)),
                required(figure.figure.required),
                with_errors(figure.ours, statistic),
                self.word(figure),
            ));
        }
        text
    }

    fn json(&self, row: &Row, measured: &Measured) -> Value {
        let figure = |figure: &MeasuredFigure| {
            json!({
                "figure": figure.figure.name,
                "statistic": name(figure.figure.statistic),
                "required": figure.figure.required.map(bound),
                "measured": estimate(figure.ours),
                "plain": figure.plain.map(estimate),
                "within": self.is_met(figure),
            })
        };
        let figures: Vec<Value> = measured.figures.iter().map(figure).collect();
        json!({ "row": row.name, "simulates": row.simulates, "runs": measured.runs, "figures": figures })
    }
}

const HEADER: &str = "| | plain G + BH | required | measured | |\n| --- | --- | --- | --- | --- |\n";

fn name(statistic: Statistic) -> &'static str {
    match statistic {
        Statistic::Rate => "rate",
        Statistic::Mean => "mean",
        Statistic::Median => "median",
        Statistic::Most => "most",
    }
}

fn bound(bound: Bound) -> Value {
    match bound {
        Bound::AtMost(x) => json!({ "at_most": x }),
        Bound::AtLeast(x) => json!({ "at_least": x }),
        Bound::Between(low, high) => json!({ "at_least": low, "at_most": high }),
    }
}

/// Numbers that are not finite are null.
fn estimate(estimate: Estimate) -> Value {
    json!({
        "value": estimate.value,
        "standard_error": estimate.standard_error,
        "interval": estimate.interval.map(|(low, high)| [low, high]),
        "trials": estimate.trials,
    })
}

fn required(required: Option<Bound>) -> String {
    match required {
        None => String::new(),
        Some(Bound::AtMost(x)) => format!("<= {}", number(x, 4)),
        Some(Bound::AtLeast(x)) => format!(">= {}", number(x, 4)),
        Some(Bound::Between(low, high)) => format!("{} to {}", number(low, 4), number(high, 4)),
    }
}

/// Value, standard error, and 95 % interval.
fn with_errors(estimate: Estimate, statistic: Statistic) -> String {
    let digits = digits(estimate, statistic);
    let error = estimate
        .standard_error
        .filter(|error| error.is_finite())
        .map_or_else(String::new, |error| format!(" +- {error:.digits$}"));
    let interval = estimate.interval.filter(|(low, _)| low.is_finite());
    let interval = interval
        .map_or_else(String::new, |(low, high)| format!(" ({} to {})", fixed(low, digits), fixed(high, digits)));
    format!("{}{error}{interval}", value(estimate, statistic))
}

fn value(estimate: Estimate, statistic: Statistic) -> String {
    fixed(estimate.value, digits(estimate, statistic))
}

fn fixed(number: f64, digits: usize) -> String {
    if number.is_infinite() { "never".to_owned() } else { format!("{number:.digits$}") }
}

/// Digits after the point: three for a rate, none for a count or for seconds.
fn digits(estimate: Estimate, statistic: Statistic) -> usize {
    match statistic {
        Statistic::Rate => 3,
        Statistic::Mean if estimate.value.abs() >= 10.0 => 1,
        Statistic::Mean => 3,
        Statistic::Median | Statistic::Most => 0,
    }
}

/// At most this many digits after the point, without trailing zeros.
fn number(x: f64, digits: usize) -> String {
    let text = format!("{x:.digits$}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text.is_empty() { "0".to_owned() } else { text.to_owned() }
}
