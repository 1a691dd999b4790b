//! A run in several processes, each of which is a thread of the test with connections to the others over the loopback interface.

use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use fleetdiff_pipeline::checkpoint::{Checkpoint, Checkpoints, Keep};
use fleetdiff_pipeline::run::cluster::{Beginning, Cluster, Connections, Shape};
use fleetdiff_pipeline::run::in_memory::{Collected, sources};
use fleetdiff_pipeline::run::{Ended, Service, SourceFactory, run_in_cluster, run_service};
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::profile::Decoded;
use fleetdiff_schemas::sink::Sink;

/// A connection, by its two ends.
fn connection() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (other, _) = listener.accept().unwrap();
    [&one, &other].into_iter().for_each(|stream| stream.set_nodelay(true).unwrap());
    (one, other)
}

/// The connections of each process.
fn connections(processes: usize) -> Vec<Connections> {
    let none = || (0..processes).map(|_| None).collect::<Vec<Option<TcpStream>>>();
    let mut all: Vec<Connections> = (0..processes).map(|_| Connections { control: none(), data: none() }).collect();
    for one in 0..processes {
        for other in one + 1..processes {
            let (of_one, of_other) = connection();
            (all[one].data[other], all[other].data[one]) = (Some(of_one), Some(of_other));
            if one == 0 {
                let (of_one, of_other) = connection();
                (all[one].control[other], all[other].control[one]) = (Some(of_one), Some(of_other));
            }
        }
    }
    all
}

/// How a run is made: by how many processes, with how many workers each.
#[derive(Clone, Copy, Debug)]
pub struct Workers {
    pub processes: usize,
    pub each: usize,
}

impl Workers {
    /// In one process.
    pub fn in_one(each: usize) -> Self {
        Self { processes: 1, each }
    }
}

/// Runs to the end, with checkpoints every so many hops.
pub fn run_with(
    (config, partitions): (&Config, &[Vec<Decoded>]),
    Workers { processes, each }: Workers,
    before: Option<Checkpoint>,
    (every, keep): (u64, Box<dyn Keep>),
    sink: Box<dyn Sink>,
) {
    let sources = sources(partitions.to_vec());
    if processes == 1 {
        let checkpoints = Checkpoints::default().taken(every, keep);
        let checkpoints = before.into_iter().fold(checkpoints, Checkpoints::begun_with);
        let service = Service { checkpoints, ..Service::default() };
        run_service(config, each, sources, sink, service).unwrap();
        return;
    }
    let mut connections = connections(processes).into_iter().enumerate();
    let (_, of_first) = connections.next().unwrap();
    let others = connections.map(|(process, connections)| {
        let (config, sources) = (config.clone(), Arc::clone(&sources));
        let shape = Shape { process, processes, workers: each };
        std::thread::spawn(move || other(&config, shape, connections, every, sources))
    });
    let others: Vec<_> = others.collect();
    let service = Service::default();
    let beginning = Beginning::new(before.as_ref(), &service.decisions, String::new());
    let shape = Shape { process: 0, processes, workers: each };
    let cluster = Cluster::first(shape, of_first, beginning, Box::new(lost)).unwrap();
    let checkpoints = Checkpoints::default().taken(every, keep);
    let checkpoints = before.into_iter().fold(checkpoints, Checkpoints::begun_with);
    let ended = run_in_cluster(config, cluster, sources, sink, Service { checkpoints, ..service }).unwrap();
    assert_eq!(ended, Ended::Complete);
    others.into_iter().for_each(|other| other.join().unwrap());
}

fn other(config: &Config, shape: Shape, connections: Connections, every: u64, sources: Arc<SourceFactory>) {
    let (cluster, beginning) = Cluster::other(shape, connections, Box::new(lost)).unwrap();
    let (decisions, checkpoints) = cluster.of_first(beginning, Some(every)).unwrap();
    let service = Service { decisions, checkpoints, ..Service::default() };
    let none = Collected::default();
    let ended = run_in_cluster(config, cluster, sources, Box::new(none.clone()), service).unwrap();
    assert_eq!(ended, Ended::Complete);
    assert_eq!(none.tables(), fleetdiff_schemas::rows::Tables::default(), "only the first process has rows");
}

#[expect(clippy::print_stderr, reason = "the process ends")]
fn lost(process: usize, why: &str) {
    eprintln!("process {process} is lost: {why}");
    std::process::abort();
}
