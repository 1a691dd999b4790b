//! Requests, rare functions, outlying pods, the base against itself (sections 5 to 7 of `docs/semantics.md`), and causes (11), by
//! hand.

use fleetdiff_oracle::batch;
use fleetdiff_schemas::identity::Bucket;
use fleetdiff_schemas::profile::Profile;
use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::verdict::{FlagState, RowReason, Severity, Support, Verdict};

use crate::fleets::{assert_near, at, cell, flags, hop, in_order, named, pods, steady, the_cell, with_requests};

fn served(profiles: Vec<Profile>, count: u64) -> Vec<Profile> {
    profiles.into_iter().map(|profile| with_requests(profile, count)).collect()
}

/// Six pods per arm; the head has 1.2 times the samples.
fn more_expensive(of_last_pod: u64) -> Tables {
    let (head, base) = (pods("B", 6), pods("A", 6));
    let mut all = served(steady(&head, 0, 1, &[("main;x", 360), ("main;y", 840)]), 100);
    all.extend(served(steady(&base[..5], 0, 1, &[("main;x", 300), ("main;y", 700)]), 100));
    all.extend(served(steady(&base[5..], 0, 1, &[("main;x", 300), ("main;y", 700)]), of_last_pod));
    batch(&named("A", "B"), &in_order(all))
}

#[test]
fn oracle_a_more_expensive_request_moves_only_the_row_of_all_functions() {
    let tables = more_expensive(100);
    let all = the_cell(&tables, "window self r/c (all)");
    assert_eq!((all.head.count, all.head.total, all.base.count, all.base.requests), (7200, 7200, 6000, Some(600)));
    assert_eq!((all.verdict, all.reason, all.support), (Verdict::Regressed, None, Support::Firm));
    assert_eq!((all.g, all.ln_p_iid, all.ln_p, all.q_value), (None, None, None, None));
    // Pods of an arm are identical: nothing but the noise of counting, 10 degrees of freedom. Rates of 12 and 10 at 600
    // requests each; the common rate m of a ratio c: m + c m = 22.
    let statistic = |c: f64| {
        let m = 22.0 / (1.0 + c);
        2.0 * 600.0 * (12.0 * (12.0 / (c * m)).ln() + 10.0 * (10.0 / m).ln())
    };
    let t = 2.228_138_851_964_939;
    let ratio = all.per_request_ratio.unwrap();
    assert_near(Some(ratio.value), 1.2);
    assert_near(Some(statistic(ratio.low)), t * t);
    assert_near(Some(statistic(ratio.high)), t * t);
    assert_near(all.per_request_q_value, all.per_request_ln_p.unwrap().exp());
    let x = the_cell(&tables, "window self r/c x");
    assert_eq!(
        x.verdict,
        Verdict::Inconclusive,
        "of few functions: its share did not move, what it costs per request did"
    );
    assert_eq!(x.adjusted_ratio, x.per_request_ratio);
    assert_near(x.per_request_ratio.map(|ratio| ratio.value), 1.2);
    assert!(
        the_cell(&tables, "window total r/c main").per_request_ln_p.is_some(),
        "what is in every sample has a rate too"
    );
    // In an epoch it is a member of the live family: with x and y by self and by total, half of the mean weight.
    let raised: Vec<_> =
        tables.flags.iter().map(|flag| (flag.row.function.as_str(), flag.state, flag.severity)).collect();
    assert_eq!(raised, [("(all)", FlagState::Raised, Severity::Page)]);
    let epoch = the_cell(&tables, "epoch self r/c (all)");
    assert_eq!((epoch.verdict, epoch.always_valid_ln_p), (Verdict::Regressed, epoch.ln_e.map(|ln_e| -ln_e)));
    let verdicts = tables.comparisons.iter().filter(|row| row.cell.region.as_str() == "r");
    let verdicts: Vec<_> = verdicts.map(|row| (row.count_kind.name(), row.verdict.name(), row.flags)).collect();
    assert_eq!(verdicts, [("self", "regressed", 1), ("total", "regressed", 0)], "whichever way samples are counted");
    for without in ["window total r/c (all)", "window self */* (all)"] {
        assert!(cell(&tables, without).is_none(), "{without}");
    }
    let over_cells = the_cell(&tables, "window self */* x");
    assert_eq!(over_cells.per_request_ratio, x.per_request_ratio, "of few functions roll-ups ask too");
}

