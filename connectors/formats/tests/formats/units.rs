//! Units are never guessed: what values of time are divided by was declared, is the file's own and fits, or can be nothing else.

use fleetdiff_formats::otlp::proto::Any;
use fleetdiff_formats::pprof::proto::{Profile as Message, Sample, ValueType};
use fleetdiff_formats::reading::{Divisor, Reading, Run, Unread};
use fleetdiff_formats::{Decode, Format, FoundPeriod, Labels, Options, Period, Unit};
use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rejected::{Reason, Rejection};
use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message as _;

use super::fixtures::{labels, part, stacks_of};
use super::otlp_rules::{Draft, POD};

const MS: i64 = 1_000_000;
const CPU: (&str, &str) = ("cpu", "nanoseconds");

/// A file of one column, each value a sample of its own, with this period in the column's unit.
fn file(column: (&str, &str), values: &[i64], period: i64) -> Vec<u8> {
    let strings = ["", column.0, column.1].map(str::to_owned).to_vec();
    let kind = ValueType { r#type: 1, unit: 2 };
    let sample = values.iter().map(|value| Sample { value: vec![*value], ..Sample::default() }).collect();
    Message {
        sample_type: vec![kind],
        period_type: Some(kind),
        period,
        sample,
        string_table: strings,
        ..Message::default()
    }
    .encode_to_vec()
}

fn declaring(kind: ProfileType, period: Option<&str>) -> Labels {
    Labels { period: period.map(|period| period.parse().unwrap()), ..labels(kind) }
}

/// The counts that are read, those of 0 left out.
fn counts(format: Format, bytes: &[u8], labels: Labels) -> Result<Vec<u64>, Rejection> {
    let mut decoder: Box<dyn Decode> = format.decoder(&Options::default());
    let profile = part(&mut *decoder, bytes, &Ok(labels))?;
    Ok(stacks_of(&profile).iter().map(|stack| stack.count).collect())
}

fn total(column: (&str, &str), values: &[i64], period: i64, kind: ProfileType) -> Result<u64, Reason> {
    let counts = counts(Format::Pprof, &file(column, values, period), declaring(kind, None));
    counts.map(|counts| counts.iter().sum()).map_err(|fault| fault.reason)
}

fn read(column: (&str, &str), values: &[i64], period: i64) -> Run {
    let reading = Reading::default();
    reading
        .runs(Format::Pprof, &file(column, values, period), &labels(ProfileType::Cpu), &Options::default())
        .remove(0)
        .unwrap()
}

/// Rows of so many samples: one, then `more`.
fn rows(ones: usize, more: &[i64]) -> Vec<i64> {
    std::iter::repeat_n(1, ones).chain(more.iter().copied()).collect()
}

fn scaled(rows: &[i64], tick: i64) -> Vec<i64> {
    rows.iter().map(|count| count * tick).collect()
}

/// What agents write whose CPU profiles name a period of 1 s and hold multiples of 10 ms.
#[test]
fn regression_a_period_of_a_second_over_ticks_of_ten_milliseconds() {
    let counts = rows(18, &[2, 3, 5, 9]);
    assert_eq!(total(CPU, &scaled(&counts, 10 * MS), 1_000 * MS, ProfileType::Cpu), Ok(37));
    let few = &scaled(&counts, 10 * MS)[3..];
    assert_eq!(few.len(), 19);
    assert_eq!(total(CPU, few, 1_000 * MS, ProfileType::Cpu), Err(Reason::UnknownPeriod), "too few to be sure");
    let run = read(CPU, &scaled(&counts, 10 * MS), 1_000 * MS);
    let found = FoundPeriod { period: "10ms".parse().unwrap(), values: 22 };
    assert_eq!((run.period, run.profile.total()), (Some(Divisor::Time(found)), 37));
}

/// What an agent of Node wrote: wall time in microseconds, and a period of 1.
#[test]
fn regression_a_period_of_one_microsecond() {
    let counts = rows(15, &[2, 2, 46, 3, 7, 300]);
    let wall = ("wall", "microseconds");
    assert_eq!(total(wall, &scaled(&counts, 10_000), 1, ProfileType::Wall), Ok(375));
    assert_eq!(
        total(wall, &scaled(&counts, 1_000), 1, ProfileType::Wall),
        Err(Reason::UnknownPeriod),
        "whole milliseconds"
    );
}

/// What an agent of .NET wrote: processor time read in whole milliseconds, and a period of 1 ns.
#[test]
fn regression_measured_times_are_no_counts() {
    let measured: Vec<i64> = [vec![9 * MS; 777], vec![10 * MS; 91], vec![18 * MS; 65], vec![20 * MS]].concat();
    let bytes = file(CPU, &measured, 1);
    let fault = counts(Format::Pprof, &bytes, declaring(ProfileType::Cpu, None)).unwrap_err();
    assert_eq!(fault.reason, Reason::UnknownPeriod);
    for part in
        ["its period of 1 ns is no profiler's", "934 values from 9 ms to 20 ms", "--period", "\"period\": \"10ms\""]
    {
        assert!(fault.detail.contains(part), "{fault:?}");
    }
    let declared = counts(Format::Pprof, &bytes, declaring(ProfileType::Cpu, Some("10ms"))).unwrap();
    assert_eq!(declared.iter().sum::<u64>(), 909, "9,093 ms");
    let long = counts(Format::Pprof, &bytes, declaring(ProfileType::Cpu, Some("1s"))).unwrap_err();
    assert!(long.reason == Reason::UnitMismatch && long.detail.contains("934 of 934 values are shorter"), "{long:?}");
}

#[test]
fn a_period_that_most_values_are_no_multiples_of_is_none() {
    let fits = |values: &[i64], period| total(CPU, values, period, ProfileType::Cpu);
    assert_eq!(fits(&[52_631_578, 3 * 52_631_578], 52_631_578), Ok(4));
    assert_eq!(fits(&[10 * MS, 31 * MS], 10 * MS), Err(Reason::UnknownPeriod));
    assert_eq!(fits(&[10 * MS, 30 * MS + 90_000], 10 * MS), Ok(4));
    assert_eq!(fits(&[10 * MS, 4 * MS], 10 * MS), Err(Reason::UnknownPeriod), "one that rounds to 0");
    assert_eq!(fits(&[vec![10 * MS; 9], vec![4 * MS]].concat(), 10 * MS), Ok(9), "one in ten");
    assert_eq!(fits(&[10 * MS, -1], 10 * MS), Err(Reason::NegativeValue));
    assert_eq!(fits(&[0, 0], 0), Err(Reason::Empty));
    // A rate that is no whole number of milliseconds: 19 a second.
    assert_eq!(total(("cpu", "milliseconds"), &[53, 105, 158], 53, ProfileType::Cpu), Ok(6));
}

#[test]
fn what_can_be_something_else_than_a_tick_is_none() {
    let wall = ("wall", "nanoseconds");
    let all = |tick| scaled(&rows(30, &[2, 3]), tick);
    for (values, what) in [
        (all(1_000 * MS), "threads that were seen for the whole second"),
        (all(MS), "a clock that is read in milliseconds"),
        (all(1_000), "a clock that is read in microseconds"),
        (all(9_999), "no profiler looks so often"),
        (scaled(&rows(0, &[2; 40]), 5 * MS).into_iter().chain([15 * MS]).collect(), "nothing was seen once"),
    ] {
        assert_eq!(total(wall, &values, 0, ProfileType::Wall), Err(Reason::UnknownPeriod), "{what}");
    }
    assert_eq!(total(wall, &all(20 * MS), 0, ProfileType::Wall), Ok(35));
    assert_eq!(total(("off_cpu", "nanoseconds"), &all(20 * MS), 0, ProfileType::OffCpu), Err(Reason::UnknownPeriod));
}

#[test]
fn counts_of_allocations_are_no_samples_of_a_clock() {
    let names =
        ["alloc_in_new_tlab_objects", "alloc_outside_tlab_objects", "alloc_samples", "live", "goroutine", "exception"];
    for name in names {
        for kind in [ProfileType::Cpu, ProfileType::Wall, ProfileType::OffCpu] {
            assert_eq!(total((name, "count"), &[7], 524_288, kind), Err(Reason::UnitMismatch), "{name}");
        }
    }
    for name in ["lock_time", "delay", "cpu"] {
        assert_eq!(
            total((name, "nanoseconds"), &[10 * MS], 10 * MS, ProfileType::Wall),
            Err(Reason::UnitMismatch),
            "{name}"
        );
    }
    assert_eq!(total(("wall", "count"), &[7], 0, ProfileType::Wall), Ok(7));
    assert_eq!(total(("off-cpu", "count"), &[7], 0, ProfileType::OffCpu), Ok(7));
}

/// `offcputime -f` of bcc: microseconds that were measured, each stack's added up.
#[test]
fn off_cpu_time_in_microseconds_becomes_samples_of_a_declared_period() {
    let text = "main;read 100000\nmain;lock 37\nmain;lock;futex 4963\nmain;poll 2500\nmain;wait 2400\n";
    let of = |unit: Option<&str>, period| {
        let unit = unit.map(|unit| unit.parse::<Unit>().unwrap());
        counts(Format::Folded, text.as_bytes(), Labels { unit, ..declaring(ProfileType::OffCpu, period) })
    };
    for unit in ["microseconds", "us"] {
        assert_eq!(of(Some(unit), Some("10ms")), Ok(vec![10, 1]), "109.9 ms, to the nearest: 11");
        assert_eq!(of(Some(unit), Some("1ms")), Ok(vec![100, 5, 3, 2]), "none of the 109.9 ms is lost");
        let fault = of(Some(unit), None).unwrap_err();
        assert!(fault.reason == Reason::UnknownPeriod && fault.detail.contains("--period"), "{fault:?}");
    }
    assert_eq!(of(None, None).unwrap().iter().sum::<u64>(), 109_900);
    let heap = Labels { unit: Some(Unit::Microseconds), ..declaring(ProfileType::Heap, Some("10ms")) };
    assert_eq!(counts(Format::Folded, text.as_bytes(), heap).unwrap_err().reason, Reason::UnitMismatch);
    let line = counts(
        Format::Folded,
        b"a 1\nb x\n",
        Labels { unit: Some(Unit::Seconds), ..declaring(ProfileType::Cpu, None) },
    );
    assert!(line.unwrap_err().detail.starts_with("line 2"));
}

#[test]
fn folded_time_of_a_ticking_clock_shows_its_tick() {
    let text: String = rows(20, &[4]).iter().map(|count| format!("main;work {}\n", count * 10 * MS)).collect();
    let labels = Labels { unit: Some(Unit::Nanoseconds), ..labels(ProfileType::Cpu) };
    let runs = Reading::default().runs(Format::Folded, text.as_bytes(), &labels, &Options::default());
    let run = runs.into_iter().next().unwrap().unwrap();
    assert_eq!((run.profile.total(), run.weights.unwrap().profile.total()), (24, 240_000_000));
    assert!(matches!(run.period, Some(Divisor::Time(found)) if found.period.to_string() == "10 ms"));
}

#[test]
fn otlp_knows_the_same_rules() {
    let of = |values: &[i64], own: i64, attribute: Option<&str>| {
        let mut draft = Draft::new();
        draft.resource(&POD);
        let index = attribute.map(|period| draft.attribute("fleetdiff.period", Any::Text(period.to_owned())));
        let profile = draft.profile(("cpu", "nanoseconds", &[], &[]), ("cpu", own), 10);
        let sample = profile.samples[0].clone();
        profile.samples = values
            .iter()
            .map(|value| fleetdiff_formats::otlp::proto::Sample { values: vec![*value], ..sample.clone() })
            .collect();
        profile.attribute_indices.extend(index);
        draft.read().remove(0).map(|profile| profile.total()).map_err(|fault| fault.reason)
    };
    let ticks = scaled(&rows(20, &[2, 3]), 10 * MS);
    assert_eq!(of(&ticks, 1_000 * MS, None), Ok(25));
    assert_eq!(of(&ticks[5..], 1_000 * MS, None), Err(Reason::UnknownPeriod));
    assert_eq!(of(&ticks[5..], 1_000 * MS, Some("10ms")), Ok(20));
    assert_eq!(of(&[9 * MS, 10 * MS], 1, None), Err(Reason::UnknownPeriod));
    assert_eq!(of(&[9 * MS, 10 * MS], 1, Some("ten")), Err(Reason::UnitMismatch));
}

fn clocks() -> impl Strategy<Value = (ProfileType, (&'static str, &'static str))> {
    prop_oneof![
        Just((ProfileType::Cpu, CPU)),
        Just((ProfileType::Wall, ("wall", "nanoseconds"))),
        Just((ProfileType::OffCpu, ("off_cpu", "nanoseconds"))),
    ]
}

proptest! {
    /// However long a tick is: once it is declared, a profile of times has the counts of the profile of counts.
    #[test]
    fn any_declared_tick_gives_the_same_counts(
        rows in vec(0i64..3_000, 1..60),
        tick in 10_000i64..2_000_000_000,
        (kind, column) in clocks(),
        own in prop_oneof![Just(0), Just(1), any::<i64>()],
    ) {
        let labels = declaring(kind, Some(&format!("{tick}ns")));
        let found = counts(Format::Pprof, &file(column, &scaled(&rows, tick), own), labels);
        let expected: Vec<u64> = rows.iter().filter(|count| **count > 0).map(|count| count.unsigned_abs()).collect();
        prop_assert_eq!(found.ok(), Some(expected).filter(|counts| !counts.is_empty()));
    }

    /// A file's own period gives them too.
    #[test]
    fn any_own_period_that_fits_gives_the_same_counts(rows in vec(1i64..3_000, 1..60), tick in 10_000i64..2_000_000_000) {
        let found = counts(Format::Pprof, &file(CPU, &scaled(&rows, tick), tick), labels(ProfileType::Cpu));
        prop_assert_eq!(found, Ok(rows.iter().map(|count| count.unsigned_abs()).collect()));
    }

    /// What is found divides every value and is one of them, enough values show it, and the counts are the values over it.
    #[test]
    fn a_found_tick_divides_all_values(
        rows in vec(prop_oneof![4 => 1i64..4, 1 => 1i64..500], 1..60),
        tick in prop_oneof![9_000i64..200_000_000, Just(MS), Just(10 * MS), Just(1_000 * MS)],
        odd in prop_oneof![3 => Just(None), 1 => (any::<prop::sample::Index>(), 1i64..1_000).prop_map(Some)],
    ) {
        let mut values = scaled(&rows, tick);
        if let Some((at, by)) = odd {
            *at.get_mut(&mut values) += by;
        }
        match Reading::default().runs(Format::Pprof, &file(CPU, &values, 1), &labels(ProfileType::Cpu), &Options::default()).remove(0) {
            Ok(run) => {
                let Some(Divisor::Time(FoundPeriod { period, values: shown })) = run.period else { panic!("{:?}", run.period) };
                let found = i64::try_from(period.nanoseconds()).unwrap();
                prop_assert!(values.len() >= 20 && usize::try_from(shown).unwrap() == values.len());
                prop_assert!(values.contains(&found) && values.iter().all(|value| value % found == 0));
                prop_assert!((10_000..=100_000_000).contains(&found) && found != MS);
                let counts: Vec<u64> = stacks_of(&run.profile).iter().map(|stack| stack.count).collect();
                prop_assert_eq!(counts, values.iter().map(|value| (value / found).unsigned_abs()).collect::<Vec<u64>>());
            }
            Err(Unread::Rejected(fault)) => {
                prop_assert_eq!(fault.reason, Reason::UnknownPeriod);
                let sure = values.len() >= 20 && odd.is_none() && values.contains(&tick) && tick != MS;
                prop_assert!(!(sure && (10_000..=100_000_000).contains(&tick)), "{}", fault.detail);
            }
            Err(other) => prop_assert!(false, "{}", other),
        }
    }

    /// Times that were measured in nanoseconds show no tick.
    #[test]
    fn measured_times_show_none(values in vec(1i64..1_000_000_000, 2..200)) {
        prop_assert_eq!(total(CPU, &values, 1, ProfileType::Cpu), Err(Reason::UnknownPeriod));
    }
}

#[test]
fn units_have_the_names_that_pprof_knows() {
    for (name, unit) in [
        ("ns", Unit::Nanoseconds),
        ("us", Unit::Microseconds),
        ("µs", Unit::Microseconds),
        ("ms", Unit::Milliseconds),
        ("s", Unit::Seconds),
        ("seconds", Unit::Seconds),
    ] {
        assert_eq!(name.parse::<Unit>(), Ok(unit));
    }
    assert!("fortnights".parse::<Unit>().is_err());
    assert_eq!(Period::of_nanoseconds(9_999), None);
}
