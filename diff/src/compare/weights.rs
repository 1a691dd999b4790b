//! The weight of each function's samples: bytes, nanoseconds, periods.

use fleetdiff_schemas::rows::RARE;

use super::finding::Finding;
use super::outcome::{NotCompared, Weighed};
use super::recording::Recording;
use super::sums::Sums;
use crate::sides::Sides;

/// Adds its weight to every named finding, and returns what weights are and the total of each side; `None` if a run has
/// none.
pub(super) fn weigh(findings: &mut [Finding], sides: &Sides<Vec<Recording>>) -> Result<Option<Weighed>, NotCompared> {
    let all = || sides.base.iter().chain(&sides.head);
    let Some((first, unit)) = all().find_map(|run| Some((run, run.weighed()?.0))) else { return Ok(None) };
    for other in all() {
        match other.weighed() {
            None => return Ok(None),
            Some((other_unit, _)) if other_unit != unit => {
                let first_unit = unit;
                return Err(NotCompared::Units {
                    first: first.label.clone(),
                    first_unit,
                    other: other.label.clone(),
                    other_unit,
                });
            }
            Some(_) => {}
        }
    }
    let (base, head) = (Sums::of_weights(&sides.base), Sums::of_weights(&sides.head));
    for finding in findings.iter_mut().filter(|finding| &*finding.function != RARE) {
        let of = |sums: &Sums<'_>| sums.of(finding.count_kind, &finding.function);
        finding.weight = Some(Sides { base: of(&base), head: of(&head) });
    }
    Ok(Some(Weighed { unit, totals: Sides { base: base.whole(), head: head.whole() } }))
}
