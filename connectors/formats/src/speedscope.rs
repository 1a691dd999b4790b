//! The JSON of speedscope, which py-spy, rbspy and others write: `sampled` and `evented` profiles over one table of frames.
//!
//! The profiles of a file are those of the threads of one process, so they are one profile here; one that is broken is
//! refused by itself. A function is its name and, where the file says it, its source file: `run (pool.py)`.
//!
//! Weights are samples only in some files (`counts`):
//!
//! | `unit` | sampled | evented |
//! |---|---|---|
//! | `none` | weights are counts, if they are whole | so are the lengths between events |
//! | a time | an entry is a sample, if all weights are one period, or if the labels' unit is `count` | refused |
//! | `bytes` | refused | refused |
//!
//! The format has no place for a period: entries of unlike length may each stand for one tick of an uneven clock or for
//! many that were added up, and the file does not say which. The format names no time either: the labels must.

mod counts;
mod document;
mod threads;

use fleetdiff_schemas::profile::Profile;
use fleetdiff_schemas::rejected::{Reason, Rejection};

use crate::collected::Collector;
use crate::decode::{Decode, Options};
use crate::labels::{Labels, one_profile};
use crate::parts::gathered;

pub(crate) use threads::read;

/// Decodes speedscope files.
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
        let mut broken = Vec::new();
        let whole = one_profile(labels, None, |measure| {
            self.0.contents(bytes, measure, |record, sink| read(record, sink, &mut broken))
        });
        let Ok(labels) = labels else { return vec![whole] };
        // Nothing but broken profiles: each says why, and no more is to be said.
        let nothing_else = !broken.is_empty() && matches!(&whole, Err(fault) if fault.reason == Reason::Empty);
        let broken = broken.into_iter().map(|thread| Err(labels.rejection(thread.fault.reason, thread.detail())));
        gathered(Some(whole).filter(|_| !nothing_else).into_iter().chain(broken))
    }
}
