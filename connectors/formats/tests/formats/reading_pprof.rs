//! pprof profiles read as `perf diff` reads a recording.

use fleetdiff_formats::pprof::proto::{Function, Label, Line, Location, Mapping, Profile, Sample, ValueType};
use fleetdiff_formats::reading::{Filters, Percentage, Reading, Run, SLICES, Unread};
use fleetdiff_formats::{Format, Options, pprof};
use fleetdiff_schemas::profile::{ProfileType, Samples};
use fleetdiff_schemas::rejected::Reason;
use fleetdiff_schemas::time::Nanos;
use prost::Message;

use super::reading::{leaves, listed, of_file, read_as, stacks};

const STRINGS: [&str; 21] = [
    "",
    "samples",
    "count",
    "cpu",
    "nanoseconds",
    "/srv/shop",
    "/usr/lib/libc.so.6",
    "main",
    "encode",
    "src/main.c",
    "src/encode.c",
    "pid",
    "tid",
    "comm",
    "timestamp_ns",
    "worker",
    "alloc_objects",
    "alloc_space",
    "bytes",
    "inuse_objects",
    "inuse_space",
];

fn index(text: &str) -> i64 {
    i64::try_from(STRINGS.iter().position(|known| *known == text).unwrap()).unwrap()
}

fn column(name: &str, unit: &str) -> ValueType {
    ValueType { r#type: index(name), unit: index(unit) }
}

fn number(key: &str, num: i64) -> Label {
    Label { key: index(key), num, ..Label::default() }
}

/// Three samples: two of `encode` in main (one of a named thread), one of a library without symbols.
fn message() -> Profile {
    let function = |id, name, file| Function { id, name: index(name), filename: index(file), ..Function::default() };
    let line = |function_id, line| Line { function_id, line, column: 0 };
    let location = |id, mapping_id, line| Location { id, mapping_id, line, ..Location::default() };
    let labels = |tid, at: i64| vec![number("pid", 7), number("tid", tid), number("timestamp_ns", at)];
    let sample = |location_id: &[u64], value: [i64; 2], label| Sample {
        location_id: location_id.to_vec(),
        value: value.to_vec(),
        label,
    };
    let named = Label { key: index("comm"), str: index("worker"), ..Label::default() };
    Profile {
        sample_type: vec![column("samples", "count"), column("cpu", "nanoseconds")],
        mapping: vec![
            Mapping { id: 1, filename: index("/srv/shop"), ..Mapping::default() },
            Mapping { id: 2, filename: index("/usr/lib/libc.so.6"), ..Mapping::default() },
        ],
        function: vec![function(1, "main", "src/main.c"), function(2, "encode", "src/encode.c")],
        location: vec![location(1, 1, vec![line(1, 3)]), location(2, 1, vec![line(2, 17)]), location(3, 2, Vec::new())],
        sample: vec![
            sample(&[2, 1], [2, 20_000_000], [labels(7, 1_000), vec![named]].concat()),
            sample(&[3, 1], [1, 10_000_000], [labels(8, 3_000), vec![named]].concat()),
            sample(&[2, 1], [1, 11_000_000], [labels(8, 2_000), vec![named]].concat()),
        ],
        string_table: STRINGS.map(str::to_owned).to_vec(),
        time_nanos: 5_000_000_000,
        period_type: Some(column("cpu", "nanoseconds")),
        period: 10_000_000,
        ..Profile::default()
    }
}

fn read_of(message: &Profile, reading: &Reading) -> Result<Run, Unread> {
    read_as(reading, Format::Pprof, &message.encode_to_vec(), ProfileType::Cpu)
}

fn read(reading: &Reading) -> Result<Run, Unread> {
    read_of(&message(), reading)
}

fn by(keys: &str) -> Reading {
    Reading { keys: Some(keys.parse().unwrap()), ..Reading::default() }
}

#[test]
fn the_other_column_is_the_weight() {
    let run = read(&Reading::default()).unwrap();
    assert_eq!(run.profile.total(), 4);
    let weights = run.weights.unwrap();
    assert_eq!(&*weights.unit, "cpu/nanoseconds");
    assert_eq!(listed(&leaves(&weights.profile)), [("_unsymbolised", 10_000_000), ("encode", 31_000_000)]);
}

/// Names are those of the table of functions, whether they are used or not, then those of frames without one.
#[test]
fn oracle_names_stand_in_the_order_of_their_table() {
    let mut message = message();
    message.function.reverse();
    message.function.push(Function { id: 9, name: index("worker"), ..Function::default() });
    let bytes = message.encode_to_vec();
    let decoded =
        Format::Pprof.decoder(&Options::default()).decode(&bytes, &Ok(of_file(ProfileType::Cpu))).remove(0).unwrap();
    assert_eq!(
        decoded.names.iter().map(|name| &**name).collect::<Vec<_>>(),
        ["encode", "main", "worker", "_unsymbolised"]
    );
    assert_eq!(read_of(&message, &Reading::default()).unwrap().profile, decoded);
}

#[test]
fn memory_weighs_bytes() {
    let mut heap = message();
    heap.sample_type = vec![
        column("alloc_objects", "count"),
        column("alloc_space", "bytes"),
        column("inuse_objects", "count"),
        column("inuse_space", "bytes"),
    ];
    (heap.period, heap.period_type) = (1, None);
    for (sample, value) in heap.sample.iter_mut().zip([[9, 900, 4, 400], [1, 64, 0, 0], [0, 0, 0, 0]]) {
        sample.value = value.to_vec();
    }
    let of = |kind| {
        let run = read_as(&Reading::default(), Format::Pprof, &heap.encode_to_vec(), kind).unwrap();
        let weights = run.weights.unwrap();
        (run.profile.total(), weights.unit.to_string(), weights.profile.total())
    };
    assert_eq!(of(ProfileType::Heap), (10, "alloc_space/bytes".to_owned(), 964));
    assert_eq!(of(ProfileType::LiveHeap), (4, "inuse_space/bytes".to_owned(), 400));
}

#[test]
fn a_single_column_weighs_nothing() {
    let mut counts = message();
    counts.sample_type.truncate(1);
    counts.sample.iter_mut().for_each(|sample| sample.value.truncate(1));
    let run = read_of(&counts, &Reading::default()).unwrap();
    assert_eq!((run.profile.total(), run.weights), (4, None));
}

#[test]
fn keys_name_frames() {
    let of = |keys: &str| leaves(&read(&by(keys)).unwrap().profile);
    assert_eq!(listed(&of("dso")), [("libc.so.6", 1), ("shop", 3)]);
    assert_eq!(listed(&of("dso,symbol")), [("libc.so.6  [unknown]", 1), ("shop  encode", 3)]);
    assert_eq!(listed(&of("srcline")), [("_unsymbolised", 1), ("encode.c:17", 3)]);
    assert_eq!(listed(&of("comm,tid")), [("worker  7:worker", 2), ("worker  8:worker", 2)]);
    assert_eq!(listed(&of("pid")), [("7:worker", 4)]);
    assert_eq!(listed(&stacks(&read(&by("dso")).unwrap().profile)), [("shop", 3), ("shop;libc.so.6", 1)]);
}

#[test]
fn what_a_profile_does_not_say_is_said() {
    let fault = |message: &Profile, reading: &Reading| read_of(message, reading).unwrap_err().to_string();
    assert!(fault(&message(), &by("cpu")).contains("on which processor a sample was taken"));
    let mut bare = message();
    bare.sample.iter_mut().for_each(|sample| sample.label.clear());
    bare.mapping.clear();
    bare.location.iter_mut().for_each(|location| location.mapping_id = 0);
    bare.function.iter_mut().for_each(|function| function.filename = 0);
    for (keys, what) in [
        ("comm", "name of the thread"),
        ("pid", "of which process"),
        ("dso", "which program or library"),
        ("srcline", "which line"),
    ] {
        assert!(fault(&bare, &by(keys)).contains(what), "{keys}");
    }
    assert!(
        fault(&bare, &Reading { times: Some("1,2".parse().unwrap()), ..Reading::default() })
            .contains("when its samples were taken")
    );
    // The profile says when it was taken as a whole: whether that is warm-up, its side knows.
    let whole = read_of(&bare, &Reading { crop: Some(Nanos(1)), ..Reading::default() }).unwrap();
    assert_eq!((whole.timed, whole.window.unwrap().start, whole.profile.total()), (false, Nanos(5_000_000_000), 4));
}

#[test]
fn labels_choose_samples() {
    let left = |reading: &Reading| {
        listed(&leaves(&read(reading).unwrap().profile))
            .into_iter()
            .map(|(name, count)| (name.to_owned(), count))
            .collect::<Vec<_>>()
    };
    let tid = Filters { tids: Some("8".parse().unwrap()), ..Filters::default() };
    let relative = Reading { filters: tid, percentage: Percentage::Relative, ..Reading::default() };
    assert_eq!(left(&relative), [("_unsymbolised".to_owned(), 1), ("encode".to_owned(), 1)]);
    let crop = Reading { crop: Some(Nanos(1_500)), ..Reading::default() };
    assert_eq!(left(&crop), [("_unsymbolised".to_owned(), 1)]);
    let dso = Filters { dsos: Some(["libc.so.6".into()].into()), ..Filters::default() };
    assert_eq!(
        left(&Reading { filters: dso, ..Reading::default() }),
        [("[filtered]".to_owned(), 3), ("_unsymbolised".to_owned(), 1)]
    );
}

/// Datadog counts samples of the clock on the wall beside columns of both clocks.
#[test]
fn regression_the_period_says_of_which_clock_a_count_is() {
    let mut of_datadog = message();
    let mut text = |word: &str| {
        of_datadog.string_table.push(word.to_owned());
        i64::try_from(of_datadog.string_table.len() - 1).unwrap()
    };
    let (cpu, wall) = (text("cpu-time"), text("wall-time"));
    let unit = of_datadog.sample_type[1].unit;
    of_datadog.sample_type[1].r#type = cpu;
    of_datadog.period_type = Some(ValueType { r#type: wall, unit });
    let clock = |message: &Profile| pprof::clock(&message.encode_to_vec(), &Options::default());
    assert_eq!(clock(&of_datadog), Some(ProfileType::Wall));
    let Err(Unread::Rejected(refused)) = read_of(&of_datadog, &Reading::default()) else {
        panic!("counts of the wall")
    };
    assert_eq!(refused.reason, Reason::UnknownPeriod, "its times of the processor are no counts: {}", refused.detail);
    of_datadog.sample_type.pop();
    for sample in &mut of_datadog.sample {
        sample.value.pop();
    }
    let Err(Unread::Rejected(refused)) = read_of(&of_datadog, &Reading::default()) else {
        panic!("counts of the wall")
    };
    assert_eq!(refused.reason, Reason::UnitMismatch);
    assert!(refused.detail.contains("(period 10000000 wall-time)"), "{}", refused.detail);
    of_datadog = Profile { sample_type: message().sample_type, sample: message().sample, ..of_datadog };
    of_datadog.sample_type[1].r#type = cpu;
    of_datadog.period_type = None;
    assert_eq!(clock(&of_datadog), Some(ProfileType::Cpu));
    of_datadog.sample_type[1].r#type = wall;
    assert_eq!(clock(&of_datadog), Some(ProfileType::Wall));
    let run = read_as(&Reading::default(), Format::Pprof, &of_datadog.encode_to_vec(), ProfileType::Wall).unwrap();
    let weights = run.weights.unwrap();
    assert_eq!((&*weights.unit, weights.profile.total()), ("wall-time/nanoseconds", 41_000_000));
}

/// Samples stand in the order of their times, in stretches of as many.
#[test]
fn a_recording_is_cut_into_stretches() {
    let mut many = message();
    let label = |at: usize| vec![number("timestamp_ns", i64::try_from(at).unwrap())];
    // The latest first; the function of the library only in the last stretch.
    let sample = |at: usize| Sample {
        location_id: if at >= 380 { vec![3, 1] } else { vec![2, 1] },
        value: vec![1, 10_000_000],
        label: label(at),
    };
    many.sample = (0..400).rev().map(sample).collect();
    let sliced = Reading { sliced: true, ..Reading::default() };
    let run = read_of(&many, &sliced).unwrap();
    assert_eq!(run.slices.as_deref(), Some(&(1..=SLICES).map(|slice| 20 * slice).collect::<Vec<_>>()[..]));
    let Samples::Stacks(stacks) = &run.profile.samples else { panic!("no stacks") };
    let name = |place: usize| &*run.profile.names[usize::try_from(*stacks[place].frames.last().unwrap()).unwrap()];
    assert_eq!([0, 379, 380, 399].map(name), ["encode", "encode", "_unsymbolised", "_unsymbolised"]);
    let plain = read_of(&many, &Reading::default()).unwrap();
    assert!(plain.slices.is_none() && listed(&leaves(&plain.profile)) == listed(&leaves(&run.profile)));
    many.sample.truncate(399);
    assert!(read_of(&many, &sliced).unwrap().slices.is_none(), "too few");
    many.sample.push(Sample { label: Vec::new(), ..sample(0) });
    assert!(read_of(&many, &sliced).unwrap().slices.is_none(), "one without a time");
}
