//! Imbalances of the arms of a cell: "Warnings" in section 9 of `docs/semantics.md`.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::{Hardware, stable_hash};
use fleetdiff_schemas::number::float;
use fleetdiff_schemas::profile::{ProfileType, is_of_several};
use fleetdiff_schemas::rows::CellKey;
use fleetdiff_schemas::time::{Hop, Nanos};
use fleetdiff_schemas::verdict::Scope;

use super::aa_check::halves;
use super::counts::{Active, Archive, BASE, Cell, HEAD, PodCounts, Stratum};
use super::evidence::{Using, judge};
use super::loads::Loads;
use super::statistics::hidden::{Pod, hidden};
use super::timeline::Open;

/// By type and cell: the imbalances, each with the words before its colon.
pub(super) type Warnings = BTreeMap<(ProfileType, CellKey), Vec<String>>;

/// The warnings of a comparison's cells at a report.
pub(super) fn at_report(config: &Config, archive: &Archive, open: &Open, hop: Hop) -> Warnings {
    let mut cells: BTreeMap<(ProfileType, CellKey), [Arm<'_>; 2]> = BTreeMap::new();
    for (place, arm, active) in archive.active(config, open, hop) {
        let arm = &mut cells.entry(place).or_default()[arm];
        match active {
            Active::Requests { .. } => {}
            Active::Pod { pod, bucket, own, started, hardware, samples } => {
                arm.seen.push((pod, started, own, hardware));
                arm.sized.push((pod, bucket, started, samples));
            }
        }
    }
    let now = config.clock().end_of(hop);
    let loads = archive.differences(config, open, hop);
    let warned = cells
        .iter()
        .map(|(place, arms)| (place.clone(), warnings(arms, loads.get(place).and_then(|differ| differ.loads), now)));
    let mut warned: Warnings = warned.collect();
    for (place, cell) in archive.cells(config, open, Scope::Window, hop) {
        let telling = cells.get(&place).map_or_else(Vec::new, |arms| telling_in(config, archive, &cell, arms, now));
        warned.entry(place).or_default().extend(hidden_in(archive, &cell).into_iter().chain(telling));
    }
    warned
}

/// What the arms differ in, and the base's pods too: age, and samples a pod.
fn telling_in(config: &Config, archive: &Archive, cell: &Cell, arms: &[Arm<'_>; 2], now: Nanos) -> Vec<String> {
    let [head, base] = [&arms[HEAD], &arms[BASE]].map(Arm::totals);
    let by_age = |pod: &Total| i128::from(pod.started.0);
    let by_size = |pod: &Total| i128::from(pod.samples);
    let age = |pod: &Total| (i128::from(now.0) - by_age(pod)).max(0);
    let properties: [(Value, Value, &str); 2] = [
        (
            &age,
            &by_age,
            "age changes profiles: older and younger pods of the base differ, and so do the arms in age; what is \
             significant may be that",
        ),
        (
            &by_size,
            &by_size,
            "size changes profiles: pods of the base with many and with few samples differ, and so do the arms in samples \
             a pod; what is significant may be that",
        ),
    ];
    let tells = |(value, order, _): &(Value, Value, &str)| {
        let differ = [&head, &base].map(|pods| median(pods, value));
        let ([Some(a), Some(b)], Some(half)) = (differ, half(&base, order)) else { return false };
        let halves = halves(cell, |bucket| half.contains(&bucket));
        (2 * a > 3 * b || 2 * b > 3 * a) && !halves.strata.is_empty() && {
            let judged = judge(config, archive, &[&halves], Using::default());
            let tests = config.count_kinds.iter().filter_map(|kind| judged.kinds.get(kind)?.test.as_ref());
            tests.into_iter().any(|test| rejects_any(&test.rows.ln_p_row, 0.01))
        }
    };
    properties.iter().filter(|property| tells(property)).map(|(_, _, words)| (*words).to_owned()).collect()
}

/// Whether Benjamini and Hochberg reject anything at this level.
fn rejects_any(ln_p: &[f64], q: f64) -> bool {
    let mut ln_p: Vec<f64> = ln_p.iter().copied().filter(|ln_p| !ln_p.is_nan()).collect();
    ln_p.sort_by(f64::total_cmp);
    let count = |of: usize| float(u64::try_from(of).unwrap_or(0));
    let all = count(ln_p.len());
    ln_p.iter().enumerate().any(|(rank, ln_p)| ln_p.exp() * all / count(rank + 1) <= q)
}

/// A pod within the window.
struct Total {
    bucket: u8,
    started: Nanos,
    samples: u64,
}

type Value<'v> = &'v dyn Fn(&Total) -> i128;

fn median(pods: &[Total], value: Value<'_>) -> Option<i128> {
    let mut values: Vec<i128> = pods.iter().map(value).collect();
    values.sort_unstable();
    Some(values[values.len().checked_sub(1)? / 2])
}

/// The first half of the buckets by the mean of their pods, then by number; none of fewer than four.
fn half(pods: &[Total], value: Value<'_>) -> Option<BTreeSet<u8>> {
    let buckets: BTreeSet<u8> = pods.iter().map(|pod| pod.bucket).collect();
    let sums = buckets.into_iter().map(|bucket| {
        let of_bucket: Vec<i128> = pods.iter().filter(|pod| pod.bucket == bucket).map(value).collect();
        (of_bucket.iter().sum::<i128>(), of_bucket.len(), bucket)
    });
    let mut sums: Vec<(i128, usize, u8)> = sums.collect();
    let wide = |count: usize| i128::try_from(count).unwrap_or(i128::MAX);
    sums.sort_by(|a, b| (a.0 * wide(b.1)).cmp(&(b.0 * wide(a.1))).then(a.2.cmp(&b.2)));
    let half = sums.len() / 2;
    (half >= 2).then(|| sums[..half].iter().map(|(_, _, bucket)| *bucket).collect())
}

/// What divides pods without a label, in the stratum in which the smaller arm has most samples.
fn hidden_in(archive: &Archive, cell: &Cell) -> Vec<String> {
    let smaller = |arms: &&Stratum| arms[HEAD].samples.min(arms[BASE].samples);
    let Some(arms) = cell.strata.values().filter(|arms| smaller(arms) > 0).max_by_key(smaller) else {
        return Vec::new();
    };
    let looked_at = [HEAD, BASE].map(|arm| {
        let mut pods: Vec<_> = arms[arm].pods.iter().collect();
        let name = |pod: usize| archive.pods[pod].as_str();
        pods.sort_by_key(|(pod, _)| (stable_hash(name(**pod).as_bytes()), name(**pod)));
        pods.into_iter().take(128).map(|(_, counts)| counts).collect::<Vec<&PodCounts>>()
    });
    let own = |pod: &PodCounts, f: usize| pod.functions.get(f).map_or(0, |[own, _]| *own);
    let has_samples = |f: &usize| looked_at.iter().flatten().any(|pod| own(pod, *f) > 0);
    let tested = |f: &usize| !is_of_several(&archive.names[*f]);
    let functions: Vec<usize> = (0..archive.names.len()).filter(tested).filter(has_samples).collect();
    let pod = |pod: &&PodCounts| (float(pod.samples), functions.iter().map(|f| float(own(pod, *f))).collect());
    let [head, base] = looked_at.map(|pods| pods.iter().map(pod).collect::<Vec<Pod>>());
    let [groups, factor] = hidden(&head, &base);
    let words = [
        "groups of pods without a label: pods of the base come in groups, as if some shared nodes; they are fewer \
         replicates than they seem, and what is significant may be false",
        "arms differ without a label: head and base differ in something that also divides the pods of the base \
         (hardware, pool or tenant); what is significant may be that",
    ];
    words.into_iter().zip([groups, factor]).filter(|(_, found)| *found).map(|(words, _)| words.to_owned()).collect()
}

#[derive(Default)]
struct Arm<'a> {
    /// Pod, start of its process, hop, machine: one entry per profile with samples.
    seen: Vec<(usize, Nanos, Hop, &'a Hardware)>,
    /// Pod, bucket, start of its process, samples: one entry per profile with samples.
    sized: Vec<(usize, u8, Nanos, u64)>,
}

impl Arm<'_> {
    /// The last entry of each pod, by start, then hop, then machine.
    fn pods(&self) -> Vec<(Nanos, &Hardware)> {
        let mut seen = self.seen.clone();
        seen.sort_unstable();
        seen.chunk_by(|a, b| a.0 == b.0)
            .filter_map(|of_pod| of_pod.last().map(|(_, started, _, hardware)| (*started, *hardware)))
            .collect()
    }

    /// Each pod, with its latest start and all its samples.
    fn totals(&self) -> Vec<Total> {
        let mut pods: BTreeMap<usize, Total> = BTreeMap::new();
        for &(pod, bucket, started, samples) in &self.sized {
            let total = pods.entry(pod).or_insert(Total { bucket, started, samples: 0 });
            total.started = total.started.max(started);
            total.samples += samples;
        }
        pods.into_values().collect()
    }
}

fn warnings(arms: &[Arm<'_>; 2], loads: Option<Loads>, now: Nanos) -> Vec<String> {
    let pods = [arms[HEAD].pods(), arms[BASE].pods()];
    if pods.iter().any(Vec::is_empty) {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    warnings.extend(loads.map(|Loads { means: [head, base], .. }| {
        format!(
            "requests a pod: {head:.3}/s in the head, {base:.3}/s in the base; a change that is not shown to be larger may be the effect of load \
             (load_differs)"
        )
    }));
    let ages = [HEAD, BASE].map(|arm| {
        let mut ages: Vec<i64> = pods[arm].iter().map(|(started, _)| (now.0 - started.0).max(0)).collect();
        ages.sort_unstable();
        ages[(ages.len() - 1) / 2]
    });
    if ages[HEAD] > 2 * ages[BASE] || ages[BASE] > 2 * ages[HEAD] {
        let [head, base] = ages.map(|age| length(Nanos(age)));
        warnings.push(format!("age of pods: half of the head's are younger than {head}, of the base's than {base}"));
    }
    for machine in pods.iter().flatten().map(|(_, machine)| *machine).collect::<BTreeSet<_>>() {
        let here = [HEAD, BASE]
            .map(|arm| float(u64::try_from(pods[arm].iter().filter(|(_, on)| *on == machine).count()).unwrap_or(0)));
        let all = [HEAD, BASE].map(|arm| float(u64::try_from(pods[arm].len()).unwrap_or(0)));
        // In whole numbers, so that a tenth and twice are exact.
        let counts = here[HEAD] * 10.0 >= all[HEAD] || here[BASE] * 10.0 >= all[BASE];
        let (head, base) = (here[HEAD] * all[BASE], here[BASE] * all[HEAD]);
        if counts && (head > 2.0 * base || base > 2.0 * head) {
            warnings.push(format!(
                "hardware: {} of {} pods of the head run on {machine}, {} of {} of the base",
                here[HEAD], all[HEAD], here[BASE], all[BASE]
            ));
        }
    }
    warnings
}

/// Seconds up to two minutes, minutes up to two hours, hours up to two days, then days.
fn length(length: Nanos) -> String {
    let units =
        [(1e9, 120.0, "s", 0), (60e9, 120.0, "min", 0), (3_600e9, 48.0, "h", 1), (86_400e9, f64::INFINITY, "days", 1)];
    let nanos = float(u64::try_from(length.0).unwrap_or(0));
    let fits = units.iter().find(|(unit, below, ..)| nanos / unit < *below);
    fits.map_or_else(String::new, |(unit, _, name, digits)| format!("{:.*} {name}", *digits, nanos / unit))
}

/// How many cells have each warning.
pub(super) fn over_all(warnings: &Warnings, profile_type: ProfileType, cells: usize) -> Vec<String> {
    let mut warned: BTreeMap<&str, i64> = BTreeMap::new();
    for (_, here) in warnings.iter().filter(|((of, _), _)| *of == profile_type) {
        let subjects: BTreeSet<&str> = here.iter().filter_map(|words| Some(words.split_once(':')?.0)).collect();
        subjects.into_iter().for_each(|subject| *warned.entry(subject).or_default() += 1);
    }
    let of = if cells == 1 { "1 cell".to_owned() } else { format!("{cells} cells") };
    warned.into_iter().map(|(subject, here)| format!("{subject}: imbalance in {here} of {of}")).collect()
}
