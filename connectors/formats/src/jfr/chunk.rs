//! Chunks: where each begins, and what its header says.

use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::time::{Nanos, TimeRange};

use super::cursor::Cursor;
use super::{MAGIC, malformed, within};

/// Bytes of a header.
const HEADER: usize = 68;

/// The type of the event that holds the metadata, and that of those that hold constants.
const METADATA: u64 = 0;
const CONSTANTS: u64 = 1;

/// What the header of a chunk says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chunk<'a> {
    /// The bytes of the chunk, its header among them.
    bytes: &'a [u8],
    /// Where it begins in the recording.
    pub(super) begins: usize,
    constants: u64,
    metadata: u64,
    start: i64,
    duration: i64,
    start_ticks: u64,
    ticks_a_second: u64,
}

/// An event: its type, and its bytes behind that.
pub(super) struct Event<'a> {
    pub(super) kind: u64,
    pub(super) body: Cursor<'a>,
}

impl<'a> Chunk<'a> {
    /// The chunk that begins at a place of a recording.
    ///
    /// # Errors
    /// `truncated` if the recording ends before it does, or the JVM did before it was written; `unsupported_version` of formats
    /// other than 2 and of numbers that are not compressed; `malformed` if it is no chunk.
    pub(super) fn at(recording: &'a [u8], begins: usize) -> Result<Self, Rejection> {
        Self::read(recording, begins).map_err(|fault| within(&format!("chunk at byte {begins}"), fault))
    }

    fn read(recording: &'a [u8], begins: usize) -> Result<Self, Rejection> {
        let rest = recording.get(begins..).unwrap_or_default();
        let magic = rest.get(..MAGIC.len().min(rest.len())).unwrap_or_default();
        if !MAGIC.starts_with(magic) {
            return Err(malformed("no recording of Flight Recorder, which begins with FLR"));
        }
        let mut header = Cursor::at(rest.get(..HEADER).ok_or_else(|| cut(HEADER, rest.len()))?, MAGIC.len());
        let (major, minor) = (u16::from_be_bytes(fixed(&mut header)?), u16::from_be_bytes(fixed(&mut header)?));
        if major != 2 {
            let detail = format!(
                "version {major}.{minor}, expected 2.0 or 2.1, as JDK 11 and later, OpenJDK 8 from 8u262 on and async-profiler write"
            );
            return Err(Rejection::new(Reason::UnsupportedVersion, detail));
        }
        let size = u64::from_be_bytes(fixed(&mut header)?);
        let [constants, metadata] = [u64::from_be_bytes(fixed(&mut header)?), u64::from_be_bytes(fixed(&mut header)?)];
        if size == 0 || constants == 0 || metadata == 0 {
            let detail = "it was never finished; stop the recording, or write it with jcmd JFR.dump";
            return Err(Rejection::new(Reason::Truncated, detail));
        }
        let [start, duration] = [i64::from_be_bytes(fixed(&mut header)?), i64::from_be_bytes(fixed(&mut header)?)];
        let start_ticks = u64::from_be_bytes(fixed(&mut header)?);
        let ticks_a_second = u64::from_be_bytes(fixed(&mut header)?);
        if u32::from_be_bytes(fixed(&mut header)?) & 1 == 0 {
            return Err(Rejection::new(Reason::UnsupportedVersion, "numbers that are not compressed"));
        }
        if ticks_a_second == 0 {
            return Err(malformed("a clock without ticks"));
        }
        let length = usize::try_from(size).unwrap_or(usize::MAX);
        let bytes = rest.get(..length).ok_or_else(|| cut(length, rest.len()))?;
        if length < HEADER {
            return Err(malformed(format!("a size of {size} bytes, of which the header is {HEADER}")));
        }
        Ok(Self { bytes, begins, constants, metadata, start, duration, start_ticks, ticks_a_second })
    }

    /// Where the next one begins.
    pub(super) fn ends(&self) -> usize {
        self.begins + self.bytes.len()
    }

    /// When it was recorded.
    pub(super) fn window(&self) -> TimeRange {
        let end = self.start.saturating_add(self.duration.max(0));
        TimeRange { start: Nanos(self.start), end: Nanos(end) }
    }

    /// So many ticks of its clock in nanoseconds.
    pub(super) fn nanoseconds(&self, ticks: u64) -> u64 {
        let nanoseconds = u128::from(ticks) * 1_000_000_000 / u128::from(self.ticks_a_second);
        u64::try_from(nanoseconds).unwrap_or(u64::MAX)
    }

