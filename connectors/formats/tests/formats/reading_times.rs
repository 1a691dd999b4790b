//! Times in the place of counts: what a comparison reads of files whose period nobody knows.

use fleetdiff_formats::Values;
use fleetdiff_formats::pprof::proto::{Profile as Message, Sample, ValueType};
use fleetdiff_formats::reading::{Reading, Unread};
use fleetdiff_formats::{Format, Labels, Options, Unit};
use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rejected::Reason;
use prost::Message as _;

use super::examples::{CPUPROFILE, EVENTED, SPEEDSCOPE, good};
use super::fixtures::labels;
use super::otlp_rules::{Draft, POD};

/// Nanoseconds of a file in all, read as times; files say nothing of weights then.
fn times_of(format: Format, bytes: &[u8], unit: Option<Unit>) -> Result<u64, Reason> {
    let labels = Labels { unit, ..labels(ProfileType::Cpu) };
    let reading = Reading { values: Values::Times, ..Reading::default() };
    match reading.runs(format, bytes, &labels, &Options::default()).remove(0) {
        Ok(run) => {
            assert_eq!((run.weights, run.period), (None, None));
            Ok(run.profile.total())
        }
        Err(Unread::Rejected(fault)) => Err(fault.reason),
        Err(other) => panic!("{other}"),
    }
}

/// A file with these columns, one row of values after the other; no period.
fn file(columns: &[(&str, &str)], rows: &[&[i64]]) -> Vec<u8> {
    let mut strings = vec![String::new()];
    let mut place = |text: &str| {
        strings.push(text.to_owned());
        i64::try_from(strings.len() - 1).unwrap()
    };
    let sample_type = columns.iter().map(|(name, unit)| ValueType { r#type: place(name), unit: place(unit) }).collect();
    let sample = rows.iter().map(|row| Sample { value: row.to_vec(), ..Sample::default() }).collect();
    Message { sample_type, sample, string_table: strings, ..Message::default() }.encode_to_vec()
}

#[test]
fn pprof_is_read_to_the_nanosecond() {
    let times: &[&[i64]] = &[&[9_000_001], &[10_000_000], &[0], &[1]];
    assert_eq!(times_of(Format::Pprof, &file(&[("cpu", "nanoseconds")], times), None), Ok(19_000_002));
    assert_eq!(times_of(Format::Pprof, &file(&[("cpu", "microseconds")], times), None), Ok(19_000_002_000));
    assert_eq!(times_of(Format::Pprof, &file(&[("cpu", "")], times), Some(Unit::Milliseconds)), Ok(19_000_002_000_000));
    let hours = |hours: i64| times_of(Format::Pprof, &file(&[("cpu", "seconds")], &[&[3_600 * hours]]), None);
    assert_eq!((hours(78), hours(79)), (Ok(280_800_000_000_000), Err(Reason::TooLarge)));
    let both = file(&[("samples", "count"), ("cpu", "nanoseconds")], &[&[1, 7], &[2, 30]]);
    assert_eq!(times_of(Format::Pprof, &both, None), Ok(37), "times where there are counts too");
    let counts = file(&[("samples", "count")], &[&[1], &[2]]);
    assert_eq!(times_of(Format::Pprof, &counts, None), Err(Reason::UnitMismatch));
    assert_eq!(times_of(Format::Pprof, &file(&[("cpu", "nanoseconds")], &[&[-1]]), None), Err(Reason::NegativeValue));
}

#[test]
fn folded_and_json_are_read_by_their_lengths() {
    let folded = b"main;work 930\nmain;wait 7\n";
    assert_eq!(times_of(Format::Folded, folded, Some(Unit::Microseconds)), Ok(937_000));
    assert_eq!(times_of(Format::Folded, folded, None), Err(Reason::UnitMismatch));
    assert_eq!(times_of(Format::Speedscope, SPEEDSCOPE.as_bytes(), None), Ok(70_000_000));
    let uneven = SPEEDSCOPE.replacen("[0.01, 0.01", "[0.013, 0.000000002", 1);
    assert_eq!(times_of(Format::Speedscope, uneven.as_bytes(), None), Ok(63_000_002));
    let events = EVENTED.replace("\"none\"", "\"milliseconds\"");
    assert_eq!(times_of(Format::Speedscope, events.as_bytes(), None), Ok(12_000_000));
    assert_eq!(times_of(Format::Speedscope, EVENTED.as_bytes(), None), Err(Reason::UnitMismatch));
    assert_eq!(times_of(Format::Cpuprofile, CPUPROFILE.as_bytes(), None), Ok(5_300_000));
}

#[test]
fn otlp_is_read_by_its_values() {
    let of = |unit: &'static str, values: &[i64], timestamps: &[u64]| {
        let mut draft = Draft::new();
        draft.resource(&POD);
        let profile = draft.profile(("cpu", unit, &[], &[]), ("cpu", 1), 10);
        let sample = profile.samples[0].clone();
        profile.samples = vec![fleetdiff_formats::otlp::proto::Sample {
            values: values.to_vec(),
            timestamps_unix_nano: timestamps.to_vec(),
            ..sample
        }];
        times_of(Format::Otlp, &draft.request.encode_to_vec(), None)
    };
    assert_eq!(of("nanoseconds", &[9_000_001], &[]), Ok(9_000_001));
    assert_eq!(of("microseconds", &[9_001], &[]), Ok(9_001_000));
    assert_eq!(of("nanoseconds", &[9_000_000, 4], &[1, 2]), Ok(9_000_004), "lengths, though each is one sample");
    assert_eq!(of("nanoseconds", &[], &[1, 2]), Err(Reason::UnitMismatch), "moments without lengths");
}

#[test]
fn formats_of_counts_alone_are_refused() {
    for format in [Format::PerfScript, Format::Pyroscope, Format::Otlp, Format::Folded] {
        for (bytes, _) in good(format) {
            assert_eq!(times_of(format, &bytes, None), Err(Reason::UnitMismatch), "{}", format.name());
        }
    }
}
