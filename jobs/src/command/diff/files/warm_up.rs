//! The warm-up for files that do not say when each sample was taken: the first files of a side are left out as a whole.

use fleetdiff_schemas::time::Nanos;

use super::reader::ReadRun;
use crate::failure::Failure;

/// A side without any remaining files.
#[derive(Debug, thiserror::Error)]
#[error("every file of the {side} begins less than {crop} s after its first: nothing is left", crop = .crop.as_seconds())]
struct AllWarmUp {
    side: String,
    crop: Nanos,
}

/// Leaves out the runs that begin before the warm-up is over, counted from the first run of the side; returns their
/// number.
///
/// NB: a run whose file says when each sample was taken has already been cropped.
pub(crate) fn leave_out(side: &str, runs: &mut Vec<ReadRun>, crop: Nanos) -> Result<Option<String>, Failure> {
    let begin = |run: &ReadRun| run.began.filter(|_| !run.timed);
    let Some(first) = runs.iter().filter_map(begin).min() else { return Ok(None) };
    let before = runs.len();
    runs.retain(|run| begin(run).is_none_or(|began| began.since(first) >= crop));
    if runs.is_empty() {
        let hint = "these files do not say when each sample was taken, so that they are left out whole; give more files, or crop less";
        return Err(Failure::with_hint(AllWarmUp { side: side.to_owned(), crop }, hint));
    }
    let left_out = before - runs.len();
    Ok((left_out > 0).then(|| {
        format!(
            "{left_out} of {before} files of the {side} begin less than {} s after its first and are left out whole",
            crop.as_seconds()
        )
    }))
}