#[test]
fn oracle_requests_are_known_of_all_pods_or_of_none() {
    let tables = more_expensive(0);
    assert!(cell(&tables, "window self r/c (all)").is_none());
    assert!(tables.cells.iter().all(|row| row.per_request_ln_p.is_none() && row.per_request_q_value.is_none()));
    assert_eq!(the_cell(&tables, "window self r/c x").base.requests, Some(500));
}

#[test]
fn oracle_a_rare_function_of_one_arm_has_a_row_of_its_own() {
    let (head, base) = (pods("B", 9), pods("A", 9));
    let mut all = steady(&head, 0, 1, &[("new", 2), ("seldom", 1), ("y", 997)]);
    all.extend(steady(&base, 0, 1, &[("seldom", 1), ("y", 999)]));
    let tables = batch(&named("A", "B"), &in_order(all));
    let new = the_cell(&tables, "window self r/c new");
    assert_eq!((new.verdict, new.reason, new.support), (Verdict::Regressed, Some(RowReason::Rare), Support::Tentative));
    assert_eq!((new.head.count, new.base.count, new.functions, new.ln_p, new.q_value), (18, 0, None, None, None));
    // Counts: 18 of 18, mid-p 2^-18. Pods: 9 of 9 against 0 of 9, twice 1 in 18!/(9! 9!) tables.
    assert_near(new.rare_ln_p, (2.0_f64 / 48_620.0).ln());
    let rare = the_cell(&tables, "window self r/c _rare");
    assert_eq!((rare.functions, rare.head.count, rare.base.count), (Some(1), 9, 9));
    assert!(cell(&tables, "epoch self r/c new").is_none(), "no rare function is significant in an epoch");
    assert_eq!(the_cell(&tables, "epoch self r/c _rare").functions, Some(2));
    assert_eq!(the_cell(&tables, "window self */* _rare").functions, Some(2), "nor does a roll-up");
}

#[test]
fn oracle_rare_samples_of_one_pod_are_no_evidence() {
    let (head, base) = (pods("B", 9), pods("A", 9));
    let mut all = steady(&head[..1], 0, 1, &[("new", 18), ("y", 982)]);
    all.extend(steady(&head[1..], 0, 1, &[("y", 1000)]));
    all.extend(steady(&base, 0, 1, &[("y", 1000)]));
    let tables = batch(&named("A", "B"), &in_order(all));
    assert!(cell(&tables, "window self r/c new").is_none());
    assert_eq!(the_cell(&tables, "window self r/c _rare").functions, Some(1));
}

/// Thirty functions, of which `f7` has `hot` samples.
fn thirty(hot: u64) -> Vec<(String, u64)> {
    (0..30).map(|i| (format!("f{i}"), if i == 7 { hot } else { 300 })).collect()
}

fn by_name(stacks: &[(String, u64)]) -> Vec<(&str, u64)> {
    stacks.iter().map(|(name, count)| (name.as_str(), *count)).collect()
}

#[test]
fn oracle_a_minority_of_pods_is_named() {
    let (head, base) = (pods("B", 12), pods("A", 14));
    let (hot, cold) = (thirty(480), thirty(300));
    let hit = |last: usize| {
        let mut all = steady(&head[..last], 0, 1, &by_name(&hot));
        all.extend(steady(&head[last..], 0, 1, &by_name(&cold)));
        all.extend(steady(&base, 0, 1, &by_name(&cold)));
        batch(&named("A", "B"), &in_order(all))
    };
    let tables = hit(2);
    let row = the_cell(&tables, "window self r/c f7");
    let mut names: Vec<String> = head[..2].iter().map(|pod| pod.pod.as_str().to_owned()).collect();
    names.sort();
    assert_eq!((row.verdict, &row.outlying_pods), (Verdict::SomePodsOutlying, &names));
    assert!(row.outlier_ln_p.is_some_and(|ln_p| ln_p < -10.0) && row.outlier_q_value.is_some_and(|q| q < 0.05));
    let others = tables.cells.iter().filter(|row| row.function != "f7");
    assert!(others.clone().count() > 0 && others.into_iter().all(|row| row.outlying_pods.is_empty()));
    assert_eq!(the_cell(&tables, "epoch self r/c f7").outlier_ln_p, None);
    let most = hit(9);
    assert_eq!(
        the_cell(&most, "window self r/c f7").outlying_pods,
        Vec::<String>::new(),
        "nine of twelve are no minority"
    );
}

