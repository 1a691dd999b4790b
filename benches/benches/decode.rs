//! Decoding: bytes to profiles, each format compared with the structs that prost makes of the same bytes, and with what inflating
//! them alone costs.
//!
//! `cargo bench --profile dist -p fleetdiff-benches --bench decode -- [--quick] [--pprof] [--otlp] [--delta] [--folded]`; see README.md of this folder.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use fleetdiff_benches::asked::Asked;
use fleetdiff_benches::large;
use fleetdiff_benches::spread::{Spread, seconds};
use fleetdiff_connectors::files::RecordedFleet;
use fleetdiff_formats::identity::IdentityMapping;
use fleetdiff_formats::otlp::{self, proto::Request};
use fleetdiff_formats::pprof::proto::Profile as Proto;
use fleetdiff_formats::{Format, Labels, Options, compression};
use fleetdiff_schemas::delta;
use fleetdiff_schemas::profile::{Profile, Samples};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use prost::Message;

/// The program's allocator: each stack is a separate vector.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Passes over all records of an input; `--quick` has fewer.
const WHOLE: usize = 41;
const QUICK: usize = 9;

/// Formats that may be asked for; without any all are measured.
const FORMATS: [(&str, Format); 4] =
    [("--pprof", Format::Pprof), ("--otlp", Format::Otlp), ("--delta", Format::Delta), ("--folded", Format::Folded)];

/// Records of one format, in memory before any clock starts.
struct Input {
    name: &'static str,
    format: Format,
    records: Vec<Record>,
}

/// What was measured of an input, one figure a pass, in seconds.
#[derive(Default)]
struct Times {
    decoded: Vec<f64>,
    structs: Vec<f64>,
    inflated: Vec<f64>,
}

/// Its bytes, and what is known about them.
type Record = (Vec<u8>, Result<Labels, Rejection>);

fn main() -> ExitCode {
    let formats = FORMATS.map(|(option, _)| option);
    let Some(asked) = Asked::given(&[&["--quick"], &formats[..]].concat()) else { return ExitCode::from(2) };
    let passes = if asked.has("--quick") { QUICK } else { WHOLE };
    say(&format!("one thread, {passes} passes in turn; median [quartiles] over passes"));
    let mut inputs = inputs();
    if formats.iter().any(|option| asked.has(option)) {
        inputs.retain(|input| FORMATS.iter().any(|(option, format)| *format == input.format && asked.has(option)));
    }
    // In turn, so that a disturbance of the machine affects all equally.
    let packed: Vec<Vec<Vec<u8>>> = inputs.iter().map(packed).collect();
    let mut times: Vec<Times> = inputs.iter().map(|_| Times::default()).collect();
    for _ in 0..passes {
        for ((input, packed), times) in inputs.iter().zip(&packed).zip(&mut times) {
            times.decoded.push(seconds(|| decode(input)));
            times.structs.push(seconds(|| structs(input)));
            times.inflated.push(seconds(|| inflate(packed)));
        }
    }
    for ((input, packed), times) in inputs.iter().zip(&packed).zip(times) {
        tell(input, packed, times);
    }
    ExitCode::SUCCESS
}

fn inputs() -> Vec<Input> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let recorded = |name: &'static str, format, fleet: &str| {
        let mut records = open(&root.join("fleets").join(fleet));
        records.retain(|(_, labels)| labels.as_ref().is_ok_and(|labels| labels.uncountable().is_none()));
        Input { name, format, records }
    };
    let pprof = recorded("pprof: cpu of kv-snapshot", Format::Pprof, "kv-snapshot");
    let profiles: Vec<Profile> = decode(&pprof);
    let nobody = || Err(Rejection::new(Reason::MissingIdentity, "records say themselves whose they are"));
    // 216 profiles of 12 pods: one record per hop, as a Collector would batch them.
    let batches = profiles.chunks(12).map(|batch| {
        let record = otlp::encode(batch, &IdentityMapping::default());
        (record.unwrap_or_else(|fault| panic!("a recorded profile cannot be written: {fault}")), nobody())
    });
    let same = Input { name: "otlp: the same, 12 a record", format: Format::Otlp, records: batches.collect() };
    let deltas = profiles.chunks(12).map(|batch| (delta::encode(batch), nobody()));
    let columnar = Input { name: "delta: the same, 12 a record", format: Format::Delta, records: deltas.collect() };
    let collector = root.join("connectors/formats/testdata/otlp-kafka");
    let collected = (1..=3).flat_map(|hop| (1..=4).map(move |node| format!("hop{hop:02}-node-{node}.otlp.pb")));
    let collected = collected.map(|file| (read(&collector.join(file)), nobody())).collect();
    let collected = Input { name: "otlp: records of a Collector", format: Format::Otlp, records: collected };
    let folded = recorded("folded: cpu of rd-listpack", Format::Folded, "rd-listpack");
    let labels = pprof.records.first().map_or_else(nobody, |(_, labels)| labels.clone());
    let generated =
        |name, depths| Input { name, format: Format::Pprof, records: vec![(large::profile(depths), labels.clone())] };
    let large = generated("pprof: 100,000 samples over 5,000 locations", large::USUAL);
    let deep = generated("pprof: the same with stacks of 200 to 499 frames", large::DEEP);
    vec![large, deep, pprof, same, columnar, collected, folded]
}

