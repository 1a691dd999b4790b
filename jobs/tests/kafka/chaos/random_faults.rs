//! Faults in the order and at the times that a seed draws, while a topic grows.
//!
//! In even rounds, records come in another order, twice or damaged: rows and alerts are those of the good records, each sent once and
//! in order. In odd rounds, one partition is silent for a while and one is added: how long that was waited for depends on the wall
//! clock, so rows and alerts are those of a run that makes the same decisions.

use std::fs;
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

use fleetdiff_connectors::crash::CrashPoint;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions};
use rdkafka::client::DefaultClientContext;
use serde_json::Value;

use super::damage::Damaged;
use super::records::{Record, Sender, recorded};
use super::subject::Subject;
use super::{ABORTED, assert_sound, make, rounds, seed};
use crate::broker::Broker;
use crate::program::{brokers, succeed};
use crate::results::Results;
use crate::service::{stop, wait_for};
use crate::status::{get, port_of, signal};

/// What may happen to a service.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// SIGKILL, after so many milliseconds.
    Kill(u64),
    /// SIGTERM once it reads.
    Term,
    /// SIGSTOP, and SIGCONT after so many milliseconds.
    Pause(u64),
    /// It ends at a point of the commit order, when that is reached for the n-th time.
    Crash(CrashPoint, u64),
    /// Another one is started in its folder.
    Second,
    /// The broker stands still for so many milliseconds.
    BrokerHangs(u64),
    /// The broker dies, and is started again after so many milliseconds.
    BrokerDies(u64),
}

/// The faults of a round: five kills, and each of the others once.
fn draw(draws: &mut Xoshiro256PlusPlus) -> Vec<Fault> {
    let mut faults: Vec<Fault> = (0..5).map(|_| Fault::Kill(draws.random_range(0..900))).collect();
    let point = CrashPoint::ALL[draws.random_range(0..CrashPoint::ALL.len())];
    faults.extend([
        Fault::Term,
        Fault::Pause(draws.random_range(100..1500)),
        Fault::Crash(point, draws.random_range(1..6)),
        Fault::Second,
        Fault::BrokerHangs(draws.random_range(100..2500)),
        Fault::BrokerDies(draws.random_range(0..1000)),
    ]);
    faults.shuffle(draws);
    faults
}

/// What a round is drawn to be.
struct Plan {
    /// How to draw it again.
    about: String,
    topic: String,
    faults: Vec<Fault>,
    draws: Xoshiro256PlusPlus,
}

impl Plan {
    fn draw(round: u64) -> Self {
        let seed = seed();
        let mut draws = Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_mul(1_000_003).wrapping_add(round));
        let about = format!("FLEETDIFF_CHAOS_SEED={seed}, round {round}");
        Self { about, topic: format!("chaos-{seed}-{round}"), faults: draw(&mut draws), draws }
    }
}

/// A service that faults happen to, and what they are drawn from.
struct Round<'a> {
    about: String,
    subject: &'a Subject<'a>,
    log: PathBuf,
    draws: Xoshiro256PlusPlus,
    service: Option<Child>,
    /// How many workers the last one has.
    workers: usize,
}

