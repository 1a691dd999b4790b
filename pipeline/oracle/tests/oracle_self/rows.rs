//! Sections 4 to 7 of `docs/semantics.md`, by hand.

use fleetdiff_oracle::batch;
use fleetdiff_schemas::config::{CellBy, Config};
use fleetdiff_schemas::identity::Identity;
use fleetdiff_schemas::profile::{Profile, Samples};
use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::verdict::{RowReason, Support, Verdict};

use crate::fleets::{
    assert_near, at, cell, in_order, named, partition, pods, profile, steady, the_cell, with_requests,
};

/// Two pods per arm, one profile of 1000 samples each.
fn two_against_two() -> Tables {
    let head = steady(&pods("B", 2), 0, 1, &[("main;x", 300), ("main;y", 700)]);
    let base = steady(&pods("A", 2), 0, 1, &[("main;x", 200), ("main;y", 800)]);
    batch(&named("A", "B"), &in_order(head.into_iter().chain(base)))
}

#[test]
fn oracle_columns_of_two_pods_against_two_are_those_of_the_formulas() {
    let tables = two_against_two();
    let row = the_cell(&tables, "window self r/c x");
    assert_eq!(
        (row.head.count, row.head.total, row.head.pods, row.head.buckets, row.head.requests),
        (600, 2000, 2, 2, None)
    );
    assert_eq!((row.base.count, row.base.total, row.base.pods, row.base.buckets), (400, 2000, 2, 2));
    assert_eq!((row.window_start_at, row.window_end_at, row.strata), (at(-1790), at(10), 1));
    let of = |observed: f64, expected: f64| observed * (observed / expected).ln();
    let g = 2.0 * (of(600.0, 500.0) + of(1400.0, 1500.0) + of(400.0, 500.0) + of(1600.0, 1500.0));
    assert_near(row.g, g);
    // Pods of an arm are identical: no spread, too few functions for a prior, and one hop of each pod, which cannot
    // clump: nothing but the noise of counting, 3/4 of a Poisson's. One degree of freedom in each arm.
    assert_near(row.head_dispersion, 1.0);
    assert_near(row.base_dispersion, 1.0);
    assert_near(row.df, 2.0);
    // The common level m of a ratio c: m + c m = .3 + .2.
    let poisson = 0.75 / 2000.0;
    let statistic = |c: f64| {
        let m = 0.5 / (1.0 + c);
        2.0 / poisson * (0.3 * (0.3 / (c * m)).ln() + 0.2 * (0.2 / m).ln())
    };
    assert_near(row.statistic, statistic(1.0));
    // Student's t with two degrees of freedom: P(|T| > t) = 1 - t / sqrt(t^2 + 2).
    let two_sided = |square: f64| 1.0 - (square / (square + 2.0)).sqrt();
    let p = two_sided(statistic(1.0));
    assert_near(row.ln_p, p.ln());
    assert_near(row.adjusted_ln_p, p.ln());
    let t = 4.302_652_729_911_275;
    let ratio = row.adjusted_ratio.unwrap();
    assert_near(Some(ratio.value), 1.5);
    assert_near(Some(statistic(ratio.low)), t * t);
    assert_near(Some(statistic(ratio.high)), t * t);
    assert!(ratio.low < 1.5 && ratio.high > 1.5);
    let half = t * (poisson * (0.3_f64 + 0.2)).sqrt();
    let share_delta = row.share_delta.unwrap();
    assert_near(Some(share_delta.value), 0.1);
    assert_near(Some(share_delta.high), 0.1 + half);
    // alpha 1e-4 two-sided and power .8; 1000 samples a pod, a share of 1/4, half a pod and half a pod.
    let z: f64 = 3.890_591_886_413_094 + 0.841_621_233_572_914_2;
    assert_near(row.minimum_detectable_ratio, (z * (3.0_f64 / 1000.0).sqrt()).exp());
    let rate = 1000.0 / 1800.0;
    assert_near(row.seconds_to_significance, 0.75 / (0.25 * rate * 1.05_f64.ln().powi(2) / (z * z)));
    assert_eq!((row.support, row.per_request_ratio, row.per_request_ln_p), (Support::Tentative, None, None));
    assert_eq!(the_cell(&tables, "epoch self r/c x").window_start_at, at(0));
}

