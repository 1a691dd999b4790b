//! Rows of tables that are written whole at each report: only those of the last one are kept.

use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, HeapRow, LoadCurveRow, RingRow, ScalingRow, StackRow, WaitingRow};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::ScalingVerdict;

use super::Filed;

/// A row of a table that is written whole at each report.
pub(crate) trait OfReport {
    /// When the report was.
    fn at(&self) -> Nanos;

    /// What is counted.
    fn kind(&self) -> CountKind;

    /// Whether it is a test.
    fn is_tested(&self) -> bool;

    /// Whether it may be shown.
    fn is_shown(&self) -> bool;
}

/// Rows of the last report, of self counts where there are any.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LastReport<R> {
    of: Option<(Nanos, CountKind)>,
    /// How many rows were tested.
    pub(crate) tested: i64,
    /// Those that may be shown.
    pub(crate) rows: Vec<Filed<R>>,
}

impl<R> Default for LastReport<R> {
    fn default() -> Self {
        Self { of: None, tested: 0, rows: Vec::new() }
    }
}

impl<R: OfReport> LastReport<R> {
    /// Takes a row, unless a later report or a kind before its own is there.
    pub(super) fn take(&mut self, filed: Filed<R>) {
        let (at, kind) = (filed.row.at(), filed.row.kind());
        if self.of.is_none_or(|(last, first)| at > last || (at == last && kind < first)) {
            *self = Self { of: Some((at, kind)), ..Self::default() };
        }
        if self.of != Some((at, kind)) {
            return;
        }
        self.tested += i64::from(filed.row.is_tested());
        if filed.row.is_shown() {
            self.rows.push(filed);
        }
    }
}

impl OfReport for ScalingRow {
    fn at(&self) -> Nanos {
        self.window_end_at
    }

    fn kind(&self) -> CountKind {
        self.count_kind
    }

    fn is_tested(&self) -> bool {
        self.q_value.is_some()
    }

    fn is_shown(&self) -> bool {
        let is_silent = self.verdict == ScalingVerdict::Withheld && &*self.function == ALL_FUNCTIONS;
        self.verdict == ScalingVerdict::ScalesWorse || is_silent
    }
}

impl OfReport for RingRow {
    fn at(&self) -> Nanos {
        self.window_end_at
    }

    fn kind(&self) -> CountKind {
        self.count_kind
    }

    fn is_tested(&self) -> bool {
        self.first.ratio.is_some()
    }

    fn is_shown(&self) -> bool {
        true
    }
}

impl OfReport for WaitingRow {
    fn at(&self) -> Nanos {
        self.window_end_at
    }

    /// NB: both kinds are kept, since total counts say what functions of the kernel are below.
    fn kind(&self) -> CountKind {
        CountKind::SelfCount
    }

    fn is_tested(&self) -> bool {
        self.time.q_value.is_some()
    }

    fn is_shown(&self) -> bool {
        true
    }
}

impl OfReport for StackRow {
    fn at(&self) -> Nanos {
        self.window_end_at
    }

    fn kind(&self) -> CountKind {
        CountKind::SelfCount
    }

    fn is_tested(&self) -> bool {
        false
    }

    fn is_shown(&self) -> bool {
        true
    }
}

impl OfReport for LoadCurveRow {
    fn at(&self) -> Nanos {
        self.window_end_at
    }

    fn kind(&self) -> CountKind {
        CountKind::SelfCount
    }

    fn is_tested(&self) -> bool {
        false
    }

    fn is_shown(&self) -> bool {
        true
    }
}

impl OfReport for HeapRow {
    fn at(&self) -> Nanos {
        self.window_end_at
    }

    fn kind(&self) -> CountKind {
        self.count_kind
    }

    fn is_tested(&self) -> bool {
        self.faces().iter().any(|face| face.q_value.is_some())
    }

    fn is_shown(&self) -> bool {
        true
    }
}
