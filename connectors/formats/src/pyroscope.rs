//! The JSON of Pyroscope's flame graphs (`/render?format=json`, its `flamebearer`), of one profile.
//!
//! A flame graph is rows of bars, the root's first. A bar is four numbers: how far it begins behind the end of the bar
//! before, its length (total), the part of it that no bar above covers (self), and its name. Each bar with a self
//! count is a stack: the names of the bars below it. The root bar, which stands for all, is no frame; `other`, in
//! which the server gathers what it did not draw, has no symbol.
//!
//! Lengths are samples only if the file says so and means it: `check` below has the table. All must add up: each bar
//! lies within one of the row before, and the root is as long as `numTicks`. The time is that of `timeline`, if the
//! labels name none.

mod bars;
mod document;

use fleetdiff_schemas::profile::{Profile, ProfileType};
use fleetdiff_schemas::rejected::{Reason, Rejection};

use self::bars::Bars;
use self::document::{Document, Metadata};
use crate::collected::Collector;
use crate::decode::{Decode, Options};
use crate::json;
use crate::labels::{Labels, Unit, one_profile};

/// From so many samples a second on they are no samples but parts of a second.
const TOO_OFTEN: u64 = 1_000_000;

/// Decodes flame graphs of Pyroscope.
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
        let document = text
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|text| json::read::<Document<'_>>("flame graph", text, &budget));
        let window = document.as_ref().ok().and_then(Document::window);
        let part = one_profile(labels, window, |measure| {
            let document = document?;
            check(&document, measure.profile_type, measure.unit)?;
            let collected = self.0.begin(&budget, measure);
            Bars::new(&document.flamebearer, &budget)?.stacks(collected)
        });
        vec![part]
    }
}

/// Whether the lengths of the bars are raw samples of this type.
///
/// | type | `units` that are taken |
/// |---|---|
/// | cpu, wall, off_cpu | `samples` at a `sampleRate` below 1,000,000 a second; `objects` of the type named `samples` |
/// | mutex, block | `lock_samples`; `contentions` |
/// | heap | none: its objects were scaled up, and cannot be scaled down without their bytes |
///
/// NB: servers from Pyroscope 1.0 on write CPU time in nanoseconds, call it `samples` and put the nanoseconds of a
/// second into `sampleRate` (some versions 100,000,000): no profiler samples that often.
fn check(document: &Document<'_>, kind: ProfileType, unit: Option<Unit>) -> Result<(), Rejection> {
    let Metadata { format, units, name, sample_rate } = &document.metadata;
    if document.version != 1 {
        let detail = format!("version {} of Pyroscope's format, expected 1", document.version);
        return Err(Rejection::new(Reason::UnsupportedVersion, detail));
    }
    if format != "single" || document.left_ticks.is_some() {
        let detail =
            format!("a flame graph of the format {format:?}, expected \"single\": one profile, not two compared");
        return Err(Rejection::new(Reason::UnsupportedType, detail));
    }
    let units: &str = if units.is_empty() { unit.map_or("", Unit::name) } else { units };
    let taken = match kind {
        ProfileType::Cpu | ProfileType::Wall | ProfileType::OffCpu => match units {
            "samples" => *sample_rate < TOO_OFTEN,
            "objects" => name == "samples",
            other => other == Unit::Count.name(),
        },
        ProfileType::Mutex | ProfileType::Block => ["lock_samples", "contentions", "count"].contains(&units),
        ProfileType::Heap | ProfileType::LiveHeap => false,
    };
    if taken { Ok(()) } else { Err(unit_mismatch(kind, units, *sample_rate)) }
}

fn unit_mismatch(kind: ProfileType, units: &str, sample_rate: u64) -> Rejection {
    let kind_name = kind.name();
    let detail = match (kind, units) {
        (ProfileType::Heap | ProfileType::LiveHeap, _) => {
            format!(
                "{kind_name} profile in {units:?}: objects and bytes were scaled up from samples; pprof holds what undoes that"
            )
        }
        (_, "samples") => format!(
            "{kind_name} profile in samples at {sample_rate} a second: these are parts of a second, not samples; \
             ask for the type with samples:count, or for pprof"
        ),
        _ => format!(
            "{kind_name} profile in {units:?}, expected a count of samples; ask for samples:count, or for pprof"
        ),
    };
    Rejection::new(Reason::UnitMismatch, detail)
}
