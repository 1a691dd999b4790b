use super::*;

fn facts(pods: &[(&str, u64)]) -> HopFacts {
    let counts: BTreeMap<Build, u64> = pods.iter().map(|&(build, count)| (build.into(), count)).collect();
    HopFacts {
        counted: counts.keys().map(|build| (build.clone(), None)).collect(),
        in_window: counts.clone(),
        old: counts.clone(),
        present: counts,
    }
}

fn history() -> (ServiceHistory, ComparisonRules) {
    (ServiceHistory::new("api".into()), ComparisonRules::new(&Config::default()))
}

#[test]
fn a_later_build_opens_a_comparison_with_the_largest_and_a_block() {
    let (mut history, rules) = history();
    let first = history.close(Hop(100), &facts(&[("a", 3), ("b", 5)]), false, &rules);
    assert!(first.begins_block && first.open.is_empty(), "initial builds are not compared: {first:?}");
    let one = history.close(Hop(101), &facts(&[("a", 3), ("b", 5), ("c", 1)]), false, &rules);
    assert!(one.open.is_empty(), "one pod is no replicate: {one:?}");
    let two = history.close(Hop(102), &facts(&[("a", 3), ("b", 5), ("c", 2)]), false, &rules);
    assert!(two.begins_block && two.open.iter().all(|open| open.epoch == Hop(102)));
    assert_eq!(pairs(&two), ["a>c", "b>c"], "b has most pods, and a is the first in build order");
    let gone = history.close(Hop(103), &facts(&[("a", 3), ("b", 5)]), false, &rules);
    assert_eq!((gone.closed.len(), gone.open.len(), gone.begins_block), (2, 0, true));
    let again = history.close(Hop(104), &facts(&[("a", 3), ("b", 5), ("c", 2)]), false, &rules);
    assert_eq!(again.open.len(), 2, "a build that was gone is a new deploy: {again:?}");
}

/// The open comparisons, as `base>head`.
fn pairs(plan: &Plan) -> Vec<String> {
    plan.open.iter().map(|open| format!("{}>{}", open.id.base_name(), open.id.head)).collect()
}

#[test]
fn rings_are_compared_with_the_ring_before_and_with_the_first() {
    let (mut history, rules) = history();
    let mut at = |hop, pods: &[(&str, u64)]| history.close(Hop(hop), &facts(pods), false, &rules);
    at(100, &[("a", 60)]);
    assert_eq!(pairs(&at(101, &[("a", 60), ("b", 4)])), ["a>b"]);
    assert_eq!(pairs(&at(102, &[("a", 60), ("b", 4), ("c", 2)])), ["a>b", "a>c", "b>c"]);
    let four = at(103, &[("a", 10), ("b", 50), ("c", 6), ("d", 2)]);
    assert_eq!(pairs(&four), ["a>b", "a>c", "a>d", "b>c", "b>d", "c>d"], "the largest, the one before and the first");
    assert_eq!(four.rings, ["a", "b", "c", "d"].map(Build::from));
    let rolled_back = at(104, &[("a", 10), ("b", 50), ("d", 2)]);
    assert_eq!(pairs(&rolled_back), ["a>b", "a>d", "b>d"], "a ring that is gone takes its comparisons along");
    let first_gone = at(105, &[("b", 50), ("d", 2)]);
    assert_eq!((pairs(&first_gone), &first_gone.rings[..]), (vec!["b>d".to_owned()], &["b", "d"].map(Build::from)[..]));
    let again = at(106, &[("b", 50), ("d", 2), ("c", 3)]);
    assert_eq!(pairs(&again), ["b>c", "b>d", "d>c"], "a build that comes back is the last ring");
}

#[test]
fn a_ring_is_compared_with_an_earlier_one_only_once_that_has_enough_pods() {
    let (mut history, rules) = history();
    let mut at = |hop, pods: &[(&str, u64)]| history.close(Hop(hop), &facts(pods), false, &rules);
    at(100, &[("a", 60)]);
    assert_eq!(pairs(&at(101, &[("a", 60), ("b", 1), ("c", 2)])), ["a>c"]);
    assert_eq!(
        pairs(&at(102, &[("a", 60), ("b", 2), ("c", 2)])),
        ["a>b", "a>c", "b>c"],
        "b and c came at once, b by name before c"
    )
}

#[test]
fn named_rings_follow_their_order_whenever_they_appear() {
    let comparing = Comparing::Rings(["v1", "v2", "v3"].map(Build::from).to_vec());
    let rules = ComparisonRules::new(&Config { comparing, ..Config::default() });
    let mut history = ServiceHistory::new("api".into());
    let mut at = |hop, pods: &[(&str, u64)]| history.close(Hop(hop), &facts(pods), false, &rules);
    assert_eq!(pairs(&at(100, &[("v3", 5), ("v2", 5), ("other", 50)])), ["v2>v3"]);
    let all = at(101, &[("v3", 5), ("v2", 5), ("v1", 1)]);
    assert_eq!(pairs(&all), ["v1>v2", "v1>v3", "v2>v3"]);
    assert_eq!(all.rings, ["v1", "v2", "v3"].map(Build::from));
}

