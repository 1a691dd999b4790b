//! Where something other than the build makes arms differ: which cells are warned of it, and whom flags reach nevertheless.

use fleetdiff_schemas::config::{Comparing, Config};
use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::{Severity, Support};

/// Cells of a fleet of these tests.
const CELLS: usize = 2;

/// Both builds run from the start, and the first look is the first report, so that its warnings are known from then on.
pub fn config() -> Config {
    Config {
        evaluate_every: Nanos::from_seconds(150),
        report_every: Nanos::from_seconds(300),
        comparing: Comparing::Named { base: vec!["v41".into()], head: "v42".into() },
        ..Config::default()
    }
}

/// What several fleets show.
#[derive(Debug, Default)]
pub struct Doubt {
    /// Cells with and without the warning.
    pub cells: usize,
    /// Those that the last report warns of.
    pub warned: usize,
    /// Changes of flags with firm support after the first report that page somebody.
    pub pages: usize,
    /// Those that would have, if nothing were in doubt.
    pub tickets: usize,
}

impl Doubt {
    /// Of warnings that contain some words.
    pub fn of<'t>(runs: impl IntoIterator<Item = &'t Tables>, warning: &str) -> Self {
        let mut doubt = Self::default();
        runs.into_iter().for_each(|tables| doubt.add(tables, warning));
        doubt
    }

    fn add(&mut self, tables: &Tables, warning: &str) {
        let reports = || tables.comparisons.iter().filter(|row| row.aa_check_tests.is_some() && !row.is_roll_up);
        let ends = || reports().map(|row| row.window_end_at);
        let (first, last) = (ends().min().expect("there is a report"), ends().max());
        let cells = reports().filter(|row| row.count_kind.name() == "self" && Some(row.window_end_at) == last);
        self.cells += CELLS;
        self.warned += cells.filter(|row| row.warnings.iter().any(|words| words.contains(warning))).count();
        let is_later = |end| end > first;
        let later =
            || tables.flags.iter().filter(|flag| is_later(flag.row.window_end_at) && flag.row.support == Support::Firm);
        self.pages += later().filter(|flag| flag.severity == Severity::Page).count();
        self.tickets += later().filter(|flag| flag.severity == Severity::Ticket).count();
    }
}
