//! Which columns of a profile hold raw samples, and how many a row of values stands for.

use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rejected::{Reason, Rejection};

use crate::labels::{Measure, Unit};
use crate::period::Period;
use crate::ticks::{Clock, FoundPeriod, Ticks};

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

impl Columns<'_> {
    /// The same, in this unit where they name none.
    pub(super) fn in_unit(mut self, unit: Option<Unit>) -> Self {
        for (_, column_unit) in &mut self.kinds {
            if column_unit.is_empty() {
                *column_unit = unit.map_or("", Unit::name);
            }
        }
        self
    }

    /// The clock that samples are of, as the period names it, or else a column.
    ///
    /// The period decides: a profile may have columns of several clocks beside one count, that of the period.
    pub(super) fn clock(&self) -> Option<ProfileType> {
        let of_columns = || clock_named(&self.kinds.iter().map(|(name, _)| *name).collect::<Vec<_>>());
        self.clock_of_period().or_else(of_columns)
    }

    fn clock_of_period(&self) -> Option<ProfileType> {
        clock_named(&[self.period_type?.0])
    }

    /// Whether the period is of a clock that is not the processor's, so that samples are.
    fn is_of_another_clock(&self) -> bool {
        self.clock_of_period().is_some_and(|clock| clock != ProfileType::Cpu)
    }
}

/// The clock that is among these names of columns or of a period.
fn clock_named(names: &[&str]) -> Option<ProfileType> {
    let any_of = |known: &[&str]| names.iter().any(|name| known.contains(name));
    if any_of(&["cpu", "cpu-time", "cycles", "cpu-clock", "task-clock"]) {
        Some(ProfileType::Cpu)
    } else if any_of(&["off_cpu", "offcpu", "off-cpu"]) {
        Some(ProfileType::OffCpu)
    } else if any_of(&["wall", "wall-time", "time", "wallclock"]) {
        Some(ProfileType::Wall)
    } else {
        None
    }
}

/// Which columns hold the raw samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Counts {
    /// A column that counts them.
    Column(usize),
    /// A column of time, one sample a tick.
    Time {
        /// The column.
        column: usize,
        /// What is said of its tick.
        clock: Clock,
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

/// Names of a count of samples, whatever clock they were taken by; files of one column without a name have no other.
const SAMPLES: [&str; 3] = ["samples", "sample", ""];

/// The name of a count of samples of allocations, which no profiler scaled up.
pub(super) const ALLOCATION_SAMPLES: &str = "alloc_samples";

impl Counts {
    /// Chooses the columns for a profile type. The unit of `measure` stands in for a column's unit where the file names none.
    /// Where times are taken as they are, any column will do that tells which rows there are: the times stand beside it
    /// ([`weight_column`]).
    ///
    /// | type | columns, first that is there |
    /// |---|---|
    /// | cpu | `samples/count`, if the period is not of another clock; `cpu` in time |
    /// | wall, off_cpu | `samples/count`; a count or a time that bears the name of the clock |
    /// | mutex, block | `contentions/count` |
    /// | heap | `alloc_objects/count` with `alloc_space/bytes`; a count of samples of allocations |
    /// | live_heap | `inuse_objects/count` with `inuse_space/bytes` |
    ///
    /// A count of anything else (allocations in and outside of TLABs, goroutines, exceptions) is none of samples.
    ///
    /// NB: Go multiplies contentions by its sampling rate (1 in 5, say) and does not write the rate down, so that these
    /// counts may be multiples of what was sampled; the dispersion between pods sees it, a test that trusts counts does not.
    pub(super) fn choose(columns: Columns<'_>, measure: Measure) -> Result<Self, Rejection> {
        let columns = columns.in_unit(measure.unit);
        let kind = measure.profile_type;
        let kinds = &columns.kinds;
        let find = |name: &str, unit: &str| kinds.iter().position(|column| *column == (name, unit));
        let samples = || ["samples", "sample"].into_iter().find_map(|name| find(name, "count"));
        let of_clock = || kinds.iter().position(|(name, unit)| *unit == Unit::Count.name() && is_of(kind, name));
        let allocations = |objects, bytes| {
            let (objects, bytes) = find(objects, "count").zip(find(bytes, "bytes"))?;
            Some(Self::Allocations { objects, bytes, period: columns.period })
        };
        let found = match kind {
            ProfileType::Cpu => samples()
                .filter(|_| !columns.is_of_another_clock())
                .map(Self::Column)
                .or_else(|| time(&columns, measure)),
            ProfileType::Wall | ProfileType::OffCpu => {
                samples().or_else(of_clock).map(Self::Column).or_else(|| time(&columns, measure))
            }
            ProfileType::Mutex | ProfileType::Block => find("contentions", "count").map(Self::Column),
            ProfileType::Heap => allocations("alloc_objects", "alloc_space")
                .or_else(|| find(ALLOCATION_SAMPLES, "count").map(Self::Column)),
            ProfileType::LiveHeap => allocations("inuse_objects", "inuse_space"),
        };
        found.ok_or_else(|| no_column(kind, &columns))
    }

    /// These columns, with the tick of time once its values are known; `values` gives those of a column, row by row.
    pub(super) fn settled<I: Iterator<Item = Result<i64, Rejection>>>(
        self,
        values: impl FnOnce(usize) -> I,
    ) -> Result<Settled, Rejection> {
        Ok(match self {
            Self::Column(column) => Settled::Column(column),
            Self::Time { column, clock } => {
                let values = values(column).map(|value| value.and_then(not_negative));
                Settled::Time { column, ticks: clock.ticks(values)? }
            }
            Self::Allocations { objects, bytes, period } => Settled::Allocations { objects, bytes, period },
        })
    }
}

/// What one sample stands for beside its number: bytes, or nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weight {
    /// Nobody says it.
    Unknown,
    /// What a column holds, times so many.
    Column(usize, u64),
    /// So many nanoseconds each.
    Each(u64),
}

