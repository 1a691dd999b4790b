//! OTLP profiles read for a comparison: when each sample was taken, and what it weighs.

use fleetdiff_formats::reading::{Reading, Run, Unread};
use fleetdiff_formats::{Format, Options};
use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::time::Nanos;
use prost::Message;

use super::otlp_rules::{Column, Draft, POD};
use super::reading::{of_file, read_as};

fn read(columns: &[Column<'_>], reading: &Reading, kind: ProfileType) -> Result<Run, Unread> {
    let mut draft = Draft::new();
    draft.resource(&POD);
    for column in columns {
        draft.profile(*column, ("cpu", 10_000_000), 10);
    }
    read_as(reading, Format::Otlp, &draft.request.encode_to_vec(), kind)
}

fn crop(length: i64) -> Reading {
    Reading { crop: Some(Nanos(length)), ..Reading::default() }
}

#[test]
fn timestamps_are_the_times_of_samples() {
    let counted = |reading: &Reading| {
        read(&[("samples", "count", &[2, 1, 5], &[100, 200, 300])], reading, ProfileType::Cpu)
            .map(|run| (run.timed, run.profile.total()))
    };
    assert_eq!(counted(&Reading::default()), Ok((false, 8)));
    assert_eq!(counted(&crop(1)), Ok((true, 6)));
    assert_eq!(counted(&Reading { times: Some("50%-100%".parse().unwrap()), ..Reading::default() }), Ok((true, 6)));
    assert_eq!(counted(&crop(201)), Err(Unread::OutOfTime { first: Nanos(100), last: Nanos(300) }));
    let alone = read(&[("samples", "count", &[], &[100, 200, 300])], &crop(100), ProfileType::Cpu).unwrap();
    assert_eq!(alone.profile.total(), 2);
    let waits = read(&[("off_cpu", "nanoseconds", &[9, 7], &[100, 200])], &crop(50), ProfileType::OffCpu).unwrap();
    assert_eq!(
        (waits.profile.total(), waits.weights.map(|weights| (weights.unit.to_string(), weights.profile.total()))),
        (1, Some(("off_cpu/nanoseconds".to_owned(), 7)))
    );
}

#[test]
fn without_timestamps_a_window_will_do_for_a_warm_up_only() {
    let columns = [("samples", "count", &[3][..], &[][..])];
    let whole = read(&columns, &crop(1), ProfileType::Cpu).unwrap();
    assert!(!whole.timed && whole.window.is_some() && whole.profile.total() == 3);
    assert_eq!(
        read(&columns, &Reading { times: Some(",".parse().unwrap()), ..Reading::default() }, ProfileType::Cpu),
        Err(Unread::Timeless)
    );
}

#[test]
fn the_other_column_is_the_weight() {
    let weights = |columns: &[Column<'_>], kind| {
        let mut draft = Draft::new();
        draft.resource(&POD);
        for column in columns {
            draft.profile(*column, ("cpu", 10_000_000), 10);
        }
        let runs =
            Reading::default().runs(Format::Otlp, &draft.request.encode_to_vec(), &of_file(kind), &Options::default());
        let run = runs.into_iter().map(Result::unwrap).find(|run| run.profile.profile_type == kind).unwrap();
        (run.profile.total(), run.weights.map(|weights| (weights.unit.to_string(), weights.profile.total())))
    };
    let some = |unit: &str, weight| Some((unit.to_owned(), weight));
    let (samples, cpu) = (("samples", "count", &[3][..], &[][..]), ("cpu", "nanoseconds", &[30_050_000][..], &[][..]));
    assert_eq!(weights(&[samples, cpu], ProfileType::Cpu), (3, some("cpu/nanoseconds", 30_050_000)));
    assert_eq!(weights(&[cpu], ProfileType::Cpu), (3, some("cpu/nanoseconds", 30_050_000)));
    assert_eq!(weights(&[samples], ProfileType::Cpu), (3, None));
    let (objects, space) =
        (("alloc_objects", "count", &[2][..], &[][..]), ("alloc_space", "bytes", &[1 << 30][..], &[][..]));
    assert_eq!(weights(&[objects, space], ProfileType::Heap), (2, some("alloc_space/bytes", 1 << 30)));
    let (waits, delay) = (("contentions", "count", &[5][..], &[][..]), ("delay", "nanoseconds", &[9][..], &[][..]));
    assert_eq!(weights(&[waits, delay], ProfileType::Mutex), (5, some("delay/nanoseconds", 9)));
}
