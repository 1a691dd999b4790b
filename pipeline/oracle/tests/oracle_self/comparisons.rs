//! Sections 3, 8 and 9 of `docs/semantics.md`, by hand.

use std::collections::BTreeSet;

use fleetdiff_oracle::batch;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::Identity;
use fleetdiff_schemas::profile::Profile;
use fleetdiff_schemas::rows::{ComparisonRow, Tables};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_schemas::verdict::{ComparisonVerdict, FlagState, Severity, Verdict};

use crate::fleets::{assert_near, at, config, flags, hop, in_order, named, pods, steady, verdicts};

const PLAIN: [(&str, u64); 2] = [("x", 200), ("y", 800)];
const MORE_X: [(&str, u64); 2] = [("x", 300), ("y", 700)];

/// A window and epochs of this many hops.
fn short(window: i64, epoch: i64, config: Config) -> Config {
    Config { window: Nanos::from_seconds(10 * window), epoch: Nanos::from_seconds(10 * epoch), ..config }
}

fn run(config: &Config, parts: impl IntoIterator<Item = Vec<Profile>>) -> Tables {
    batch(config, &in_order(parts.into_iter().flatten()))
}

fn builds(row: &ComparisonRow) -> (&str, &str) {
    (row.comparison.base_build.as_str(), row.comparison.head_build.as_str())
}

/// First and last look of each comparison, by hop.
fn spans(tables: &Tables) -> Vec<(&str, &str, i64, i64)> {
    let mut spans: Vec<(&str, &str, i64, i64)> = Vec::new();
    for row in verdicts(tables) {
        let (base, head) = builds(row);
        let look = (row.window_end_at.since(at(0)).0 / 10_000_000_000) - 1;
        match spans.iter_mut().find(|span| (span.0, span.1) == (base, head) && span.3 == look - 1) {
            Some(span) => span.3 = look,
            None => spans.push((base, head, look, look)),
        }
    }
    spans
}

#[test]
fn oracle_a_second_build_is_compared_once_it_has_two_pods() {
    let (a, also, b) = (pods("A", 3), pods("A2", 4), pods("B", 2));
    let tables = run(
        &config(),
        [
            steady(&a, 0, 10, &PLAIN),
            steady(&also, 0, 10, &PLAIN),
            steady(&b[..1], 5, 10, &PLAIN),
            steady(&b[1..], 7, 10, &PLAIN),
        ],
    );
    // A and A2 are there from the start and not compared; bases are the build with the most pods, which is also the one before B,
    // and the first in build order.
    assert_eq!(spans(&tables), [("A", "B", 7, 9), ("A2", "B", 7, 9)]);
    assert_eq!(verdicts(&tables)[0].window_start_at, at(70));
    assert_eq!(verdicts(&tables)[0].head_total, 2000);
    let alone =
        run(&config(), [steady(&a, 0, 10, &PLAIN), steady(&also, 0, 10, &PLAIN), steady(&b[..1], 5, 10, &PLAIN)]);
    assert_eq!(spans(&alone), []);
}

#[test]
fn oracle_of_equal_bases_the_later_in_build_order_is_taken() {
    let base_of = |start_of_a: i64| {
        let starting = |mut pods: Vec<Identity>, start| {
            pods.iter_mut().for_each(|pod| pod.process_start = Some(at(start)));
            pods
        };
        let (first, last) = (starting(pods("first", 2), -900), starting(pods("last", 2), -100));
        let (a, also) = (starting(pods("A", 3), start_of_a), starting(pods("A2", 3), -500));
        let there = [first, a, also, last].map(|pods| steady(&pods, 0, 4, &PLAIN));
        let tables = run(&config(), there.into_iter().chain([steady(&pods("B", 2), 2, 4, &PLAIN)]));
        let bases: BTreeSet<&str> = spans(&tables).into_iter().map(|span| span.0).collect();
        assert!(bases.contains("first") && bases.contains("last") && bases.len() == 3, "{bases:?}");
        bases.into_iter().find(|base| base.starts_with('A')).unwrap().to_owned()
    };
    // Both are seen first at hop 0: the process start decides, then the name.
    assert_eq!([base_of(-600), base_of(-500), base_of(-400)], ["A2", "A2", "A"]);
}

