//! What is published is read back: once, whole, in order.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fleetdiff_connectors::kafka::publish::{Key, Outgoing, PublishSettings, Publisher, RecordForm};
use fleetdiff_connectors::kafka::source::{Share, TopicSettings};
use fleetdiff_connectors::kafka::topic::{self, TopicPlan};
use fleetdiff_formats::Format;
use fleetdiff_schemas::profile::{Decoded, Profile, Stamped};
use fleetdiff_schemas::source::{Polled, Source};
use fleetdiff_schemas::time::Nanos;

use crate::fleet::{Comparable, comparable, fleet, without_cohorts};
use crate::reading::{Read, client, open, poll_until, read_by, read_share, until_end};

/// Publishes to the first three of four partitions.
pub fn publish(topic: &str, form: RecordForm, key: Key, profiles: &[Profile]) -> u64 {
    let settings = PublishSettings { spread: Some(3), ..PublishSettings::new(topic, form, key) };
    let mut publisher = Publisher::open(&client(), settings).unwrap();
    for profile in profiles {
        publisher.publish(Outgoing::Profile(profile.clone())).unwrap();
    }
    publisher.finish(|_| {}).unwrap().records
}

fn profiles(read: &Read) -> Vec<Comparable> {
    let parts = read.all().flat_map(|record| &record.parts);
    let mut all: Vec<Comparable> = parts.map(|part| comparable(part.as_ref().unwrap())).collect();
    all.sort();
    all
}

fn expected(published: &[Profile]) -> Vec<Comparable> {
    let mut all: Vec<Comparable> = published.iter().map(comparable).collect();
    all.sort();
    all
}

fn partitions_by_pod(read: &Read) -> BTreeMap<String, BTreeSet<i32>> {
    let mut partitions: BTreeMap<String, BTreeSet<i32>> = BTreeMap::new();
    for record in read.all() {
        for part in record.parts.iter().flatten() {
            partitions.entry(part.identity.pod.to_string()).or_default().insert(record.position.partition);
        }
    }
    partitions
}

/// A record's time is the first millisecond after the end of its profiles, by its sender's clock.
fn assert_stamps(read: &Read) {
    for Decoded { stamped, parts, .. } in read.all() {
        for profile in parts.iter().flatten() {
            let Stamped::BySender(Some(sent)) = stamped else { panic!("{stamped:?}") };
            let late = sent.since(profile.window.end);
            assert!((Nanos(0)..Nanos(1_000_000)).contains(&late), "{late:?} after the end of its window");
        }
    }
}

fn round_trip(form: RecordForm, key: Key) {
    let format = form.format();
    let topic = format!("round-trip-{}-{key:?}", format.name());
    let is_text = matches!(form, RecordForm::Folded | RecordForm::PerfScript);
    let fleet = if is_text { without_cohorts(fleet(7, 12)) } else { fleet(7, 12) };
    let records = publish(&topic, form, key, &fleet);
    for readers in [1, 2] {
        let read = read_by(readers, &topic, format);
        assert_eq!(read.ends, BTreeMap::from([(0, 1), (1, 1), (2, 1), (3, 1)]), "{readers} readers");
        assert_eq!(u64::try_from(read.all().count()).unwrap(), records);
        assert_eq!(profiles(&read), expected(&fleet), "{readers} readers");
        assert!(read.offsets(3).is_empty(), "the last partition stays empty");
        for partition in 0..3 {
            let offsets = read.offsets(partition);
            assert!(!offsets.is_empty() && offsets.is_sorted_by(|a, b| a < b), "{partition}: {offsets:?}");
        }
        assert_stamps(&read);
        let scattered = partitions_by_pod(&read).values().filter(|partitions| partitions.len() > 1).count();
        assert_eq!(scattered == 0, key == Key::Pod, "pods in more than one partition: {scattered}");
    }
}

#[test]
fn pprof_by_pod_comes_back_whole() {
    round_trip(RecordForm::Pprof, Key::Pod);
}

#[test]
fn pprof_without_key_comes_back_whole() {
    round_trip(RecordForm::Pprof, Key::None);
}

#[test]
fn delta_by_pod_comes_back_whole() {
    round_trip(RecordForm::Delta, Key::Pod);
}

#[test]
fn delta_without_key_comes_back_whole() {
    round_trip(RecordForm::Delta, Key::None);
    // Profiles of seven pods at the same moment are one record.
    let read = read_share("round-trip-delta-None", Share::WHOLE, Format::Delta);
    assert_eq!(read.all().map(|record| record.parts.len()).collect::<BTreeSet<_>>(), BTreeSet::from([7]));
}

