//! A backlog is read in memory that its length does not change: small records of many pods, a partition that is hours behind the others, names
//! and cells that never come again.
//!
//! `FLEETDIFF_BACKLOG_RECORDS=10000000` is the long form, in which the program may have 1 GiB. `FLEETDIFF_BACKLOG_CGROUP=/sys/fs/cgroup/...`
//! runs the program in that control group, whose limit then ends it.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use fleetdiff_schemas::delta;
use fleetdiff_schemas::identity::Identity;
use fleetdiff_schemas::profile::{Profile, ProfileType, Samples, Stack, Temporality};
use fleetdiff_schemas::time::{Nanos, TimeRange};

use crate::chaos::records::{Record, Sender};
use crate::chaos::{make, number};
use crate::program::{brokers, command, start, text};
use crate::results::of_folder;

const TOPIC: &str = "backlog";
const PARTITIONS: usize = 3;
const PODS: usize = 300;
/// Records, if nothing else is asked for; and what they may take: half of what all of them would, and a process that reads nothing.
const RECORDS: u64 = 150_000;
const MOST: u64 = 256 << 20;
/// What any number of them may take: what most machines of a fleet can spare.
const MOST_OF_ALL: u64 = 1 << 30;
/// Hops of which records are sent before it is asked whether they are stored.
const AT_ONCE: usize = 20;
/// How far the first partition is behind the others: six hours, or half of what there is if that is less.
const BEHIND: u64 = 2160;

/// The profile of a pod in a hop, of which every tenth has a function that never comes again, and every thousandth a cell.
fn profile(pod: usize, hop: u64, behind: u64) -> Profile {
    let serial = hop * 300 + u64::try_from(pod).unwrap();
    let mut names: Vec<Arc<str>> = (0..20).map(|function| format!("function_{function:02}").into()).collect();
    if serial.is_multiple_of(10) {
        names.push(format!("generated_{serial}").into());
    }
    let cohort =
        if serial.is_multiple_of(1000) { format!("user-{serial}") } else { ["tv", "web"][pod / 3 % 2].to_owned() };
    let stack = |leaf: usize| {
        let leaf_number = u32::try_from(leaf).unwrap();
        let count = 1 + (serial.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (leaf % 60)) % 3;
        Stack { frames: vec![0, leaf_number], count, cohort: None, value: 0 }
    };
    let since = if pod.is_multiple_of(PARTITIONS) { hop } else { hop + behind };
    let begin = Nanos::from_seconds(1_800_000_000 + i64::try_from(since).unwrap() * 10);
    Profile {
        identity: Arc::new(Identity {
            service: "shop".into(),
            build: ["v1", "v2"][usize::from(pod % 30 == 7)].into(),
            region: "eu".into(),
            cohort: cohort.as_str().into(),
            hardware: "m7g".into(),
            node: None,
            pod: format!("pod-{pod}").as_str().into(),
            process_start: None,
        }),
        profile_type: ProfileType::Cpu,
        temporality: Temporality::Delta,
        window: TimeRange { start: begin, end: Nanos(begin.0 + 10_000_000_000) },
        requests: None,
        samples: Samples::Stacks((1..names.len()).map(stack).collect()),
        names: names.into(),
    }
}

/// The record of a pod's profile in a hop.
fn record(pod: usize, hop: u64, behind: u64) -> Record {
    let profile = profile(pod, hop, behind);
    let partition = i32::try_from(pod % PARTITIONS).unwrap();
    let (at, payload) = (profile.window.end.0 / 1_000_000, delta::encode(&[profile]));
    Record { partition, at, payload, headers: None }
}

/// Sends one record a profile, hop after hop.
fn send(hops: u64, behind: u64) {
    let sender = Sender::to(brokers(), TOPIC);
    for first in (0..hops).step_by(AT_ONCE) {
        let hops = (first..hops).take(AT_ONCE);
        let records: Vec<Record> = hops.flat_map(|hop| (0..PODS).map(move |pod| record(pod, hop, behind))).collect();
        sender.send(&records);
    }
}

/// Starts a service whose log goes to a file, in the control group that is named, if one is.
fn start_bounded(args: &[&str], log: &Path) -> Child {
    let Some(group) = std::env::var_os("FLEETDIFF_BACKLOG_CGROUP") else { return start(args, log) };
    let program = command(args);
    let mut run = Command::new("sh");
    run.args(["-c", r#"echo $$ > "$0/cgroup.procs" && exec "$@""#]).arg(group);
    run.arg(program.get_program()).args(program.get_args()).env("FLEETDIFF_STATUS_LISTEN", "127.0.0.1:0");
    run.stdout(Stdio::null()).stderr(fs::File::create(log).unwrap()).spawn().unwrap()
}

/// The most memory that the process had until it ended.
fn peak_until_end(mut service: Child) -> u64 {
    let status = format!("/proc/{}/status", service.id());
    let mut peak = 0;
    loop {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        peak = peak.max(kibibytes.unwrap_or(0) * 1024);
        if let Some(ended) = service.try_wait().unwrap() {
            assert!(ended.success(), "{ended}");
            return peak;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_backlog_is_read_in_bounded_memory() {
    let records = number("FLEETDIFF_BACKLOG_RECORDS", RECORDS);
    let most = if records > RECORDS { MOST_OF_ALL } else { MOST };
    let hops = records / u64::try_from(PODS).unwrap();
    let behind = BEHIND.min(hops / 2);
    make(brokers(), TOPIC, i32::try_from(PARTITIONS).unwrap(), 1);
    send(hops, behind);
    let scratch = tempfile::tempdir().unwrap();
    let (output, log) = (scratch.path().join("out"), scratch.path().join("log"));
    let own = ["watch", "--until-end", "--brokers", brokers(), "--topic", TOPIC, "--format", "delta"];
    let rest = ["--output", text(&output), "--alerts-topic", "", "--window", "10m"];
    let began = std::time::Instant::now();
    let peak = peak_until_end(start_bounded(&[&own[..], &rest].concat(), &log));
    println!("{records} records: at most {} MiB, {} s", peak >> 20, began.elapsed().as_secs());
    assert!(peak > 0 && peak < most, "{} MiB", peak >> 20);
    let ledger = of_folder(&output).tables.ledger;
    ledger.iter().for_each(|row| assert!(row.balances(), "{row:?}"));
    let decoded: i64 = ledger.iter().map(|row| row.records_decoded).sum();
    assert_eq!(decoded, i64::try_from(hops).unwrap() * i64::try_from(PODS).unwrap());
}
