//! `profile.proto` of the pprof tool, the format of Go and of many others.
//!
//! The decoder's passes, in their order: undo the compression; cut the message into its tables (`tables`); choose the
//! columns that give raw samples (`counts.rs`); check every function and location and name them; walk the samples.
//! Nothing is copied before it is known to be needed (`wire.rs`). [`encode()`] writes what the decoder reads, by the messages
//! in [`proto`]; [`delta`] subtracts a profile from another.
//!
//! A location may carry several functions (inlined ones first). One without a function or a name has no symbol. A sample
//! without locations is an empty stack. Samples whose raw count is 0 are dropped: Go emits them for allocation sites
//! that no finished garbage collection has seen.

mod clock;
pub mod delta;
mod encode;
mod faults;
mod frames;
mod ids;
pub mod proto;
mod sample_labels;
mod sources;
mod tables;
mod walk;

use std::sync::Arc;

use fleetdiff_schemas::profile::Profile;
use fleetdiff_schemas::rejected::{Reason, Rejection};

use self::frames::{Frames, resolve};
use self::sample_labels::SampleLabels;
use self::sources::Sources;
use self::tables::Tables;
use self::walk::{OfThreads, Walk};
use crate::budget::Budget;
use crate::compression::decompress;
use crate::counts::{Counts, Weight, weight_column};
use crate::decode::{Decode, Options};
use crate::labels::{Contents, Labels, Measure, one_profile};
use crate::names::{Names, Naming};
use crate::observed::{Divisor, Observed};
use crate::record::Record;
use crate::sink::{SampleDetails, SampleSink};
use crate::threads::{by_thread, is_by_thread};
use crate::ticks::FoundPeriod;

pub use clock::{clock, of_no_type};
pub use encode::encode;

/// Decodes pprof profiles.
#[derive(Debug)]
pub(crate) struct Decoder {
    options: Options,
    naming: Naming,
}

impl Decoder {
    /// A decoder with these limits, that takes the cohort of a sample from its label [`Options::cohort_label`].
    pub(crate) fn new(options: &Options) -> Self {
        Self { options: options.clone(), naming: Naming::new(options) }
    }

    /// The samples of one type; `frames` are those of the tables once they are resolved.
    fn contents(
        &mut self,
        tables: &Tables<'_>,
        frames: &mut Option<Result<Named, Rejection>>,
        measure: Measure,
    ) -> Result<Contents, Rejection> {
        if tables.says_nothing() {
            return Err(Rejection::new(Reason::Empty, "the profile holds no sample"));
        }
        let meaning = tables.meaning()?;
        let weight = Weight::of(&meaning, measure);
        let counts = Counts::choose(meaning, measure)?.settled(|column| tables.values(column))?;
        counts.found().into_iter().for_each(FoundPeriod::log);
        let frames =
            frames.get_or_insert_with(|| names_and_frames(tables, &mut self.naming)).as_ref().map_err(Clone::clone)?;
        let Named { names, frames } = frames;
        let walk = Walk::new(tables, frames, (counts, weight), &self.options);
        if !is_by_thread(measure.profile_type) {
            return Ok(Contents { names: Arc::clone(names), stacks: walk.stacks()? });
        }
        let OfThreads { mut stacks, of_stacks, mut threads } = walk.stacks_by_thread()?;
        let names = by_thread(names, &mut stacks, &of_stacks, &mut threads, &tables.budget)?;
        Ok(Contents { names, stacks })
    }
}

impl Decode for Decoder {
    fn decode(&mut self, bytes: &[u8], labels: &Result<Labels, Rejection>) -> Vec<Result<Profile, Rejection>> {
        let message = decompress(bytes, self.options.max_bytes);
        let tables = message
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|message| Tables::cut(message, &Budget::of(message.len(), self.options.max_built_bytes)));
        let window = tables.as_ref().ok().and_then(Tables::window);
        let level = labels
            .as_ref()
            .ok()
            .filter(|_| tables.as_ref().is_ok_and(Tables::holds_level))
            .and_then(Labels::level_beside);
        let mut frames = None;
        let mut part = |labels: &Result<Labels, Rejection>| {
            one_profile(labels, window, |measure| {
                self.contents(tables.as_ref().map_err(Clone::clone)?, &mut frames, measure)
            })
        };
        let counts = part(labels);
        std::iter::once(counts).chain(level.map(|level| part(&Ok(level)))).collect()
    }
}

/// The names of a profile, and the frames of its locations as indexes into them.
struct Named {
    names: Arc<[Arc<str>]>,
    frames: Frames,
}

fn names_and_frames(tables: &Tables<'_>, naming: &mut Naming) -> Result<Named, Rejection> {
    let mut names = Names::with_capacity(naming, &tables.budget, tables.functions())?;
    let frames = resolve(tables, &mut names)?;
    Ok(Named { names: names.into_list(), frames })
}

/// Gives all that a profile says of the samples of one type: the column that weighs them, files and lines of their frames, and the
/// labels that say where and when a sample was taken.
pub(crate) fn read(record: &Record<'_>, options: &Options, observed: &mut Observed<'_>) -> Result<(), Rejection> {
    let tables = Tables::cut(record.text, &record.budget)?;
    observed.window = tables.window();
    if tables.says_nothing() {
        return Ok(());
    }
    let meaning = tables.meaning()?.in_unit(record.measure.unit);
    let weighed = weight_column(&meaning, record.measure.profile_type);
    let weight = Weight::of(&meaning, record.measure);
    let counts = Counts::choose(meaning, record.measure)?.settled(|column| tables.values(column))?;
    observed.period = counts.found().map(Divisor::Time);
    let frames = resolve(&tables, &mut Sources::of(record.text, &tables, observed)?)?;
    let mut sample_labels = SampleLabels::of(&tables);
    let mut walk = Walk::new(&tables, &frames, (counts, weight), options);
    for sample in &tables.samples {
        let Some(stack) = walk.stack(sample)? else { continue };
        let weight = weighed.as_ref().and_then(|(column, _)| walk.value(*column));
        let details = sample_labels.read(sample, observed)?;
        observed.sample(stack, SampleDetails { weight, ..details })?;
    }
    if let Some((_, unit)) = weighed {
        observed.weighed_in(&unit);
    }
    Ok(())
}
