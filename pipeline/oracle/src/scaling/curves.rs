//! The table `load_curves`.

use std::collections::BTreeSet;

use fleetdiff_schemas::comparison::Side;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::PodId;
use fleetdiff_schemas::number::{float, length_float, table_count};
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, ComparisonKey, LoadCurveRow, ScalingRow};
use fleetdiff_schemas::tables::TableRow;
use fleetdiff_schemas::time::Hop;
use fleetdiff_schemas::verdict::ScalingVerdict;

use super::{Archive, Kept, Open, hops_of_minute};

/// The minutes of both arms of what scales worse by these rows.
pub(crate) fn rows(
    config: &Config,
    archive: &Archive,
    open: &[Open],
    scaling: &[ScalingRow],
    hop: Hop,
) -> Vec<LoadCurveRow> {
    let mut rows = Vec::new();
    let worse: Vec<&ScalingRow> = scaling
        .iter()
        .filter(|row| row.verdict == ScalingVerdict::ScalesWorse && row.count_kind == CountKind::SelfCount)
        .collect();
    if worse.is_empty() {
        return rows;
    }
    for ((profile_type, cell), minutes) in archive.minutes(config, hop) {
        for one in open {
            let of_place = worse.iter().filter(|row| {
                row.profile_type == profile_type
                    && row.cell == cell
                    && row.build == one.head
                    && row.base_build == Some(one.base_name())
            });
            let mut functions: BTreeSet<&str> = of_place.clone().map(|row| &*row.function).collect();
            let Some(row) = of_place.clone().next() else { continue };
            functions.insert(ALL_FUNCTIONS);
            let blank = LoadCurveRow {
                comparison: ComparisonKey {
                    service: row.service.clone(),
                    profile_type,
                    measure: row.measure,
                    base_build: one.base_name(),
                    head_build: one.head.clone(),
                },
                cell: cell.clone(),
                window_end_at: row.window_end_at,
                ..LoadCurveRow::blank()
            };
            for (arm, builds) in [(Side::Head, std::slice::from_ref(&one.head)), (Side::Base, &one.base[..])] {
                let kept = Kept::of(&minutes, builds, CountKind::SelfCount);
                for function in &functions {
                    let blank = LoadCurveRow { arm, function: (*function).into(), ..blank.clone() };
                    let number = archive.names.iter().position(|name| **name == **function);
                    rows.extend(of_function(config, &kept, number, &blank));
                }
            }
        }
    }
    rows
}

/// Of a function, or of all together.
fn of_function(config: &Config, kept: &Kept<'_>, function: Option<usize>, blank: &LoadCurveRow) -> Vec<LoadCurveRow> {
    let minute = |(number, served): &(u64, _)| {
        let served: &std::collections::BTreeMap<_, &super::InMinute> = served;
        let pods = served.values().flat_map(|one| &one.pods).collect::<BTreeSet<&PodId>>().len();
        let requests = served.values().map(|one| one.requests).sum::<u64>();
        let count = served.values().map(|one| kept.count(one, function)).sum::<u64>();
        LoadCurveRow {
            minute_at: config.clock().start_of(Hop(number * hops_of_minute(config))),
            pods: table_count(pods),
            requests: table_count(requests),
            count: table_count(count),
            load: float(requests) / length_float(pods),
            per_request: float(count) / float(requests),
            ..blank.clone()
        }
    };
    kept.minutes.iter().map(minute).collect()
}
