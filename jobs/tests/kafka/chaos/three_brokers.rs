//! Three brokers, of which one after the other dies while the service runs: leaders move, and nothing else changes.

use std::fs;
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};

use super::records::{Record, Sender, recorded};
use super::subject::Subject;
use super::{assert_sound, make};
use crate::broker::Broker;
use crate::program::brokers;
use crate::service::{files_of, generate, stop, wait_for};

/// Every partition is on all three brokers, and what two of them have is stored.
const REPLICATED: &str = "default.replication.factor=3
min.insync.replicas=2
offsets.topic.replication.factor=3
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
";

/// For each partition, who leads it and how many brokers have all of it.
fn partitions(brokers: &str, topic: &str) -> Vec<(i32, usize)> {
    let consumer: BaseConsumer = ClientConfig::new().set("bootstrap.servers", brokers).create().unwrap();
    let Ok(metadata) = consumer.fetch_metadata(Some(topic), Duration::from_secs(10)) else { return Vec::new() };
    metadata.topics()[0].partitions().iter().map(|one| (one.leader(), one.isr().len())).collect()
}

#[test]
fn chaos_three_brokers_of_which_one_after_the_other_dies() {
    let first = Broker::start_with(REPLICATED);
    let mut others = [2, 3].map(|node| (i32::try_from(node).unwrap(), first.another(node)));
    let at = [first.address(), others[0].1.address(), others[1].1.address()].join(",");
    let scratch = tempfile::tempdir().unwrap();
    let log = scratch.path().join("log");
    generate("three-brokers", "10m", "3");
    let records = recorded(brokers(), "three-brokers", 3);
    make(&at, "moving", 3, 3);
    let sender = Sender::to(&at, "moving");
    let mut pieces = records.chunks(records.len().div_ceil(5));
    let mut send = || pieces.next().into_iter().for_each(|piece: &[Record]| sender.send(piece));
    let output = scratch.path().join("out");
    let subject =
        Subject { brokers: &at, topic: "moving", output, alerts: "moving-alerts".to_owned(), idle_after: "0s" };
    let written = || files_of(&subject.output, "ledger");

    send();
    let mut service = subject.start(&log, &["--checkpoint-every", "30s"], None);
    wait_for("closing hops", &log, || written() >= 1);
    for (node, broker) in &mut others {
        let before = written();
        broker.kill();
        wait_for("other leaders", &log, || {
            let now = partitions(&at, "moving");
            !now.is_empty() && now.iter().all(|(leader, _)| *leader > 0 && *leader != *node)
        });
        send();
        wait_for("going on", &log, || written() > before);
        broker.restart();
        wait_for("a broker that has caught up", &log, || {
            let now = partitions(&at, "moving");
            !now.is_empty() && now.iter().all(|(_, copies)| *copies == 3)
        });
        send();
    }
    send();
    wait_for("the end", &log, || written() >= 9);
    assert!(service.try_wait().unwrap().is_none(), "{}", fs::read_to_string(&log).unwrap());
    assert_eq!(stop(service, "TERM"), Some(0), "{}", fs::read_to_string(&log).unwrap());

    let results = subject.to_end(&[]);
    assert_sound(&results, "three brokers");
    let (output, alerts) = (scratch.path().join("undisturbed"), "three-brokers-alerts".to_owned());
    let undisturbed = Subject { brokers: brokers(), topic: "three-brokers", output, alerts, idle_after: "0s" };
    results.assert_same(&undisturbed.to_end(&["--workers", "1"]), "three brokers");
}