#[test]
fn oracle_a_comparison_closes_when_its_base_has_left_the_window() {
    let config = short(6, 1000, config());
    let (a, b) = (pods("A", 5), pods("B", 5));
    let tables = run(&config, [steady(&a, 0, 11, &PLAIN), steady(&b, 4, 26, &MORE_X), steady(&a, 20, 26, &PLAIN)]);
    // A was counted last at hop 10 and is in the window until 15. It comes back at 20 as a new deploy; B against A does
    // not open again.
    assert_eq!(spans(&tables), [("A", "B", 4, 15), ("B", "A", 20, 25)]);
    let x: Vec<_> =
        flags(&tables, "x").into_iter().filter(|flag| flag.row.comparison.head_build.as_str() == "B").collect();
    let states: Vec<_> = x.iter().map(|flag| (flag.state, flag.sequence)).collect();
    assert_eq!((states[0], *states.last().unwrap()), ((FlagState::Raised, hop(4)), (FlagState::Cleared, hop(16))));
    let cleared = x.last().unwrap();
    assert_eq!((cleared.cleared_because.as_deref(), cleared.raised_at), (Some("comparison_closed"), at(50)));
    assert_eq!(
        (cleared.row.verdict, cleared.row.window_end_at),
        (Verdict::Regressed, at(170)),
        "as it was last tested"
    );
    assert_eq!((cleared.row.head.total, cleared.row.base.total), (5 * 12 * 1000, 5 * 7 * 1000));
    assert!(x.iter().all(|flag| flag.flag_id == x[0].flag_id && flag.flag_id.len() == 16));
    let reversed: Vec<_> =
        flags(&tables, "x").into_iter().filter(|flag| flag.row.comparison.head_build.as_str() == "A").collect();
    assert_eq!((reversed[0].row.verdict, reversed[0].severity), (Verdict::Improved, Severity::Info));
    assert_ne!(reversed[0].flag_id, x[0].flag_id);
}

#[test]
fn oracle_a_named_comparison_opens_again() {
    let config = short(6, 1000, named("A", "B"));
    let (a, b) = (pods("A", 5), pods("B", 5));
    let tables = run(&config, [steady(&a, 0, 11, &PLAIN), steady(&b, 0, 26, &MORE_X), steady(&a, 20, 26, &PLAIN)]);
    assert_eq!(spans(&tables), [("A", "B", 0, 15), ("A", "B", 20, 25)]);
    let ids: BTreeSet<_> = flags(&tables, "x").iter().map(|flag| &flag.flag_id).collect();
    assert_eq!(ids.len(), 2, "raised anew");
}

#[test]
fn oracle_an_epoch_rolls_over_and_an_equal_function_is_cleared() {
    let config = short(180, 10, named("A", "B"));
    let (a, b) = (pods("A", 5), pods("B", 5));
    let tables = run(
        &config,
        [steady(&a, 0, 20, &PLAIN), steady(&b, 0, 10, &MORE_X), steady(&b, 10, 20, &[("x", 201), ("y", 799)])],
    );
    let starts: Vec<_> = verdicts(&tables).iter().map(|row| row.window_start_at).collect();
    assert_eq!(starts, [vec![at(0); 10], vec![at(100); 10]].concat());
    // 5 pods a side: the 90 % interval of n hops is +-1.8595 sqrt(1.6/(1000 n)) for x (20 %) around ln 1.005 and
    // +-1.8595 sqrt(.1/(1000 n)) for y (80 %) around ln .99875: within ln 1.05 from n = 3 and n = 1 on.
    let cleared = |function| {
        let all = flags(&tables, function);
        let cleared = all.iter().find(|flag| flag.state == FlagState::Cleared).expect("cleared");
        (cleared.sequence, cleared.cleared_because.clone().unwrap(), cleared.row.verdict, cleared.severity)
    };
    assert_eq!(cleared("x"), (hop(12), "equivalent".to_owned(), Verdict::Equivalent, Severity::Page));
    assert_eq!(cleared("y"), (hop(10), "equivalent".to_owned(), Verdict::Equivalent, Severity::Info));
    // At hop 10 only y is equivalent, which is 80 % of the samples; but x is still raised, with a small remaining
    // effect.
    let seen: Vec<_> = verdicts(&tables)[8..13].iter().map(|row| (row.verdict, row.flags)).collect();
    use ComparisonVerdict::{Clean, Regressed};
    assert_eq!(seen, [(Regressed, 2), (Regressed, 2), (Regressed, 1), (Regressed, 1), (Clean, 0)]);
    let of_cell =
        tables.comparisons.iter().find(|row| row.cell.region.as_str() == "r" && row.window_end_at == at(110)).unwrap();
    assert_near(of_cell.equivalent_share, 0.8);
}

