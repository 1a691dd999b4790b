//! pprof read slowly: by the structs of `proto`, maps for tables, one sample after the other. Shares no pass with the
//! decoder.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;

use fleetdiff_formats::pprof::proto::{Function, Label, Line, Location, Profile, Sample, ValueType};
use fleetdiff_formats::{Format, Options};
use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rejected::Reason;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use prost::Message;

use super::fixtures::{labels, part, recorded, written_out};

type Stacks = Vec<(Vec<String>, u64, Option<String>)>;

/// The stacks of a well-formed profile by its column `column`.
pub fn slow(profile: &Profile, column: usize) -> Stacks {
    let text = |index: i64| profile.string_table[usize::try_from(index).unwrap()].clone();
    let functions: BTreeMap<u64, &Function> = profile.function.iter().map(|function| (function.id, function)).collect();
    let locations: BTreeMap<u64, &Location> = profile.location.iter().map(|location| (location.id, location)).collect();
    let name = |line: &Line| {
        let function = functions.get(&line.function_id);
        let names = function.map(|function| [text(function.name), text(function.system_name)]);
        names.into_iter().flatten().find(|name| !name.is_empty()).unwrap_or_else(|| "_unsymbolised".to_owned())
    };
    let mut stacks = Stacks::new();
    for sample in &profile.sample {
        let mut leaf_first = Vec::new();
        for id in &sample.location_id {
            let lines = &locations[id].line;
            leaf_first.extend(lines.iter().map(name));
            if lines.is_empty() {
                leaf_first.push("_unsymbolised".to_owned());
            }
        }
        leaf_first.reverse();
        let cohort = sample.label.iter().find(|label| text(label.key) == "cohort" && !text(label.str).is_empty());
        let count = u64::try_from(sample.value[column]).unwrap();
        stacks.push((leaf_first, count, cohort.map(|label| text(label.str))));
    }
    stacks.retain(|(_, count, _)| *count > 0);
    stacks
}

fn fast(bytes: &[u8]) -> Result<Stacks, Reason> {
    let mut decoder = Format::Pprof.decoder(&Options::default());
    let read = part(&mut *decoder, bytes, &Ok(labels(ProfileType::Cpu)));
    read.map(|profile| written_out(&profile)).map_err(|fault| fault.reason)
}

#[test]
fn oracle_every_recorded_cpu_profile() {
    let mut files = 0;
    for pod in fs::read_dir(recorded("kv-snapshot/profiles")).unwrap() {
        for file in fs::read_dir(pod.unwrap().path()).unwrap().map(|file| file.unwrap().path()) {
            if file.file_name().unwrap().to_string_lossy().starts_with("cpu") {
                let bytes = fs::read(&file).unwrap();
                let mut message = Vec::new();
                flate2::read::MultiGzDecoder::new(bytes.as_slice()).read_to_end(&mut message).unwrap();
                let truth = slow(&Profile::decode(message.as_slice()).unwrap(), 0);
                assert_eq!(fast(&bytes).unwrap(), truth, "{}", file.display());
                files += 1;
            }
        }
    }
    assert_eq!(files, 216);
}

/// Words of the string table, behind the fixed ones.
const WORDS: [&str; 8] = ["cohort", "ios", "web", "thread", "main", "main.work", "_ZN4work", "µ"];
const FIRST_WORD: i64 = 5;

fn word() -> impl Strategy<Value = i64> {
    prop_oneof![Just(0), FIRST_WORD..FIRST_WORD + 8]
}

fn functions() -> impl Strategy<Value = Vec<Function>> {
    let ids = proptest::sample::subsequence(vec![1u64, 2, 3, 4, 7, 900, u64::MAX], 1..7).prop_shuffle();
    (ids, vec((word(), word()), 7)).prop_map(|(ids, names)| {
        let entries = ids.into_iter().zip(names);
        entries.map(|(id, (name, system_name))| Function { id, name, system_name, ..Function::default() }).collect()
    })
}

fn locations(functions: &[Function]) -> impl Strategy<Value = Vec<Location>> + use<> {
    let mut known: Vec<u64> = functions.iter().map(|function| function.id).collect();
    known.push(0);
    let line = select(known).prop_map(|function_id| Line { function_id, line: 12, column: 3 });
    let ids = proptest::sample::subsequence(vec![1u64, 2, 3, 5, 8, 13, 1 << 40], 1..7).prop_shuffle();
    (ids, vec(vec(line, 0..4), 7)).prop_map(|(ids, lines)| {
        let entries = ids.into_iter().zip(lines);
        entries.map(|(id, line)| Location { id, line, address: id << 3, ..Location::default() }).collect()
    })
}

fn samples(locations: &[Location]) -> impl Strategy<Value = Vec<Sample>> + use<> {
    let known: Vec<u64> = locations.iter().map(|location| location.id).collect();
    let label = (word(), word()).prop_map(|(key, str)| Label { key, str, ..Label::default() });
    let sample = (vec(select(known), 0..6), vec(0i64..4, 2), vec(label, 0..4));
    vec(sample.prop_map(|(location_id, value, label)| Sample { location_id, value, label }), 1..12)
}

fn messages() -> impl Strategy<Value = Profile> {
    functions().prop_flat_map(|functions| {
        let locations = locations(&functions);
        locations.prop_flat_map(move |location| {
            let function = functions.clone();
            samples(&location).prop_map(move |sample| message(function.clone(), location.clone(), sample))
        })
    })
}

fn message(function: Vec<Function>, location: Vec<Location>, sample: Vec<Sample>) -> Profile {
    let fixed = ["", "samples", "count", "cpu", "nanoseconds"];
    Profile {
        // The count stands second here.
        sample_type: vec![ValueType { r#type: 3, unit: 4 }, ValueType { r#type: 1, unit: 2 }],
        sample,
        location,
        function,
        string_table: fixed.into_iter().chain(WORDS).map(str::to_owned).collect(),
        ..Profile::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn oracle_any_well_formed_profile(message in messages()) {
        let truth = slow(&message, 1);
        let expected = if truth.is_empty() { Err(Reason::Empty) } else { Ok(truth) };
        prop_assert_eq!(fast(&message.encode_to_vec()), expected);
    }
}
