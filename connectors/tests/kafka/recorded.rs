//! A recorded fleet on a topic is the fleet in its folder, faults included.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;

use fleetdiff_connectors::files::{FileFormat, RecordedFleet, write_fleet};
use fleetdiff_connectors::kafka::publish::{Key, Progress, PublishSettings, Published, Publisher, RecordForm};
use fleetdiff_connectors::kafka::source::Share;
use fleetdiff_formats::Options;
use fleetdiff_schemas::profile::{Profile, Temporality};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::source::{Polled, Source};
use fleetdiff_schemas::time::Nanos;

use crate::fleet::{Comparable, comparable, fleet, without_cohorts};
use crate::reading::{client, read_share};

type Parts = (Vec<Comparable>, Vec<(Reason, Option<Nanos>)>);

/// Sorts parts into what is counted and what is rejected, why and when.
fn sorted<'a>(parts: impl Iterator<Item = &'a Result<Profile, Rejection>>) -> Parts {
    let (mut good, mut bad) = Parts::default();
    for part in parts {
        match part {
            Ok(profile) => good.push(comparable(profile)),
            Err(fault) => bad.push((fault.reason, fault.at)),
        }
    }
    good.sort();
    bad.sort();
    (good, bad)
}

fn read_folder(folder: &Path) -> Parts {
    let mut fleet = RecordedFleet::open(folder).unwrap();
    let mut records = Vec::new();
    loop {
        match fleet.poll().unwrap() {
            Polled::Record(record) => records.push(record),
            Polled::End => break,
            Polled::PartitionEnd(_) | Polled::Idle | Polled::PartitionAdded(_) | Polled::Lost(..) => {}
        }
    }
    sorted(records.iter().flat_map(|record| &record.parts))
}

fn line(file: &str, more: &str) -> String {
    format!(
        r#"{{"file":"{file}","profile_type":"cpu","service":"checkout","build":"v42","region":"r","cohort":"c","hardware":"h","pod":"p","start_unix_nano":1751241600000000000,"end_unix_nano":1751241610000000000{more}}}"#
    )
}

