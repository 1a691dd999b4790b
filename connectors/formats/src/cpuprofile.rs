//! `.cpuprofile`, the JSON of V8: what Node (`--cpu-prof`) and Chrome's developer tools write.
//!
//! A call tree of `nodes` and the list `samples` of the node that each tick of the profiler met: each entry is a sample.
//! `timeDeltas` say how long ago the tick before was, and are not needed. A file without `samples` has `hitCount`, the
//! number of ticks at a node, which is then taken.
//!
//! Its own root is no frame. `(idle)` is the engine waiting: a sample of `wall`, none of `cpu`. `(program)` and
//! `(garbage collector)` are functions like others. A function is its name and its file, since names repeat, and one
//! without a name is `(anonymous)`. Times count from the start of the machine, so the labels must say when it was taken.

mod document;
mod ticks;
mod tree;

use fleetdiff_schemas::profile::Profile;
use fleetdiff_schemas::rejected::Rejection;

use crate::collected::Collector;
use crate::decode::{Decode, Options};
use crate::labels::{Labels, one_profile};

pub(crate) use ticks::read;

/// Decodes `.cpuprofile` files.
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
        let part =
            one_profile(labels, None, |measure| self.0.contents(bytes, measure, |record, sink| read(record, sink)));
        vec![part]
    }
}