#[test]
fn oracle_an_effect_that_moves_is_updated() {
    let (a, b) = (pods("A", 5), pods("B", 5));
    let later = [("x", 600), ("y", 400)];
    let tables =
        run(&named("A", "B"), [steady(&a, 0, 12, &PLAIN), steady(&b, 0, 2, &MORE_X), steady(&b, 2, 12, &later)]);
    let x = flags(&tables, "x");
    assert_eq!((x[0].state, x[0].sequence, x[0].severity), (FlagState::Raised, hop(0), Severity::Page));
    // 5 x 1000 samples at hop 0: half the interval is 2.306 sqrt(1/1500 + 1/1000 - 2/5000) = .082. At hop 2 the share is
    // (.3 + .3 + .6)/3 = .4: the ln ratio went from ln 1.5 to ln 2.
    assert_eq!((x[1].state, x[1].sequence), (FlagState::Updated, hop(2)));
    assert_near(x[0].row.adjusted_ratio.map(|ratio| ratio.value), 1.5);
    assert_near(x[1].row.adjusted_ratio.map(|ratio| ratio.value), 2.0);
    assert!(x[1..].iter().all(|flag| flag.state == FlagState::Updated && flag.raised_at == at(10)));
    let gate = |flag: &fleetdiff_schemas::rows::FlagRow| {
        flag.row.adjusted_ratio.map(|ratio| (ratio.value.ln(), (ratio.high / ratio.low).ln() / 2.0)).unwrap()
    };
    for pair in x.windows(2) {
        let ((before, half), (now, _)) = (gate(pair[0]), gate(pair[1]));
        assert!((now - before).abs() > half, "{before} to {now} within {half}");
    }
}

#[test]
fn oracle_blocks_begin_when_builds_shift_by_more_than_a_tenth() {
    let (a, b) = (pods("A", 8), pods("B", 8));
    let blocks = |a_left: usize, b_later: usize| {
        let tables = run(
            &named("A", "B"),
            [
                steady(&a[..a_left], 0, 40, &PLAIN),
                steady(&a[a_left..], 0, 5, &PLAIN),
                steady(&b[..2], 0, 40, &PLAIN),
                steady(&b[2..2 + b_later], 20, 40, &PLAIN),
            ],
        );
        verdicts(&tables).iter().map(|row| row.time_blocks).collect::<Vec<_>>()
    };
    // B's share of present pods is 2/10 at hop 0. A block lasts 30 hops at least.
    let one = vec![1; 40];
    assert_eq!(blocks(7, 1), one, "3/10 is a tenth more, not more than that");
    assert_eq!(blocks(8, 1), one);
    assert_eq!(blocks(8, 2), [vec![1; 30], vec![2; 10]].concat(), "4/12");
}

#[test]
fn oracle_blocks_begin_at_the_full_hour() {
    let tables =
        run(&named("A", "B"), [steady(&pods("A", 2), 355, 365, &PLAIN), steady(&pods("B", 2), 355, 365, &PLAIN)]);
    let seen: Vec<_> = verdicts(&tables).iter().map(|row| row.time_blocks).collect();
    assert_eq!(seen, [1, 1, 1, 1, 1, 2, 2, 2, 2, 2]);
}

#[test]
fn oracle_a_look_needs_new_samples_and_its_hour() {
    let config = Config { evaluate_every: Nanos::from_seconds(40), ..named("A", "B") };
    let (a, b) = (pods("A", 2), pods("B", 2));
    // Nothing is counted from hop 8 to 12; the run ends at hop 13.
    let parts = [(0, 8), (13, 14)]
        .into_iter()
        .flat_map(|(from, to)| [steady(&a, from, to, &PLAIN), steady(&b, from, to, &PLAIN)]);
    let tables = run(&config, parts);
    let looks: Vec<_> = verdicts(&tables).iter().map(|row| row.window_end_at).collect();
    assert_eq!(looks, [at(40), at(80), at(140)]);
}