#[test]
fn oracle_a_function_in_every_sample_is_the_whole_profile() {
    let tables = two_against_two();
    let main = the_cell(&tables, "window total r/c main");
    assert_eq!((main.head.count, main.base.count), (2000, 2000));
    assert_eq!(
        (main.verdict, main.reason, main.support),
        (Verdict::Untestable, Some(RowReason::WholeProfile), Support::Tentative)
    );
    assert_eq!((main.ln_p, main.ratio, main.g), (None, None, Some(0.0)));
    assert!(cell(&tables, "window self r/c main").is_none(), "it is never the leaf");
}

#[test]
fn oracle_one_pod_is_no_replicate() {
    let head = steady(&pods("B", 1), 0, 1, &[("main;x", 300), ("main;y", 700)]);
    let base = steady(&pods("A", 9), 0, 1, &[("main;x", 200), ("main;y", 800)]);
    let tables = batch(&named("A", "B"), &in_order(head.into_iter().chain(base)));
    let row = the_cell(&tables, "window self r/c x");
    assert_eq!(
        (row.verdict, row.reason, row.support),
        (Verdict::Untestable, Some(RowReason::FewPods), Support::Untestable)
    );
    assert_eq!((row.head.count, row.base.count, row.strata), (300, 1800, 1));
    assert!(row.g.is_some() && row.ln_p_iid.is_some());
    assert_eq!((row.head_dispersion, row.ln_p, row.q_value, row.share_delta, row.ln_e), (None, None, None, None, None));
    assert_eq!(tables.comparisons.iter().map(|row| row.functions_tested).sum::<i64>(), 0);
}

#[test]
fn oracle_functions_of_one_arm_are_significant_without_a_ratio() {
    // Costs that are more than a factor of 2 apart: else the one would be the other, renamed.
    let head = steady(&pods("B", 6), 0, 1, &[("new", 200), ("y", 800)]);
    let base = steady(&pods("A", 6), 0, 1, &[("old", 80), ("older", 60), ("oldest", 60), ("y", 800)]);
    let tables = batch(&named("A", "B"), &in_order(head.into_iter().chain(base)));
    let (new, old) = (the_cell(&tables, "window self r/c new"), the_cell(&tables, "window self r/c old"));
    assert_eq!((new.verdict, new.reason, new.base.count), (Verdict::Regressed, Some(RowReason::OnlyInHead), 0));
    assert_eq!((old.verdict, old.reason, old.head.count), (Verdict::Improved, Some(RowReason::OnlyInBase), 0));
    assert_eq!((new.ratio, new.adjusted_ratio, old.adjusted_ratio), (None, None, None));
    assert!(new.ln_p.is_some() && new.q_value.is_some_and(|q| q <= 0.05));
    let same = the_cell(&tables, "window self r/c y");
    assert_eq!((same.verdict, same.support), (Verdict::Equivalent, Support::Firm));
    assert_near(same.ratio.map(|ratio| ratio.value), 1.0);
}

#[test]
fn oracle_functions_under_the_floor_share_one_row() {
    let stacks = [("a", 2), ("b", 3), ("_unsymbolised", 4), ("c", 15), ("y", 76)];
    let head = steady(&pods("B", 2), 0, 1, &stacks);
    let base = steady(&pods("A", 1), 0, 1, &stacks);
    let tables = batch(&named("A", "B"), &in_order(head.into_iter().chain(base)));
    let rare = the_cell(&tables, "window self r/c _rare");
    // Three pods: 6, 9 and 12 stay under 30, 45 does not.
    assert_eq!((rare.functions, rare.head.count, rare.base.count), (Some(3), 18, 9));
    assert_eq!((rare.verdict, rare.reason), (Verdict::TooRare, Some(RowReason::CountNeeded)));
    assert_eq!((the_cell(&tables, "window self r/c c").head.count, rare.head.total), (30, 200));
}

