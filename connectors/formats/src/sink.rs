//! What takes the frames and samples that a format reads.
//!
//! A format has one parser with two consumers: a decoder of streams keeps names and counts (`collected.rs`), a comparison of files
//! keeps all that a file says of its samples (`observed.rs`). The parser is compiled once for each, so that a decoder does not pay
//! for details that it drops.

use fleetdiff_schemas::profile::Stack;
use fleetdiff_schemas::rejected::Rejection;

use crate::ticks::FoundPeriod;

/// What kind of frame it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum FrameKind {
    /// A function.
    #[default]
    Function,
    /// A function without a symbol; its name is a stand-in.
    Nameless,
    /// A function that was inlined into its caller, so that it is of the caller's file.
    Inlined,
    /// The name of the thread, as the root of its stacks.
    Thread,
}

/// What a format says of a frame beside its name.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FrameDetails<'a> {
    /// The function without what its name has of marks; the name itself if there are none.
    pub(crate) symbol: Option<&'a str>,
    /// Program or library, with its path.
    pub(crate) dso: Option<&'a str>,
    /// `file:line`.
    pub(crate) line: Option<&'a str>,
    pub(crate) kind: FrameKind,
}

/// What a format says of a sample beside its stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct SampleDetails {
    /// The thread's name, as the place of a text.
    pub(crate) comm: Option<u32>,
    pub(crate) pid: Option<i64>,
    pub(crate) tid: Option<i64>,
    pub(crate) cpu: Option<i64>,
    /// When it was taken, in nanoseconds of the file's own clock.
    pub(crate) at: Option<i64>,
    /// What it weighs: bytes, nanoseconds, a period.
    pub(crate) weight: Option<u64>,
}

/// Takes what a parser finds.
pub(crate) trait SampleSink {
    /// Whether details are kept. If not, a parser need not find them out.
    const KEEPS_DETAILS: bool;

    /// Whether it matters when each sample was taken; else those of one stack may be one entry.
    fn wants_times(&self) -> bool;

    /// The place of a frame.
    ///
    /// # Errors
    /// `too_large` if there are too many.
    fn frame(&mut self, name: &str, details: FrameDetails<'_>) -> Result<u32, Rejection>;

    /// The place of a frame that is like another but for the line that it is of.
    ///
    /// # Errors
    /// `too_large` if there are too many.
    fn frame_at_line(&mut self, frame: u32, line: &str) -> Result<u32, Rejection>;

    /// The place of a text.
    ///
    /// # Errors
    /// `too_large` if there are too many.
    fn text(&mut self, text: &str) -> Result<u32, Rejection>;

    /// Adds so many samples of a stack, root first; none leave no trace.
    ///
    /// # Errors
    /// `too_large` if there are too many stacks or frames.
    fn sample(&mut self, stack: Stack, details: SampleDetails) -> Result<(), Rejection>;

    /// How many entries of samples there are.
    fn len(&self) -> usize;

    /// Keeps the entries for whose place this holds.
    fn keep(&mut self, wanted: impl FnMut(usize) -> bool);

    /// Takes back all entries but the first so many.
    fn cut_back(&mut self, entries: usize);

    /// Says what weights are, as `alloc_space/bytes` or `cycles`.
    fn weighed_in(&mut self, unit: &str);

    /// Says what tick was found in values of time, of which nobody said it.
    fn ticked(&mut self, found: FoundPeriod);

    /// Says how many samples were left out, since the file does not say of what stacks they are.
    fn lost(&mut self, samples: u64);

    /// Divides every count by a period of which all are multiples, and keeps what was written as the weight. Whether it did: a
    /// decoder takes counts as they are or not at all.
    fn divide(&mut self, period: u64) -> bool;
}
