use super::*;
use proptest::prelude::*;

type Counts = BTreeMap<(bool, PathId), u64>;

const HOUR: Nanos = Nanos::from_seconds(3600);

fn cohort(label: bool) -> Cohort {
    if label { "x".into() } else { "y".into() }
}

fn snapshot(at: i64, counts: &Counts) -> Snapshot {
    let mut cohorts: BTreeMap<Cohort, Vec<(PathId, u64)>> = BTreeMap::new();
    for (&(label, path), &count) in counts.iter().filter(|(_, count)| **count > 0) {
        // Equal paths of a file are summed.
        let halves = [count / 2, count - count / 2].into_iter().filter(|half| *half > 0);
        cohorts.entry(cohort(label)).or_default().extend(halves.map(|half| (path, half)));
    }
    let samples = cohorts.into_iter().map(|(cohort, counts)| (cohort, encode_paths(counts))).collect();
    let values = values_of(&samples);
    Snapshot { at: Nanos::from_seconds(at), samples, values }
}

/// A kilobyte each, and one more for every third path.
fn values_of(samples: &PathSamples) -> PathSamples {
    let value = |(path, count)| (path, count * if path % 3 == 0 { 2048 } else { 1024 });
    let values = |paths: &Vec<u8>| encode_paths(decode_paths(paths).map(value).collect());
    samples.iter().map(|(cohort, paths)| (cohort.clone(), values(paths))).collect()
}

fn add_to(sums: &mut Counts, taken: &Taken) {
    let Taken::Interval { samples, values, .. } = taken else { return };
    assert_eq!(values, &values_of(samples), "values that are multiples of counts are subtracted as these are");
    for label in [false, true] {
        for (path, count) in samples.get(&cohort(label)).map(|paths| decode_paths(paths)).into_iter().flatten() {
            assert!(count > 0, "a row of zero");
            *sums.entry((label, path)).or_default() += count;
        }
    }
}

/// Feeds (moment, counts) and gives what each snapshot contributed, and the sum of all intervals.
fn feed(start: Option<i64>, snapshots: &[(i64, Counts)]) -> (Vec<Taken>, Counts) {
    let (mut process, mut sums) = (Process::default(), Counts::new());
    let start = start.map(Nanos::from_seconds);
    let taken: Vec<Taken> =
        snapshots.iter().map(|(at, counts)| process.take(snapshot(*at, counts), start, HOUR)).collect();
    taken.iter().for_each(|taken| add_to(&mut sums, taken));
    (taken, sums)
}

fn counts(entries: &[(PathId, u64)]) -> Counts {
    entries.iter().map(|&(path, count)| ((false, path), count)).collect()
}

fn beyond_first_snapshot(last: &Counts, carried_over: &Counts) -> Counts {
    let new =
        |(key, count): (&(bool, PathId), &u64)| (*key, count.saturating_sub(*carried_over.get(key).unwrap_or(&0)));
    last.iter().map(new).filter(|(_, count)| *count > 0).collect()
}

/// What a process counts from one moment to the next, added up: 10, 20, 30 ... seconds after it began.
fn growing() -> impl Strategy<Value = Vec<(i64, Counts)>> {
    let step = prop::collection::btree_map((any::<bool>(), 0u32..12), 0u64..40, 0..8);
    prop::collection::vec(step, 1..12).prop_map(|steps| {
        let mut sums = Counts::new();
        let mut add = |step: Counts| {
            step.into_iter().for_each(|(key, count)| *sums.entry(key).or_default() += count);
            sums.clone()
        };
        (1..).map(|number| number * 10).zip(steps).map(|(at, step)| (at, add(step))).collect()
    })
}

/// Counts of any size at each moment.
fn wobbling() -> impl Strategy<Value = Vec<(i64, Counts)>> {
    let whole = prop::collection::btree_map((any::<bool>(), 0u32..6), 0u64..9, 0..8);
    prop::collection::vec(whole, 1..12).prop_map(|all| (1..).map(|number| number * 10).zip(all).collect())
}