    /// The moment of a tick, in nanoseconds since 1970.
    pub(super) fn moment(&self, tick: u64) -> i64 {
        // NB: an event may begin before the chunk that it is written to.
        let since = self.nanoseconds(tick.saturating_sub(self.start_ticks));
        let before = self.nanoseconds(self.start_ticks.saturating_sub(tick));
        let signed = |length| i64::try_from(length).unwrap_or(i64::MAX);
        self.start.saturating_add(signed(since)).saturating_sub(signed(before))
    }

    /// All events, those of metadata and constants left out.
    ///
    /// # Errors
    /// `malformed` from one whose size is none.
    pub(super) fn events(&self) -> impl Iterator<Item = Result<Event<'a>, Rejection>> + use<'a> {
        let (chunk, mut next) = (*self, Some(HEADER));
        std::iter::from_fn(move || {
            loop {
                let at = next.filter(|at| *at < chunk.bytes.len())?;
                let event = chunk.event(at);
                next = event.as_ref().ok().map(|(_, end)| *end);
                match event {
                    Ok((event, _)) if event.kind == METADATA || event.kind == CONSTANTS => {}
                    other => return Some(other.map(|(event, _)| event)),
                }
            }
        })
    }

    /// The event at a place, and where it ends.
    fn event(&self, at: usize) -> Result<(Event<'a>, usize), Rejection> {
        let whole = |size: u64| {
            let end = usize::try_from(size).ok().and_then(|size| at.checked_add(size)).filter(|_| size > 0);
            end.and_then(|end| self.bytes.get(..end)).ok_or_else(|| {
                malformed(format!("a size of {size} bytes where {} are left", self.bytes.len().saturating_sub(at)))
            })
        };
        let read = || {
            let mut cursor = Cursor::at(self.bytes, at);
            let bytes = whole(cursor.number()?)?;
            let mut body = Cursor::at(bytes, cursor.place());
            Ok((Event { kind: body.number()?, body }, bytes.len()))
        };
        read().map_err(|fault| within(&format!("event at byte {}", self.begins + at), fault))
    }

    /// What stands behind the head of the event of metadata.
    pub(super) fn metadata(&self) -> Result<Cursor<'a>, Rejection> {
        let mut body = self.special(self.metadata, METADATA, "the metadata")?;
        // Start, duration, number.
        (0..3).try_for_each(|_| body.number().map(|_| ()))?;
        Ok(body)
    }

    /// Gives the lists of constants to `read`, the last one first.
    ///
    /// # Errors
    /// `malformed` if they do not stand one before the other.
    pub(super) fn constants(&self, mut read: impl FnMut(Cursor<'a>) -> Result<(), Rejection>) -> Result<(), Rejection> {
        let mut at = self.constants;
        loop {
            let mut body = self.special(at, CONSTANTS, "constants")?;
            // Start, duration.
            (0..2).try_for_each(|_| body.number().map(|_| ()))?;
            let step = body.number()?.cast_signed();
            // What they were written for.
            body.byte()?;
            read(body)?;
            if step == 0 {
                return Ok(());
            }
            let before = at.checked_add_signed(step).filter(|before| *before < at);
            at = before.ok_or_else(|| malformed("constants that are followed by no earlier ones"))?;
        }
    }

    /// The body of an event that something else leads to.
    fn special(&self, at: u64, kind: u64, what: &str) -> Result<Cursor<'a>, Rejection> {
        let place = usize::try_from(at).ok().filter(|place| (HEADER..self.bytes.len()).contains(place));
        let place =
            place.ok_or_else(|| malformed(format!("{what} at byte {at} of a chunk of {}", self.bytes.len())))?;
        let (event, _) = self.event(place)?;
        if event.kind == kind { Ok(event.body) } else { Err(malformed(format!("at byte {at} are not {what}"))) }
    }
}

fn fixed<const LENGTH: usize>(header: &mut Cursor<'_>) -> Result<[u8; LENGTH], Rejection> {
    let bytes = header.take(LENGTH)?;
    bytes.try_into().map_err(|_| malformed("a header too short"))
}

fn cut(expected: usize, found: usize) -> Rejection {
    Rejection::new(Reason::Truncated, format!("{expected} bytes expected, {found} are there"))
}
