//! Which columns of a profile hold raw samples, and how many a row of values stands for.

use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rejected::{Reason, Rejection};

use crate::labels::Unit;

/// What a profile says of its values, column by column.
#[derive(Clone, Debug)]
pub(super) struct Columns<'a> {
    /// Type and unit of each column.
    pub(super) kinds: Vec<(&'a str, &'a str)>,
    /// Type and unit of the period; nothing if it cannot be read.
    pub(super) period_type: Option<(&'a str, &'a str)>,
    /// What passes between two samples.
    pub(super) period: i64,
}

/// How the raw samples of a row are found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Counts {
    /// A column that counts them.
    Column(usize),
    /// A column of time, one sample a period.
    Time {
        /// The column.
        column: usize,
        /// Nanoseconds in one of its unit.
        scale: i64,
        /// Nanoseconds between two samples, at least 1.
        period: i64,
    },
    /// Allocations, scaled up by the profiler from samples that were drawn by bytes.
    Allocations {
        /// The column of objects.
        objects: usize,
        /// The column of bytes.
        bytes: usize,
        /// Mean number of bytes between two samples; up to 1 every allocation is one.
        period: i64,
    },
}

impl Counts {
    /// Chooses the columns for a profile type. `unit` stands in for a column's unit where the file names none.
    ///
    /// | type | columns, first that is there |
    /// |---|---|
    /// | cpu | `samples/count`; `cpu` in time over the period |
    /// | wall, off_cpu | `samples/count`; any count but those of the lines below; time over the period |
    /// | mutex, block | `contentions/count` |
    /// | heap | `alloc_objects/count` with `alloc_space/bytes` |
    /// | live_heap | `inuse_objects/count` with `inuse_space/bytes` |
    ///
    /// NB: Go multiplies contentions by its sampling rate (1 in 5, say) and does not write the rate down, so that these
    /// counts may be multiples of what was sampled; the dispersion between pods sees it, a test that trusts counts does not.
    pub(super) fn choose(mut columns: Columns<'_>, kind: ProfileType, unit: Option<Unit>) -> Result<Self, Rejection> {
        for (_, column_unit) in &mut columns.kinds {
            if column_unit.is_empty() {
                *column_unit = unit.map_or("", Unit::name);
            }
        }
        let kinds = &columns.kinds;
        let find = |name: &str, unit: &str| kinds.iter().position(|column| *column == (name, unit));
        let other = |name: &str| ["alloc_objects", "inuse_objects", "contentions"].contains(&name);
        let any_count = || kinds.iter().position(|(name, unit)| *unit == Unit::Count.name() && !other(name));
        let samples = || find("samples", "count").or_else(|| find("sample", "count"));
        let allocations = |objects, bytes| {
            let (objects, bytes) = find(objects, "count").zip(find(bytes, "bytes"))?;
            Some(Self::Allocations { objects, bytes, period: columns.period })
        };
        let found = match kind {
            ProfileType::Cpu => samples().map(Self::Column).or_else(|| time(&columns, Some("cpu"))),
            ProfileType::Wall | ProfileType::OffCpu => {
                samples().or_else(any_count).map(Self::Column).or_else(|| time(&columns, None))
            }
            ProfileType::Mutex | ProfileType::Block => find("contentions", "count").map(Self::Column),
            ProfileType::Heap => allocations("alloc_objects", "alloc_space"),
            ProfileType::LiveHeap => allocations("inuse_objects", "inuse_space"),
        };
        found.ok_or_else(|| no_column(kind, &columns))
    }

    /// The raw samples that a row of values stands for.
    pub(super) fn of(self, values: &[i64]) -> Result<u64, Rejection> {
        match self {
            Self::Column(column) => value(values, column),
            Self::Time { column, scale, period } => Ok(periods(value(values, column)?, scale, period)),
            Self::Allocations { objects, bytes, period } => {
                Ok(sampled_allocations(value(values, objects)?, value(values, bytes)?, period))
            }
        }
    }
}

/// The column that says what samples of a type stand for, and its name and unit: the one that goes with the column of counts.
pub(super) fn weight_column(columns: &Columns<'_>, kind: ProfileType) -> Option<(usize, String)> {
    let is_time = |unit: &str| unit.parse::<Unit>().ok().and_then(Unit::nanoseconds).is_some();
    let goes_with = |(name, unit): (&str, &str)| match kind {
        ProfileType::Cpu => name == "cpu" && is_time(unit),
        ProfileType::Wall | ProfileType::OffCpu => !["cpu", "delay"].contains(&name) && is_time(unit),
        ProfileType::Mutex | ProfileType::Block => name == "delay" && is_time(unit),
        ProfileType::Heap => (name, unit) == ("alloc_space", "bytes"),
        ProfileType::LiveHeap => (name, unit) == ("inuse_space", "bytes"),
    };
    let place = columns.kinds.iter().position(|column| goes_with(*column))?;
    columns.kinds.get(place).map(|(name, unit)| (place, format!("{name}/{unit}")))
}

/// How many periods a value of time is, to the nearest; `scale` nanoseconds are in one of its unit.
pub(super) fn periods(value: u64, scale: i64, period: i64) -> u64 {
    let nanoseconds = u128::from(value) * u128::from(scale.unsigned_abs());
    let period = u128::from(period.unsigned_abs().max(1));
    u64::try_from((nanoseconds + period / 2) / period).unwrap_or(u64::MAX)
}

