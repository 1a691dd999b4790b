//! All records of a recording, in the order of their times.

use std::borrow::Cow;
use std::collections::HashMap;

use fleetdiff_schemas::rejected::Rejection;
use linux_perf_event_reader::{Endianness, RawData, RawEventRecord, RecordType};
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use super::bytes::Bytes;
use super::events::Event;
use super::{malformed, refused, truncated};
use crate::budget::Budget;

/// Records that perf writes and no kernel.
pub(super) const EVENT: u32 = 64;
const TRACING_DATA: u32 = 66;
pub(super) const BUILD_ID: u32 = 67;
const AUXTRACE: u32 = 71;
pub(super) const FEATURE: u32 = 80;
const COMPRESSED: u32 = 81;
const COMPRESSED_PADDED: u32 = 83;

/// Records below this number are of the kernel.
const OF_PERF: u32 = 64;

const HEADER: usize = 8;

/// How much is decompressed at a time.
const STEP: usize = 64 << 10;

/// A record as it stands in a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raw<'t> {
    pub(super) kind: u32,
    pub(super) misc: u16,
    pub(super) body: &'t [u8],
    /// The record with its header.
    whole: &'t [u8],
    /// Where it begins.
    start: usize,
}

/// The records of the kernel.
pub(super) struct Records<'t> {
    data: Cow<'t, [u8]>,
    order: Endianness,
    /// Their times and where they begin, sorted; records without a time come first.
    places: Vec<(u64, usize)>,
    of_ids: HashMap<u64, usize, foldhash::fast::RandomState>,
}

/// Gives the records of a stream one by one.
///
/// # Errors
/// `truncated` if one goes beyond the end; `malformed` if one has no length; those of `take`.
pub(super) fn each<'t>(
    stream: &'t [u8],
    order: Endianness,
    mut take: impl FnMut(Raw<'t>) -> Result<(), Rejection>,
) -> Result<(), Rejection> {
    let mut start = 0;
    while start < stream.len() {
        let (record, end) = at(stream, start, order)?;
        start = end;
        take(record)?;
    }
    Ok(())
}

/// The record that begins here, and where the next does.
fn at(stream: &[u8], start: usize, order: Endianness) -> Result<(Raw<'_>, usize), Rejection> {
    let early = || truncated("its last record has no end");
    let stream = stream.get(start..).ok_or_else(early)?;
    let mut bytes = Bytes::new(stream, order);
    let (kind, (misc, size)) = bytes.u32().zip(bytes.u16().zip(bytes.u16())).ok_or_else(early)?;
    let size = usize::from(size);
    if size < HEADER {
        return Err(malformed("one of its records has no length"));
    }
    let (whole, rest) = stream.split_at_checked(size).ok_or_else(early)?;
    let body = whole.get(HEADER..).unwrap_or_default();
    // What follows these two is no record.
    let beside = match kind {
        TRACING_DATA => Bytes::new(body, order).u32().map(|size| u64::from(size).next_multiple_of(8)),
        AUXTRACE => Bytes::new(body, order).u64(),
        _ => Some(0),
    };
    let beside = beside.and_then(|size| usize::try_from(size).ok()).ok_or_else(early)?;
    let end = rest.get(..beside).map(|beside| start + size + beside.len()).ok_or_else(early)?;
    Ok((Raw { kind, misc, body, whole, start }, end))
}

impl<'t> Records<'t> {
    /// Reads where records are, and decompresses those that are compressed.
    ///
    /// # Errors
    /// Those of [`each`]; `too_large`; `unsupported_type` if they are no records of samples.
    pub(super) fn read(
        stream: &'t [u8],
        order: Endianness,
        events: &[Event],
        budget: &Budget,
    ) -> Result<Self, Rejection> {
        let mut of_ids = HashMap::default();
        for (number, event) in events.iter().enumerate() {
            of_ids.extend(event.ids.iter().filter(|id| **id != 0).map(|id| (*id, number)));
        }
        let mut records = Self { data: plain(stream, order, budget)?, order, places: Vec::new(), of_ids };
        records.places = records.sorted(events, budget)?;
        Ok(records)
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The record at this place of their order with its event; none of an event that the recording does not name.
    pub(super) fn get(&self, place: usize, events: &[Event]) -> Option<(usize, RawEventRecord<'_>)> {
        let (_, start) = self.places.get(place)?;
        let (record, _) = at(&self.data, *start, self.order).ok()?;
        self.with_event(&record, events)
    }

    fn with_event<'r>(&self, record: &Raw<'r>, events: &[Event]) -> Option<(usize, RawEventRecord<'r>)> {
        let of = |event: &Event| {
            RawEventRecord::new(RecordType(record.kind), record.misc, RawData::Single(record.body), event.layout)
        };
        let first = of(events.first()?);
        let id = if events.len() > 1 { first.id() } else { None };
        let known = id.and_then(|id| self.of_ids.get(&id).copied());
        // Records that are no samples are laid out the same for all events, if they name none.
        let is_sample = record.kind == RecordType::SAMPLE.0;
        let event = if events.len() == 1 || !is_sample { known.unwrap_or(0) } else { known? };
        events.get(event).map(|found| (event, of(found)))
    }