/// The files of a fleet without their compression.
fn open(folder: &Path) -> Vec<Record> {
    let fleet = RecordedFleet::open(folder).unwrap_or_else(|failure| panic!("{}: {failure}", folder.display()));
    let unpacked = fleet.entries().flatten().map(|entry| {
        let bytes = compression::decompress(&entry.bytes, usize::MAX).map(std::borrow::Cow::into_owned);
        (bytes.unwrap_or_else(|fault| panic!("{}: {}", entry.file, fault.detail)), entry.labels)
    });
    unpacked.collect()
}

fn read(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|failure| panic!("{}: {failure}", path.display()))
}

/// The output of a decoder for an input; for OTLP with counts since the process began.
fn decode(input: &Input) -> Vec<Profile> {
    if input.format == Format::Otlp {
        let mut decoder = otlp::Decoder::new(&Options::default());
        return input.records.iter().flat_map(|(bytes, _)| decoder.profiles(bytes)).flatten().collect();
    }
    let mut decoder = input.format.decoder(&Options::default());
    input.records.iter().flat_map(|(bytes, labels)| decoder.decode(bytes, labels)).flatten().collect()
}

/// The structs that prost makes of an input, without what comes after: names, stacks, counts. Text has none.
#[derive(Default)]
struct Structs {
    pprof: Vec<Proto>,
    otlp: Vec<Request>,
}

fn structs(input: &Input) -> Structs {
    let mut made = Structs::default();
    for (bytes, _) in &input.records {
        match input.format {
            Format::Pprof => made.pprof.extend(Proto::decode(bytes.as_slice())),
            Format::Otlp => made.otlp.extend(Request::decode(bytes.as_slice())),
            _ => {}
        }
    }
    made
}

/// The records of an input as they are sent: gzipped.
fn packed(input: &Input) -> Vec<Vec<u8>> {
    input.records.iter().map(|(bytes, _)| compression::gzip(bytes)).collect()
}

/// The bytes of records by the inflater of decoders. Each is dropped before the next, as decoders do.
fn inflate(packed: &[Vec<u8>]) -> usize {
    packed.iter().map(|bytes| compression::decompress(bytes, usize::MAX).map_or(0, |bytes| bytes.len())).sum()
}

/// Prints how fast an input was decoded.
///
/// Panics if there is no output: such a bench would be meaningless.
#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "figures for people")]
fn tell(input: &Input, packed: &[Vec<u8>], times: Times) {
    let [decoded, structs, inflated] = [times.decoded, times.structs, times.inflated].map(Spread::of);
    let profiles = decode(input);
    let stacks: usize = profiles
        .iter()
        .map(|profile| match &profile.samples {
            Samples::Stacks(stacks) => stacks.len(),
            Samples::Folded { .. } => 0,
        })
        .sum();
    assert!(stacks > 1_000, "{}: only {stacks} stacks", input.name);
    let made = self::structs(input);
    let of_prost = [Format::Pprof, Format::Otlp].contains(&input.format);
    let whole = !of_prost || made.pprof.len() + made.otlp.len() == input.records.len();
    assert!(whole, "{}: prost cannot read a record", input.name);
    let bytes: usize = input.records.iter().map(|(bytes, _)| bytes.len()).sum();
    assert!(inflate(packed) == bytes, "{}: a record cannot be inflated", input.name);
    let packed: usize = packed.iter().map(Vec::len).sum();
    let rates = |spent: Spread| {
        let per_second = |amount: f64| spent.map(|seconds| amount / seconds);
        format!("{} MB/s, {} k stacks/s", per_second(bytes as f64 / 1e6), per_second(stacks as f64 / 1e3))
    };
    say(&format!(
        "\n{}: {} records, {} profiles, {stacks} stacks, {:.2} MB, {:.2} MB gzipped\n  decoder       {}",
        input.name,
        input.records.len(),
        profiles.len(),
        bytes as f64 / 1e6,
        packed as f64 / 1e6,
        rates(decoded),
    ));
    say(&format!(
        "  inflating     {} (decoder x {:.2} its time, both x {:.2})",
        rates(inflated),
        decoded.median / inflated.median,
        1.0 + decoded.median / inflated.median,
    ));
    if of_prost {
        say(&format!("  prost structs {} (decoder x {:.2} as fast)", rates(structs), structs.median / decoded.median));
    }
}

fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}