/// Folded files, and beside them lines with all kinds of faults and pprof files: this one is whole.
fn mixed_folder(folder: &Path, whole: &Profile) {
    write_fleet(folder, FileFormat::Folded, &without_cohorts(fleet(4, 5))).unwrap();
    let good = fleetdiff_formats::pprof::encode(whole).unwrap();
    for (name, bytes) in [
        ("whole.pb.gz", good.as_slice()),
        ("cut.pb.gz", &good[..40]),
        ("garbage.pb", b"\xff\xff\xff"),
        ("bad.folded", b"a;b x\n"),
    ] {
        fs::write(folder.join(name), bytes).unwrap();
    }
    let lines = [
        line("whole.pb.gz", ""),
        line("whole.pb.gz", r#","temporality":"gauge""#),
        line("cut.pb.gz", ""),
        line("garbage.pb", ""),
        line("bad.folded", ""),
    ];
    let mut manifest = OpenOptions::new().append(true).open(folder.join("manifest.jsonl")).unwrap();
    writeln!(manifest, "{}", lines.join("\n")).unwrap();
}

fn publish(folder: &Path, topic: &str, form: RecordForm) -> (Published, Vec<Progress>) {
    let publisher = Publisher::open(&client(), PublishSettings::new(topic, form, Key::Pod)).unwrap();
    let fleet = RecordedFleet::open(folder).unwrap();
    let mut steps = Vec::new();
    let published = publisher.publish_fleet(&fleet, &Options::default(), |step| steps.push(step)).unwrap();
    (published, steps)
}

/// Publishes such a folder and reads it back: nothing is left out, the same is counted, and what is rejected is so at the same
/// times.
fn as_labelled_records(topic: &str, form: RecordForm, whole: &Profile) {
    let folder = tempfile::tempdir().unwrap();
    mixed_folder(folder.path(), whole);
    let (published, steps) = publish(folder.path(), topic, form);
    assert_eq!((published.acknowledged.records, published.skipped.len()), (25, 0));
    let last = steps.last().unwrap();
    assert_eq!((last.lines, last.of, last.acknowledged), (25, 25, published.acknowledged));

    let (good, bad) = read_folder(folder.path());
    let read = read_share(topic, Share::WHOLE, form.format());
    let (good_on_topic, bad_on_topic) = sorted(read.all().flat_map(|record| &record.parts));
    assert_eq!((good.len(), bad.len()), (21, 4));
    assert_eq!(good_on_topic, good);
    let times = |faults: &[(Reason, Option<Nanos>)]| faults.iter().map(|(_, at)| *at).collect::<Vec<_>>();
    assert_eq!(times(&bad_on_topic), times(&bad), "rejected at the same times");
}

#[test]
fn as_pprof_a_topic_gives_what_the_folder_gives() {
    as_labelled_records("recorded-pprof", RecordForm::Pprof, &fleet(1, 1)[0]);
}

#[test]
fn as_text_a_topic_gives_what_the_folder_gives() {
    let whole = &without_cohorts(fleet(1, 1))[0];
    as_labelled_records("recorded-folded", RecordForm::Folded, whole);
    as_labelled_records("recorded-perf-script", RecordForm::PerfScript, whole);
}

/// A file whose values are no counts is refused in the folder; as text of another format it might be read.
#[test]
fn what_a_reader_of_the_topic_would_count_is_not_sent_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let in_bytes = line("bytes.folded", r#","format":"pyroscope""#);
    fs::write(folder.path().join("bytes.folded"), b"main;work 7\nmain 3\n").unwrap();
    fs::write(folder.path().join("manifest.jsonl"), in_bytes).unwrap();
    let (published, _) = publish(folder.path(), "recorded-other", RecordForm::Folded);
    assert_eq!(published.acknowledged.records, 0);
    assert_eq!(published.skipped.iter().map(|skipped| skipped.line).collect::<Vec<_>>(), [1]);
}

#[test]
fn where_records_name_pods_the_topic_gives_what_can_be_counted_and_the_rest_is_named() {
    for (topic, form) in [("recorded-delta", RecordForm::Delta), ("recorded-otlp", RecordForm::Otlp)] {
        let folder = tempfile::tempdir().unwrap();
        mixed_folder(folder.path(), &fleet(1, 1)[0]);
        let mut manifest = OpenOptions::new().append(true).open(folder.path().join("manifest.jsonl")).unwrap();
        writeln!(manifest, "{}\nno json", line("absent.pb.gz", "")).unwrap();
        let (published, _) = publish(folder.path(), topic, form);
        let lines: Vec<i64> = published.skipped.iter().map(|skipped| skipped.line).collect();
        assert_eq!(lines.iter().copied().collect::<std::collections::BTreeSet<_>>(), (22..=27).collect());

        let (good, _) = read_folder(folder.path());
        let read = read_share(topic, Share::WHOLE, form.format());
        assert_eq!(sorted(read.all().flat_map(|record| &record.parts)), (good, Vec::new()), "{topic}");
    }
}

#[test]
fn a_snapshot_goes_in_every_form() {
    let folder = tempfile::tempdir().unwrap();
    mixed_folder(folder.path(), &without_cohorts(fleet(1, 1))[0]);
    let mut manifest = OpenOptions::new().append(true).open(folder.path().join("manifest.jsonl")).unwrap();
    writeln!(manifest, "{}", line("whole.pb.gz", r#","temporality":"cumulative""#)).unwrap();
    for form in RecordForm::ALL {
        let topic = format!("recorded-snapshot-{}", form.format().name());
        let (published, _) = publish(folder.path(), &topic, form);
        assert!(published.skipped.iter().all(|skipped| skipped.line != 26), "{topic}: {:?}", published.skipped);
        let read = read_share(&topic, Share::WHOLE, form.format());
        let snapshots = read
            .all()
            .flat_map(|record| &record.parts)
            .flatten()
            .filter(|profile| profile.temporality == Temporality::Cumulative);
        assert_eq!(snapshots.count(), 1, "{topic}");
    }
}
