//! All that a profile says of its samples: the column that weighs them, files and lines of their frames, and the labels that say
//! where and when a sample was taken.

use fleetdiff_schemas::rejected::Rejection;

use super::Walk;
use super::details::resolve;
use super::sample_labels::SampleLabels;
use super::tables::Tables;
use crate::compression::decompress;
use crate::counts::{Counts, weight_column};
use crate::reading::{About, Observed};
use crate::{Labels, Options};

/// Gives what a profile says of the samples of one type.
pub(crate) fn observe(
    bytes: &[u8],
    labels: &Labels,
    options: &Options,
    observed: &mut Observed<'_>,
) -> Result<(), Rejection> {
    let message = decompress(bytes, options.max_bytes)?;
    let tables = Tables::cut(&message, options.max_bytes)?;
    observed.window = tables.window();
    if tables.says_nothing() {
        return Ok(());
    }
    let meaning = tables.meaning()?;
    let weighed = weight_column(&meaning, labels.profile_type);
    let counts = Counts::choose(meaning, labels.profile_type, labels.unit)?;
    let frames = resolve(&message, &tables, observed)?;
    let mut sample_labels = SampleLabels::of(&tables);
    let mut walk = Walk::new(&tables, &frames, counts, options);
    for sample in &tables.samples {
        let Some(stack) = walk.stack(sample)? else { continue };
        let weight = weighed
            .as_ref()
            .and_then(|(column, _)| walk.values.get(*column))
            .and_then(|weight| u64::try_from(*weight).ok());
        let about = sample_labels.read(sample, observed)?;
        observed.push(stack, About { weight, ..about })?;
    }
    observed.unit = weighed.map(|(_, unit)| unit.into());
    Ok(())
}