#[test]
fn otlp_by_pod_comes_back_whole() {
    round_trip(RecordForm::Otlp, Key::Pod);
}

#[test]
fn otlp_without_key_comes_back_whole() {
    round_trip(RecordForm::Otlp, Key::None);
    let read = read_share("round-trip-otlp-None", Share::WHOLE, Format::Otlp);
    assert_eq!(read.all().map(|record| record.parts.len()).collect::<BTreeSet<_>>(), BTreeSet::from([7]));
}

#[test]
fn folded_stacks_come_back_whole() {
    round_trip(RecordForm::Folded, Key::Pod);
}

#[test]
fn the_text_of_perf_script_comes_back_whole() {
    round_trip(RecordForm::PerfScript, Key::None);
}

/// A text of stacks has no place for cohorts of single samples, and nothing is lost without a word.
#[test]
fn a_profile_that_a_text_cannot_hold_is_named() {
    for form in [RecordForm::Folded, RecordForm::PerfScript] {
        let topic = format!("unencodable-{}", form.format().name());
        let mut publisher = Publisher::open(&client(), PublishSettings::new(topic, form, Key::Pod)).unwrap();
        let error = publisher.publish(Outgoing::Profile(fleet(1, 1).remove(0))).unwrap_err();
        assert_eq!(error.code(), "kafka_encode");
        let text = error.to_string();
        for part in ["the cpu profile of pod pod-0", form.format().name(), "the cohort \"tv\" of single samples"] {
            assert!(text.contains(part), "{part} is missing in {text}");
        }
        assert_eq!(publisher.finish(|_| {}).unwrap().records, 0);
    }
}

/// Of the profiles of one record, the one that does not fit is named.
#[test]
fn a_profile_among_others_that_otlp_cannot_hold_is_named() {
    let settings = PublishSettings::new("unencodable-otlp", RecordForm::Otlp, Key::None);
    let mut publisher = Publisher::open(&client(), settings).unwrap();
    let mut profiles = fleet(3, 1);
    profiles[1].window.start = Nanos(-1);
    profiles.into_iter().for_each(|profile| publisher.publish(Outgoing::Profile(profile)).unwrap());
    let error = publisher.finish(|_| {}).unwrap_err().to_string();
    assert!(error.contains("the cpu profile of pod pod-1,") && error.contains("before 1970"), "{error}");
}

#[test]
fn a_whole_topic_is_keyed_as_java_clients_key() {
    let settings = PublishSettings::new("whole", RecordForm::Pprof, Key::Pod);
    let mut publisher = Publisher::open(&client(), settings).unwrap();
    for profile in fleet(12, 2) {
        publisher.publish(Outgoing::Profile(profile)).unwrap();
    }
    assert_eq!(publisher.finish(|_| {}).unwrap().records, 24);
    let partitions = partitions_by_pod(&read_share("whole", Share::WHOLE, Format::Pprof));
    let found: BTreeMap<&str, i32> =
        partitions.iter().map(|(pod, partitions)| (pod.as_str(), *partitions.first().unwrap())).collect();
    assert_eq!(found.len(), 12);
    for (pod, partition) in found {
        assert_eq!(partition, crate::alerts::java_partition(pod.as_bytes(), 4), "{pod}");
    }
}

/// A record says itself who stamped it, whatever the topic's configuration is by now.
#[test]
fn who_stamped_a_record_is_what_the_record_says() {
    let configuration = [("retention.ms", "-1"), ("message.timestamp.type", "LogAppendTime")];
    let plan = TopicPlan { name: "stamps", partitions: 4, replication: None, configuration: &configuration };
    topic::ensure(&client(), plan).unwrap();
    let published = fleet(3, 4);
    publish("stamps", RecordForm::Pprof, Key::Pod, &published);
    let read = read_share("stamps", Share::WHOLE, Format::Pprof);
    assert_eq!(read.all().count(), published.len());
    let latest = published.iter().map(|profile| profile.window.end).max().unwrap();
    for Decoded { stamped, .. } in read.all() {
        assert!(matches!(stamped, Stamped::ByBroker(at) if *at > latest), "{stamped:?}");
    }
}