proptest! {
    /// The law: intervals add up to the last snapshot less the first, whichever snapshots in between are missing.
    #[test]
    fn intervals_add_up_to_the_last_less_the_first(all in growing(), missing in prop::collection::vec(any::<bool>(), 12)) {
        let came: Vec<_> = all.into_iter().zip(missing).filter(|(_, missing)| !missing).map(|(snapshot, _)| snapshot).collect();
        if let [first, .., last] = &came[..] {
            let (taken, sums) = feed(None, &came);
            prop_assert_eq!(&taken[0], &Taken::First);
            prop_assert_eq!(sums, beyond_first_snapshot(&last.1, &first.1));
        }
    }

    /// The law: from a known start everything is counted, in whatever order snapshots come.
    #[test]
    fn order_does_not_matter_to_what_is_counted_from_a_known_start(all in growing().prop_flat_map(|all| (Just(all.clone()), Just(all).prop_shuffle()))) {
        let (in_order, shuffled) = all;
        let (_, sums) = feed(Some(0), &shuffled);
        let last = in_order.last().map(|(_, counts)| counts.clone()).unwrap_or_default();
        prop_assert_eq!(&sums, &beyond_first_snapshot(&last, &Counts::new()));
        prop_assert_eq!(sums, feed(Some(0), &in_order).1);
    }

    /// The law: whichever counts fall, between two first snapshots no path has more counted samples than its largest
    /// count less that of the first, and no snapshot contributes more samples than it holds.
    #[test]
    fn nothing_is_counted_twice_or_below_zero(all in wobbling()) {
        let (taken, _) = feed(None, &all);
        let mut sums = Counts::new();
        let (mut carried_over, mut most) = (Counts::new(), Counts::new());
        for (taken, (_, counts)) in taken.iter().zip(&all) {
            if *taken == Taken::First {
                (carried_over, most, sums) = (counts.clone(), counts.clone(), Counts::new());
            }
            let mut here = Counts::new();
            add_to(&mut here, taken);
            prop_assert!(here.iter().all(|(key, count)| Some(count) <= counts.get(key)));
            add_to(&mut sums, taken);
            counts.iter().for_each(|(key, count)| { let most = most.entry(*key).or_default(); *most = (*most).max(*count); });
            prop_assert_eq!(&sums, &beyond_first_snapshot(&most, &carried_over));
        }
    }

    /// The law: a snapshot whose total has fallen is a first snapshot; apart from the very first, no other is.
    #[test]
    fn a_fall_of_the_total_makes_a_first_snapshot(all in wobbling()) {
        let total = |counts: &Counts| counts.values().sum::<u64>();
        let fell = std::iter::once(true).chain(all.windows(2).map(|pair| total(&pair[1].1) < total(&pair[0].1)));
        let (taken, _) = feed(None, &all);
        prop_assert_eq!(taken.iter().map(|taken| *taken == Taken::First).collect::<Vec<_>>(), fell.collect::<Vec<_>>());
    }
}

#[test]
fn a_path_that_fell_pays_its_debt_before_it_counts_again() {
    let all = [
        (10, counts(&[(1, 5), (2, 5)])),
        (20, counts(&[(1, 4), (2, 9)])),
        (30, counts(&[(1, 5), (2, 9)])),
        (40, counts(&[(1, 8), (2, 9)])),
    ];
    let (taken, sums) = feed(None, &all);
    assert_eq!(sums, counts(&[(1, 3), (2, 4)]));
    assert_eq!(
        taken[2],
        Taken::Interval { since: Nanos::from_seconds(20), samples: PathSamples::new(), values: PathSamples::new() }
    );
}

#[test]
fn a_snapshot_that_is_not_after_the_last_is_superseded() {
    let all = [(20, counts(&[(1, 5)])), (10, counts(&[(1, 2)])), (20, counts(&[(1, 6)])), (30, counts(&[(1, 6)]))];
    let (taken, sums) = feed(None, &all);
    assert_eq!(taken[1..3], [Taken::Superseded, Taken::Superseded]);
    assert_eq!(sums, counts(&[(1, 1)]), "neither of them became the last");
}

#[test]
fn a_crash_that_keeps_the_start_time_makes_a_first_snapshot() {
    let all = [(10, counts(&[(1, 50)])), (20, counts(&[(1, 60)])), (30, counts(&[(1, 7)])), (40, counts(&[(1, 12)]))];
    let (taken, sums) = feed(Some(0), &all);
    assert_eq!((&taken[2], sums), (&Taken::First, counts(&[(1, 65)])), "50 from zero, then 10, then 5");
    let Snapshot { samples, values, .. } = snapshot(10, &all[0].1);
    assert_eq!(taken[0], Taken::Interval { since: Nanos(0), samples, values });
}

#[test]
fn the_first_interval_is_counted_only_from_a_start_within_reach() {
    let first = |start| feed(start, &[(4000, counts(&[(1, 9)]))]).0.remove(0);
    assert_eq!([None, Some(399), Some(4001)].map(first), [Taken::First, Taken::First, Taken::First]);
    assert!(matches!(first(Some(400)), Taken::Interval { since, .. } if since == Nanos::from_seconds(400)));
}

#[test]
fn an_interval_longer_than_the_window_is_not_of_now() {
    let all =
        [(10, counts(&[(1, 5)])), (3610, counts(&[(1, 6)])), (7211, counts(&[(1, 9)])), (7212, counts(&[(1, 10)]))];
    let (taken, sums) = feed(None, &all);
    assert_eq!((&taken[2], sums), (&Taken::First, counts(&[(1, 2)])));
}
