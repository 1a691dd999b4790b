//! What a profile is of, by its own word: which time its samples are of (of processors, off them, or time that passed), and what there
//! is if they are no samples.

use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rejected::{Reason, Rejection};

use super::tables::Tables;
use crate::budget::Budget;
use crate::compression::decompress;
use crate::counts::{Columns, is_of};
use crate::decode::Options;

/// `cpu`, `wall` or `off_cpu` as columns and period name it; nothing where they do not, and of what is no profile.
///
/// A column of samples alone fits each of them. `fgprof` writes `samples/count` and `time/nanoseconds` of passing time.
pub fn clock(bytes: &[u8], options: &Options) -> Option<ProfileType> {
    of_columns(bytes, options, |columns| columns.clock())
}

/// What the columns of a profile say; nothing of what is no profile.
fn of_columns<T>(bytes: &[u8], options: &Options, say: impl FnOnce(Columns<'_>) -> Option<T>) -> Option<T> {
    let message = decompress(bytes, options.max_bytes).ok()?;
    let tables = Tables::cut(&message, &Budget::of(message.len(), options.max_built_bytes)).ok()?;
    say(tables.meaning().ok()?)
}

/// Columns that say how many samples there were only together: one that profilers scale up, and the other.
const TOGETHER: [(&str, &str); 5] = [
    ("alloc_objects", "alloc_space"),
    ("alloc_space", "alloc_objects"),
    ("inuse_objects", "inuse_space"),
    ("inuse_space", "inuse_objects"),
    ("delay", "contentions"),
];

/// Why a profile is of no type that is known, by its columns; nothing of what is no profile, or is one of a clock.
pub fn of_no_type(bytes: &[u8], options: &Options) -> Option<Rejection> {
    of_columns(bytes, options, |columns| what_is_missing(&columns.kinds))
}

fn what_is_missing(kinds: &[(&str, &str)]) -> Option<Rejection> {
    if [ProfileType::Cpu, ProfileType::Wall, ProfileType::OffCpu]
        .iter()
        .any(|clock| kinds.iter().any(|(name, _)| is_of(*clock, name)))
    {
        return None;
    }
    let has = |name: &str| kinds.iter().any(|(known, _)| *known == name);
    let detail = match TOGETHER.into_iter().find(|(there, other)| has(there) && !has(other)) {
        Some((there, other)) => format!("{there} without {other}: only both say how many samples there were"),
        None => {
            let columns: Vec<String> = kinds.iter().map(|(name, unit)| format!("{name}/{unit}")).collect();
            format!("{}: no samples of a clock, of memory or of locks", columns.join(", "))
        }
    };
    Some(Rejection::new(Reason::UnsupportedType, detail))
}
