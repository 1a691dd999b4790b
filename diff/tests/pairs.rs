//! Functions with another name on each side are one function: renamed, renumbered and inlined ones, and what must stay two.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test fails by panicking, and prints what it saw")]

#[path = "support/reports.rs"]
#[expect(dead_code, reason = "shared with other tests")]
mod reports;

use fleetdiff_diff::compare::{Compared, Finding, Recording, Settings, compare};
use fleetdiff_diff::flame::Sides;
use fleetdiff_diff::pairs::Pairs;
use fleetdiff_schemas::profile::{CountKind, ProfileType};
use fleetdiff_schemas::verdict::RowReason;
use proptest::prelude::*;
use reports::{Counts, run_of};

fn recording(counts: Counts<'_>) -> Recording {
    let (names, stacks) = run_of(counts);
    Recording::of_stacks("run", ProfileType::Cpu, names.into(), stacks)
}

fn sides(base: Counts<'_>, head: Counts<'_>) -> Sides<Vec<Recording>> {
    Sides { base: vec![recording(base)], head: vec![recording(head)] }
}

/// Compared as the command does it.
fn compared(sides: &Sides<Vec<Recording>>) -> Compared {
    let settings = Settings::default();
    let pairs = Pairs::of(sides, settings.min_count);
    println!("pairs: {:?}", pairs.sentences().collect::<Vec<_>>());
    let mut compared = compare(&pairs.joined(sides.clone()), &settings).unwrap();
    pairs.label(&mut compared);
    compared
}

fn one_sided(compared: &Compared) -> Vec<&str> {
    let is_one_sided = |finding: &&Finding| {
        let amount = finding.amount();
        amount.base == 0 || amount.head == 0
    };
    compared.findings.iter().filter(is_one_sided).map(|finding| &*finding.function).collect()
}

fn finding<'c>(compared: &'c Compared, function: &str) -> &'c Finding {
    compared.of_kind(CountKind::SelfCount).find(|finding| &*finding.function == function).unwrap()
}

/// What both builds have.
const REST: [(&str, u64); 3] = [("main;serve;encode", 3_000), ("main;serve;read", 2_000), ("main;gc", 1_500)];

fn with<'a>(more: &[(&'a str, u64)]) -> Vec<(&'a str, u64)> {
    REST.iter().chain(more).copied().collect()
}

#[test]
fn regression_a_renamed_function_is_one_row_whose_change_is_that_of_its_cost() {
    let base = with(&[("main;serve;old.Parser.parse", 900), ("main;serve;old.Parser.parse;lex", 400)]);
    for (cost, low, high) in [(1, 0.9, 1.1), (2, 1.4, 2.2)] {
        // Half as much again where it is the leaf.
        let own = if cost == 1 { 920 } else { 1_350 };
        let head = with(&[("main;serve;new.Parser.parse", own), ("main;serve;new.Parser.parse;lex", 410)]);
        let compared = compared(&sides(&base, &head));
        assert_eq!(one_sided(&compared), [""; 0]);
        let row = finding(&compared, "new.Parser.parse");
        assert_eq!(row.base_function.as_deref(), Some("old.Parser.parse"));
        let ratio = row.ratio.unwrap().value;
        assert!(ratio > low && ratio < high && (cost == 1) == (ratio < 1.2), "{ratio}");
    }
}

#[test]
fn regression_lambdas_that_call_lambdas_are_found_from_the_root_down() {
    let base =
        with(&[("main;run;W$$Lambda$4.0x7f;work;W$$Lambda$9.0x7f", 500), ("main;run;W$$Lambda$4.0x7f;work", 300)]);
    let head =
        with(&[("main;run;W$$Lambda$7.0x8a;work;W$$Lambda$2.0x8a", 480), ("main;run;W$$Lambda$7.0x8a;work", 320)]);
    let compared = compared(&sides(&base, &head));
    assert_eq!(one_sided(&compared), [""; 0]);
    assert_eq!(finding(&compared, "W$$Lambda$2.0x8a").base_function.as_deref(), Some("W$$Lambda$9.0x7f"));
}