#[test]
fn oracle_the_base_is_held_against_itself() {
    let (head, base) = (pods("B", 8), pods("A", 20));
    let (hot, cold) = (thirty(900), thirty(300));
    let is_odd = |name: &str| Bucket::of(None, &name.into()).0 % 2 == 1;
    let checked = |odd: &[(String, u64)]| {
        let mut all = steady(&head, 0, 1, &by_name(&cold));
        for pod in &base {
            let stacks = if is_odd(pod.pod.as_str()) { odd } else { &cold };
            all.extend(steady(std::slice::from_ref(pod), 0, 1, &by_name(stacks)));
        }
        let tables = batch(&named("A", "B"), &in_order(all));
        let last =
            tables.comparisons.iter().filter(|row| row.count_kind.name() == "self" && row.window_end_at == at(10));
        last.map(|row| (row.cell.region.as_str().to_owned(), row.aa_check_tests, row.aa_check_flags))
            .collect::<Vec<_>>()
    };
    let row = |region: &str, flags: i64| (region.to_owned(), Some(30), Some(flags));
    assert_eq!(checked(&cold), [row("*", 0), row("r", 0)]);
    assert_eq!(checked(&hot), [row("*", 1), row("r", 1)], "odd pods that differ are a false alarm in waiting");
}

#[test]
fn oracle_a_caller_that_moves_with_its_callee_raises_no_flag() {
    let (head, base) = (pods("B", 6), pods("A", 6));
    let stacks = |x: u64, own: u64| -> Vec<(String, u64)> {
        let others = (0..30).map(|i| (format!("main;f{i}"), 300));
        [("main;handle;x".to_owned(), x), ("main;handle".to_owned(), own)].into_iter().chain(others).collect()
    };
    let tables = |x: u64, own: u64| {
        let mut all = steady(&base, 0, 3, &by_name(&stacks(400, 400)));
        all.extend(steady(&head, 0, 1, &by_name(&stacks(x, 400))));
        all.extend(steady(&head, 1, 3, &by_name(&stacks(x, own))));
        batch(&named("A", "B"), &in_order(all))
    };
    let explained = tables(800, 400);
    let raised: Vec<_> = explained
        .flags
        .iter()
        .map(|flag| (flag.row.function.as_str(), flag.row.count_kind.name(), flag.state))
        .collect();
    assert_eq!(raised, [("x", "self", FlagState::Raised)], "one cause, one flag");
    assert_eq!(explained.flags[0].explains[..2], ["handle (total)", "x (total)"], "in the order of hashes");
    for caller in ["epoch total r/c handle", "epoch total r/c x"] {
        let row = the_cell(&explained, caller);
        assert_eq!((row.verdict, row.cause.as_deref()), (Verdict::Regressed, Some("x")), "{caller}");
    }
    let of_cell =
        explained.comparisons.iter().filter(|row| row.count_kind.name() == "total" && row.cell.region.as_str() == "r");
    assert!(
        of_cell.clone().count() == 3
            && of_cell.into_iter().all(|row| row.flags == 0 && row.verdict.name() == "regressed")
    );
    // From the second hop on handle does three times as much itself: then it has its own cause.
    let both = tables(800, 1200);
    let handle: Vec<_> = both.flags.iter().filter(|flag| flag.row.function == "handle").collect();
    assert!(handle.iter().all(|flag| flag.sequence > hop(0)), "at hop 0 it is explained");
    let own = flags(&both, "handle");
    assert_eq!((own[0].state, own[0].row.cause.as_deref()), (FlagState::Raised, None));
    assert!(handle.iter().any(|flag| flag.row.count_kind.name() == "total" || own[0].explains.contains(&"handle (total)".to_owned())));
}
