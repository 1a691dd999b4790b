//! Which time a profile's samples are of, by its own word: of processors, off them, or time that passed.

use fleetdiff_schemas::profile::ProfileType;

use super::tables::Tables;
use crate::budget::Budget;
use crate::compression::decompress;
use crate::counts::clock_named;
use crate::decode::Options;

/// `cpu`, `wall` or `off_cpu` as columns and period name it; nothing where they do not, and of what is no profile.
///
/// The period's type decides before the columns: a profile may have columns of several clocks beside one count, that of the period.
///
/// A column of samples alone fits each of them. `fgprof` writes `samples/count` and `time/nanoseconds` of passing time.
pub fn clock(bytes: &[u8], options: &Options) -> Option<ProfileType> {
    let message = decompress(bytes, options.max_bytes).ok()?;
    let meaning = Tables::cut(&message, &Budget::of(message.len(), options.max_built_bytes)).ok()?;
    let meaning = meaning.meaning().ok()?;
    let of_period: Vec<&str> = meaning.period_type.iter().map(|(name, _)| *name).collect();
    let of_columns: Vec<&str> = meaning.kinds.iter().map(|(name, _)| *name).collect();
    clock_named(&of_period).or_else(|| clock_named(&of_columns))
}
