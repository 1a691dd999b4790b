//! What the table shows.

use clap::Args;
use fleetdiff_schemas::profile::CountKind;

use super::super::lines::{Layout, Screen};
use crate::ranges::whole;

/// Rows that fit a screen.
pub(crate) const ROWS: usize = 20;

/// What the table shows.
#[derive(Debug, Args)]
#[command(next_help_heading = "Table")]
pub(crate) struct TableArgs {
    /// Counts that the table shows: self (the function is at the leaf of the stack) or total (anywhere on the stack)
    #[arg(long, value_name = "KIND", default_value = "self")]
    pub(crate) count_kind: CountKind,
    /// Largest number of rows in the table; 0: all [default: 20; all for plain differences]
    #[arg(long, value_name = "ROWS", value_parser = |text: &str| whole(text, 0..=usize::MAX))]
    pub(crate) top: Option<usize>,
    /// Show only functions that occur in the baseline
    #[arg(short, long)]
    pub(crate) baseline_only: bool,
    /// Separate columns by this text instead of aligning them; inside names, a dot replaces it
    #[arg(short = 't', long, value_name = "TEXT")]
    pub(crate) field_separator: Option<String>,
    /// Print rows only: no headline, no column titles, no notes
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Also print each run with its number of samples, and the reason for each verdict
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

impl TableArgs {
    /// Where functions are counted.
    pub(crate) fn count_kind(&self) -> CountKind {
        self.count_kind
    }

    /// The requested number of rows.
    pub(crate) fn asked_rows(&self) -> Option<usize> {
        self.top
    }

    /// How many rows are shown, if --top is not given.
    pub(crate) fn shown(&self, default: usize) -> usize {
        match self.top {
            Some(0) => usize::MAX,
            top => top.unwrap_or(default),
        }
    }

    /// Whether a function with this value on the base is left out.
    pub(crate) fn hides(&self, base: u64) -> bool {
        self.baseline_only && base == 0
    }

    /// Whether only rows are printed.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// The layout of lines on what shows them.
    pub(crate) fn layout(&self, screen: Screen) -> Layout<'_> {
        Layout { separator: self.field_separator.as_deref(), titles: !self.quiet, screen }
    }
}