impl Round<'_> {
    fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// The service that runs, or a new one.
    fn running(&mut self) -> Child {
        if let Some(mut service) = self.service.take() {
            let ended = service.try_wait().unwrap();
            assert!(ended.is_none(), "{}: it ended by itself, {ended:?}:\n{}", self.about, self.said());
            return service;
        }
        self.begun(None)
    }

    fn begun(&mut self, end_at: Option<(CrashPoint, u64)>) -> Child {
        self.workers = self.draws.random_range(1..=4);
        let workers = &self.workers.to_string();
        let every = ["10s", "30s", "60s", "2m"][self.draws.random_range(0..4)];
        self.subject.start(&self.log, &["--workers", workers, "--checkpoint-every", every], end_at)
    }

    /// Until all of its workers do, one whose broker does not answer says so and ends, as it is to do.
    fn wait_until_it_reads(&self) {
        let port = port_of(&self.log);
        wait_for(&format!("{}: reading", self.about), &self.log, || {
            let answers = TcpStream::connect(("127.0.0.1", port)).is_ok();
            let status = if answers { get(port, "/status").1 } else { String::new() };
            let reading = |status: Value| status["transports"].as_array().map(Vec::len) == Some(self.workers);
            serde_json::from_str(&status).is_ok_and(reading)
        });
    }

    fn ended_in_order(&self, service: Child) {
        self.wait_until_it_reads();
        assert_eq!(stop(service, "TERM"), Some(0), "{}:\n{}", self.about, self.said());
    }

    /// What there is to read may not lead to that point; then it is killed.
    fn crashes(&mut self, point: CrashPoint, times: u64) {
        let mut service = self.begun(Some((point, times)));
        for _ in 0..40 {
            sleep(50);
            if let Some(ended) = service.try_wait().unwrap() {
                assert_eq!(ended.signal(), Some(ABORTED), "{}:\n{}", self.about, self.said());
                return;
            }
        }
        stop(service, "KILL");
    }

    fn happens(&mut self, fault: Fault, broker: &mut Broker) {
        if let Fault::Crash(point, times) = fault {
            if let Some(service) = self.service.take() {
                self.ended_in_order(service);
            }
            return self.crashes(point, times);
        }
        let service = self.running();
        match fault {
            Fault::Kill(after) => {
                sleep(after);
                stop(service, "KILL");
                return;
            }
            Fault::Term => return self.ended_in_order(service),
            Fault::Pause(millis) => {
                signal(service.id(), "STOP");
                sleep(millis);
                signal(service.id(), "CONT");
            }
            Fault::Second => {
                self.wait_until_it_reads();
                let said = self.subject.is_refused_beside_another();
                assert!(said.contains("is in use: another run of fleetdiff writes into it"), "{}: {said}", self.about);
            }
            Fault::BrokerHangs(millis) => {
                self.wait_until_it_reads();
                broker.signal("STOP");
                sleep(millis);
                broker.signal("CONT");
            }
            Fault::BrokerDies(millis) => {
                self.wait_until_it_reads();
                broker.kill();
                sleep(millis);
                broker.restart();
            }
            Fault::Crash(..) => {}
        }
        self.service = Some(service);
    }
}

fn sleep(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}

#[test]
fn chaos_random_faults() {
    let mut broker = Broker::start();
    let shape = ["--seed", "3", "--pods", "2:3", "--factor", "1.6", "--duration", "8m", "--partitions", "4"];
    let to_topic = ["generate", "--brokers", brokers(), "--topic", "chaos", "--format", "delta", "--key", "none"];
    succeed(&[&to_topic[..], &shape].concat());
    let records = recorded(brokers(), "chaos", 4);
    for round in 0..rounds() {
        let scratch = tempfile::tempdir().unwrap();
        let plan = Plan::draw(round);
        println!("{}: {:?}", plan.about, plan.faults);
        let happens = if round % 2 == 0 { damaged } else { interrupted };
        happens(plan, &records, &mut broker, scratch.path());
    }
}

/// Records come late, twice and damaged.
fn damaged(plan: Plan, records: &[Record], broker: &mut Broker, scratch: &Path) {
    let Plan { about, topic, faults, mut draws } = plan;
    let address = broker.address().to_owned();
    let damaged = Damaged::draw(records, &mut draws);
    assert!(damaged.copies > 10 && damaged.bad > 10, "{about}");
    make(&address, &topic, 4, 1);
    let subject = subject(&address, &topic, scratch.join("out"), "0s");
    let twin = format!("{topic}-good");
    let expected = undisturbed(&address, &twin, records, scratch.join("good"));

    let sender = Sender::to(&address, &topic);
    let steps = faults.len();
    let mut round =
        Round { about: about.clone(), subject: &subject, log: scratch.join("log"), draws, service: None, workers: 0 };
    for (step, fault) in faults.into_iter().enumerate() {
        sender.send(piece(&damaged.records, step, steps));
        round.happens(fault, broker);
    }
    if let Some(service) = round.service.take() {
        round.ended_in_order(service);
    }
    subject.go_on_to_end(&expected, &round.log, &["--checkpoint-every", "60s"], &about);
    let results = subject.to_end(&["--workers", "3"]);
    assert_sound(&results, &about);
    let sum = |of: fn(&fleetdiff_schemas::rows::LedgerRow) -> i64| results.tables.ledger.iter().map(of).sum::<i64>();
    assert_eq!(results.refused(), damaged.bad, "{about}: records that hold nothing good");
    assert_eq!(sum(|row| row.records_consumed), i64::try_from(damaged.records.len()).unwrap(), "{about}: records");
    assert!(sum(|row| row.samples_duplicate) > 0, "{about}: some came twice");
    results.of_good_records().assert_same(&expected, &about);
}