    fn sorted(&self, events: &[Event], budget: &Budget) -> Result<Vec<(u64, usize)>, Rejection> {
        let mut places = Vec::new();
        let mut unknown = 0u64;
        each(&self.data, self.order, |record| {
            if record.kind == AUXTRACE {
                return Err(refused(" with the trace of a processor, which must be decoded"));
            }
            if record.kind >= OF_PERF {
                return Ok(());
            }
            let Some((_, found)) = self.with_event(&record, events) else {
                unknown += 1;
                return Ok(());
            };
            let time = found.timestamp().filter(|time| *time != u64::MAX).unwrap_or(0);
            budget.push(&mut places, (time, record.start))
        })?;
        if unknown > 0 {
            tracing::warn!(
                "{unknown} samples of a recording of perf are left out, since it does not say of which event they are"
            );
        }
        places.sort_by_key(|(time, _)| *time);
        Ok(places)
    }
}

/// The records of a stream, none of them compressed.
fn plain<'t>(stream: &'t [u8], order: Endianness, budget: &Budget) -> Result<Cow<'t, [u8]>, Rejection> {
    let is_compressed = |record: &Raw<'_>| [COMPRESSED, COMPRESSED_PADDED].contains(&record.kind);
    let mut any = false;
    each(stream, order, |record| {
        any |= is_compressed(&record);
        Ok(())
    })?;
    if !any {
        return Ok(Cow::Borrowed(stream));
    }
    let mut unpacked = Unpacked::new(budget)?;
    let mut beside = Vec::new();
    each(stream, order, |record| {
        if is_compressed(&record) {
            unpacked.take(packed(&record, order).ok_or_else(|| malformed("a compressed record has no length"))?)
        } else if record.kind < OF_PERF {
            budget.extend(&mut beside, record.whole)
        } else {
            Ok(())
        }
    })?;
    budget.extend(&mut beside, &unpacked.bytes)?;
    budget.give_back(unpacked.bytes.capacity());
    Ok(Cow::Owned(beside))
}

/// The compressed bytes of a record, of which some kinds are padded.
fn packed<'t>(record: &Raw<'t>, order: Endianness) -> Option<&'t [u8]> {
    if record.kind == COMPRESSED {
        return Some(record.body);
    }
    let mut bytes = Bytes::new(record.body, order);
    let length = bytes.length()?;
    bytes.take(length)
}

/// What compressed records hold together: one stream, cut into records anywhere.
struct Unpacked<'b> {
    decoder: Decoder<'static>,
    bytes: Vec<u8>,
    budget: &'b Budget,
}

impl<'b> Unpacked<'b> {
    fn new(budget: &'b Budget) -> Result<Self, Rejection> {
        let decoder = Decoder::new().map_err(|fault| malformed(&format!("it cannot be decompressed ({fault})")))?;
        Ok(Self { decoder, bytes: Vec::new(), budget })
    }

    fn take(&mut self, packed: &[u8]) -> Result<(), Rejection> {
        let mut input = InBuffer::around(packed);
        let mut step = vec![0; STEP];
        loop {
            let mut output = OutBuffer::around(&mut step[..]);
            let run = self.decoder.run(&mut input, &mut output);
            run.map_err(|fault| malformed(&format!("it cannot be decompressed ({fault})")))?;
            let written = output.pos();
            self.budget.extend(&mut self.bytes, step.get(..written).unwrap_or_default())?;
            if written < STEP && input.pos() >= packed.len() {
                return Ok(());
            }
        }
    }
}
