//! What it costs that a service is counted by several processes: the same records, in one process and in several.
//!
//! `cargo bench --profile dist -p fleetdiff-benches --bench processes -- [--quick]`; see README.md of this folder.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use fleetdiff_benches::asked::Asked;
use fleetdiff_benches::workload::{MEDIUM, Mix, Workload};
use fleetdiff_connectors::meeting::{Met, Party, Secret};
use fleetdiff_pipeline::run::cluster::{Beginning, Cluster, Connections, Shape};
use fleetdiff_pipeline::run::in_memory::{Collected, sources};
use fleetdiff_pipeline::run::{Service, run_in_cluster, run_service};
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::profile::Decoded;
use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

/// Says to a process which one it is: process, hosts, workers, hops.
const ROLE: &str = "FLEETDIFF_BENCH_ROLE";
/// Processes, and workers of each.
const SHAPES: [(usize, usize); 5] = [(1, 1), (1, 2), (2, 1), (2, 2), (4, 1)];

fn main() -> ExitCode {
    if let Ok(role) = std::env::var(ROLE) {
        say(&work(&role));
        return ExitCode::SUCCESS;
    }
    let Some(asked) = Asked::given(&["--quick"]) else { return ExitCode::from(2) };
    let (hops, passes) = if asked.has("--quick") { (60, 1) } else { (180, 3) };
    let pods = MEDIUM.pods;
    say(&format!(
        "medium, {pods} pods, 10 % in every cell, {hops} hops, evaluated every minute; all records are made before the clock starts"
    ));
    say("  processes  workers of each  seconds  records/s  CPU, s  of one worker's  rows of cells");
    let mut one = None;
    for _ in 0..passes {
        for (processes, workers) in SHAPES {
            let took = measure(processes, workers, hops);
            let base = *one.get_or_insert(took.cpu);
            let records = pods * usize::try_from(hops).unwrap_or(0);
            #[expect(clippy::as_conversions, reason = "small")]
            let rate = records as f64 / took.seconds;
            say(&format!(
                "  {processes:>9} {workers:>16} {:>8.1} {rate:>10.0} {:>7.1} {:>15.2} {:>14}",
                took.seconds,
                took.cpu,
                took.cpu / base,
                took.rows
            ));
        }
    }
    ExitCode::SUCCESS
}

/// What a run took.
#[derive(Clone, Copy, Debug, Default)]
struct Took {
    seconds: f64,
    /// Of all processes.
    cpu: f64,
    rows: usize,
}

fn measure(processes: usize, workers: usize, hops: u64) -> Took {
    let free = |_| TcpListener::bind("127.0.0.1:0").expect("a free port");
    let listeners: Vec<TcpListener> = (0..processes).map(free).collect();
    let hosts: Vec<String> = listeners.iter().map(|one| one.local_addr().expect("an address").to_string()).collect();
    drop(listeners);
    let program = std::env::current_exe().expect("this program");
    let start = |process: usize| -> Child {
        let role = format!("{process} {} {workers} {hops}", hosts.join(","));
        let mut command = Command::new(&program);
        command.env(ROLE, role).stdout(Stdio::piped()).spawn().expect("this program starts")
    };
    let mut took = Took::default();
    for mut process in (0..processes).map(start).collect::<Vec<_>>() {
        let mut said = String::new();
        process.stdout.take().expect("a pipe").read_to_string(&mut said).expect("text");
        assert!(process.wait().expect("an end").success(), "a process of the run has failed");
        let figures: Vec<f64> = said.split_whitespace().map(|figure| figure.parse().expect("a figure")).collect();
        took.seconds = took.seconds.max(figures[0]);
        took.cpu += figures[1];
        took.rows += said.split_whitespace().nth(2).and_then(|rows| rows.parse::<usize>().ok()).unwrap_or(0);
    }
    took
}

/// One process of a run; gives the seconds, those of CPU, and the rows of `cells`.
fn work(role: &str) -> String {
    let mut parts = role.split_whitespace();
    let mut next = || parts.next().unwrap_or_default();
    let process: usize = next().parse().expect("a number");
    let hosts: Vec<String> = next().split(',').map(str::to_owned).collect();
    let workers: usize = next().parse().expect("a number");
    let hops: u64 = next().parse().expect("a number");
    let workload = Workload::new(MEDIUM, Mix::CanaryInEveryCell, 0, hops);
    let Config { evaluate_every, report_every, .. } = Config::default();
    let config = Config { evaluate_every, report_every, ..workload.config() };
    let (processes, all) = (hosts.len(), hosts.len() * workers);
    let own = process * workers..(process + 1) * workers;
    let sources = sources(records(&workload, hops, own, all));
    let sink = Collected::default();
    let shape = Shape { process, processes, workers };
    let met = (processes > 1).then(|| meet(shape, hosts));
    let (began, cpu) = (Instant::now(), cpu_seconds());
    match met {
        None => run_service(&config, workers, sources, Box::new(sink.clone()), Service::default()),
        Some((cluster, service)) => run_in_cluster(&config, cluster, sources, Box::new(sink.clone()), service),
    }
    .expect("the run does not fail");
    let (seconds, cpu) = (began.elapsed().as_secs_f64(), cpu_seconds() - cpu);
    format!("{seconds} {cpu} {}", sink.tables().cells.len())
}

fn meet(shape: Shape, hosts: Vec<String>) -> (Cluster, Service) {
    let Shape { process, workers, .. } = shape;
    let (secret, settings, program) = (Secret::default(), String::new(), String::new());
    let party = Party { process, workers, hosts, secret, settings, program };
    let met = party.meet(&AtomicBool::new(false)).expect("processes of one run").expect("nobody stops it");
    let Met { control, data } = met;
    let connections = Connections { control, data };
    let lost = |process: usize, why: &str| {
        say(&format!("process {process} is lost: {why}"));
        std::process::exit(1);
    };
    if process == 0 {
        let service = Service::default();
        let beginning = Beginning::new(None, &service.decisions, String::new());
        (Cluster::first(shape, connections, beginning, Box::new(lost)).expect("connections"), service)
    } else {
        let (cluster, beginning) = Cluster::other(shape, connections, Box::new(lost)).expect("connections");
        let (decisions, checkpoints) = cluster.of_first(beginning, None).expect("as it was written");
        (cluster, Service { decisions, checkpoints, ..Service::default() })
    }
}

/// The records of some workers, one partition each, of which each has every n-th pod. Those of others have none here.
fn records(workload: &Workload, hops: u64, own: std::ops::Range<usize>, all: usize) -> Vec<Vec<Decoded>> {
    let of_worker = |worker: usize| {
        let partition = i32::try_from(worker).unwrap_or(0);
        let pods = || (worker..workload.pods.len()).step_by(all);
        let records = (0..hops).flat_map(|hop| pods().map(move |pod| workload.record(pod, hop, partition)));
        if own.contains(&worker) { records.collect() } else { Vec::new() }
    };
    (0..all).map(of_worker).collect()
}

/// CPU time of this process so far, by Linux: its 14th and 15th figure, in hundredths of a second.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = after_name.split_whitespace().skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok());
    ticks.sum::<f64>() / 100.0
}

fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
