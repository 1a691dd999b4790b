//! Where records and features are: in a file with a header of places, or in a stream in which everything is a record.

use fleetdiff_schemas::rejected::Rejection;
use linux_perf_event_reader::Endianness;

use super::bytes::{Bytes, until_zero};
use super::events::{self, Event};
use super::records::{self, Records};
use super::{MAGICS, malformed, refused, truncated};
use crate::budget::Budget;

/// Bytes of the header of a file, and of that of a stream.
const HEADER: u64 = 104;
const STREAM_HEADER: u64 = 16;

/// What a build id takes, with its path.
const BUILD_ID: usize = 96;

/// A recording before its records are read one by one.
pub(super) struct Recording<'t> {
    pub(super) events: Vec<Event>,
    pub(super) records: Records<'t>,
    /// Build ids by path; the kernel's is among them.
    pub(super) build_ids: Vec<(Vec<u8>, Vec<u8>)>,
    /// Release of the kernel, as `uname -r` prints it.
    pub(super) release: Option<String>,
}

/// Parts of a file, by numbers that all tools know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Feature(pub(super) u64);

impl Feature {
    pub(super) const BUILD_ID: Self = Self(2);
    pub(super) const RELEASE: Self = Self(4);
    pub(super) const EVENTS: Self = Self(12);
    /// Android's tool of the same file format.
    const SIMPLEPERF: Self = Self(129);
    const ALL: u64 = 256;
}

/// What a recording says beside its samples, as its parts are found.
#[derive(Default)]
pub(super) struct Said {
    pub(super) events: Vec<Event>,
    pub(super) names: Vec<Option<String>>,
    pub(super) build_ids: Vec<(Vec<u8>, Vec<u8>)>,
    release: Option<String>,
}

impl<'t> Recording<'t> {
    /// Reads everything but what single records say.
    ///
    /// # Errors
    /// `truncated` if the file ends before what it says to hold; `malformed`; `unsupported_type` with what it holds that is not read;
    /// `too_large`.
    pub(super) fn read(text: &'t [u8], budget: &Budget) -> Result<Self, Rejection> {
        let order = if text.starts_with(MAGICS[0]) { Endianness::LittleEndian } else { Endianness::BigEndian };
        let mut header = Bytes::new(text.get(8..).unwrap_or_default(), order);
        let mut said = Said::default();
        let data = match header.u64() {
            Some(STREAM_HEADER) => {
                let stream = text.get(16..).unwrap_or_default();
                records::each(stream, order, |record| said.take_record(&record, order, budget))?;
                stream
            }
            Some(size) if size >= HEADER => file(text, header, order, budget, &mut said)?,
            Some(_) => return Err(malformed("its header has a length that no perf writes")),
            None => return Err(truncated("its header ends early")),
        };
        for (event, name) in said.events.iter_mut().zip(said.names) {
            event.name = name.or_else(|| event.name.take());
        }
        events::check(&said.events)?;
        let records = Records::read(data, order, &said.events, budget)?;
        Ok(Self { events: said.events, records, build_ids: said.build_ids, release: said.release })
    }
}

/// Reads the header of a file and what it leads to; gives its records.
fn file<'t>(
    text: &'t [u8],
    mut header: Bytes<'t>,
    order: Endianness,
    budget: &Budget,
    said: &mut Said,
) -> Result<&'t [u8], Rejection> {
    let early = || truncated("its header ends early");
    let attribute = header.length().ok_or_else(early)?;
    let [attributes, data, _] = [(); 3].map(|()| section(&mut header));
    let (attributes, data) = (attributes.ok_or_else(early)?, data.ok_or_else(early)?);
    let bits = [(); 4].map(|()| header.u64());
    if data.1 == 0 {
        return Err(truncated("it says that it holds no records"));
    }
    let beyond = || truncated("its parts lie beyond its end");
    let records = part(text, data).ok_or_else(beyond)?;
    said.events = events::of_file(text, part(text, attributes).ok_or_else(beyond)?, attribute, order, budget)?;
    let mut places = Bytes::new(text.get(data.0 + data.1..).unwrap_or_default(), order);
    for feature in (0..Feature::ALL).filter(|feature| is_set(&bits, *feature)) {
        let content = section(&mut places).and_then(|place| part(text, place)).ok_or_else(beyond)?;
        said.take_feature(Feature(feature), content, order, budget)?;
    }
    Ok(records)
}

fn section(header: &mut Bytes<'_>) -> Option<(usize, usize)> {
    Some((header.length()?, header.length()?))
}

/// A part of a file.
pub(super) fn part(text: &[u8], (start, length): (usize, usize)) -> Option<&[u8]> {
    text.get(start..start.checked_add(length)?)
}

fn is_set(bits: &[Option<u64>; 4], feature: u64) -> bool {
    let word = usize::try_from(feature / 64).ok().and_then(|place| bits.get(place).copied().flatten());
    word.is_some_and(|word| word >> (feature % 64) & 1 == 1)
}

impl Said {
    fn take_feature(
        &mut self,
        feature: Feature,
        content: &[u8],
        order: Endianness,
        budget: &Budget,
    ) -> Result<(), Rejection> {
        match feature {
            Feature::BUILD_ID => records::each(content, order, |record| self.take_build_id(record.body, budget)),
            Feature::RELEASE => {
                self.release = Bytes::new(content, order).text();
                Ok(())
            }
            Feature::EVENTS => {
                self.names = events::names(content, order, self.events.len().max(1), budget)?;
                Ok(())
            }
            Feature::SIMPLEPERF => {
                Err(refused(" that Android's simpleperf wrote, which has a script that folds it: stackcollapse.py"))
            }
            _ => Ok(()),
        }
    }

    /// Takes what a record of a stream says of the recording.
    fn take_record(&mut self, record: &records::Raw<'_>, order: Endianness, budget: &Budget) -> Result<(), Rejection> {
        match record.kind {
            records::EVENT => {
                let event = events::of_record(record.body, order)?;
                budget.take(events::EVENT + 16 * event.ids.len())?;
                budget.push(&mut self.events, event)
            }
            records::FEATURE => {
                let mut bytes = Bytes::new(record.body, order);
                match bytes.u64() {
                    Some(feature) => self.take_feature(Feature(feature), bytes.rest(), order, budget),
                    None => Ok(()),
                }
            }
            records::BUILD_ID => self.take_build_id(record.body, budget),
            _ => Ok(()),
        }
    }

    /// Takes a build id: a process, 24 bytes of which the length is the 21st or is not said, and a path.
    fn take_build_id(&mut self, body: &[u8], budget: &Budget) -> Result<(), Rejection> {
        let Some((id, path)) = body.get(4..).and_then(|body| body.split_at_checked(24)) else { return Ok(()) };
        let said = id.get(20).copied().map(usize::from).filter(|length| (1..=20).contains(length));
        let id = id.get(..said.unwrap_or(20)).unwrap_or_default();
        let path = until_zero(path);
        budget.take(BUILD_ID + path.len())?;
        budget.push(&mut self.build_ids, (path.to_owned(), id.to_owned()))
    }
}
