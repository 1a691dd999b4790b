//! Folded stacks for a comparison: there counts that were multiplied by a period may be divided by it, for that is said.

use fleetdiff_schemas::profile::Stack;
use fleetdiff_schemas::rejected::Rejection;

use super::counts::Counts;
use super::{lines, refuse_values};
use crate::compression::decompress;
use crate::reading::{About, Observed, Said};
use crate::{Labels, Options, Unit};

/// Gives the stacks of a file. Where all counts are multiples of a period they weigh what is written, and count what is left
/// after a division by it.
pub(crate) fn observe(
    bytes: &[u8],
    labels: &Labels,
    options: &Options,
    observed: &mut Observed<'_>,
) -> Result<(), Rejection> {
    refuse_values(labels.unit)?;
    let text = decompress(bytes, options.max_bytes)?;
    let counts = Counts::new(labels.unit == Some(Unit::Count));
    let (counts, columns) = lines(&text, counts, |line| {
        if line.count == 0 {
            return Ok(());
        }
        let frames = line.frames().map(|frame| observed.frame(frame, Said::default())).collect::<Result<_, _>>()?;
        observed.push(Stack { frames, count: line.count, cohort: None }, About::default())
    })?;
    columns.check()?;
    if let Some(period) = counts.period() {
        observed.divide(period);
    }
    Ok(())
}
