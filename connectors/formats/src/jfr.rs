//! Recordings of the JDK's Flight Recorder (`.jfr`), which the JDK itself and async-profiler write: one profile a record.
//!
//! A recording is one or more chunks, each whole in itself: a header, events, the metadata that say of which fields each type of
//! event is made, and constants (stacks, methods, names, threads) that events name by number. Nothing but the header has a fixed
//! form, so events are read by the metadata, and events that are of no use here are passed over.
//!
//! A recording may hold several kinds of samples, of which the profile's type chooses (`jfr/events.rs` has the table). A sample is
//! an event, or as many as the event says. Two passes: the first counts events and reads settings, the second reads constants and
//! samples of the kinds that were chosen. Samples of one stack and thread are one entry, unless their times are asked for.
//!
//! A method is `package.Class.method`, as `jfr print` has it; functions that are not Java's have no class, and those of the kernel
//! end in `_[k]`. A sample whose stack is not in the recording is one of a function without a symbol.
//!
//! NB: the JDK cuts stacks at 64 frames unless told otherwise (`stackdepth`), and of those the callers are then missing.

mod chunk;
mod constants;
mod cursor;
mod events;
mod metadata;
mod names;
mod recording;
mod samples;
mod settings;

use fleetdiff_schemas::profile::Profile;
use fleetdiff_schemas::rejected::{Reason, Rejection};

use self::recording::Recording;
use self::samples::samples;
use crate::collected::Collector;
use crate::decode::{Decode, Options};
use crate::labels::{Labels, one_profile};
use crate::observed::Observed;
use crate::record::Record;

/// How a chunk begins.
pub(crate) const MAGIC: &[u8] = b"FLR\0";

/// Decodes recordings.
#[derive(Debug)]
pub(crate) struct Decoder(Collector);

impl Decoder {
    /// A decoder that reads at most [`Options::max_bytes`] a record.
    pub(crate) fn new(options: &Options) -> Self {
        Self(Collector::new(options))
    }
}

impl Decode for Decoder {
    fn decode(&mut self, bytes: &[u8], labels: &Result<Labels, Rejection>) -> Vec<Result<Profile, Rejection>> {
        let text = self.0.text(bytes);
        let budget = self.0.budget(text.as_deref().unwrap_or_default());
        let recording = text.as_ref().map_err(Clone::clone).and_then(|text| Recording::open(text, &budget));
        let window = recording.as_ref().ok().and_then(Recording::window);
        let part = one_profile(labels, window, |measure| {
            let recording = recording.as_ref().map_err(Clone::clone)?;
            let mut collected = self.0.begin(&budget, measure);
            samples(recording, measure, &budget, &mut collected)?;
            collected.finish()
        });
        vec![part]
    }
}

/// Gives all that a recording says of the samples of one type.
pub(crate) fn read(record: &Record<'_>, observed: &mut Observed<'_>) -> Result<(), Rejection> {
    let recording = Recording::open(record.text, &record.budget)?;
    observed.window = recording.window();
    samples(&recording, record.measure, &record.budget, observed)
}

fn malformed(detail: impl Into<String>) -> Rejection {
    Rejection::new(Reason::Malformed, detail)
}

/// The same fault with where it is.
fn within(place: &str, fault: Rejection) -> Rejection {
    Rejection { detail: format!("{place}: {}", fault.detail), ..fault }
}
