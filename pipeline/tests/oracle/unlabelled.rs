//! Machines that pods run on and that no label names.

use std::sync::Arc;

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::{Hardware, stable_hash};
use fleetdiff_schemas::profile::{Decoded, Profile, Samples};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::{FlagState, Severity, Support};

use super::{agreed, builder, config};

/// Removes the label of hardware.
fn without_hardware(partitions: &mut [Vec<Decoded>]) {
    for profile in partitions.iter_mut().flatten().flat_map(|record| &mut record.parts).flatten() {
        Arc::make_mut(&mut profile.identity).hardware = "unknown".into();
    }
}

/// Keeps the pods on new machines in the head, those on old machines in the base, and a ninth of the others.
fn mostly_apart(partitions: &mut [Vec<Decoded>]) {
    let stays = |profile: &Profile| {
        let id = &profile.identity;
        let expected = if id.build.as_str() == "v42" { "new" } else { "old" };
        id.hardware.as_str() == expected || stable_hash(id.pod.as_str().as_bytes()).is_multiple_of(9)
    };
    for record in partitions.iter_mut().flatten() {
        record.parts.retain(|part| part.as_ref().map_or(true, stays));
    }
}

fn warned(tables: &fleetdiff_schemas::rows::Tables, subject: &str) -> usize {
    let warnings = tables.comparisons.iter().flat_map(|row| &row.warnings);
    warnings.filter(|words| words.starts_with(subject)).count()
}

#[test]
fn oracle_groups_of_pods_without_a_label() {
    let kinds = (0..10).map(|kind| Hardware::new(format!("node-{kind}")));
    let fleet = builder(61).regions(["east"]).cohorts(["tv"]).pods_per_cell(10, 40).hardware(kinds).folded();
    let mut partitions = fleet.build().partitions(3);
    without_hardware(&mut partitions);
    let config = Config { young: Nanos(0), ..config() };
    let got = agreed(61, &config, &partitions);
    assert!(warned(&got, "groups of pods without a label") > 0);
    let firm = || got.flags.iter().filter(|flag| flag.row.support == Support::Firm);
    assert!(firm().any(|flag| flag.severity == Severity::Ticket), "nobody is paged after the first report");
    let demoted = firm().any(|flag| flag.state == FlagState::Updated && flag.severity == Severity::Ticket);
    assert!(demoted, "a page becomes a ticket at the first look after the report");
}

/// Large pods run other code than small ones, and the head runs on large pods alone.
#[test]
fn oracle_pods_of_other_size_and_age() {
    let fleet = builder(63).regions(["east"]).cohorts(["tv"]).pods_per_cell(16, 32).folded();
    let mut partitions = fleet.build().partitions(2);
    let is_large = |profile: &Profile| stable_hash(profile.identity.pod.as_str().as_bytes()).is_multiple_of(2);
    for record in partitions.iter_mut().flatten() {
        let stays = |profile: &Profile| profile.identity.build.as_str() == "v41" || is_large(profile);
        record.parts.retain(|part| part.as_ref().map_or(true, stays));
        record.parts.iter_mut().flatten().filter(|profile| is_large(profile)).for_each(enlarge);
    }
    let got = agreed(63, &config(), &partitions);
    assert!(warned(&got, "size changes profiles") > 0);
}

/// Gives a profile three times the samples, and six times those of one function.
fn enlarge(profile: &mut Profile) {
    let names = profile.names.clone();
    let Samples::Folded { cohorts, .. } = &mut profile.samples else { return };
    for cohort in cohorts {
        cohort.samples *= 3;
        for function in &mut cohort.functions {
            let name = usize::try_from(function.name).ok().and_then(|name| names.get(name));
            let times = if name.is_some_and(|name| &**name == "serialize_video_chunk") { 6 } else { 3 };
            (function.own, function.total) = (function.own * times, function.total * times);
        }
    }
}

#[test]
fn oracle_arms_that_differ_without_a_label() {
    let fleet = builder(62).regions(["east"]).cohorts(["tv"]).pods_per_cell(20, 60).unchanged();
    let mut partitions = fleet.hardware(["old", "new"]).folded().build().partitions(2);
    mostly_apart(&mut partitions);
    without_hardware(&mut partitions);
    let got = agreed(62, &config(), &partitions);
    assert!(warned(&got, "arms differ without a label") > 0);
}
