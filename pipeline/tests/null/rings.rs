//! Rings of one code side by side, at equal and at unequal load.

use std::collections::BTreeSet;

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::Build;
use fleetdiff_schemas::rows::FlagRow;
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::{FlagState, RowReason};
use fleetdiff_simulation::fleet::{Cells, Fleet, Ring};

use super::experiment::{Experiment, run};
use super::seeds::{over, rows, seeds_to};
use super::{assert_found, assert_quiet};

/// Rows of self counts at the end: 2 cells, 5 comparisons, some 40 functions each.
const LOOKED: usize = 2 * 5 * 30;

#[test]
fn null_rings() {
    let outcomes = run("4 rings of 24, 8, 8, 4 pods, CV 10 %", &Experiment::deployed(Fleet::rings), seeds_to(4));
    assert_quiet(&outcomes, LOOKED);
}

#[test]
fn null_rings_at_twice_the_load() {
    let experiment = Experiment::deployed(Fleet::rings_at_twice_the_load);
    let outcomes = run("4 rings of one code, two of them at twice the load", &experiment, seeds_to(4));
    assert_quiet(&outcomes, LOOKED);
}

#[test]
fn twin_rings() {
    let outcomes = run(
        "twin: rings, one function x 1.5 in the second and third",
        &Experiment::deployed(Fleet::rings).regressing(Cells::all(), 1.5),
        1..=1,
    );
    assert_found(&outcomes, 2);
}

/// A change that is larger than the ratio of loads is found at twice the load too; one within it is inconclusive there, and found
/// between rings of equal load.
#[test]
fn twin_rings_at_twice_the_load() {
    let config = Config { evaluate_every: Nanos::from_seconds(60), ..Config::default() };
    let changed = "cache::probe";
    let flagged_by = |factor: f64| {
        over(1..=1, |seed| {
            let fleet = Fleet::rings_at_twice_the_load(seed).regress(changed, Cells::all(), factor).build();
            let tables = rows(&config, &fleet);
            let differs =
                tables.cells.iter().any(|row| row.function == changed && row.reason == Some(RowReason::LoadDiffers));
            let is_of = |flag: &&FlagRow, base: &str, head: &str| {
                flag.row.function == changed
                    && flag.row.comparison.base_build == Build::from(base)
                    && flag.row.comparison.head_build == Build::from(head)
            };
            let found = |base, head| tables.flags.iter().any(|flag| is_of(&flag, base, head));
            (found("v41", "v42"), found("v41", "v43"), differs)
        })
    };
    for (equal, unequal, _) in flagged_by(4.0) {
        assert!(equal && unequal, "x 4 is more than twice");
    }
    for (equal, unequal, differs) in flagged_by(1.5) {
        assert!(equal && !unequal && differs, "x 1.5 is less than twice");
    }
}

/// A function that scales worse in two builds is announced once, of the build that introduced it.
#[test]
fn twin_scaling_over_rings() {
    let config = Config { evaluate_every: Nanos::from_seconds(600), ..Config::default() };
    let function = Fleet::DEMO_FUNCTION;
    let findings = over(1..=1, |seed| {
        let both = Ring::new("v43", 20).starts_after(Nanos::from_seconds(120)).with_changes();
        let fleet = Fleet::under_load(seed).scales_worse(function, Cells::all(), 0.5).ring(both).build();
        rows(&config, &fleet).scaling_findings
    });
    for findings in findings {
        let mut open = BTreeSet::new();
        for row in &findings {
            assert_eq!(&*row.cause, function);
            if row.state == FlagState::Cleared {
                open.remove(&row.head_build)
            } else {
                open.insert(&row.head_build)
            };
        }
        let last = findings.iter().rfind(|row| row.state != FlagState::Cleared).unwrap();
        assert_eq!(open.len(), 1, "one open alert: {findings:?}");
        assert_eq!((&last.head_build, &last.rings.introduced_by), (&"v42".into(), &Some("v42".into())), "{last:?}");
        assert_eq!(last.rings.found_in, ["v42", "v43"]);
        assert!(last.summary.ends_with("v42 introduced it, v43 has it too."), "{}", last.summary);
    }
}
