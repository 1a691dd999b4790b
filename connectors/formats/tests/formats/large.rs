//! Records as large programs make them: what they unfold into is within the budget.

use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use fleetdiff_formats::otlp::proto as otlp;
use fleetdiff_formats::pprof::proto::{Function, Line, Location, Profile, Sample, ValueType};
use fleetdiff_formats::{Format, Options};
use fleetdiff_schemas::profile::ProfileType;
use prost::Message;

use super::fixtures::labels;
use super::otlp_rules::{Draft, POD};

/// Samples of the record; each of another stack of so many of so many functions.
const SAMPLES: usize = 250_000;
const DEPTH: usize = 40;
const FUNCTIONS: usize = 5_000;

/// Two of these records at a time take half a gigabyte, which other tests watch.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The functions of a stack, root first.
fn stack(sample: usize) -> impl Iterator<Item = usize> {
    (0..DEPTH).map(move |depth| (sample * depth + depth) % FUNCTIONS)
}

fn name(function: usize) -> String {
    format!("company::product::module_{function}::serve_requests_of_customers")
}

fn is_read(format: Format, bytes: &[u8], samples: usize) {
    let parts = format.decoder(&Options::default()).decode(bytes, &Ok(labels(ProfileType::Cpu)));
    let [part] = &parts[..] else { panic!("{} parts", parts.len()) };
    let size = bytes.len() >> 20;
    let total = part.as_ref().map(|profile| profile.total());
    assert_eq!(total, Ok(u64::try_from(samples).unwrap()), "{} of {size} MiB", format.name());
}

/// Each location with a function that was inlined.
#[test]
fn large_pprof() {
    let _alone = alone();
    let number = |place: usize| u64::try_from(place + 1).unwrap();
    let index = |place: usize| i64::try_from(place).unwrap();
    let mut message = Profile { sample_type: vec![ValueType { r#type: 1, unit: 2 }], ..Profile::default() };
    message.string_table =
        ["", "samples", "count"].map(str::to_owned).into_iter().chain((0..FUNCTIONS).map(name)).collect();
    for place in 0..FUNCTIONS {
        let line = |function| Line { function_id: number(function % FUNCTIONS), line: 7, column: 0 };
        message.function.push(Function {
            id: number(place),
            name: index(place + 3),
            filename: index(place + 3),
            ..Function::default()
        });
        message.location.push(Location {
            id: number(place),
            address: 1 << 40,
            line: vec![line(place), line(place + 1)],
            ..Location::default()
        });
    }
    message.sample = (0..SAMPLES)
        .map(|sample| Sample { location_id: stack(sample).map(number).collect(), value: vec![1], ..Sample::default() })
        .collect();
    is_read(Format::Pprof, &message.encode_to_vec(), SAMPLES);
}

#[test]
fn large_otlp() {
    let _alone = alone();
    let index = |place: usize| i32::try_from(place + 1).unwrap();
    let mut draft = Draft::new();
    draft.resource(&POD).profile(("samples", "count", &[], &[]), ("cpu", 1), 10).samples = (0..SAMPLES)
        .map(|place| otlp::Sample { stack_index: index(place), values: vec![1], ..otlp::Sample::default() })
        .collect();
    let dictionary = draft.dictionary();
    let strings = i32::try_from(dictionary.string_table.len()).unwrap();
    dictionary.string_table.extend((0..FUNCTIONS).map(name));
    dictionary.function_table.push(otlp::Function::default());
    dictionary.location_table.push(otlp::Location::default());
    for place in 0..FUNCTIONS {
        dictionary
            .function_table
            .push(otlp::Function { name_strindex: strings + index(place) - 1, ..otlp::Function::default() });
        let lines = vec![otlp::Line { function_index: index(place), line: 7 }];
        dictionary.location_table.push(otlp::Location { lines, ..otlp::Location::default() });
    }
    let stacks = (0..SAMPLES).map(|sample| otlp::Stack { location_indices: stack(sample).map(index).collect() });
    dictionary.stack_table.extend(stacks);
    is_read(Format::Otlp, &draft.request.encode_to_vec(), SAMPLES);
}

#[test]
fn large_texts() {
    let _alone = alone();
    let samples = SAMPLES / 10;
    let (mut folded, mut events) = (String::new(), String::new());
    for sample in 0..samples {
        let names: Vec<String> = stack(sample).map(name).collect();
        writeln!(folded, "{} 1", names.join(";")).unwrap();
        events.push_str("shop 7 [001] 1.5: 250000 cpu-clock:\n");
        for name in names.iter().rev() {
            writeln!(events, "\t55d0a1c04410 {name}+0x30 (/srv/shop)").unwrap();
        }
        events.push('\n');
    }
    is_read(Format::Folded, folded.as_bytes(), samples);
    is_read(Format::PerfScript, events.as_bytes(), samples);
}

#[test]
fn large_json() {
    let _alone = alone();
    let frames: Vec<String> =
        (0..FUNCTIONS).map(|function| format!("{{\"name\":\"{}\",\"file\":\"x.py\"}}", name(function))).collect();
    let samples: Vec<String> = (0..SAMPLES)
        .map(|sample| format!("[{}]", stack(sample).map(|frame| frame.to_string()).collect::<Vec<_>>().join(",")))
        .collect();
    let text = format!(
        "{{\"shared\":{{\"frames\":[{}]}},\"profiles\":[{{\"type\":\"sampled\",\"unit\":\"none\",\"samples\":[{}],\"weights\":[{}1]}}]}}",
        frames.join(","),
        samples.join(","),
        "1,".repeat(SAMPLES - 1)
    );
    is_read(Format::Speedscope, text.as_bytes(), SAMPLES);
}