#[test]
fn oracle_frames_without_symbols_are_shown_and_not_tested() {
    let head = steady(&pods("B", 6), 0, 1, &[("_unsymbolised", 500), ("y", 400), ("", 100)]);
    let base = steady(&pods("A", 6), 0, 1, &[("_unsymbolised", 100), ("y", 800), ("", 100)]);
    let tables = batch(&named("A", "B"), &in_order(head.into_iter().chain(base)));
    let row = the_cell(&tables, "window self r/c _unsymbolised");
    assert_eq!((row.verdict, row.reason, row.ln_p), (Verdict::NotComparable, Some(RowReason::Unsymbolised), None));
    assert_eq!((row.head.count, row.head.total), (3000, 6000));
    assert!(the_cell(&tables, "window self r/c y").ln_p.is_some());
    assert!(tables.flags.iter().all(|flag| flag.row.function == "y") && !tables.flags.is_empty());
    // Samples without a frame are in totals and in no function.
    assert_eq!(
        tables.cells.iter().filter(|row| row.scope.name() == "window" && row.cell.region.as_str() == "r").count(),
        4
    );
}

fn on(pods: Vec<Identity>, change: fn(&mut Identity)) -> Vec<Identity> {
    pods.into_iter()
        .map(|mut pod| {
            change(&mut pod);
            pod
        })
        .collect()
}

#[test]
fn oracle_arms_that_never_meet_are_not_comparable() {
    let mixed = [("x", 300), ("y", 700)];
    let head = steady(&on(pods("B", 5), |pod| pod.hardware = "new".into()), 0, 1, &mixed);
    let base = steady(&on(pods("A", 5), |pod| pod.hardware = "old".into()), 0, 1, &mixed);
    let alone = steady(
        &on(pods("B", 3), |pod| (pod.region, pod.pod) = ("far".into(), format!("far-{}", pod.pod).as_str().into())),
        0,
        1,
        &mixed,
    );
    let tables = batch(&named("A", "B"), &in_order(head.into_iter().chain(base).chain(alone)));
    let row = the_cell(&tables, "window self r/c x");
    assert_eq!((row.verdict, row.reason, row.strata), (Verdict::NotComparable, Some(RowReason::NoCommonStratum), 0));
    assert_eq!((row.head.count, row.base.count, row.head.pods), (1500, 1500, 5));
    assert_eq!(row.detail.as_deref(), Some("head: new from 2023-11-14T22:00:00Z; base: old from 2023-11-14T22:00:00Z"));
    let far = the_cell(&tables, "epoch self far/c x");
    assert_eq!((far.verdict, far.reason, far.base.total), (Verdict::NotComparable, Some(RowReason::NoBase), 0));
    assert_eq!((far.detail.as_deref(), far.g), (Some("head: h from 2023-11-14T22:00:00Z; base: none"), None));
    let verdicts: Vec<_> = tables
        .comparisons
        .iter()
        .map(|row| (row.verdict.name(), row.strata_dropped, row.cell.region.as_str()))
        .collect();
    assert!(
        verdicts.contains(&("not_comparable", 2, "r")) && verdicts.contains(&("not_comparable", 3, "*")),
        "{verdicts:?}"
    );
}

#[test]
fn oracle_strata_are_compared_each_by_itself() {
    // x costs twice as much on new hardware, of which the head has more; within each kind nothing differs.
    let arm = |build: &str, new: i64, old: i64| {
        let pods = pods(build, 12);
        let (on_new, on_old) = pods.split_at(6);
        let on_new = on(on_new.to_vec(), |pod| pod.hardware = "new".into());
        let mut all = steady(&on_new, 0, new, &[("x", 400), ("y", 600)]);
        all.extend(steady(on_old, 0, old, &[("x", 200), ("y", 800)]));
        all
    };
    let tables = batch(&named("A", "B"), &in_order(arm("B", 3, 1).into_iter().chain(arm("A", 1, 3))));
    let row = the_cell(&tables, "epoch self r/c x");
    assert_eq!((row.strata, row.head.count, row.base.count), (2, 8400, 6000));
    assert_near(row.ratio.map(|ratio| ratio.value), 1.0);
    assert_eq!(row.verdict, Verdict::Equivalent);
    assert!(row.g.is_some_and(|g| g > 100.0), "merged counts see a change");
}