/// One partition is silent for a while, one is added.
fn interrupted(plan: Plan, records: &[Record], broker: &mut Broker, scratch: &Path) {
    let Plan { about, topic, faults, draws } = plan;
    let address = broker.address().to_owned();
    make(&address, &topic, 3, 1);
    let subject = subject(&address, &topic, scratch.join("out"), "1s");
    let mut sender = Sender::to(&address, &topic);
    let (steps, added_at, silent) = (faults.len(), faults.len() / 2, 2..7);
    let mut held_back: Vec<Record> = Vec::new();
    let mut round =
        Round { about: about.clone(), subject: &subject, log: scratch.join("log"), draws, service: None, workers: 0 };
    for (step, fault) in faults.into_iter().enumerate() {
        if step == added_at {
            add_partition(&address, &topic, 4);
            // One that knows it.
            sender = Sender::to(&address, &topic);
        }
        let is_there = |record: &&Record| record.partition != 3 || step >= added_at;
        let (now, later): (Vec<_>, Vec<_>) = piece(records, step, steps)
            .iter()
            .filter(is_there)
            .partition(|record| record.partition != 2 || !silent.contains(&step));
        held_back.extend(later.into_iter().cloned());
        if step == silent.end {
            sender.send(&std::mem::take(&mut held_back));
        }
        sender.send(now);
        round.happens(fault, broker);
    }
    if let Some(service) = round.service.take() {
        round.ended_in_order(service);
    }
    subject.go_on_to(5, &round.log, &["--checkpoint-every", "60s"], &about);
    let results = subject.to_end(&["--workers", "2"]);
    assert_sound(&results, &about);
    results.assert_same(&subject.anew(scratch.join("anew")), &about);
}

fn subject<'a>(brokers: &'a str, topic: &'a str, output: PathBuf, idle_after: &'static str) -> Subject<'a> {
    Subject { brokers, topic, output, alerts: format!("{topic}-alerts"), idle_after }
}

/// The part of all records that is sent in a step.
fn piece<T>(all: &[T], step: usize, steps: usize) -> &[T] {
    &all[all.len() * step / steps..all.len() * (step + 1) / steps]
}

/// The results of these records, each sent once and in order, of which nothing was disturbed.
fn undisturbed(brokers: &str, topic: &str, records: &[Record], output: PathBuf) -> Results {
    make(brokers, topic, 4, 1);
    Sender::to(brokers, topic).send(records);
    subject(brokers, topic, output, "0s").to_end(&[]).of_good_records()
}

fn add_partition(brokers: &str, topic: &str, partitions: usize) {
    let admin: AdminClient<DefaultClientContext> =
        ClientConfig::new().set("bootstrap.servers", brokers).create().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let plan = NewPartitions::new(topic, partitions);
    runtime.block_on(admin.create_partitions([&plan], &AdminOptions::new())).unwrap().remove(0).unwrap();
    while admin.inner().fetch_metadata(Some(topic), Duration::from_secs(10)).unwrap().topics()[0].partitions().len()
        < partitions
    {
        sleep(50);
    }
}

/// The comparison can fail: one good record that is missing shows.
#[test]
fn chaos_one_missing_record_is_seen() {
    let scratch = tempfile::tempdir().unwrap();
    let shape = ["--seed", "3", "--pods", "2:3", "--factor", "1.6", "--duration", "8m", "--partitions", "4"];
    let to_topic = ["generate", "--brokers", brokers(), "--topic", "all-there", "--format", "delta", "--key", "none"];
    succeed(&[&to_topic[..], &shape].concat());
    let records = recorded(brokers(), "all-there", 4);
    let whole = undisturbed(brokers(), "all-sent", &records, scratch.path().join("all"));
    let mut draws = Xoshiro256PlusPlus::seed_from_u64(seed());
    let mut damaged = Damaged::draw(&records, &mut draws).records;
    let disturbed = undisturbed(brokers(), "all-damaged", &damaged, scratch.path().join("damaged"));
    disturbed.assert_same(&whole, "all good records");
    let middle = records.len() / 2;
    damaged.retain(|record| record.payload != records[middle].payload);
    let fewer = undisturbed(brokers(), "one-missing", &damaged, scratch.path().join("missing"));
    assert_ne!(fewer.tables.ledger, whole.tables.ledger, "one record is missing");
    assert_ne!(fewer.tables.cells, whole.tables.cells, "one record is missing");
}
