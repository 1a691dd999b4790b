//! Recordings of Linux perf: `perf.data`, as `perf record` writes it.
//!
//! What is read of a recording is what `perf script --no-inline` prints of it, by the same rules as its text (`perf_script.rs`): which event is
//! counted, what names a frame, what stands for one without a symbol. So a recording and its text are the same profile.
//!
//! The passes, in their order:
//! 1. `perf_data/recording.rs`: where records and features are in the file, or in the stream of `perf record -o -`; `perf_data/events.rs`: what was recorded;
//!    `perf_data/records.rs`: all records, decompressed, in the order of their times;
//! 2. `perf_data/machine.rs`: which thread had what mapped when, record by record; `perf_data/samples.rs`: of each sample the places in
//!    programs and libraries that its addresses are;
//! 3. `perf_data/symbols.rs`: the functions at these places, found in files of this machine;
//! 4. the records once more: a stack a sample.
//!
//! A recording names programs and libraries by their paths, and only files of the machine know the functions in them. Which files
//! are opened is thus up to whoever wrote the recording, so it is read only where the caller says so ([`Symbols`]): for files that a user names,
//! never for records of a topic.
//!
//! NB: kernels write what is recorded, but anybody can write a file; so lengths are checked before anything is reserved, and whatever is
//! built is charged to the record's budget.

mod bytes;
mod elf;
mod events;
mod files;
mod jitted;
mod kernel;
mod machine;
mod maps;
mod recording;
mod records;
mod samples;
mod spelling;
mod symbols;
mod table;

use std::collections::HashMap;

use fleetdiff_schemas::rejected::{Reason, Rejection};

use self::recording::Recording;
use self::samples::{Frames, Places};
use crate::record::Record;
use crate::sink::SampleSink;

/// How a recording begins, by the order of its bytes.
const MAGICS: [&[u8]; 2] = [b"PERFILE2", b"2ELIFREP"];

/// What to do with a recording that is not read.
const INSTEAD: &str = "write its text: perf script -F +pid -i perf.data > run.perf_script";

/// Where functions are looked up, for formats that know addresses alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Symbols {
    /// Nowhere: no record makes a process open files that it names. Recordings of perf are then refused. The default.
    #[default]
    Nowhere,
    /// In programs, libraries and tables of symbols of this machine that a recording names: for files that a user gives.
    ThisMachine,
}

/// By places of objects and offsets in them.
type ByPlace<T> = HashMap<(u32, u64), T, foldhash::fast::RandomState>;

/// Whether bytes begin as a recording does.
pub(crate) fn begins(bytes: &[u8]) -> bool {
    MAGICS.iter().any(|magic| bytes.starts_with(magic))
}

/// Gives the samples of a recording: those of the event that fits its profile type.
pub(crate) fn read<S: SampleSink>(record: &Record<'_>, symbols: Symbols, sink: &mut S) -> Result<(), Rejection> {
    if !begins(record.text) {
        return Err(malformed("it does not begin as one"));
    }
    match symbols {
        Symbols::Nowhere => Err(refused(", whose functions only the machine knows on which it was made")),
        Symbols::ThisMachine => read_here(record, sink),
    }
}

fn read_here<S: SampleSink>(record: &Record<'_>, sink: &mut S) -> Result<(), Rejection> {
    let budget = &record.budget;
    let recording = Recording::read(record.text, budget)?;
    let mut places = Places::new(budget);
    let objects = samples::replay(&recording, budget, &mut places)?;
    let found = symbols::find(&recording, &objects, places.found, budget)?;
    let mut frames = Frames::new(found, sink, budget);
    samples::replay(&recording, budget, &mut frames)?;
    frames.finish(record.measure.profile_type)
}

/// A recording that is whole and is not read.
fn refused(with: &str) -> Rejection {
    Rejection::new(Reason::UnsupportedType, format!("a recording of perf (perf.data){with}; {INSTEAD}"))
}

fn malformed(what: &str) -> Rejection {
    Rejection::new(Reason::Malformed, format!("a recording of perf (perf.data), but {what}; {INSTEAD}"))
}

fn truncated(what: &str) -> Rejection {
    Rejection::new(
        Reason::Truncated,
        format!("a recording of perf (perf.data) that was cut, or whose perf record did not end: {what}; {INSTEAD}"),
    )
}
