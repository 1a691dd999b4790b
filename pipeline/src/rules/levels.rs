//! What is said of figures of pods, memory and waiting, where a ratio and its interval would mislead.

use fleetdiff_schemas::number::table_count;
use fleetdiff_schemas::rows::LevelFace;
use fleetdiff_schemas::verdict::LevelReason;
use fleetdiff_statistics::families::selected;

use super::advice::only_in;
use super::heap::words::why;
use crate::evidence::heap::beyond_margin;

/// Why a figure whose direction is unknown is not called a change. `members` are what its family of tests is made of, such as
/// `functions`; `is_slope` is whether it is a difference of growth, not a ratio.
///
/// ```
/// use fleetdiff_pipeline::rules::levels::undecided;
/// use fleetdiff_schemas::{rows::{Interval, LevelFace}, verdict::LevelReason};
///
/// let change = Some(Interval { value: 7.53, low: 3.26, high: 12.66 });
/// let face = LevelFace { change, q_value: Some(0.08), tests: Some(40), ..LevelFace::unknown(LevelReason::Imprecise) };
/// assert_eq!(undecided(&face, "functions", false), "not significant among 40 functions");
/// let change = Some(Interval { value: 1.02, low: 1.01, high: 1.08 });
/// assert_eq!(undecided(&LevelFace { change, ..face }, "functions", false), "not known to have changed by more than 5 %");
/// let change = Some(Interval { value: 1.20, low: 0.80, high: 1.80 });
/// assert_eq!(undecided(&LevelFace { change, ..face }, "functions", false), "not known to have changed");
/// let aged = LevelFace { reason: Some(LevelReason::AgeDiffers), ..face };
/// assert!(undecided(&aged, "functions", false).starts_with("not known to have changed: processes of one build have run longer"));
/// ```
pub fn undecided(face: &LevelFace, members: &str, is_slope: bool) -> String {
    const OPEN: &str = "not known to have changed";
    if face.reason.is_some_and(LevelReason::is_other_cause) {
        return format!("{OPEN}: {}", why(face.reason));
    }
    let none = if is_slope { 0.0 } else { 1.0 };
    let excludes_none = face.change.is_some_and(|change| change.low > none || change.high < none);
    match (excludes_none, beyond_margin(face, is_slope), face.tests) {
        (false, ..) => OPEN.to_owned(),
        (true, None, _) => format!("{OPEN} by more than {}", if is_slope { "0.1" } else { "5 %" }),
        (true, Some(_), Some(tests)) if tests > 1 => format!("not significant among {tests} {members}"),
        (true, Some(_), _) => "not significant".to_owned(),
    }
}

/// Gives a figure its q-value, among so many tests, and the direction that it has then, if no other cause than the build may have made
/// the change.
pub(crate) fn direct_one(face: &mut LevelFace, (q_value, tests): (f64, usize), q: f64, is_slope: bool) {
    (face.q_value, face.tests) = (Some(q_value), Some(table_count(tests)));
    let may_have_moved = selected(q_value, q) && !face.reason.is_some_and(LevelReason::is_other_cause);
    if let Some(direction) = beyond_margin(face, is_slope).filter(|_| may_have_moved) {
        (face.direction, face.reason) = (direction, None);
    }
}

/// The build that alone has it, where a ratio would be 0 or infinite.
///
/// ```
/// use fleetdiff_pipeline::rules::levels::one_sided;
/// use fleetdiff_schemas::{rows::LevelFace, verdict::LevelReason};
///
/// let face = LevelFace { head: Some(565.0), base: Some(0.0), ..LevelFace::unknown(LevelReason::Imprecise) };
/// assert_eq!(one_sided(&face), Some("only in the head"));
/// assert_eq!(one_sided(&LevelFace { base: Some(7.0), ..face }), None);
/// ```
pub fn one_sided(face: &LevelFace) -> Option<&'static str> {
    let has = |level: f64| i64::from(level > 0.0);
    only_in(has(face.head?), has(face.base?))
}
