//! What Austin says of itself before its stacks: which clock it read, and how often. Its numbers are microseconds.

use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rejected::{Reason, Rejection};

use crate::labels::{Measure, Unit};
use crate::period::Period;

const MICROSECOND: u64 = 1_000;

/// The measure of a text of Austin, with what it says of itself where the labels say nothing; nothing of another text.
pub(super) fn measure(text: &[u8], measure: Measure) -> Result<Option<Measure>, Rejection> {
    let header =
        || text.split(|byte| *byte == b'\n').map_while(|line| std::str::from_utf8(line).ok()?.strip_prefix("# "));
    let value = |name: &str| {
        let of_name = |line: &'_ str| {
            line.strip_prefix(name).and_then(|rest| rest.strip_prefix(':')).map(|rest| rest.trim().to_owned())
        };
        header().find_map(of_name)
    };
    if value("austin").is_none() || measure.unit.is_some() {
        return Ok(None);
    }
    let mode = value("mode").unwrap_or_default();
    let of_mode = match mode.as_str() {
        "wall" => ProfileType::Wall,
        "cpu" => ProfileType::Cpu,
        _ => {
            let detail = format!("Austin in mode {mode:?}; record with its mode wall or cpu");
            return Err(Rejection::new(Reason::UnsupportedType, detail));
        }
    };
    if of_mode != measure.profile_type {
        let detail = format!("a recording of Austin in mode {mode}, expected {}", measure.profile_type.name());
        return Err(Rejection::new(Reason::UnitMismatch, detail));
    }
    let interval = value("interval").and_then(|interval| interval.parse::<u64>().ok());
    let own = interval.and_then(|interval| Period::of_nanoseconds(interval.saturating_mul(MICROSECOND)));
    Ok(Some(Measure { unit: Some(Unit::Microseconds), period: measure.period.or(own), ..measure }))
}