#[test]
fn oracle_requests_of_a_window_count_once_with_the_largest_value() {
    let (head, base) = (pods("B", 2), pods("A", 2));
    let reported = |pod: &Identity, x: u64, requests| with_requests(profile(pod, 5, &[("x", x), ("y", 90)]), requests);
    let base_profiles = base.iter().map(|pod| profile(pod, 5, &[("x", 10), ("y", 90)]));
    // The same window reported three times: 100 requests, then 250, then 120, which is less.
    let records = head.iter().flat_map(|pod| [reported(pod, 11, 100), reported(pod, 12, 250), reported(pod, 13, 120)]);
    let tables = batch(&named("A", "B"), &in_order(records.chain(base_profiles)));
    let row = the_cell(&tables, "window self r/c y");
    assert_eq!((row.head.requests, row.base.requests), (Some(500), None));
}

#[test]
fn oracle_a_late_sample_counts_in_the_block_and_epoch_of_its_own_hop() {
    let (head, base) = (pods("B", 3), pods("A", 3));
    let stacks = [("x", 300), ("y", 700)];
    // Base from hop 0, head from hop 10, where the comparison opens; then a base profile of hop 9 comes late.
    let mut profiles = steady(&base, 0, 20, &stacks);
    profiles.extend(steady(&head, 10, 20, &stacks));
    profiles.sort_by_key(|profile| profile.window);
    profiles.push(profile(&base[0], 97, &[("x", 1)]));
    let tables = batch(&named("A", "B"), &[partition(0, profiles)]);
    let (window, epoch) = (the_cell(&tables, "window self r/c x"), the_cell(&tables, "epoch self r/c x"));
    assert_eq!((epoch.head.total, epoch.base.total, epoch.window_start_at), (30_000, 30_000, at(100)));
    // In the window too, the block before hop 10 has no head and is dropped.
    assert_eq!((window.head.total, window.base.total, window.strata), (30_000, 30_000, 1));
    let late: i64 = tables.ledger.iter().map(|row| row.samples_late_counted).sum();
    assert_eq!(late, 1);
}

#[test]
fn oracle_samples_leave_the_window_by_their_own_hop() {
    let config = Config { window: fleetdiff_schemas::time::Nanos::from_seconds(50), ..named("A", "B") };
    let stacks = [("x", 300), ("y", 700)];
    let profiles = steady(&pods("B", 3), 0, 12, &stacks).into_iter().chain(steady(&pods("A", 3), 0, 12, &stacks));
    let tables = batch(&config, &in_order(profiles));
    assert_eq!(the_cell(&tables, "window self r/c x").head.total, 3 * 5 * 1000);
    assert_eq!(the_cell(&tables, "epoch self r/c x").head.total, 3 * 12 * 1000);
}

/// Gives the stacks of a profile to two cohorts in turn.
fn by_request(profile: Profile) -> Profile {
    let Samples::Stacks(stacks) = &profile.samples else { panic!("stacks") };
    let stacks = stacks.iter().zip(["one", "two"].into_iter().cycle()).map(|(stack, cohort)| {
        let mut stack = stack.clone();
        stack.cohort = Some(cohort.into());
        stack
    });
    Profile { samples: Samples::Stacks(stacks.collect()), ..profile.clone() }
}

