//! Imbalances of the arms of a cell: "Warnings" in section 9 of `docs/semantics.md`.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::Hardware;
use fleetdiff_schemas::number::{float, table_count};
use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rows::CellKey;
use fleetdiff_schemas::time::{Hop, Nanos};

use super::counts::{Active, Archive, BASE, HEAD};
use super::timeline::Open;

/// By type and cell: the imbalances, each with the words before its colon.
pub(super) type Warnings = BTreeMap<(ProfileType, CellKey), Vec<String>>;

/// The warnings of a comparison's cells at a report.
pub(super) fn at_report(config: &Config, archive: &Archive, open: &Open, hop: Hop) -> Warnings {
    let mut cells: BTreeMap<(ProfileType, CellKey), [Arm<'_>; 2]> = BTreeMap::new();
    for (place, arm, active) in archive.active(config, open, hop) {
        let arm = &mut cells.entry(place).or_default()[arm];
        match active {
            Active::Requests(count) => arm.requests += count,
            Active::Pod { pod, own, started, hardware } => arm.seen.push((pod, started, own, hardware)),
        }
    }
    let now = config.clock().end_of(hop);
    cells.into_iter().map(|(place, arms)| (place, warnings(config, &arms, now))).collect()
}

#[derive(Default)]
struct Arm<'a> {
    requests: u64,
    /// Pod, start of its process, hop, machine: one entry per profile with samples.
    seen: Vec<(usize, Nanos, Hop, &'a Hardware)>,
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

    fn load(&self, config: &Config) -> f64 {
        let hops: BTreeSet<(usize, Hop)> = self.seen.iter().map(|(pod, _, own, _)| (*pod, *own)).collect();
        let time = u64::try_from(hops.len()).unwrap_or(0) * u64::try_from(config.clock().width().0).unwrap_or(0);
        float(self.requests) / (float(time) / 1e9)
    }
}

fn warnings(config: &Config, arms: &[Arm<'_>; 2], now: Nanos) -> Vec<String> {
    let pods = [arms[HEAD].pods(), arms[BASE].pods()];
    if pods.iter().any(Vec::is_empty) {
        return Vec::new();
    }
    let mut warnings = Vec::new();
    if arms.iter().all(|arm| arm.requests > 0) {
        let [head, base] = [&arms[HEAD], &arms[BASE]].map(|arm| arm.load(config));
        if head > 2.0 * base || base > 2.0 * head {
            warnings.push(format!("requests a pod: {head:.3}/s in the head, {base:.3}/s in the base"));
        }
    }
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
    let cells = table_count(u64::try_from(cells).unwrap_or(0));
    warned.into_iter().map(|(subject, here)| format!("{subject}: imbalance in {here} of {cells} cells")).collect()
}
