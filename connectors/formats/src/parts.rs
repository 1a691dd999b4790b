//! The parts of a record as a decoder finds them, of which many that are rejected for one reason become one.

use std::collections::BTreeMap;

use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rejected::{Reason, Rejection};

/// So many rejections of a reason and type stay apart.
const FEW: u64 = 8;

/// Parts in the order in which they were found, each what was read or why it was not.
///
/// What is wrong with one part is often wrong with all, and a row for each of 300,000 tells nobody more than the first and a
/// count. So where more than [`FEW`] are rejected for the same reason, the first stands for all, with the samples that are lost
/// by them together.
#[derive(Debug)]
pub(crate) struct Parts<T> {
    list: Vec<Option<Result<T, Rejection>>>,
    rejected: BTreeMap<(Reason, Option<ProfileType>), SameReason>,
}

/// Rejections of a reason and type.
#[derive(Debug, Default)]
struct SameReason {
    count: u64,
    /// Where they stand in the list.
    places: Vec<usize>,
}

impl<T> Default for Parts<T> {
    fn default() -> Self {
        Self { list: Vec::new(), rejected: BTreeMap::new() }
    }
}

impl<T> Parts<T> {
    /// Adds a part.
    pub(crate) fn push(&mut self, part: Result<T, Rejection>) {
        if let Err(fault) = &part {
            let place = self.list.len();
            let same = self.rejected.entry((fault.reason, fault.profile_type)).or_default();
            same.count += 1;
            if same.count > FEW {
                same.gather(&mut self.list, fault.samples);
                return;
            }
            same.places.push(place);
        }
        self.list.push(Some(part));
    }

    /// How many parts stand apart.
    pub(crate) fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The parts, in their order, each with what stands at its place in another list.
    pub(crate) fn with<D: Default>(self, beside: Vec<D>) -> Vec<(Result<T, Rejection>, D)> {
        let Self { mut list, rejected } = self;
        for SameReason { count, places } in rejected.into_values().filter(|same| same.count > FEW) {
            let first = places.first().and_then(|place| list.get_mut(*place));
            if let Some(Some(Err(fault))) = first {
                let what = fault.reason.name();
                fault.detail =
                    format!("{count} parts of this record are rejected as {what}; the first: {}", fault.detail);
            }
        }
        let beside = beside.into_iter().chain(std::iter::repeat_with(D::default));
        list.into_iter().zip(beside).filter_map(|(part, beside)| Some((part?, beside))).collect()
    }

    /// The parts, in their order.
    pub(crate) fn into_list(self) -> Vec<Result<T, Rejection>> {
        self.with(Vec::<()>::new()).into_iter().map(|(part, ())| part).collect()
    }
}

impl SameReason {
    /// Lets the first stand for all, and for one more that lost so many samples.
    fn gather<T>(&mut self, list: &mut [Option<Result<T, Rejection>>], samples: u64) {
        let lost = self.places.drain(1..).filter_map(|place| list.get_mut(place).and_then(Option::take));
        let lost = lost.filter_map(Result::err).fold(samples, |sum, fault| sum.saturating_add(fault.samples));
        if let Some(Some(Err(first))) = self.places.first().and_then(|place| list.get_mut(*place)) {
            first.samples = first.samples.saturating_add(lost);
        }
    }
}

impl<T> Extend<Result<T, Rejection>> for Parts<T> {
    fn extend<I: IntoIterator<Item = Result<T, Rejection>>>(&mut self, parts: I) {
        parts.into_iter().for_each(|part| self.push(part));
    }
}

/// The same parts, many that are rejected for one reason gathered.
pub(crate) fn gathered<T>(parts: impl IntoIterator<Item = Result<T, Rejection>>) -> Vec<Result<T, Rejection>> {
    let mut gathered = Parts::default();
    gathered.extend(parts);
    gathered.into_list()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(reason: Reason, number: u64) -> Result<u64, Rejection> {
        Err(Rejection { samples: number, ..Rejection::new(reason, format!("part {number}")) })
    }

    #[test]
    fn few_rejections_stay_apart() {
        let parts: Vec<_> =
            (0..8).map(|number| fault(Reason::Empty, number)).chain([Ok(3), fault(Reason::Malformed, 9)]).collect();
        assert_eq!(gathered(parts.clone()), parts);
    }

    #[test]
    fn many_of_a_reason_become_one_with_a_count_and_all_that_is_lost() {
        let mut parts = vec![Ok(1), fault(Reason::Malformed, 5)];
        parts.extend((0..100).map(|number| fault(Reason::Empty, number)));
        parts.push(Ok(2));
        let found = gathered(parts);
        assert_eq!((found.len(), &found[0], &found[3]), (4, &Ok(1), &Ok(2)));
        assert_eq!(found[1], fault(Reason::Malformed, 5));
        let all = found[2].as_ref().unwrap_err();
        assert_eq!((all.reason, all.samples), (Reason::Empty, 99 * 100 / 2));
        assert_eq!(all.detail, "100 parts of this record are rejected as empty; the first: part 0");
    }

    #[test]
    fn what_stands_beside_parts_goes_with_them() {
        let mut parts = Parts::default();
        parts.extend((0..9).map(|number| fault(Reason::Empty, number)));
        parts.push(Ok(7));
        let with = parts.with((0..9).collect::<Vec<u64>>());
        assert_eq!(with.iter().map(|(_, beside)| *beside).collect::<Vec<_>>(), [0, 8]);
    }
}
