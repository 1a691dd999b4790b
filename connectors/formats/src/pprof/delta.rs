//! The delta of two cumulative profiles of one process, all its columns: what was added between them.
//!
//! The passes, in their order: cut both messages into their tables (`side`); number what is equal in both (`keys`, `numbers`), since
//! ids are of one file alone; add up what is of the same stack and labels (`sums`); subtract, and drop what is zero in every
//! column; write what is left and what it refers to (`write`). Texts are never copied. Levels (`inuse_...`) are not subtracted: they are those of the later profile.
//!
//! Values are subtracted as they are. So contentions and delays are exact, while the allocations that Go scales up from
//! samples differ by rounding from what it would have written had it subtracted first (godeltaprof does: 54 of 1,727,157
//! objects, 34 of 720,322,092 bytes).

mod join;
mod keys;
mod numbers;
mod sample;
mod side;
mod sums;
mod write;

use fleetdiff_schemas::rejected::Rejection;

use self::keys::{Keys, Numbers, location};
use self::sample::Sample;
use self::side::Side;
use self::sums::Sums;
use self::write::{Kept, write};
use super::proto::Profile;
use crate::compression::{decompress, gzip};

pub use join::{Join, join};

/// Which of the two profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The earlier one.
    Before,
    /// The later one.
    After,
}

impl std::fmt::Display for Which {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Before => "the profile before",
            Self::After => "the profile after",
        })
    }
}

/// Why there is no delta.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoDelta {
    /// One of them is no cumulative profile.
    #[error("{0} cannot be read ({reason}): {detail}", reason = .1.reason.name(), detail = .1.detail)]
    Unreadable(Which, Rejection),
    /// They measure different things.
    #[error("the profiles differ in their {what}: {before} before, {after} after")]
    Unlike {
        /// Sample types or period.
        what: &'static str,
        /// Of the earlier one.
        before: String,
        /// Of the later one.
        after: String,
    },
    /// The earlier one was taken later.
    #[error("the profile before was taken {seconds} s after the profile after")]
    Backwards {
        /// How much later.
        seconds: i64,
    },
    /// Something fell that only grows within a process.
    #[error("{column} of {stack} fell from {before} to {after}")]
    Reset {
        /// Which column.
        column: String,
        /// The leaf of the stack, and how many frames it has.
        stack: String,
        /// Value before.
        before: i64,
        /// Value after.
        after: i64,
    },
}

impl NoDelta {
    /// A name for this kind of error that does not change.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreadable(..) => "unreadable",
            Self::Unlike { .. } => "unlike",
            Self::Backwards { .. } => "backwards",
            Self::Reset { .. } => "reset",
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unreadable(..) => {
                "expected two whole pprof profiles, compressed or not, of counts since the process began"
            }
            Self::Unlike { .. } => "take both profiles of one kind from one process",
            Self::Backwards { .. } => "give the earlier profile first",
            Self::Reset { .. } => {
                "the process began anew between the two (the later profile then is the delta since that), they are of two processes, or in the wrong order"
            }
        }
    }
}

/// The delta of two profiles as gzipped pprof, each compressed or not and of at most `max_bytes` without compression. Its time is
/// that of the earlier profile and its duration what lies between them. Samples stand in the order of the later profile. Equal
/// profiles give equal bytes.
///
/// # Errors
/// [`NoDelta`]: a sample type or the period differs, a value fell, or one of them cannot be read.
pub fn delta(before: &[u8], after: &[u8], max_bytes: usize) -> Result<Vec<u8>, NoDelta> {
    message(before, after, max_bytes).map(|message| gzip(&message))
}

/// The same without compression.
///
/// # Errors
/// Those of [`delta`].
pub fn message(before: &[u8], after: &[u8], max_bytes: usize) -> Result<Vec<u8>, NoDelta> {
    let unreadable = |which| move |fault| NoDelta::Unreadable(which, fault);
    let before = decompress(before, max_bytes).map_err(unreadable(Which::Before))?;
    let mut earlier = Side::cut(&before, max_bytes).map_err(unreadable(Which::Before))?;
    let after = decompress(after, max_bytes).map_err(unreadable(Which::After))?;
    let mut later = Side::cut(&after, max_bytes).map_err(unreadable(Which::After))?;
    let columns = columns(&earlier, &later)?;
    let duration = duration(&earlier.head, &later.head)?;
    let mut numbers = Numbers::default();
    let earlier = Counted::of(&mut earlier, &mut numbers).map_err(unreadable(Which::Before))?;
    let later = Counted::of(&mut later, &mut numbers).map_err(unreadable(Which::After))?;
    let kept = subtract(&earlier, &later, &columns)?;
    let mut head = later.side.head.clone();
    if duration > 0 {
        (head.time_nanos, head.duration_nanos) = (earlier.side.head.time_nanos, duration);
    }
    write(later.side, &later.keys, head, &kept).map_err(unreadable(Which::After))
}