#[test]
fn a_comparison_whose_base_is_gone_continues_against_history() {
    let (mut history, rules) = history();
    let at =
        |history: &mut ServiceHistory, hop, pods: &[(&str, u64)]| history.close(Hop(hop), &facts(pods), false, &rules);
    at(&mut history, 100, &[("a", 5)]);
    assert_eq!(at(&mut history, 101, &[("a", 5), ("b", 2)]).open.len(), 1);
    let alone = at(&mut history, 102, &[("b", 5)]);
    let expected = HistoryComparison {
        id: ComparisonId { service: "api".into(), base: vec!["a".into()], head: "b".into() },
        closed: Hop(102),
    };
    assert_eq!((alone.closed.len(), &alone.open[..], &alone.history[..]), (1, &[][..], &[expected][..]));
    let canary = at(&mut history, 103, &[("b", 5), ("c", 2)]);
    assert_eq!(
        (canary.open.len(), canary.history.len()),
        (1, 0),
        "the head has become the base of another: {canary:?}"
    );
    let over = at(&mut history, 104, &[("b", 5)]);
    assert_eq!((over.closed.len(), over.history.len()), (1, 0), "its head is gone: {over:?}");
}

#[test]
fn history_ends_with_its_head_and_with_all_that_is_kept_of_its_base() {
    let a_day = Config { history: Nanos::from_seconds(86_400), window: Nanos::from_seconds(600), ..Config::default() };
    let rules = ComparisonRules::new(&a_day);
    let mut history = ServiceHistory::new("api".into());
    let mut at = |hop, pods: &[(&str, u64)]| history.close(Hop(hop), &facts(pods), false, &rules).history.len();
    let day = 8640;
    let begun =
        [at(1000 * day, &[("a", 5)]), at(1000 * day + 1, &[("a", 5), ("b", 2)]), at(1000 * day + 70, &[("b", 5)])];
    assert_eq!(begun, [0, 0, 1]);
    assert_eq!(at(1002 * day + 59, &[("b", 5)]), 1, "what left the window last lies in the second generation still");
    assert_eq!(at(1002 * day + 60, &[("b", 5)]), 0, "two generations later nothing is kept of the base");
    let mut history = ServiceHistory::new("api".into());
    let mut at = |hop, pods: &[(&str, u64)]| history.close(Hop(hop), &facts(pods), false, &rules).history.len();
    let begun =
        [at(1000 * day, &[("a", 5)]), at(1000 * day + 1, &[("a", 5), ("b", 2)]), at(1001 * day + 30, &[("b", 5)])];
    assert_eq!(begun, [0, 0, 1]);
    assert_eq!(at(1002 * day + 59, &[("b", 5)]), 1);
    assert_eq!(
        at(1002 * day + 60, &[("b", 5)]),
        0,
        "closed a window after its base was gone, which was the day before"
    );
    let none = Config { history: Nanos(0), ..a_day };
    let rules = ComparisonRules::new(&none);
    let mut history = ServiceHistory::new("api".into());
    let mut at = |hop, pods: &[(&str, u64)]| history.close(Hop(hop), &facts(pods), false, &rules).history.len();
    assert_eq!([at(5, &[("a", 5)]), at(6, &[("a", 5), ("b", 2)]), at(7, &[("b", 5)])], [0, 0, 0], "no history is kept");
}

#[test]
fn a_block_ends_when_the_pods_of_a_build_have_aged() {
    let (mut history, rules) = history();
    let young = |old: u64| HopFacts {
        old: BTreeMap::from([("a".into(), 90), ("b".into(), old)]),
        ..facts(&[("a", 90), ("b", 10)])
    };
    history.close(Hop(100), &young(0), false, &rules);
    let mut at = |hop, old| history.close(Hop(hop), &young(old), false, &rules).begins_block;
    assert!(!at(120, 10), "no block is shorter than five minutes");
    assert!(!at(130, 1), "a tenth is not more than a tenth");
    assert!(at(131, 2));
    assert!(!at(161, 3) && at(162, 4), "shares are those of the new block's start");
}

#[test]
fn a_block_ends_when_a_share_has_moved_by_more_than_a_tenth() {
    let (mut history, rules) = history();
    history.close(Hop(100), &facts(&[("a", 9), ("b", 1)]), false, &rules);
    let at = |history: &mut ServiceHistory, hop, a, b| {
        history.close(Hop(hop), &facts(&[("a", a), ("b", b)]), false, &rules).begins_block
    };
    assert!(!at(&mut history, 120, 5, 5), "no block is shorter than five minutes");
    assert!(!at(&mut history, 130, 8, 2), "a tenth is not more than a tenth");
    assert!(at(&mut history, 131, 79, 21));
    assert!(!at(&mut history, 161, 79, 21), "shares are those of the new block's start");
    assert!(at(&mut history, 360, 79, 21), "a new hour");
}
