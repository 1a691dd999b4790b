//! The forms that `fleetdiff publish` writes: size and speed of the same recorded profiles in each.
//!
//! `cargo bench --profile dist -p fleetdiff-benches --bench forms -- [--quick]`; see README.md of this folder.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use fleetdiff_benches::asked::Asked;
use fleetdiff_benches::spread::{Spread, seconds};
use fleetdiff_connectors::files::RecordedFleet;
use fleetdiff_formats::identity::IdentityMapping;
use fleetdiff_formats::{Format, Labels, Options, compression, folded, otlp, perf_script, pprof};
use fleetdiff_schemas::delta;
use fleetdiff_schemas::profile::Profile;
use fleetdiff_schemas::rejected::{Reason, Rejection};

/// The program's allocator.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Passes over all profiles; `--quick` has fewer.
const WHOLE: usize = 41;
const QUICK: usize = 9;

/// Profiles of a record where it holds several: those of a hop of a small fleet.
const TOGETHER: usize = 12;

const FORMS: [Format; 5] = [Format::Pprof, Format::Otlp, Format::Delta, Format::Folded, Format::PerfScript];

/// Its bytes as they are sent, and what is known about them.
type Record = (Vec<u8>, Result<Labels, Rejection>);

fn main() -> ExitCode {
    let Some(asked) = Asked::given(&["--quick"]) else { return ExitCode::from(2) };
    let passes = if asked.has("--quick") { QUICK } else { WHOLE };
    say(&format!("one thread, {passes} passes in turn; median [quartiles] over passes"));
    for fleet in ["kv-snapshot", "rd-listpack"] {
        measure(fleet, &profiles(fleet), passes);
    }
    ExitCode::SUCCESS
}

/// Every profile of a recorded fleet that can be counted.
fn profiles(fleet: &str) -> Vec<Profile> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fleets").join(fleet);
    let fleet = RecordedFleet::open(&folder).unwrap_or_else(|failure| panic!("{}: {failure}", folder.display()));
    let options = Options::default();
    let decoded = fleet.entries().flatten().flat_map(|entry| {
        let mut decoder = entry.format.decoder(&options);
        decoder.decode(&entry.bytes, &entry.labels)
    });
    decoded.map(|part| part.unwrap_or_else(|fault| panic!("a recorded profile is refused: {}", fault.detail))).collect()
}

fn measure(fleet: &str, profiles: &[Profile], passes: usize) {
    let mut times = FORMS.map(|_| (Vec::new(), Vec::new()));
    let records = FORMS.map(|form| encode(form, profiles));
    // In turn, so that a disturbance of the machine affects all equally.
    for _ in 0..passes {
        for ((form, records), (written, read)) in FORMS.into_iter().zip(&records).zip(&mut times) {
            written.push(seconds(|| encode(form, profiles)));
            read.push(seconds(|| decode(form, records)));
        }
    }
    let samples: u64 = profiles.iter().map(Profile::total).sum();
    say(&format!("\n{fleet}: {} profiles, {samples} samples", profiles.len()));
    for ((form, records), (written, read)) in FORMS.into_iter().zip(&records).zip(times) {
        tell(form, records, profiles, Spread::of(written), Spread::of(read));
    }
}

/// Profiles as `publish` sends them.
fn encode(form: Format, profiles: &[Profile]) -> Vec<Record> {
    let nobody = || Err(Rejection::new(Reason::MissingIdentity, "records say themselves whose they are"));
    let fail = |fault| panic!("a recorded profile cannot be written as {}: {fault}", form.name());
    let batches = || profiles.chunks(TOGETHER);
    match form {
        Format::Otlp => batches()
            .map(|batch| (otlp::encode(batch, &IdentityMapping::default()).unwrap_or_else(fail), nobody()))
            .collect(),
        Format::Delta => batches().map(|batch| (delta::encode(batch), nobody())).collect(),
        _ => profiles.iter().map(|profile| one(form, profile)).collect(),
    }
}

fn one(form: Format, profile: &Profile) -> Record {
    let (written, labels) = match form {
        Format::Folded => (folded::encode(profile), Labels::of_counts(profile)),
        Format::PerfScript => {
            (perf_script::encode(profile), Labels { root_is_thread: true, ..Labels::of_counts(profile) })
        }
        _ => (pprof::encode(profile), Labels::of(profile)),
    };
    let bytes =
        written.unwrap_or_else(|fault| panic!("a recorded profile cannot be written as {}: {fault}", form.name()));
    (bytes, Ok(labels))
}

fn decode(form: Format, records: &[Record]) -> Vec<Profile> {
    let mut decoder = form.decoder(&Options::default());
    records.iter().flat_map(|(bytes, labels)| decoder.decode(bytes, labels)).flatten().collect()
}

/// Prints size and speed of a form.
///
/// Panics if not every sample is read back: the comparison would be meaningless.
#[expect(clippy::as_conversions, clippy::cast_precision_loss, reason = "figures for people")]
fn tell(form: Format, records: &[Record], profiles: &[Profile], written: Spread, read: Spread) {
    let found = decode(form, records);
    let samples = |profiles: &[Profile]| profiles.iter().map(Profile::total).sum::<u64>();
    assert_eq!((found.len(), samples(&found)), (profiles.len(), samples(profiles)), "{}", form.name());
    let number = profiles.len() as f64;
    let sent: usize = records.iter().map(|(bytes, _)| bytes.len()).sum();
    let (mut plain, mut packed) = (0, 0);
    for (bytes, _) in records {
        let text = compression::decompress(bytes, usize::MAX).unwrap_or_else(|fault| panic!("{}", fault.detail));
        plain += text.len();
        packed += compression::gzip(&text).len();
    }
    let rate = |spent: Spread| spent.map(|seconds| number / seconds);
    say(&format!(
        "  {:12} {:6} records; bytes a profile: {:.0} plain, {:.0} gzipped, {:.0} as sent; profiles/s: written {}, read {}",
        form.name(),
        records.len(),
        plain as f64 / number,
        packed as f64 / number,
        sent as f64 / number,
        rate(written),
        rate(read),
    ));
}

fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}
