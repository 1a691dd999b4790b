//! Writes a recorded fleet to a topic, file by file.

use std::collections::BTreeMap;

use fleetdiff_formats::names::Rewrites;
use fleetdiff_formats::{Decode, Format, Options};
use fleetdiff_schemas::profile::Profile;
use fleetdiff_schemas::rejected::{Reason, Rejection};

use super::form::{Encoder, RecordForm};
use super::publisher::{Outgoing, Publisher};
use crate::files::{RawProfile, RecordedFleet, RejectedLine};
use crate::kafka::error::BrokerError;
use crate::kafka::outbox::Acknowledged;

/// The progress of publishing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Lines of the manifest that were read.
    pub lines: usize,
    /// Number of lines.
    pub of: usize,
    /// What brokers have acknowledged.
    pub acknowledged: Acknowledged,
}

/// The result of publishing a recorded fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Published {
    /// What brokers have acknowledged.
    pub acknowledged: Acknowledged,
    /// Lines of the manifest that could not be published, and why.
    pub skipped: Vec<RejectedLine>,
}

impl Publisher {
    /// Publishes a recorded fleet in its order of reading and waits until all of it is acknowledged.
    ///
    /// Files in the topic's format are sent as they are, others are decoded and written in it. A file that cannot be decoded
    /// is sent as it is if a reader of the topic rejects it too, at the same time as a reader of the folder; else it is
    /// skipped. In the formats `otlp` and `delta`, of which a record names the pods itself, such files are always skipped. In any
    /// format, files of records with a part that cannot be decoded are skipped too.
    ///
    /// # Errors
    /// The failure of a record: [`BrokerError::Encode`] if the format has no place for it, [`BrokerError::Delivery`],
    /// [`BrokerError::TooLarge`], [`BrokerError::Denied`]. What was acknowledged before stays on the topic.
    pub fn publish_fleet(
        mut self,
        fleet: &RecordedFleet,
        options: &Options,
        mut progress: impl FnMut(Progress),
    ) -> Result<Published, BrokerError> {
        let mut files = Files::new(self.settings.form, options);
        let mut skipped = Vec::new();
        let of = fleet.len();
        for (entry, lines) in fleet.entries().zip(1..) {
            let outgoing = entry.and_then(|raw| files.outgoing(raw));
            match outgoing {
                Ok(outgoing) => outgoing.into_iter().try_for_each(|outgoing| self.publish(outgoing))?,
                Err(line) => skipped.push(line),
            }
            progress(Progress { lines, of, acknowledged: self.acknowledged() });
        }
        let acknowledged = self.finish(|acknowledged| progress(Progress { lines: of, of, acknowledged }))?;
        Ok(Published { acknowledged, skipped })
    }
}

/// Turns files into what is published.
struct Files {
    form: RecordForm,
    options: Options,
    decoders: BTreeMap<Format, Box<dyn Decode>>,
}

impl Files {
    /// NB: readers of all forms but deltas rewrite names, so they are not changed here. A reader of deltas takes them as they are.
    fn new(form: RecordForm, options: &Options) -> Self {
        let rewrites = match form {
            RecordForm::Delta => options.rewrites.clone(),
            RecordForm::Pprof | RecordForm::Otlp | RecordForm::Folded | RecordForm::PerfScript => Rewrites::default(),
        };
        Self { form, options: Options { rewrites, ..options.clone() }, decoders: BTreeMap::new() }
    }

    fn outgoing(&mut self, raw: RawProfile) -> Result<Vec<Outgoing>, RejectedLine> {
        let labelled = matches!(self.form.encoder(), Encoder::Labelled(_));
        let file = |labels, raw: RawProfile| Ok(vec![Outgoing::File { labels, bytes: raw.bytes }]);
        match raw.labels.clone() {
            Ok(labels) if labelled && raw.format == self.form.format() => return file(labels, raw),
            _ => {}
        }
        match (self.decode(&raw, raw.format), raw.labels.clone()) {
            (Ok(profiles), _) => Ok(profiles.into_iter().map(Outgoing::Profile).collect()),
            (Err(_), Ok(labels)) if labelled && self.decode(&raw, self.form.format()).is_err() => file(labels, raw),
            (Err(rejection), _) => Err(RejectedLine { line: raw.line, file: Some(raw.file), rejection }),
        }
    }

    /// The profiles of a file, all or none: a file that is sent in part would be neither itself nor rejected.
    fn decode(&mut self, raw: &RawProfile, format: Format) -> Result<Vec<Profile>, Rejection> {
        let options = &self.options;
        let decoder = self.decoders.entry(format).or_insert_with(|| format.decoder(options));
        let parts = decoder.decode(&raw.bytes, &raw.labels);
        let profiles = parts.into_iter().collect::<Result<Vec<_>, _>>()?;
        if profiles.is_empty() {
            return Err(Rejection::new(Reason::Empty, "the file holds no profile"));
        }
        Ok(profiles)
    }
}