impl Weight {
    /// What samples of a type stand for: bytes of allocations and delays of waits as their column has them, samples of a processor
    /// their period, where it is known, and else what the column of time has.
    pub(super) fn of(columns: &Columns<'_>, measure: Measure) -> Self {
        let kind = measure.profile_type;
        let column = weight_column(columns, kind).map(|(place, _)| {
            let unit = columns.kinds.get(place).and_then(|(_, unit)| unit.parse::<Unit>().ok());
            let scale = unit.and_then(Unit::nanoseconds).map_or(1, i64::unsigned_abs);
            Self::Column(place, scale)
        });
        let own = columns.period_type.and_then(|(name, unit)| {
            let scale = unit.parse::<Unit>().ok().and_then(Unit::nanoseconds)?;
            let period = u64::try_from(columns.period.checked_mul(scale)?).ok()?;
            (is_of(kind, name) && !SAMPLES.contains(&name) && period > 1).then_some(period)
        });
        let period = measure.period.map(Period::nanoseconds).or(own).map(Self::Each);
        let known = if kind == ProfileType::Cpu { period.or(column) } else { column.or(period) };
        known.unwrap_or(Self::Unknown)
    }

    /// What the samples of a row stand for; 0 if nobody says it.
    pub(super) fn value(self, values: &[i64], count: u64) -> u64 {
        match self {
            Self::Unknown => 0,
            Self::Column(place, scale) => {
                let value = values.get(place).and_then(|value| u64::try_from(*value).ok()).unwrap_or(0);
                value.saturating_mul(scale)
            }
            Self::Each(nanoseconds) => count.saturating_mul(nanoseconds),
        }
    }
}

/// How the raw samples of a row are found.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Settled {
    /// In a column that counts them.
    Column(usize),
    /// In a column of time, of which the tick is known.
    Time { column: usize, ticks: Ticks },
    /// In two columns of allocations: see [`Counts::Allocations`].
    Allocations { objects: usize, bytes: usize, period: i64 },
}

impl Settled {
    /// The raw samples that the next row of values stands for.
    pub(super) fn of(&mut self, values: &[i64]) -> Result<u64, Rejection> {
        match self {
            Self::Column(column) => value(values, *column),
            Self::Time { column, ticks } => Ok(ticks.count(value(values, *column)?)),
            Self::Allocations { objects, bytes, period } => {
                Ok(sampled_allocations(value(values, *objects)?, value(values, *bytes)?, *period))
            }
        }
    }

    /// The tick of the values, if nobody said it.
    pub(super) fn found(&self) -> Option<FoundPeriod> {
        match self {
            Self::Time { ticks, .. } => ticks.found,
            Self::Column(_) | Self::Allocations { .. } => None,
        }
    }
}