fn value(values: &[i64], column: usize) -> Result<u64, Rejection> {
    // NB: rows are as long as there are columns, checked by the caller.
    let value = values.get(column).copied().unwrap_or(0);
    u64::try_from(value).map_err(|_| Rejection::new(Reason::NegativeValue, format!("a sample with the value {value}")))
}

/// A column of time and the period in nanoseconds, if the file has both.
fn time(columns: &Columns<'_>, name: Option<&str>) -> Option<Counts> {
    let scale_of = |unit: &str| unit.parse::<Unit>().ok().and_then(Unit::nanoseconds);
    let (column, scale) = columns.kinds.iter().enumerate().find_map(|(place, (kind, unit))| {
        let named = name.is_none_or(|name| name == *kind);
        scale_of(unit).filter(|_| named).map(|scale| (place, scale))
    })?;
    let (_, period_unit) = columns.period_type?;
    let period_scale = if period_unit.is_empty() { scale } else { scale_of(period_unit)? };
    let period = columns.period.checked_mul(period_scale).filter(|period| *period > 0)?;
    Some(Counts::Time { column, scale, period })
}

fn no_column(kind: ProfileType, columns: &Columns<'_>) -> Rejection {
    let expected = match kind {
        ProfileType::Cpu => "samples/count, or cpu in a unit of time with a period",
        ProfileType::Wall | ProfileType::OffCpu => "a count, or a unit of time with a period",
        ProfileType::Mutex | ProfileType::Block => "contentions/count",
        ProfileType::Heap => "alloc_objects/count with alloc_space/bytes",
        ProfileType::LiveHeap => "inuse_objects/count with inuse_space/bytes",
    };
    let named = columns.kinds.iter().filter(|column| **column != ("", ""));
    let found: Vec<String> = named.map(|(kind, unit)| format!("{kind}/{unit}")).collect();
    let found = if found.is_empty() { "no named sample type".to_owned() } else { found.join(", ") };
    let detail = format!("{} profile with {found} (period {}), expected {expected}", kind.name(), columns.period);
    Rejection::new(Reason::UnitMismatch, detail)
}

/// How many samples of the allocator became `objects` and `bytes`: a sampler that draws an allocation of size s with
/// the chance 1 - exp(-s / period) divides what it saw by that chance, so this multiplies by it:
/// `objects * (1 - exp(-(bytes / objects) / period))`, rounded, at least 1 if there are objects.
///
/// Checked against the scaling in Go's `runtime/pprof` (`scaleHeapSample`): a period of at most 1 means no scaling.
pub(super) fn sampled_allocations(objects: u64, bytes: u64, period: i64) -> u64 {
    if objects == 0 || period <= 1 {
        return objects;
    }
    #[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "an estimate; exact to 2^53")]
    let (objects_f, bytes_f, period_f) = (objects as f64, bytes as f64, period as f64);
    let chance = -libm::expm1(-(bytes_f / objects_f) / period_f);
    #[expect(clippy::as_conversions, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0..=objects")]
    let drawn = libm::round(objects_f * chance) as u64;
    drawn.clamp(1, objects)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `scaleHeapSample` of Go 1.22's runtime/pprof/protomem.go.
    fn scaled_by_go(count: i64, size: i64, rate: i64) -> (i64, i64) {
        #![expect(
            clippy::as_conversions,
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "Go's"
        )]
        let average = size as f64 / count as f64;
        let scale = 1.0 / (1.0 - (-average / rate as f64).exp());
        ((count as f64 * scale) as i64, (size as f64 * scale) as i64)
    }

    #[test]
    fn published_scaling_of_go_is_undone() {
        for count in [1, 2, 3, 17, 400, 12_345] {
            for average in [16, 48, 512, 4_096, 65_536, 524_288, 10_000_000] {
                let (objects, bytes) = scaled_by_go(count, count * average, 524_288);
                let found = sampled_allocations(objects.unsigned_abs(), bytes.unsigned_abs(), 524_288);
                assert_eq!(found, count.unsigned_abs(), "{count} samples of {average} bytes");
            }
        }
    }

    #[test]
    fn unscaled_allocations_stand_for_themselves() {
        assert_eq!(sampled_allocations(40, 640, 1), 40);
        assert_eq!(sampled_allocations(40, 640, 0), 40);
        assert_eq!(sampled_allocations(0, 640, 524_288), 0);
        assert_eq!(sampled_allocations(1, 0, 524_288), 1);
    }

    #[test]
    fn time_is_rounded_to_whole_periods() {
        let counts = Counts::Time { column: 1, scale: 1_000, period: 10_000_000 };
        let of = |microseconds| counts.of(&[0, microseconds]).map_err(|fault| fault.reason);
        assert_eq!([of(10_000), of(14_999), of(15_000), of(30_001)], [Ok(1), Ok(1), Ok(2), Ok(3)]);
        assert_eq!(of(-1), Err(Reason::NegativeValue));
        assert_eq!(of(i64::MAX), Ok(922_337_203_685_478));
    }
}
