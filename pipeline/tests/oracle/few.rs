//! Cells with fewer functions than a normalization factor needs.

use std::collections::BTreeSet;
use std::sync::Arc;

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::stable_hash;
use fleetdiff_schemas::profile::{CountKind, Decoded, Samples};
use fleetdiff_schemas::rows::{ALL_FUNCTIONS, CellRow, RARE, Tables};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::{FlagState, Scope, Verdict};
use fleetdiff_simulation::fleet::{Cells, FleetBuilder};

use super::{agreed, builder, config, delivered, run_in_memory, seeds};

/// Which function changes.
const CHANGED: &str = "serialize_video_chunk";

/// A fleet whose functions, but the one that changes, are so many.
fn with_few_functions(plain: FleetBuilder, functions: u64) -> Vec<Vec<Decoded>> {
    let mut partitions = delivered(plain.stacks()).partitions(3);
    for profile in partitions.iter_mut().flatten().flat_map(|record| &mut record.parts).flatten() {
        let group = |name: &Arc<str>| match &**name {
            CHANGED => Arc::clone(name),
            other => format!("group_{}", stable_hash(other.as_bytes()) % functions).into(),
        };
        let grouped: Vec<Arc<str>> = profile.names.iter().map(group).collect();
        let names: BTreeSet<Arc<str>> = grouped.iter().cloned().collect();
        let number =
            |frame: u32| names.iter().position(|name| *name == grouped[usize::try_from(frame).unwrap()]).unwrap();
        if let Samples::Stacks(stacks) = &mut profile.samples {
            let frames = stacks.iter_mut().flat_map(|stack| &mut stack.frames);
            frames.for_each(|frame| *frame = u32::try_from(number(*frame)).unwrap());
        }
        profile.names = names.into_iter().collect();
    }
    partitions
}

fn without_requests(mut partitions: Vec<Vec<Decoded>>) -> Vec<Vec<Decoded>> {
    let profiles = partitions.iter_mut().flatten().flat_map(|record| &mut record.parts).flatten();
    profiles.for_each(|profile| profile.requests = None);
    partitions
}

/// Rows that were tested and decided by their cost per request.
fn decided_per_request(tables: &Tables) -> impl Iterator<Item = &CellRow> {
    tables.cells.iter().filter(|row| row.adjusted_ratio.is_some() && row.adjusted_ratio == row.per_request_ratio)
}

/// Cells with a normalization factor.
fn factors(tables: &Tables) -> usize {
    tables
        .comparisons
        .iter()
        .filter(|row| row.normalization_factor.is_some_and(|factor| (factor - 1.0).abs() > 1e-12))
        .count()
}

#[test]
fn oracle_few_functions() {
    let (mut rows, mut of_roll_ups, mut measured, mut scopes, mut verdicts) =
        (0, 0, 0, BTreeSet::new(), BTreeSet::new());
    for seed in seeds(901..=906) {
        let plain = builder(seed).requests_per_second(20.0).regress(CHANGED, Cells::region("east"), 4.0);
        let (plain, config) = match seed % 3 {
            // Few pods and requests, so that tests per request have few degrees of freedom.
            0 => (plain.pods_per_cell(2, 2).requests_per_second(0.3), config()),
            1 => {
                (plain.regress_all(Cells::region("west"), 1.3), Config { young: Nanos::from_seconds(200), ..config() })
            }
            _ => (
                plain.pods_per_cell(5, 6).hardware(["old", "new"]),
                Config { history: Nanos::from_seconds(300), ..config() },
            ),
        };
        let partitions = with_few_functions(plain, 4 + seed % 9);
        let got = agreed(seed, &config, &partitions);
        let blind = agreed(seed, &config, &without_requests(partitions));
        measured += factors(&blind);
        assert_eq!((factors(&got), decided_per_request(&blind).count()), (0, 0), "seed {seed}");
        rows += decided_per_request(&got).count();
        of_roll_ups += decided_per_request(&got).filter(|row| row.is_roll_up).count();
        scopes.extend(decided_per_request(&got).map(|row| row.scope));
        verdicts.extend(decided_per_request(&got).map(|row| row.verdict));
    }
    println!("{rows} rows decided per request, {of_roll_ups} of roll-ups, {verdicts:?}; {measured} factors of few");
    assert!(measured > 50, "{measured} factors without requests");
    assert!(rows > 500 && of_roll_ups > 100 && scopes.len() == 2, "{rows} rows, {of_roll_ups} of roll-ups, {scopes:?}");
    let expected = [Verdict::Regressed, Verdict::Compositional, Verdict::Equivalent, Verdict::Inconclusive];
    assert!(expected.iter().all(|verdict| verdicts.contains(verdict)), "{verdicts:?}");
}

/// Functions that were flagged by self counts, and how many rows of functions of the last report were tested.
fn flagged(tables: &Tables) -> (BTreeSet<Arc<str>>, usize) {
    let own = tables.flags.iter().filter(|flag| flag.state == FlagState::Raised);
    let own = own.filter(|flag| flag.row.count_kind == CountKind::SelfCount && flag.row.function != ALL_FUNCTIONS);
    let tested = tables.cells.iter().filter(|row| {
        row.scope == Scope::Window
            && row.count_kind == CountKind::SelfCount
            && row.ln_p_row.is_some()
            && row.function != RARE
    });
    (own.map(|flag| flag.row.function.as_str().into()).collect(), tested.count())
}

/// Where one of nine functions costs three times as much, the shares of all others fall. What a request costs tells that these did
/// not change; without requests, that most of them fell alike.
#[test]
fn regression_of_few_functions_only_the_changed_one_is_flagged() {
    for seed in seeds(911..=914) {
        let plain = builder(seed).pods_per_cell(6, 8).samples_per_second(400.0).requests_per_second(50.0);
        let plain = plain.unchanged().warm_up(Nanos(0)).regress(CHANGED, Cells::all(), 3.0);
        let partitions = with_few_functions(plain, 8);
        let run = |partitions: &[Vec<Decoded>]| run_in_memory(&config(), partitions.to_vec(), 2).unwrap();
        let with = run(&partitions);
        let (found, tested) = flagged(&with);
        println!("seed {seed}: {found:?} flagged, {tested} rows tested");
        assert_eq!(found, BTreeSet::from([CHANGED.into()]), "seed {seed}: of {tested} tested rows");
        assert!(tested > 50, "seed {seed}: {tested} rows tested");
        // Of the last window, in which few pods are young.
        let last = with.cells.iter().map(|row| row.window_end_at).max();
        let changed = |row: &&CellRow| row.function == CHANGED && row.count_kind == CountKind::SelfCount;
        let effects: Vec<f64> = decided_per_request(&with)
            .filter(|row| changed(row) && row.scope == Scope::Window && Some(row.window_end_at) == last)
            .filter_map(|row| Some(row.adjusted_ratio?.value))
            .collect();
        assert!(
            effects.len() >= 4 && effects.iter().all(|ratio| (2.7..3.3).contains(ratio)),
            "seed {seed}: {effects:?}"
        );
        let blind = run(&without_requests(partitions));
        let (found, tested) = flagged(&blind);
        println!("seed {seed}: {found:?} flagged without requests, {tested} rows tested");
        assert_eq!(found, BTreeSet::from([CHANGED.into()]), "seed {seed}: of {tested} tested rows, without requests");
        let by_share =
            with.cells.iter().filter(|row| row.function != CHANGED && row.ln_p.is_some_and(|ln_p| ln_p < -10.0));
        assert!(by_share.count() > 50, "seed {seed}: shares of other functions moved too");
    }
}
