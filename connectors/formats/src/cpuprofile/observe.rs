//! All that a file says of its ticks: when each was, and how long it was until the next.

use fleetdiff_schemas::profile::{ProfileType, Stack};
use fleetdiff_schemas::rejected::Rejection;
use serde::Deserialize;

use super::{Document, Tree, check_type};
use crate::compression::decompress;
use crate::reading::{About, Observed, Said};
use crate::{Labels, Options, json};

/// Nanoseconds in a microsecond, the unit of the format.
const MICROSECOND: i64 = 1_000;

/// What of a file only a comparison asks for; read apart, so that decoding stays what it is.
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Clock {
    start_time: i64,
    end_time: i64,
    time_deltas: Vec<i64>,
}

/// Gives what a file says. Where times are not asked for, the ticks of a node are one entry.
pub(crate) fn observe(
    bytes: &[u8],
    labels: &Labels,
    options: &Options,
    observed: &mut Observed<'_>,
) -> Result<(), Rejection> {
    check_type(labels.profile_type)?;
    let text = decompress(bytes, options.max_bytes)?;
    let document: Document<'_> = json::read("cpuprofile", &text)?;
    let tree = Tree::new(&document)?;
    let ticks = document.ticks(&tree)?;
    let names = tree
        .nodes
        .iter()
        .map(|node| observed.frame(&node.full_name(), Said { symbol: Some(node.name()), ..Said::default() }));
    let names = names.collect::<Result<Vec<_>, _>>()?;
    let samples = document.samples.as_deref().unwrap_or_default();
    let clock: Clock = json::read("cpuprofile", &text).unwrap_or_default();
    let times = clock.times(samples.len());
    let is_counted = |place: usize| {
        labels.profile_type != ProfileType::Cpu || !tree.nodes.get(place).is_some_and(|node| node.is_idle())
    };
    if let Some(times) = times.as_ref().filter(|_| observed.times_wanted) {
        for (id, [at, weight]) in samples.iter().zip(times) {
            let place = tree.place(*id)?;
            if is_counted(place) {
                let stack = Stack { frames: tree.path(place, &names)?, count: 1, cohort: None };
                observed
                    .push(stack, About { at: Some(*at), weight: u64::try_from(*weight).ok(), ..About::default() })?;
            }
        }
    } else {
        let mut weights = vec![0u64; tree.nodes.len()];
        for (id, [_, weight]) in samples.iter().zip(times.iter().flatten()) {
            let sum = weights.get_mut(tree.place(*id)?);
            sum.into_iter().for_each(|sum| *sum = sum.saturating_add(u64::try_from(*weight).unwrap_or(0)));
        }
        for (place, (count, weight)) in ticks.into_iter().zip(weights).enumerate() {
            if count > 0 && is_counted(place) {
                let stack = Stack { frames: tree.path(place, &names)?, count, cohort: None };
                observed.push(stack, About { weight: Some(weight), ..About::default() })?;
            }
        }
    }
    observed.unit = times.map(|_| "time/nanoseconds".into());
    Ok(())
}

impl Clock {
    /// Of so many ticks, when each was and how long it was until the next, in nanoseconds; nothing if that is not known of each.
    fn times(&self, ticks: usize) -> Option<Vec<[i64; 2]>> {
        if ticks == 0 || self.time_deltas.len() != ticks {
            return None;
        }
        let mut at = self.start_time;
        let ats: Vec<i64> = self
            .time_deltas
            .iter()
            .map(|delta| {
                at = at.saturating_add(*delta);
                at
            })
            .collect();
        let next = ats.iter().skip(1).copied().chain([self.end_time]);
        // NB: V8 writes deltas below zero where ticks of several threads were put in order.
        let time = |(at, next): (&i64, i64)| {
            [at.saturating_mul(MICROSECOND), next.saturating_sub(*at).max(0).saturating_mul(MICROSECOND)]
        };
        Some(ats.iter().zip(next).map(time).collect())
    }
}
