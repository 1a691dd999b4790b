//! Folded stacks, speedscope, V8's profiles and formats that hold stacks alone, read for a comparison.

use fleetdiff_formats::Format;
use fleetdiff_formats::reading::{Divisor, Filters, Reading, Run, Unread};
use fleetdiff_schemas::delta;
use fleetdiff_schemas::profile::{Folded, Profile, ProfileType, Samples};
use fleetdiff_schemas::rejected::Reason;
use fleetdiff_schemas::time::Nanos;

use super::examples::{CPUPROFILE, SPEEDSCOPE, good};
use super::reading::{leaves, listed, read_as};

fn read(format: Format, text: &str, reading: &Reading) -> Result<Run, Unread> {
    read_as(reading, format, text.as_bytes(), ProfileType::Cpu)
}

#[test]
fn counts_that_are_multiples_of_a_period_are_divided_by_it_and_weigh_what_is_written() {
    let few = "main;work 30303030\nmain;wait 10101010\nmain 20202020\n";
    let text = few.to_owned() + &"main;wait 10101010\n".repeat(17);
    let run = read(Format::Folded, &text, &Reading::default()).unwrap();
    assert_eq!(run.period, Some(Divisor::Number(10_101_010)));
    assert_eq!(listed(&leaves(&run.profile)), [("main", 2), ("wait", 18), ("work", 3)]);
    let weights = run.weights.unwrap();
    assert_eq!((&*weights.unit, weights.profile.total()), ("period", 23 * 10_101_010));
    let unsure = read(Format::Folded, few, &Reading::default()).unwrap_err();
    assert!(matches!(unsure, Unread::Rejected(fault) if fault.reason == Reason::UnitMismatch));
    let counts = read(Format::Folded, "main;work 3000\nmain;wait 1000\nmain 2001\n", &Reading::default()).unwrap();
    assert_eq!((counts.period, counts.weights, counts.profile.total()), (None, None, 6001));
}

#[test]
fn formats_of_stacks_know_functions_and_nothing_else() {
    for format in [Format::Folded, Format::Pyroscope, Format::Otlp] {
        let (bytes, _) = good(format).remove(0);
        let read = |reading: &Reading| read_as(reading, format, &bytes, ProfileType::Cpu);
        let plain = read(&Reading::default()).unwrap();
        let by = |keys: &str| Reading { keys: Some(keys.parse().unwrap()), ..Reading::default() };
        assert_eq!(leaves(&read(&by("symbol")).unwrap().profile).values().sum::<u64>(), plain.profile.total());
        let lacks = |reading: &Reading| matches!(read(reading), Err(Unread::Missing(_)));
        assert!(["comm", "pid", "cpu", "dso", "srcline"].iter().all(|key| lacks(&by(key))), "{}", format.name());
        assert!(matches!(
            read(&Reading { times: Some(",".parse().unwrap()), ..Reading::default() }),
            Err(Unread::Timeless)
        ));
        let leaf = leaves(&plain.profile).into_keys().next_back().unwrap();
        let filters = Filters { symbols: Some([leaf.as_str().into()].into()), ..Filters::default() };
        let filtered = leaves(&read(&Reading { filters, ..Reading::default() }).unwrap().profile);
        assert_eq!(filtered.keys().collect::<Vec<_>>(), ["[filtered]", leaf.as_str()], "{}", format.name());
        let chains = read(&Reading { stream: true, ..Reading::default() }).unwrap();
        assert!(chains.profile.names.iter().any(|name| name.contains(';')), "{:?}", chains.profile.names);
    }
}

/// Only a file that names its window can be left out whole.
#[test]
fn a_window_of_the_file_is_told_from_a_stand_in() {
    let crop = Reading { crop: Some(Nanos(1)), ..Reading::default() };
    let (pyroscope, _) = good(Format::Pyroscope).remove(0);
    let run = read_as(&crop, Format::Pyroscope, &pyroscope, ProfileType::Cpu).unwrap();
    assert_eq!((run.timed, run.window.map(|window| window.start)), (false, Some(Nanos::from_seconds(1_700_000_000))));
    assert_eq!(read(Format::Folded, "main;work 3\n", &crop), Err(Unread::Timeless));
}

