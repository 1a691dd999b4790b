//! Folded stacks of both sides, compared with those of inferno.

use fleetdiff_diff::compare::Recording;
use fleetdiff_diff::export::NotExported;
use fleetdiff_diff::export::difffolded::difffolded;
use fleetdiff_diff::flame::Sides;
use fleetdiff_schemas::profile::Samples;

use super::examples::{merged, run, sides};

#[test]
fn sums_of_all_runs_are_next_to_each_other() {
    let text = difffolded(&sides()).unwrap();
    let expected = "_unsymbolised 120 120\nmain;legacy 1500 0\nmain;poll 11550 11550\nmain;serve;encode 3000 6000\nmain;serve;parse 9450 9450\n";
    assert_eq!(text, expected);
}

/// `inferno-diff-folded` on the folded stacks of each side.
fn by_inferno(sides: &Sides<Vec<Recording>>) -> Vec<String> {
    let folded = |side: &[Recording]| {
        merged(side).into_iter().map(|(path, count)| format!("{} {count}\n", path.join(";"))).collect::<String>()
    };
    let (base, head) = (folded(&sides.base), folded(&sides.head));
    let mut difference = Vec::new();
    inferno::differential::from_readers(
        inferno::differential::Options::default(),
        base.as_bytes(),
        head.as_bytes(),
        &mut difference,
    )
    .unwrap();
    let mut lines: Vec<String> = String::from_utf8(difference).unwrap().lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn oracle_inferno_writes_the_same_lines() {
    let example = sides();
    let mut ours: Vec<String> = difffolded(&example).unwrap().lines().map(str::to_owned).collect();
    assert!(ours.is_sorted());
    ours.sort();
    assert_eq!(ours, by_inferno(&example));
    assert_eq!(ours.len(), 5);
}

#[test]
fn oracle_inferno_draws_it() {
    let text = difffolded(&sides()).unwrap();
    let mut picture = Vec::new();
    inferno::flamegraph::from_reader(&mut inferno::flamegraph::Options::default(), text.as_bytes(), &mut picture)
        .unwrap();
    let picture = String::from_utf8(picture).unwrap();
    // A difference is drawn with the width of the second count, and states by how much it differs from the first.
    assert!(picture.contains("<title>encode (6,000 samples, 22.12%; +11.06%)</title>"), "{picture}");
    assert!(picture.contains("<title>all (27,120 samples, 100%)</title>"), "{picture}");
}

/// Names contain characters that end a frame or a line; stacks that are then equal are one line.
#[test]
fn names_are_folded_as_other_writers_do() {
    let names = |first: &str| {
        let mut run = run("hostile", &[("main;x", 3), ("main;y", 4)]);
        run.profile.names = ["main".into(), first.into(), "f:g h".into()].into();
        run
    };
    let sides = Sides { base: vec![names("f;g\nh")], head: vec![names("f;g\rh"), names("other 7")] };
    assert_eq!(difffolded(&sides).unwrap(), "main;f:g h 7 11\nmain;other 7 0 3\n");
}

#[test]
fn a_run_without_stacks_is_an_error() {
    let mut example = sides();
    example.head[1].profile.samples = Samples::Folded { content: 0, cohorts: Vec::new() };
    let fault = difffolded(&example).unwrap_err();
    assert!(matches!(&fault, NotExported::NoStacks(label) if label == "v2.folded"), "{fault}");
    assert_eq!(fault.code(), "no_stacks");
}