#[test]
fn regression_closures_whose_numbers_moved_are_one_row_each() {
    let base = with(&[("main;serve;serve.func1", 500), ("main;serve;serve.func2", 1_000)]);
    let head =
        with(&[("main;serve;serve.func1", 20), ("main;serve;serve.func2", 510), ("main;serve;serve.func3", 990)]);
    let by_number = compared(&sides(&base, &head));
    for (now, was) in [("serve.func2", "serve.func1"), ("serve.func3", "serve.func2")] {
        let row = finding(&by_number, now);
        assert_eq!(row.base_function.as_deref(), Some(was));
        assert!(!row.is_shown_first() && (row.ratio.unwrap().value - 1.0).abs() < 0.1, "{row:?}");
    }
    // One that was taken away: its number is another's now.
    let gone = compared(&sides(&head, &with(&[("main;serve;serve.func1", 505), ("main;serve;serve.func2", 1_010)])));
    assert_eq!(finding(&gone, "serve.func2").base_function.as_deref(), Some("serve.func3"));
    assert!(finding(&gone, "serve.func1").ratio.unwrap().value < 1.1);
    // The twin: numbers that did not move, and a cost that did.
    let dearer = with(&[("main;serve;serve.func1", 1_000), ("main;serve;serve.func2", 1_000)]);
    let dearer = compared(&sides(&base, &dearer));
    assert_eq!(finding(&dearer, "serve.func1").base_function, None);
    assert!(finding(&dearer, "serve.func1").ratio.unwrap().value > 1.7);
}

#[test]
fn regression_an_inlined_function_is_part_of_its_caller_on_both_sides() {
    let base =
        with(&[("main;serve;handle", 600), ("main;serve;handle;hash", 700), ("main;serve;handle;hash;mix", 300)]);
    let head = with(&[("main;serve;handle", 1_310), ("main;serve;handle;mix", 310)]);
    for (sides, place) in [(sides(&base, &head), "head"), (sides(&head, &base), "base")] {
        let compared = compared(&sides);
        assert_eq!(one_sided(&compared), [""; 0]);
        let row = finding(&compared, "handle");
        assert!((row.ratio.unwrap().value - 1.0).abs() < 0.1, "{row:?}");
        assert_eq!(row.detail.as_deref(), Some(&*format!("with hash, inlined in the {place}")));
    }
}

#[test]
fn what_is_new_or_gone_stays_so() {
    // Work that was removed, work that was added elsewhere, and work that costs three times as much.
    let gone = ("main;serve;audit", 900);
    for head in [with(&[]), with(&[("main;gc;sweep", 900)]), with(&[("main;serve;inspect", 2_700)])] {
        let compared = compared(&sides(&with(&[gone]), &head));
        assert!(one_sided(&compared).contains(&"audit"), "{head:?}");
        assert_eq!(finding(&compared, "audit").reason.or(Some(RowReason::OnlyInBase)), Some(RowReason::OnlyInBase));
    }
    let pairs = Pairs::of(&sides(&with(&[gone]), &with(&[gone])), 30);
    assert!(pairs.is_empty());
}

#[test]
fn regression_different_programs_are_not_one_with_other_names() {
    let sides = sides(&[("main;work", 600), ("main;rest", 400)], &[("start;a", 600), ("start;b", 400)]);
    assert!(Pairs::of(&sides, 30).is_empty());
    assert!(compare(&sides, &Settings::default()).is_err());
}

#[test]
fn two_that_are_renamed_keep_their_order_of_cost_and_name() {
    let base = with(&[("main;serve;v1.parse", 800), ("main;serve;v1.format", 790)]);
    let head = with(&[("main;serve;v2.parse", 790), ("main;serve;v2.format", 800)]);
    let compared = compared(&sides(&base, &head));
    for name in ["parse", "format"] {
        let row = finding(&compared, &format!("v2.{name}"));
        assert_eq!(row.base_function.as_deref(), Some(&*format!("v1.{name}")));
    }
}

proptest! {
    /// Whatever the names: the samples of a side stay, and nothing is renamed between equal sides.
    #[test]
    fn law_pairs_move_no_sample(
        base in proptest::collection::vec(("[ab](;[a-e]){0,4}(;f\\.func[1-4])?", 1_u64..500), 1..12),
        head in proptest::collection::vec(("[ab](;[a-eg]){0,4}(;f\\.func[1-4])?", 1_u64..500), 1..12),
    ) {
        let of = |counts: &[(String, u64)]| counts.iter().map(|(stack, count)| (stack.clone(), *count)).collect::<Vec<_>>();
        let (base, head) = (of(&base), of(&head));
        let borrowed = |counts: &'static [(String, u64)]| counts.iter().map(|(stack, count)| (stack.as_str(), *count)).collect::<Vec<_>>();
        let (base, head): (&'static [_], &'static [_]) = (base.leak(), head.leak());
        let sides = sides(&borrowed(base), &borrowed(head));
        let pairs = Pairs::of(&sides, 30);
        let joined = pairs.joined(sides.clone());
        let total = |side: &[Recording]| side.iter().map(|run| run.profile.total()).sum::<u64>();
        prop_assert_eq!(total(&joined.base), total(&sides.base));
        prop_assert_eq!(total(&joined.head), total(&sides.head));
        let same = Sides { base: sides.base.clone(), head: sides.base.clone() };
        prop_assert!(Pairs::of(&same, 30).is_empty());
    }
}