/// A file whose samples are added up.
struct Counted<'s, 'a> {
    side: &'s Side<'a>,
    keys: Keys,
    sums: Sums<'a>,
}

impl<'s, 'a> Counted<'s, 'a> {
    fn of(side: &'s mut Side<'a>, numbers: &mut Numbers<'a>) -> Result<Self, Rejection> {
        let keys = numbers.of(side)?;
        let sums = Sums::of(side, &keys, numbers)?;
        Ok(Self { side, keys, sums })
    }

    /// The stack of a sample for people: its leaf, and how many locations it has.
    fn stack(&self, message: &[u8]) -> String {
        let mut sample = Sample::default();
        let read = sample.read(message);
        let leaf = sample.locations.first().filter(|_| read.is_ok()).and_then(|id| self.leaf(*id));
        format!("{} (a stack of {})", leaf.unwrap_or("a frame without a name"), sample.locations.len())
    }

    fn leaf(&self, id: u64) -> Option<&'a str> {
        let place = self.keys.locations.get(id).ok()?.place();
        let mut function = None;
        let innermost = location(self.side.locations.get(place)?, |line| {
            function.get_or_insert(line.function_id);
            Ok(())
        });
        innermost.ok()?;
        let place = self.keys.functions.get(function?).ok()?.place();
        self.side.text(self.side.functions.get(place)?.name).ok()
    }
}

/// A column: its type and unit in words, and whether it is a level.
struct Column {
    name: String,
    is_level: bool,
}

fn columns(before: &Side<'_>, after: &Side<'_>) -> Result<Vec<Column>, NoDelta> {
    let (found_before, found_after) = (described(before, Which::Before)?, described(after, Which::After)?);
    if found_before != found_after {
        return Err(NoDelta::Unlike {
            what: "sample types",
            before: found_before.join(", "),
            after: found_after.join(", "),
        });
    }
    let [before, after] = [before, after].map(|side| side.head.period);
    if before != after {
        return Err(NoDelta::Unlike { what: "period", before: before.to_string(), after: after.to_string() });
    }
    Ok(found_after.into_iter().map(|name| Column { is_level: name.starts_with("inuse_"), name }).collect())
}

fn described(side: &Side<'_>, which: Which) -> Result<Vec<String>, NoDelta> {
    let each = side
        .head
        .sample_type
        .iter()
        .map(|column| Ok(format!("{}/{}", side.text(column.r#type)?, side.text(column.unit)?)));
    each.collect::<Result<_, _>>().map_err(|fault| NoDelta::Unreadable(which, fault))
}

/// Nanoseconds from one to the other; 0 where one of them names no time.
fn duration(before: &Profile, after: &Profile) -> Result<i64, NoDelta> {
    if before.time_nanos <= 0 || after.time_nanos <= 0 {
        return Ok(0);
    }
    match after.time_nanos.saturating_sub(before.time_nanos) {
        earlier @ ..0 => Err(NoDelta::Backwards { seconds: earlier.saturating_neg() / 1_000_000_000 }),
        between => Ok(between),
    }
}

fn subtract<'a>(earlier: &Counted<'_, 'a>, later: &Counted<'_, 'a>, columns: &[Column]) -> Result<Kept<'a>, NoDelta> {
    let nothing = vec![0; columns.len()];
    let mut kept = Kept::default();
    for (stack, sample, now) in later.sums.in_order() {
        let before = earlier.sums.get(stack).unwrap_or(&nothing);
        let start = kept.values.len();
        for (column, (before, now)) in columns.iter().zip(before.iter().zip(now)) {
            kept.values.push(difference(column, *before, *now, || later.stack(sample))?);
        }
        if kept.values.iter().skip(start).any(|value| *value != 0) {
            kept.samples.push((sample, start..kept.values.len()));
        } else {
            kept.values.truncate(start);
        }
    }
    for (_, sample, before) in earlier.sums.in_order().filter(|(stack, ..)| later.sums.get(*stack).is_none()) {
        for (column, before) in columns.iter().zip(before) {
            difference(column, *before, 0, || earlier.stack(sample))?;
        }
    }
    Ok(kept)
}

fn difference(column: &Column, before: i64, after: i64, stack: impl Fn() -> String) -> Result<i64, NoDelta> {
    if column.is_level {
        Ok(after)
    } else if after < before {
        Err(NoDelta::Reset { column: column.name.clone(), stack: stack(), before, after })
    } else {
        Ok(after - before)
    }
}
