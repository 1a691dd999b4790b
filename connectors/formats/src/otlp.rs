//! OTLP profiles: `ExportProfilesServiceRequest` of opentelemetry-proto 1.10, as the OpenTelemetry Collector's kafkaexporter writes
//! it, many pods a record.
//!
//! The decoder's passes, in their order: undo the compression; cut the message into resources and the dictionary that they share
//! (`dictionary`); name functions (`symbols`); read each profile of the message but for its samples (`heads`); put sample types of
//! one process and window together (`groups`); walk the samples (`samples`, `rows`). Nothing is copied before it is needed.
//! [`encode()`] writes what [`Decoder`] reads, by the messages in [`proto`].
//!
//! Whose a profile is says its resource, then its scope ([`Options::identity`]); where these name no service, as async-profiler's do not, the labels
//! of the transport do. A part is a profile type of one resource and window, and a bad one spoils no other. `docs/formats.md` has the rules for types,
//! counts and temporality.

mod details;
mod dictionary;
mod encode;
mod groups;
mod heads;
pub mod metrics;
pub mod proto;
mod record;
mod rows;
mod samples;
mod symbols;
mod values;

use std::sync::Arc;

use fleetdiff_schemas::identity::Identity;
use fleetdiff_schemas::profile::Profile;
use fleetdiff_schemas::rejected::{Reason, Rejection};

use self::dictionary::Dictionary;
use self::record::Record;
use crate::budget::Budget;
use crate::compression::decompress;
use crate::decode::{Decode, Options};
use crate::labels::{Labels, countable};
use crate::names::Naming;
use crate::parts::{Parts, gathered};
use crate::values::Values;
use crate::wire::fields;

pub(super) use details::{PartDetails, StackDetails};
pub use encode::encode;

/// Whether a message begins as OTLP's do: with a resource of its own message, where pprof has two numbers, a name and a unit.
pub(super) fn begins(bytes: &[u8]) -> bool {
    const FIRST: u8 = 0x0a;
    const MESSAGES_OF_RESOURCE: [u8; 3] = [0x0a, 0x12, 0x1a];
    let [FIRST, rest @ ..] = bytes else { return false };
    let behind_length = rest.iter().position(|byte| *byte < 0x80).and_then(|last| rest.get(last + 1));
    behind_length.is_some_and(|tag| MESSAGES_OF_RESOURCE.contains(tag))
}

/// Decodes OTLP profiles.
#[derive(Debug)]
pub struct Decoder {
    options: Options,
    naming: Naming,
}

impl Decoder {
    /// A decoder with these limits, names of attributes and rules.
    pub fn new(options: &Options) -> Self {
        Self { options: options.clone(), naming: Naming::new(options) }
    }

    /// All profiles of a record, those that are no counts of a window among them ([`Decode::decode`] refuses these).
    pub fn profiles(&mut self, bytes: &[u8]) -> Vec<Result<Profile, Rejection>> {
        self.read(bytes, None)
    }

    fn read(&mut self, bytes: &[u8], stand_in: Option<&Arc<Identity>>) -> Vec<Result<Profile, Rejection>> {
        let parts = decompress(bytes, self.options.max_bytes).and_then(|message| {
            parts(&message, &self.options, &mut self.naming, |record, resources| record.read(resources, stand_in))
        });
        parts.unwrap_or_else(|fault| vec![Err(fault)])
    }

    /// The profiles of a record that can be counted, with what stands beside their stacks. Those that name no service are of
    /// `otherwise`.
    pub(super) fn profiles_with_details(
        &mut self,
        bytes: &[u8],
        values: Values,
        otherwise: &Arc<Identity>,
    ) -> Vec<(Result<Profile, Rejection>, PartDetails)> {
        let message = decompress(bytes, self.options.max_bytes);
        let parts = message.and_then(|message| {
            parts(&message, &self.options, &mut self.naming, |record, resources| {
                record.read_with_details(resources, values, otherwise)
            })
        });
        let parts = parts.unwrap_or_else(|fault| vec![(Err(fault), PartDetails::default())]);
        let mut counted = Parts::default();
        let mut beside = Vec::new();
        for (part, details) in parts {
            let before = counted.len();
            counted.push(part.and_then(countable));
            beside.extend((counted.len() > before).then_some(details));
        }
        counted.with(beside)
    }
}

impl Decode for Decoder {
    fn decode(&mut self, bytes: &[u8], labels: &Result<Labels, Rejection>) -> Vec<Result<Profile, Rejection>> {
        let stand_in = labels.as_ref().ok().map(|labels| &labels.identity);
        gathered(self.read(bytes, stand_in).into_iter().map(|part| part.and_then(countable)))
    }
}

/// The parts of a record, at least one, as they are read of it.
fn parts<T>(
    message: &[u8],
    options: &Options,
    naming: &mut Naming,
    read: impl for<'d, 'a> FnOnce(Record<'d, 'a>, &[&'a [u8]]) -> T,
) -> Result<T, Rejection> {
    if message.first() == Some(&b'{') {
        let detail = "JSON, expected protobuf: set the exporter's encoding to otlp_proto";
        return Err(Rejection::new(Reason::Malformed, detail));
    }
    let budget = Budget::of(message.len(), options.max_built_bytes);
    let (mut resources, mut dictionary) = (Vec::new(), Dictionary::default());
    let mut top = fields(message);
    while let Some((tag, value)) = top.next()? {
        match tag {
            1 => budget.push(&mut resources, value.bytes()?)?,
            2 => dictionary.add(value.bytes()?, &budget)?,
            _ => {}
        }
    }
    if resources.is_empty() {
        return Err(Rejection::new(Reason::Empty, "the record holds no profile"));
    }
    dictionary.check()?;
    Ok(read(Record::of(&dictionary, budget, options, naming)?, &resources))
}
