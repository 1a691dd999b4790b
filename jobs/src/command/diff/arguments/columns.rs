//! Which columns of plain differences are shown.

use std::str::FromStr;

use clap::Args;
use fleetdiff_diff::columns::Compute;
use fleetdiff_formats::Period;

use crate::failure::Failure;

/// What is computed of each function, as `perf diff` does.
#[derive(Debug, Args)]
#[command(next_help_heading = "Plain differences, as in perf diff")]
pub(crate) struct ColumnArgs {
    /// Difference to compute: delta, delta-abs, ratio, wdiff:W1,W2 (head * W2 - base * W1), spread (delta, with the variation between runs)
    #[arg(short, long, value_name = "WHAT")]
    pub(crate) compute: Option<ComputeName>,
    /// Without a value, show absolute values: periods, bytes or nanoseconds if the files have them, else samples. With a value, as in 10ms, no column: the time from one sample to the next, for files of times that name no period or a wrong one
    #[arg(short, long, value_name = "DURATION")]
    #[expect(clippy::option_option, reason = "an option of perf diff that takes no value there")]
    pub(crate) period: Option<Option<Period>>,
    /// Show the formula behind each difference
    #[arg(short = 'F', long)]
    pub(crate) formula: bool,
    /// Compare each canary file separately with the baseline, one column each
    #[arg(long)]
    pub(crate) columns: bool,
    /// Sort rows by this column: 0 is the baseline's share, 1 the difference of the first canary file, and so on
    #[arg(short, long, value_name = "COLUMN", value_parser = order)]
    pub(crate) order: Option<usize>,
}

impl ColumnArgs {
    /// Whether plain differences are requested.
    pub(crate) fn are_wanted(&self) -> bool {
        self.compute.is_some() || self.shows_values() || self.formula || self.columns || self.order.is_some()
    }

    /// Whether absolute values are shown.
    pub(crate) fn shows_values(&self) -> bool {
        self.period == Some(None)
    }

    /// How long it is from one sample to the next, if it was said.
    pub(crate) fn declared(&self) -> Option<Period> {
        self.period.flatten()
    }

    /// Whether each head file is a separate side.
    pub(crate) fn splits_heads(&self) -> bool {
        self.columns
    }

    /// Refuses to sort by a column that does not exist.
    pub(crate) fn check(&self, head_files: usize) -> Result<(), Failure> {
        let heads = if self.columns { head_files } else { 1 };
        match self.order {
            Some(column) if column > heads => Err(Failure::usage(
                NoColumn { column, heads },
                "0 is the base's share, 1 the first head; --columns gives each head file a column",
            )),
            _ => Ok(()),
        }
    }
}

/// A column to sort by that does not exist.
#[derive(Debug, thiserror::Error)]
#[error("--order {column}, but the last column to sort by is {heads}")]
struct NoColumn {
    column: usize,
    heads: usize,
}

/// What is computed, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ComputeName(pub(crate) Compute);

impl FromStr for ComputeName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let weighted = || -> Option<Compute> {
            let (base, head) = text.strip_prefix("wdiff:")?.split_once(',')?;
            Some(Compute::WeightedDiff { base: base.trim().parse().ok()?, head: head.trim().parse().ok()? })
        };
        let found = match text {
            "delta" => Some(Compute::Delta),
            "delta-abs" => Some(Compute::DeltaAbs),
            "ratio" => Some(Compute::Ratio),
            "spread" | "cycles" => Some(Compute::Spread),
            _ => weighted(),
        };
        found.map(Self).ok_or_else(|| {
            format!(
                "{text:?}, expected delta, delta-abs, ratio, spread or wdiff:W1,W2 with whole numbers, as wdiff:1,2"
            )
        })
    }
}

fn order(text: &str) -> Result<usize, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is no number of a column (0: the base); a file for the result is --output"))
}