#[test]
fn an_empty_topic_ends_at_once() {
    assert_eq!(publish("empty", RecordForm::Pprof, Key::None, &[]), 0);
    let read = read_by(2, "empty", Format::Pprof);
    assert_eq!(read.ends, BTreeMap::from([(0, 1), (1, 1), (2, 1), (3, 1)]));
    assert_eq!(read.all().count(), 0);
    // A bounded reader that owns nothing has nothing to wait for; of another, a partition may be added.
    for until_end in [true, false] {
        let settings = TopicSettings { until_end, ..TopicSettings::new("empty") };
        let mut fifth = open(settings, Share { worker: 4, workers: 5 }, Format::Pprof);
        assert!(fifth.partitions().is_empty());
        assert_eq!(matches!(fifth.poll().unwrap(), Polled::End), until_end);
    }
}

#[test]
fn a_bounded_read_stops_at_the_end_it_found_and_an_unbounded_one_goes_on() {
    let fleet = fleet(3, 6);
    let (early, late) = fleet.split_at(9);
    publish("bounds", RecordForm::Pprof, Key::None, early);
    let mut bounded = open(until_end("bounds"), Share::WHOLE, Format::Pprof);
    let mut unbounded = open(TopicSettings::new("bounds"), Share::WHOLE, Format::Pprof);
    let mut followed = Read::default();
    poll_until(&mut unbounded, &mut followed, |read, _| read.all().count() == early.len());
    publish("bounds", RecordForm::Pprof, Key::None, late);

    let mut read = Read::default();
    poll_until(&mut bounded, &mut read, |_, polled| matches!(polled, Polled::End));
    assert_eq!(profiles(&read), expected(early));
    poll_until(&mut unbounded, &mut followed, |read, _| read.all().count() == fleet.len());
    assert_eq!(profiles(&followed), expected(&fleet));
    assert!(followed.ends.is_empty(), "an unbounded read has no end");
}

#[test]
fn a_read_begins_at_the_given_offsets() {
    publish("starts", RecordForm::Pprof, Key::None, &fleet(3, 5));
    let settings = TopicSettings { start: [(0, 2), (2, 5)].into(), ..until_end("starts") };
    let mut source = open(settings, Share::WHOLE, Format::Pprof);
    let mut read = Read::default();
    poll_until(&mut source, &mut read, |_, polled| matches!(polled, Polled::End));
    assert_eq!(read.offsets(0), [2, 3, 4]);
    assert_eq!(read.offsets(1), [0, 1, 2, 3, 4]);
    assert!(read.offsets(2).is_empty());
    assert_eq!(read.ends.len(), 4);
}

#[test]
fn a_held_back_partition_gives_nothing_until_it_may_go_on() {
    publish("pauses", RecordForm::Pprof, Key::None, &fleet(3, 40));
    let mut source = open(until_end("pauses"), Share::WHOLE, Format::Pprof);
    let mut read = Read::default();
    poll_until(&mut source, &mut read, |read, _| read.offsets(0).len() >= 3);
    source.set_paused(0, true);
    let held = read.offsets(0).len();
    poll_until(&mut source, &mut read, |read, _| read.ends.len() == 3);
    for _ in 0..100 {
        assert!(matches!(source.poll().unwrap(), Polled::Idle), "all but the held back partition have ended");
    }
    assert_eq!(read.offsets(0).len(), held);
    assert!(held < 40, "the test has to hold back something");
    source.set_paused(0, false);
    poll_until(&mut source, &mut read, |_, polled| matches!(polled, Polled::End));
    for partition in 0..3 {
        assert_eq!(read.offsets(partition), (0..40).collect::<Vec<i64>>(), "partition {partition}");
    }
}

#[test]
fn publishing_to_a_topic_that_is_there_leaves_it_as_it_is() {
    publish("there", RecordForm::Pprof, Key::None, &[]);
    let settings = PublishSettings { partitions: 9, ..PublishSettings::new("there", RecordForm::Pprof, Key::None) };
    Publisher::open(&client(), settings).unwrap();
    assert_eq!(topic::partition_count(&client(), "there").unwrap(), 4);
}

/// Kafka deletes by a record's own time, and recorded fleets are old.
#[test]
fn a_topic_made_for_a_fleet_keeps_it_and_others_say_how_long() {
    publish("kept", RecordForm::Pprof, Key::None, &[]);
    assert_eq!(topic::retention(&client(), "kept").unwrap(), None);
    let plan = TopicPlan { name: "week", partitions: 1, replication: None, configuration: &[] };
    assert_eq!(topic::ensure(&client(), plan).unwrap(), 1);
    assert_eq!(topic::retention(&client(), "week").unwrap(), Some(Duration::from_secs(7 * 86_400)));
}
