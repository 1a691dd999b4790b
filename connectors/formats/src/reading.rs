//! What of a file is read for a comparison, and as what: which samples, what names their frames, what they weigh.
//!
//! Decoders of streams ([`Decode`](super::Decode)) know one reading: every sample, frames named by their functions. Who compares
//! files asks for more, as `perf diff` offers it: for the samples of a processor, a thread or a stretch of time, for frames named
//! by libraries or lines, for whole chains of calls, and for what the profiler wrote beside its samples. So here a format gives
//! all that it knows of its samples (`observed.rs`), and what is then read of them is decided once for all formats:
//! `reading/selection.rs` says which samples, `reading/naming.rs` names their frames.
//!
//! Where nobody knows the period of times, a comparison may read them as they are ([`crate::Values::Times`]): any format that weighs its
//! samples by times can then be read, and `reading/times_as_weights.rs` puts the times where counts are.
//!
//! Law: the [`Reading`] that asks for nothing gives the profiles that the format's decoder gives, bit for bit.

mod chosen;
mod keys;
mod naming;
mod numbers;
mod plain;
mod query;
mod run;
mod selection;
mod slices;
mod times;
mod times_as_weights;

use fleetdiff_schemas::rejected::Rejection;

use crate::budget::Budget;
use crate::compression::decompress;
use crate::decode::Options;
use crate::format::Format;
use crate::labels::{Labels, Measure};
use crate::names::Naming;
use crate::observed::Observed;
use crate::record::Record;
use crate::sink::SampleSink;
use crate::{
    chrome_trace, cpuprofile, folded, foreign, gecko, heapprofile, jfr, perf_data, perf_script, pprof, speedscope,
    stackprof,
};

pub use crate::observed::Divisor;
pub use keys::{Key, Keys};
pub use numbers::Numbers;
pub use query::{FILTERED, Filters, Parent, Percentage, Reading};
pub use run::{Run, Unread, Weights};
pub use slices::SLICES;
pub use times::Times;

/// Gives what a format knows of the samples of one record.
type Read = fn(&Record<'_>, &Options, &mut Observed<'_>) -> Result<(), Rejection>;

impl Reading {
    /// Reads the profiles of one record; at least one part. `labels` are as for [`Decode::decode`](super::Decode::decode); the type
    /// that they name is the only one that is read of a file of several columns.
    pub fn runs(&self, format: Format, bytes: &[u8], labels: &Labels, options: &Options) -> Vec<Result<Run, Unread>> {
        let read: Read = match format {
            Format::Folded => |record, _, observed| folded::read(record, observed),
            Format::PerfScript => |record, _, observed| perf_script::read(record, observed),
            Format::PerfData => |record, options, observed| perf_data::read(record, options.symbols, observed),
            Format::Cpuprofile => |record, _, observed| cpuprofile::read(record, observed),
            Format::ChromeTrace => |record, _, observed| chrome_trace::read(record, observed),
            Format::Heapprofile => |record, _, observed| heapprofile::read(record, observed),
            Format::Stackprof => |record, _, observed| stackprof::read(record, observed),
            Format::Gecko => |record, _, observed| gecko::read(record, observed),
            Format::Speedscope => |record, _, observed| whole_threads(record, observed),
            Format::Pprof => pprof::read,
            Format::Jfr => |record, _, observed| jfr::read(record, observed),
            Format::Pyroscope | Format::Delta | Format::Otlp => {
                return plain::runs(self, format, bytes, labels, options);
            }
        };
        let level = labels.asks_for_level().then(|| labels.of_level());
        let labels = level.as_ref().unwrap_or(labels);
        let mut naming = Naming::new(options);
        let run = match labels.uncountable() {
            Some(fault) => Err(fault.into()),
            None => decompress(bytes, options.max_bytes).map_err(Unread::from).and_then(|text| {
                let budget = Budget::of(text.len(), options.max_built_bytes);
                let mut observed = Observed::new(&mut naming, &budget);
                observed.times_wanted = self.wants_times();
                let measure = Measure { values: self.values, ..labels.measure() };
                read(&Record { text: &text, budget, measure }, options, &mut observed)?;
                chosen::run(self, observed, |contents, own| labels.profile(contents, own))
            }),
        };
        vec![run.map_err(|fault| match fault {
            Unread::Rejected(fault) => foreign::named(format, bytes, labels.labelled(fault, None)).into(),
            other => other,
        })]
    }
}

/// The threads of a speedscope file; what is broken is passed over, unless nothing is whole.
fn whole_threads(record: &Record<'_>, observed: &mut Observed<'_>) -> Result<(), Rejection> {
    let mut broken = Vec::new();
    speedscope::read(record, observed, &mut broken)?;
    let nothing = observed.len() == 0;
    broken.into_iter().next().filter(|_| nothing).map_or(Ok(()), |thread| Err(thread.fault))
}
