//! The list `raw` of a file: stacks, one after the other.

use fleetdiff_schemas::rejected::{Reason, Rejection};

/// A stack and how many samples in a row met it.
pub(super) struct Entry<'r> {
    /// Addresses, the root first.
    pub(super) frames: &'r [u64],
    pub(super) samples: u64,
}

/// The stacks of a list; a broken one is the last.
pub(super) fn entries(raw: &[u64]) -> impl Iterator<Item = Result<Entry<'_>, Rejection>> {
    let mut rest = raw;
    std::iter::from_fn(move || {
        let (length, behind) = rest.split_first()?;
        let entry = usize::try_from(*length)
            .ok()
            .and_then(|length| behind.split_at_checked(length))
            .and_then(|(frames, behind)| behind.split_first().map(|(samples, behind)| (frames, *samples, behind)));
        let Some((frames, samples, behind)) = entry else {
            let detail = format!("{length} frames, of which \"raw\" has {} and a number of samples", behind.len());
            rest = &[];
            return Some(Err(Rejection::new(Reason::Malformed, detail)));
        };
        rest = behind;
        Some(Ok(Entry { frames, samples }))
    })
}
