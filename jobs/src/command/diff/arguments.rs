//! The arguments of `diff`.

mod columns;
mod files;
mod names;
mod output;
mod reading;
mod table;
mod times;

use clap::{Args, ValueEnum};
use fleetdiff_diff::compare::{Method, Settings};

pub(crate) use columns::ColumnArgs;
pub(crate) use files::{FileArgs, is_piped};
pub(crate) use output::{FailOn, OutputArgs, OutputFormat};
pub(crate) use table::{ROWS, TableArgs};

use super::lines::Screen;
use crate::ranges::{checked, is_log_ratio, is_within_one, whole};

/// Heading of the flags that decide what is significant.
const DECISION: &str = "Decision";

/// Arguments of `diff`.
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    pub(crate) files: FileArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) table: TableArgs,
    #[command(flatten)]
    pub(crate) columns: ColumnArgs,
    /// Method that decides what is significant
    #[arg(long, help_heading = DECISION, value_enum, default_value_t = MethodName::Honest)]
    pub(crate) method: MethodName,
    /// Minimum effect: a change must be larger than this to be significant, as a log ratio (0.01 is about 1 %)
    #[arg(long, value_name = "LOG_RATIO", help_heading = DECISION, default_value_t = 0.01, value_parser = log_ratio)]
    pub(crate) min_effect: f64,
    /// False-discovery rate, between 0 and 1
    #[arg(long, value_name = "RATE", help_heading = DECISION, default_value_t = 0.05, value_parser = rate)]
    pub(crate) q: f64,
    /// Fewest samples of both sides together for which a function is tested [default: 30]. Times without a period have no samples: there, 0.1 % of all time
    #[arg(long, value_name = "SAMPLES", help_heading = DECISION, value_parser = |text: &str| whole(text, 0..=u64::MAX))]
    pub(crate) min_count: Option<u64>,
    /// With one run per side: variation of functions between runs beyond that of independent samples, as a standard deviation of log
    /// ratios (0.03: 3 %); 0: none [default: what the functions of the two runs show]
    #[arg(long, help_heading = DECISION, value_name = "DEVIATION", value_parser = log_ratio)]
    pub(crate) background: Option<f64>,
}

/// The method that decides what is significant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MethodName {
    /// Runs as replicates, a robust normalization factor, controlled false-discovery rate
    Honest,
    /// G test on merged counts, p below 1e-4: for comparison, not calibrated
    Article,
}

fn rate(text: &str) -> Result<f64, String> {
    checked(text.parse().ok(), is_within_one, "expected a rate between 0 and 1")
}

fn log_ratio(text: &str) -> Result<f64, String> {
    checked(text.parse().ok(), is_log_ratio, "expected a log ratio of at least 0 and less than 10 (0.01 is about 1 %)")
}

impl DiffArgs {
    /// Whether functions that have another name on each side may be compared as one: neither rules that are not ours nor plain differences do that.
    pub(crate) fn pairs(&self) -> bool {
        self.method == MethodName::Honest && !self.columns.are_wanted() && self.files.reading.pairs()
    }

    /// What shows the table: a file has no width.
    pub(crate) fn screen(&self) -> Screen {
        if self.output.output.is_some() { Screen::default() } else { Screen::of_stdout() }
    }

    /// What decides which functions are significant.
    pub(crate) fn decides(&self) -> Settings {
        let method = match self.method {
            MethodName::Honest => Method::Honest,
            MethodName::Article => Method::Article,
        };
        Settings {
            method,
            q: self.q,
            min_effect: self.min_effect,
            min_count: self.min_count.unwrap_or_else(|| Settings::default().min_count),
            background: self.background,
        }
    }
}