/// Whether a column of that name holds what the clock of a profile type says.
pub(super) fn is_of(kind: ProfileType, name: &str) -> bool {
    let names: &[&str] = match kind {
        ProfileType::Cpu => &["cpu", "cpu-time"],
        ProfileType::Wall => &["wall", "wall-time", "wallclock", "wall-clock", "time", "event", "events"],
        ProfileType::OffCpu => &["off_cpu", "off-cpu", "offcpu", "event", "events", "sched:sched_switch"],
        _ => return false,
    };
    names.contains(&name) || (kind != ProfileType::Cpu && SAMPLES.contains(&name))
}

/// The column that says what samples of a type stand for, and its name and unit: the one that goes with the column of counts.
pub(super) fn weight_column(columns: &Columns<'_>, kind: ProfileType) -> Option<(usize, String)> {
    let is_time = |unit: &str| unit.parse::<Unit>().ok().and_then(Unit::nanoseconds).is_some();
    let goes_with = |(name, unit): (&str, &str)| match kind {
        ProfileType::Cpu | ProfileType::Wall | ProfileType::OffCpu => is_of(kind, name) && is_time(unit),
        ProfileType::Mutex | ProfileType::Block => name == "delay" && is_time(unit),
        ProfileType::Heap => (name, unit) == ("alloc_space", "bytes"),
        ProfileType::LiveHeap => (name, unit) == ("inuse_space", "bytes"),
    };
    let place = columns.kinds.iter().position(|column| goes_with(*column))?;
    columns.kinds.get(place).map(|(name, unit)| (place, format!("{name}/{unit}")))
}

fn value(values: &[i64], column: usize) -> Result<u64, Rejection> {
    // NB: rows are as long as there are columns, checked by the caller.
    not_negative(values.get(column).copied().unwrap_or(0))
}

fn not_negative(value: i64) -> Result<u64, Rejection> {
    u64::try_from(value).map_err(|_| Rejection::new(Reason::NegativeValue, format!("a sample with the value {value}")))
}

/// A column of time, and what is said of its tick.
fn time(columns: &Columns<'_>, Measure { profile_type, period, values, .. }: Measure) -> Option<Counts> {
    let scale_of = |unit: &str| unit.parse::<Unit>().ok().and_then(Unit::nanoseconds);
    let (column, scale) = columns.kinds.iter().enumerate().find_map(|(place, (name, unit))| {
        scale_of(unit).filter(|_| is_of(profile_type, name)).map(|scale| (place, scale))
    })?;
    let period_type =
        columns.period_type.filter(|_| profile_type != ProfileType::Cpu || !columns.is_of_another_clock());
    let period_scale = period_type.and_then(|(_, unit)| if unit.is_empty() { Some(scale) } else { scale_of(unit) });
    let own = period_scale.and_then(|scale| columns.period.checked_mul(scale)).map_or(0, |own| own.max(0));
    let (scale, own) = (scale.unsigned_abs(), own.unsigned_abs());
    Some(Counts::Time { column, clock: Clock { kind: profile_type, scale, declared: period, own, values } })
}

fn no_column(kind: ProfileType, columns: &Columns<'_>) -> Rejection {
    let expected = match kind {
        ProfileType::Cpu => "samples/count drawn by the clock of the processor, or cpu in a unit of time",
        ProfileType::Wall => "samples/count, or wall or time, as a count or in a unit of time",
        ProfileType::OffCpu => "samples/count, or off_cpu, as a count or in a unit of time",
        ProfileType::Mutex | ProfileType::Block => "contentions/count",
        ProfileType::Heap => "alloc_objects/count with alloc_space/bytes",
        ProfileType::LiveHeap => "inuse_objects/count with inuse_space/bytes",
    };
    let named = columns.kinds.iter().filter(|column| **column != ("", ""));
    let found: Vec<String> = named.map(|(kind, unit)| format!("{kind}/{unit}")).collect();
    let found = if found.is_empty() { "no named sample type".to_owned() } else { found.join(", ") };
    let clock = columns.period_type.map_or("", |(name, _)| name);
    let period = format!("{} {clock}", columns.period);
    let detail = format!("{} profile with {found} (period {}), expected {expected}", kind.name(), period.trim_end());
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
}
