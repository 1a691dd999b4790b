//! Which time a profile's samples are of, by its own word: of processors, off them, or time that passed.

use fleetdiff_schemas::profile::ProfileType;

use super::tables::Tables;
use crate::budget::Budget;
use crate::compression::decompress;
use crate::decode::Options;

/// `cpu`, `wall` or `off_cpu` as the period or the columns name it; nothing where they do not, and of what is no profile.
///
/// A column of samples alone fits each of them. `fgprof` writes `samples/count` and `time/nanoseconds` of passing time. What Datadog's profilers
/// draw by a clock on the wall has a column of the processor's time too: the period says which of them samples are of.
pub fn clock(bytes: &[u8], options: &Options) -> Option<ProfileType> {
    let message = decompress(bytes, options.max_bytes).ok()?;
    let meaning = Tables::cut(&message, &Budget::of(message.len(), options.max_built_bytes)).ok()?;
    let meaning = meaning.meaning().ok()?;
    let by_period = meaning.period_type.and_then(|(name, _)| of_names(&[name]));
    let names: Vec<&str> = meaning.kinds.iter().map(|(name, _)| *name).collect();
    by_period.or_else(|| of_names(&names))
}

fn of_names(names: &[&str]) -> Option<ProfileType> {
    let named = |known: &[&str]| names.iter().any(|name| known.contains(name));
    if named(&["cpu", "cpu-time", "cycles", "cpu-clock", "task-clock"]) {
        Some(ProfileType::Cpu)
    } else if named(&["off_cpu", "offcpu", "off-cpu"]) {
        Some(ProfileType::OffCpu)
    } else if named(&["wall", "wall-time", "time", "wallclock"]) {
        Some(ProfileType::Wall)
    } else {
        None
    }
}
