//! Functions of which each side has one, under names that the other lacks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use fleetdiff_schemas::number::float;

use super::around::{Around, Function, Neighbours};
use crate::sides::Sides;

/// How many functions of a side are looked at, the largest first.
const MOST: usize = 500;

/// The least part of the samples of both that must have the same callers, and the same callees.
const ALIKE: f64 = 0.5;

/// How much the samples of one may exceed those of the other, beyond two standard errors.
const FACTOR: f64 = 2.0;

/// A neighbour that only its own side has may be the same as one of the other side: it counts for so much.
const PERHAPS: f64 = 0.5;

/// The pairs that can be told now; with them known, others may be.
pub(super) fn found<'a>(
    around: &Sides<Around<'a>>,
    known: &BTreeMap<Arc<str>, Arc<str>>,
    least: u64,
) -> BTreeMap<Arc<str>, Arc<str>> {
    let taken: BTreeSet<&str> = known.values().map(|head| &**head).collect();
    let Sides { base, head } = around;
    let mut gone = base.alone(head, least);
    let mut new = head.alone(base, least);
    gone.retain(|(name, _)| !known.contains_key(*name));
    new.retain(|(name, _)| !taken.contains(name));
    gone.truncate(MOST);
    new.truncate(MOST);
    let names = Names { around, known, taken: &taken };
    let mut pairs = Vec::new();
    for (was, of_base) in &gone {
        for (is, of_head) in &new {
            if let Some(score) = names.score((was, of_base), (is, of_head)) {
                pairs.push((score, *was, *is));
            }
        }
    }
    pairs.sort_by(|(a, was, is), (b, also, too)| b.total_cmp(a).then_with(|| (was, is).cmp(&(also, too))));
    let (mut left, mut right) = (BTreeSet::new(), BTreeSet::new());
    let free = pairs.into_iter().filter(|(_, was, is)| {
        let free = !left.contains(was) && !right.contains(is);
        if free {
            left.insert(*was);
            right.insert(*is);
        }
        free
    });
    free.map(|(_, was, is)| (was.into(), is.into())).collect()
}

/// Which names of the two sides are the same.
struct Names<'n, 'a> {
    around: &'n Sides<Around<'a>>,
    known: &'n BTreeMap<Arc<str>, Arc<str>>,
    /// Names of the head that are known to be others of the base.
    taken: &'n BTreeSet<&'n str>,
}

impl Names<'_, '_> {
    /// How well two functions fit; none if they do not.
    fn score(&self, (was, base): (&str, &Function<'_>), (is, head): (&str, &Function<'_>)) -> Option<f64> {
        let Sides { base: all_base, head: all_head } = self.around;
        let apart = libm::log(all_head.share(head.total) / all_base.share(base.total)).abs();
        let error = libm::sqrt(1.0 / float(base.total) + 1.0 / float(head.total));
        if apart > libm::log(FACTOR) + 2.0 * error {
            return None;
        }
        let callers = self.alike(&base.callers, &head.callers);
        let callees = self.alike(&base.callees, &head.callees);
        let fits = callers >= ALIKE && callees >= ALIKE;
        fits.then(|| callers + callees + strsim::sorensen_dice(was, is) - apart)
    }

    /// The part of the samples of two functions that has the same neighbours.
    fn alike(&self, base: &Neighbours<'_>, head: &Neighbours<'_>) -> f64 {
        let whole = |neighbours: &Neighbours<'_>| float(neighbours.values().sum::<u64>().max(1));
        let (all_base, all_head) = (whole(base), whole(head));
        let mut same = 0.0;
        let (mut perhaps_base, mut perhaps_head) = (0.0, 0.0);
        let mut of_base: BTreeMap<&str, f64> = BTreeMap::new();
        for (name, samples) in base {
            let part = float(*samples) / all_base;
            match self.known.get(*name) {
                Some(now) => *of_base.entry(now).or_default() += part,
                None if self.around.head.has(name) || name.is_empty() => *of_base.entry(name).or_default() += part,
                None => perhaps_base += part,
            }
        }
        for (name, samples) in head {
            let part = float(*samples) / all_head;
            if self.taken.contains(name) || self.around.base.has(name) || name.is_empty() {
                same += part.min(of_base.get(name).copied().unwrap_or(0.0));
            } else {
                perhaps_head += part;
            }
        }
        same + PERHAPS * f64::min(perhaps_base, perhaps_head)
    }
}