#[test]
fn a_columnar_delta_is_read_by_symbol_unless_it_holds_counts_by_function() {
    let (stacks, samples) = good(Format::Delta).remove(0);
    let cohorts = vec![Folded { cohort: "web".into(), samples, functions: Vec::new() }];
    let sent = delta::decode(&stacks).unwrap().remove(0).unwrap();
    let counts = Profile { samples: Samples::Folded { content: 1, cohorts }, ..sent };
    let counts = delta::encode(&[counts]);
    for bytes in [&stacks, &counts] {
        let run = read_as(&Reading::default(), Format::Delta, bytes, ProfileType::Cpu).unwrap();
        assert_eq!(run.profile.total(), samples);
    }
    let by_symbol = Reading { stream: true, ..Reading::default() };
    assert_eq!(read_as(&by_symbol, Format::Delta, &stacks, ProfileType::Cpu).unwrap().profile.total(), samples);
    let fault = read_as(&by_symbol, Format::Delta, &counts, ProfileType::Cpu).unwrap_err();
    assert!(
        matches!(fault, Unread::Rejected(fault) if fault.reason == Reason::UnsupportedType && fault.detail.contains("counts by function"))
    );
}

#[test]
fn entries_of_speedscope_have_times_threads_and_lines() {
    let plain = read(Format::Speedscope, SPEEDSCOPE, &Reading::default()).unwrap();
    let weights = plain.weights.unwrap();
    assert_eq!((&*weights.unit, weights.profile.total()), ("time/nanoseconds", 70_000_000));
    let by = |keys: &str| {
        leaves(
            &read(Format::Speedscope, SPEEDSCOPE, &Reading { keys: Some(keys.parse().unwrap()), ..Reading::default() })
                .unwrap()
                .profile,
        )
    };
    assert_eq!(listed(&by("comm")), [("Thread 1", 5), ("Thread 2", 2)]);
    assert_eq!(by("srcline").get("encoder.py:199"), Some(&2));
    let first =
        read(Format::Speedscope, SPEEDSCOPE, &Reading { times: Some(",0.01".parse().unwrap()), ..Reading::default() })
            .unwrap();
    assert_eq!(first.profile.total(), 4);
    let later = SPEEDSCOPE.replacen("\"startValue\": 0", "\"startValue\": 5", 1);
    let first =
        read(Format::Speedscope, &later, &Reading { times: Some(",0.01".parse().unwrap()), ..Reading::default() })
            .unwrap();
    assert_eq!(first.profile.total(), 2);
}

#[test]
fn ticks_of_v8_have_times_and_last_until_the_next() {
    let plain = read(Format::Cpuprofile, CPUPROFILE, &Reading::default()).unwrap();
    let weights = plain.weights.unwrap();
    assert_eq!(&*weights.unit, "time/nanoseconds");
    assert_eq!(
        listed(&leaves(&weights.profile)),
        [
            ("(anonymous) (/srv/shop/server.js)", 2_000_000),
            ("(program)", 1_050_000),
            ("parse", 1_200_000),
            ("serve (/srv/shop/server.js)", 1_050_000)
        ]
    );
    let cropped =
        read(Format::Cpuprofile, CPUPROFILE, &Reading { crop: Some(Nanos(3_000_000)), ..Reading::default() }).unwrap();
    assert_eq!(listed(&leaves(&cropped.profile)), [("(program)", 1), ("parse", 1)]);
    let timeless = CPUPROFILE.replace("\"timeDeltas\"", "\"other\"");
    assert_eq!(read(Format::Cpuprofile, &timeless, &Reading::default()).unwrap().weights, None);
    assert_eq!(
        read(Format::Cpuprofile, &timeless, &Reading { crop: Some(Nanos(1)), ..Reading::default() }),
        Err(Unread::Timeless)
    );
}
