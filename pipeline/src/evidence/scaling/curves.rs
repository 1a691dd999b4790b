//! What a request cost minute by minute, in functions that may scale worse.

use std::collections::BTreeSet;

use fleetdiff_schemas::comparison::{ComparisonId, Side};
use fleetdiff_schemas::number::{float, length_float, table_count};
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, ComparisonKey, LoadCurveRow, ScalingRow};
use fleetdiff_schemas::tables::TableRow;
use fleetdiff_schemas::time::Nanos;

use super::{CellScaling, KindScaling};

/// The load of one minute.
#[derive(Clone, Copy, Debug)]
pub(super) struct MinuteLoad {
    /// When it began.
    pub(super) at: Nanos,
    /// How many pods served.
    pub(super) pods: usize,
    /// What they served.
    pub(super) requests: u64,
}

impl CellScaling {
    /// The minutes of both arms for the functions among `rows` of a comparison that its family can find significant, and of all
    /// functions together if there are any.
    pub fn curves(&self, id: &ComparisonId, rows: &[ScalingRow], q: f64) -> Vec<LoadCurveRow> {
        let may_be_worse = |row: &&ScalingRow| {
            row.count_kind == CountKind::SelfCount
                && row.ln_p.is_some_and(|ln_p| ln_p <= libm::log(q))
                && row.elasticity_difference.is_some_and(|slope| slope.value > 0.0)
        };
        let mut functions: BTreeSet<&str> = rows.iter().filter(may_be_worse).map(|row| &*row.function).collect();
        if functions.is_empty() {
            return Vec::new();
        }
        functions.insert(ALL_FUNCTIONS);
        let comparison = ComparisonKey {
            service: self.frame.service.clone(),
            profile_type: self.frame.profile_type,
            measure: self.frame.profile_type.measure(),
            base_build: id.base_name(),
            head_build: id.head.clone(),
        };
        let blank = LoadCurveRow {
            comparison,
            cell: self.frame.cell.clone(),
            window_end_at: self.frame.window_end_at,
            ..LoadCurveRow::blank()
        };
        let arms = Side::BOTH.into_iter().filter_map(|arm| Some((arm, self.of_builds.get(id.builds(arm))?)));
        let kinds = arms.flat_map(|(arm, kinds)| kinds.iter().map(move |kind| (arm, kind)));
        let own = kinds.filter(|(_, kind)| kind.kind == CountKind::SelfCount);
        own.flat_map(|(arm, kind)| kind.curves(&LoadCurveRow { arm, ..blank.clone() }, &functions)).collect()
    }
}

impl KindScaling {
    fn curves(&self, blank: &LoadCurveRow, functions: &BTreeSet<&str>) -> Vec<LoadCurveRow> {
        let of_function = self.functions.iter().filter(|function| functions.contains(&*function.name));
        let rows = of_function.flat_map(|function| {
            self.minutes.iter().zip(&function.by_minute).map(|(minute, &count)| LoadCurveRow {
                function: function.name.clone(),
                minute_at: minute.at,
                pods: table_count(minute.pods),
                requests: table_count(minute.requests),
                count: table_count(count),
                load: float(minute.requests) / length_float(minute.pods),
                per_request: float(count) / float(minute.requests),
                ..blank.clone()
            })
        });
        rows.collect()
    }
}
