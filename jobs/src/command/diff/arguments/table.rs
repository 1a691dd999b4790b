//! What the table shows.

use clap::Args;
use fleetdiff_schemas::profile::CountKind;

use super::super::lines::Layout;

/// Rows that fit a screen.
pub(crate) const ROWS: usize = 20;

/// What the table shows.
#[derive(Debug, Args)]
#[command(next_help_heading = "Table")]
pub(crate) struct TableArgs {
    /// Which counts the table shows: of functions at the leaf (self), or anywhere on the stack (total)
    #[arg(long, default_value = "self")]
    pub(crate) count_kind: CountKind,
    /// Rows that the table shows at most; 0: all. Without it 20, and all plain differences
    #[arg(long)]
    pub(crate) top: Option<usize>,
    /// Show only functions that the base has
    #[arg(short, long)]
    pub(crate) baseline_only: bool,
    /// What stands between columns, which are not aligned then; where it is in a name, a dot stands instead
    #[arg(short = 't', long, value_name = "TEXT")]
    pub(crate) field_separator: Option<String>,
    /// Rows alone: no headline, no titles of columns, no notes
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Also the runs with their samples, and why each row has its verdict
    #[arg(short, long)]
    pub(crate) verbose: bool,
}

impl TableArgs {
    /// Where functions are counted.
    pub(crate) fn count_kind(&self) -> CountKind {
        self.count_kind
    }

    /// How many rows somebody asked for.
    pub(crate) fn asked_rows(&self) -> Option<usize> {
        self.top
    }

    /// How many rows are shown, where nobody said it so many.
    pub(crate) fn shown(&self, default: usize) -> usize {
        match self.top {
            Some(0) => usize::MAX,
            top => top.unwrap_or(default),
        }
    }

    /// Whether a function with so much on the base is left out.
    pub(crate) fn hides(&self, base: u64) -> bool {
        self.baseline_only && base == 0
    }

    /// Whether nothing but rows is printed.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// How lines are put.
    pub(crate) fn layout(&self) -> Layout<'_> {
        Layout { separator: self.field_separator.as_deref(), titles: !self.quiet }
    }
}
