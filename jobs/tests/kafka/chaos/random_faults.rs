//! Faults in the order and at the times that a seed draws, while a topic grows.
//!
//! In even rounds, records come in another order, twice or damaged: rows and alerts are those of the good records, each sent once and
//! in order. In odd rounds, one partition is silent for a while and one is added: how long that was waited for depends on the wall
//! clock, so rows and alerts are those of a run that makes the same decisions.

use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

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
use super::{ABORTED, assert_sound, first_round, make, rounds, seed};
use crate::broker::Broker;
use crate::company::Company;
use crate::program::{brokers, succeed};
use crate::results::Results;
use crate::service::wait_for;
use crate::status::{get, port_of};

/// What may happen to a service. Of several processes, it happens to one that is drawn.
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
    service: Option<Company>,
    /// How many workers each process of the last one has.
    workers: usize,
}

/// How long a service may take to see that one of its processes is gone.
const SEEN_WITHIN: Duration = Duration::from_secs(5);

impl Round<'_> {
    /// The service that runs, or a new one.
    fn running(&mut self) -> Company {
        if let Some(mut service) = self.service.take() {
            let ended: Vec<_> = service.0.iter_mut().map(|(process, _)| process.try_wait().unwrap()).collect();
            assert!(
                ended.iter().all(Option::is_none),
                "{}: it ended by itself, {ended:?}:\n{}",
                self.about,
                service.logs()
            );
            return service;
        }
        self.begun(None)
    }

    /// A service of one process, of two or of three.
    fn begun(&mut self, end_at: Option<(CrashPoint, u64)>) -> Company {
        let processes = [1, 1, 2, 3][self.draws.random_range(0..4)];
        self.workers = self.draws.random_range(1..=4_usize.div_ceil(processes));
        let every = ["10s", "30s", "60s", "2m"][self.draws.random_range(0..4)];
        let more = ["--checkpoint-every", every];
        Company::start(&self.log, (processes, self.workers), |own, log, process| {
            // NB: what is committed is committed by the first one.
            self.subject.start(log, &[own, &more].concat(), end_at.filter(|_| process == 0))
        })
    }

    /// One of its processes.
    fn one_of(&mut self, service: &Company) -> usize {
        self.draws.random_range(0..service.0.len())
    }

    /// Until all of its workers do, one whose broker does not answer says so and ends, as it is to do.
    fn wait_until_it_reads(&self, service: &Company) {
        for (process, (_, log)) in service.0.iter().enumerate() {
            let begins = if process == 0 { "status at http://" } else { "reads its part of topic" };
            wait_for(&format!("{}: process {process}", self.about), log, || service.log(process).contains(begins));
            service.wait(process, "its port", || service.log(process).contains("status at http://"));
            let port = port_of(log);
            wait_for(&format!("{}: reading", self.about), log, || {
                let answers = TcpStream::connect(("127.0.0.1", port)).is_ok();
                let status = if answers { get(port, "/status").1 } else { String::new() };
                let reading = |status: Value| status["transports"].as_array().map(Vec::len) == Some(self.workers);
                serde_json::from_str(&status).is_ok_and(reading)
            });
        }
    }

    fn ended_in_order(&mut self, mut service: Company) {
        self.wait_until_it_reads(&service);
        let asked = self.one_of(&service);
        service.signal(asked, "TERM");
        let codes = service.end(Duration::from_secs(60));
        assert!(codes.iter().all(|code| *code == Some(0)), "{}: {codes:?}\n{}", self.about, service.logs());
    }

    /// One process is gone, so all others end; but those that have not begun yet wait for it to be started again.
    fn ends_without(&self, gone: usize, mut service: Company) {
        let deadline = Instant::now() + SEEN_WITHIN;
        for process in (0..service.0.len()).filter(|process| *process != gone) {
            let begun = |service: &Company| {
                service.log(0).contains("processes are here")
                    && (process == 0 || service.log(process).contains("reads its part"))
            };
            let code = loop {
                match service.0[process].0.try_wait().unwrap() {
                    Some(ended) => break ended.code(),
                    None if Instant::now() < deadline => sleep(20),
                    None => break None,
                }
            };
            let is_right = code == Some(1) || code.is_none() && !begun(&service);
            assert!(
                is_right,
                "{}: without process {gone}, {process} ends with {code:?}\n{}",
                self.about,
                service.logs()
            );
        }
        service.0.iter_mut().for_each(|(process, _)| drop(process.kill()));
    }

    /// What there is to read may not lead to that point; then it is killed.
    fn crashes(&mut self, point: CrashPoint, times: u64) {
        let mut service = self.begun(Some((point, times)));
        for _ in 0..40 {
            sleep(50);
            if let Some(ended) = service.0[0].0.try_wait().unwrap() {
                assert_eq!(ended.signal(), Some(ABORTED), "{}:\n{}", self.about, service.logs());
                break;
            }
        }
        drop(service.0[0].0.kill());
        drop(service.0[0].0.wait());
        self.ends_without(0, service);
    }

    fn happens(&mut self, fault: Fault, broker: &mut Broker) {
        if let Fault::Crash(point, times) = fault {
            if let Some(service) = self.service.take() {
                self.ended_in_order(service);
            }
            return self.crashes(point, times);
        }
        let mut service = self.running();
        match fault {
            Fault::Kill(after) => {
                sleep(after);
                let killed = self.one_of(&service);
                service.signal(killed, "KILL");
                drop(service.0[killed].0.wait());
                return self.ends_without(killed, service);
            }
            Fault::Term => return self.ended_in_order(service),
            Fault::Pause(millis) => {
                let paused = self.one_of(&service);
                service.signal(paused, "STOP");
                sleep(millis);
                service.signal(paused, "CONT");
            }
            Fault::Second => {
                self.wait_until_it_reads(&service);
                let said = self.subject.is_refused_beside_another();
                assert!(said.contains("is in use: another run of fleetdiff writes into it"), "{}: {said}", self.about);
            }
            Fault::BrokerHangs(millis) => {
                self.wait_until_it_reads(&service);
                broker.signal("STOP");
                sleep(millis);
                broker.signal("CONT");
            }
            Fault::BrokerDies(millis) => {
                self.wait_until_it_reads(&service);
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
    for round in first_round()..first_round() + rounds() {
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
    assert_eq!(sum(|row| row.records_consumed), i64::try_from(damaged.records.len()).unwrap(), "{about}: records");
    assert_eq!(results.refused(), damaged.bad, "{about}: records that hold nothing good");
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