#[test]
fn oracle_cohorts_of_samples_share_pods_in_roll_ups() {
    let stacks = [("x", 100), ("x", 200), ("y", 400), ("y", 300)];
    let profiles = || {
        let all = steady(&pods("B", 5), 0, 1, &stacks).into_iter().chain(steady(&pods("A", 7), 0, 1, &stacks));
        in_order(all.map(by_request))
    };
    let tables = batch(&named("A", "B"), &profiles());
    let of = |which: &str| {
        let row = the_cell(&tables, which);
        (row.head.count, row.head.total, row.head.pods, row.base.pods, row.strata)
    };
    assert_eq!(of("window self r/one x"), (500, 2500, 5, 7, 1));
    assert_eq!(of("window self r/two x"), (1000, 2500, 5, 7, 1));
    assert_eq!(of("window self */* x"), (1500, 5000, 5, 7, 2));
    assert_eq!(of("window self r/* x"), (1500, 5000, 5, 7, 2));
    assert_eq!(of("window self */two x"), (1000, 2500, 5, 7, 1));
    let merged = |cell_by| batch(&Config { cell_by, ..named("A", "B") }, &profiles());
    let names = |tables: &Tables| {
        let cells = tables
            .cells
            .iter()
            .filter(|row| row.scope.name() == "window" && row.count_kind.name() == "self" && row.function == "x");
        cells.map(|row| format!("{}/{}", row.cell.region, row.cell.cohort)).collect::<Vec<_>>()
    };
    assert_eq!(names(&tables), ["*/*", "*/one", "*/two", "r/*", "r/one", "r/two"]);
    assert_eq!(names(&merged(CellBy::Cohort)), ["*/*", "*/one", "*/two"]);
    assert_eq!(names(&merged(CellBy::Region)), ["*/*", "r/*"]);
    assert_eq!(names(&merged(CellBy::All)), ["*/*"]);
}

#[test]
fn oracle_shares_that_only_make_room_are_compositional() {
    let names: Vec<String> = (0..30).map(|i| format!("f{i}")).collect();
    let stacks = |hot: u64| -> Vec<(&str, u64)> {
        names.iter().map(|name| (name.as_str(), if name == "f7" { hot } else { 1000 })).collect()
    };
    // f7 costs ten times as much: the shares of the others are multiplied by 30/39, nothing else changes.
    let head = steady(&pods("B", 6), 0, 2, &stacks(10_000));
    let base = steady(&pods("A", 6), 0, 2, &stacks(1000));
    let tables = batch(&named("A", "B"), &in_order(head.into_iter().chain(base)));
    let hot = the_cell(&tables, "window self r/c f7");
    assert_eq!(hot.verdict, Verdict::Regressed);
    assert_near(hot.ratio.map(|ratio| ratio.value), 10.0 * 30.0 / 39.0);
    assert_near(hot.adjusted_ratio.map(|ratio| ratio.value), 10.0);
    for scope in ["window", "epoch"] {
        let others = tables
            .cells
            .iter()
            .filter(|row| row.scope.name() == scope && row.cell.region.as_str() == "r" && row.function != "f7");
        let others: Vec<_> = others.map(|row| (row.verdict, row.cause.as_deref())).collect();
        assert_eq!(others, vec![(Verdict::Compositional, Some("f7")); 2 * 29], "{scope}");
    }
    let roll_up = the_cell(&tables, "window self */* f3");
    assert_eq!((roll_up.verdict, roll_up.cause.as_deref()), (Verdict::Equivalent, None));
    let cell_row = tables.comparisons.iter().find(|row| row.cell.region.as_str() == "r").unwrap();
    assert_near(cell_row.normalization_factor, 30.0 / 39.0);
    assert_eq!(
        (cell_row.functions_tested, cell_row.head_pod_variance, cell_row.base_pod_variance, cell_row.flags),
        (30, Some(0.0), Some(0.0), 1)
    );
}

#[test]
fn oracle_undecided_rows_say_what_is_missing() {
    let head = steady(&pods("B", 5), 0, 1, &[("x", 6), ("y", 94)]);
    let base = steady(&pods("A", 5), 0, 1, &[("x", 6), ("y", 94)]);
    let tables = batch(&named("A", "B"), &in_order(head.into_iter().chain(base)));
    // 100 samples per pod: 1/18 per second in the window, 10 in the epoch of one hop.
    let of = |which| (the_cell(&tables, which).verdict, the_cell(&tables, which).reason);
    assert_eq!(of("window self r/c x"), (Verdict::Inconclusive, Some(RowReason::LowLoad)));
    assert_eq!(of("epoch self r/c x"), (Verdict::Inconclusive, Some(RowReason::NeedsTime)));
}
