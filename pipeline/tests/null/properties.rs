//! A canary on larger pods than the baseline: where size changes profiles, what that makes significant is announced with its doubt,
//! and nobody is paged for it.

use std::collections::BTreeMap;

use fleetdiff_pipeline::run::in_memory::run_in_memory;
use fleetdiff_schemas::identity::PodId;
use fleetdiff_schemas::profile::{Decoded, Profile, Samples};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_simulation::fleet::Fleet;

use crate::doubt::{Doubt, config};
use crate::seeds::{over, seeds_to};

/// Fleets of each kind, each of 2 cells, unless `FLEETDIFF_NULL_FLEETS` says how many.
const FLEETS: u64 = 3;
/// What warnings of this say.
const SIZE: &str = "size changes profiles";

/// Profiles of pods of unequal size; of the head only those of large ones.
fn partitions(seed: u64) -> (Vec<Vec<Decoded>>, impl Fn(&PodId) -> bool) {
    let cells =
        Fleet::seeded(seed).regions(["eu", "us"]).cohorts(["tv"]).pods_per_cell(24, 50).pod_cv(0.05).size_cv(1.0);
    let mut partitions =
        cells.folded().unchanged().already_deployed().lasts(Nanos::from_seconds(900)).build().partitions(1);
    let mut sizes: BTreeMap<PodId, u64> = BTreeMap::new();
    for profile in partitions.iter().flatten().flat_map(|record| &record.parts).flatten() {
        *sizes.entry(profile.identity.pod.clone()).or_default() += samples(profile);
    }
    let mut ascending: Vec<u64> = sizes.values().copied().collect();
    ascending.sort_unstable();
    let middle = ascending[ascending.len() / 2];
    let is_large = move |pod: &PodId| sizes[pod] > middle;
    for record in partitions.iter_mut().flatten() {
        let stays = |profile: &Profile| profile.identity.build.as_str() == "v41" || is_large(&profile.identity.pod);
        record.parts.retain(|part| part.as_ref().map_or(true, stays));
    }
    (partitions, is_large)
}

fn samples(profile: &Profile) -> u64 {
    match &profile.samples {
        Samples::Folded { cohorts, .. } => cohorts.iter().map(|cohort| cohort.samples).sum(),
        Samples::Stacks(_) => 0,
    }
}

/// Makes one function cost twice as much: of several, the pods would be seen to be of two kinds.
fn cost_more(profile: &mut Profile) {
    let names = profile.names.clone();
    let Samples::Folded { cohorts, .. } = &mut profile.samples else { return };
    for cohort in cohorts {
        for function in &mut cohort.functions {
            let name = usize::try_from(function.name).ok().and_then(|name| names.get(name)).expect("a name");
            if &**name == "serialize_video_chunk" {
                let more = function.own;
                function.own += more;
                function.total += more;
                cohort.samples += more;
            }
        }
    }
}

#[test]
fn null_size_that_changes_profiles() {
    let runs = over(seeds_to(FLEETS), |seed| {
        let (mut partitions, is_large) = partitions(seed);
        let profiles = partitions.iter_mut().flatten().flat_map(|record| &mut record.parts).flatten();
        profiles.filter(|profile| is_large(&profile.identity.pod)).for_each(cost_more);
        run_in_memory(&config(), partitions, 1).expect("a synthetic fleet runs through")
    });
    let Doubt { cells, warned, pages, tickets } = Doubt::of(&runs, SIZE);
    println!("a canary on large pods: {warned} of {cells} cells warned; {pages} pages, {tickets} tickets");
    // The medians of some arms differ by less than half.
    assert!(2 * warned > cells, "{warned} of {cells} cells have a warning");
    assert!(tickets > 0, "nothing is flagged: size tests nothing");
    assert_eq!(pages, 0, "{pages} pages beside {tickets} tickets");
}

/// Where size changes nothing, hardly any cell is warned of, though the arms differ by it.
#[test]
fn twin_size_that_changes_nothing() {
    let runs = over(seeds_to(FLEETS), |seed| {
        run_in_memory(&config(), partitions(seed).0, 1).expect("a synthetic fleet runs through")
    });
    let Doubt { cells, warned, .. } = Doubt::of(&runs, SIZE);
    println!("a canary on large pods of the same profile: {warned} of {cells} cells warned");
    assert!(warned * 5 <= cells, "{warned} of {cells} cells have a warning");
}
