//! The input of a table: the cells of one comparison in one scope, and the rules.

use std::collections::BTreeMap;

use fleetdiff_schemas::config::Method;
use fleetdiff_schemas::rows::CellKey;
use fleetdiff_schemas::time::HopClock;
use fleetdiff_schemas::verdict::Scope;

use crate::evidence::report::ScopeReport;
use crate::evidence::row::RowEvidence;

/// How rows are decided.
#[derive(Clone, Copy, Debug)]
pub struct TableRules {
    /// False-discovery rate of each family.
    pub q: f64,
    /// Smallest change that can be significant.
    pub min_effect: f64,
    /// Smallest combined count that is tested.
    pub min_count: f64,
    /// Length of a window.
    pub window_seconds: f64,
    /// The method that decides which rows are significant.
    pub method: Method,
    /// The clock.
    pub clock: HopClock,
}

/// The cells of one comparison in one scope, ascending.
#[derive(Debug)]
pub struct ScopeCells {
    /// Window or epoch.
    pub scope: Scope,
    /// Each cell's rows and counts.
    pub cells: BTreeMap<CellKey, ScopeReport>,
}

/// Cells, ascending, each with its rows.
pub(super) type Rows<'a> = [(&'a CellKey, &'a [RowEvidence])];
