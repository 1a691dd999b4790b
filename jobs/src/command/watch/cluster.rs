//! One service in several processes: they meet, the first one has the folder and says how the run begins, the others follow it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use fleetdiff_connectors::meeting::{MeetingError, Met, Party, Secret};
use fleetdiff_connectors::receivers::Receivers;
use fleetdiff_pipeline::checkpoint::Checkpoint;
use fleetdiff_pipeline::rules::decisions::Decisions;
use fleetdiff_pipeline::run::cluster::{Beginning, Cluster, Connections, Lose, Shape};
use fleetdiff_pipeline::run::pulse::Pulse;
use fleetdiff_pipeline::run::wall::{WallClock, wall_now};
use fleetdiff_pipeline::run::{self, run_in_cluster};
use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::sink::{Sink, SinkError};
use fleetdiff_schemas::time::Hop;
use serde_json::json;

use super::checkpoints::hops;
use super::console::{Console, InUse, Terms};
use super::metrics::Latencies;
use super::{Partitions, WatchArgs, conclude, show, sources, supervisor};
use crate::configuration::Configuration;
use crate::failure::Failure;

/// The processes of a service, as one of them sees them.
pub(super) struct Company {
    party: Party,
    stop: Arc<AtomicBool>,
}

/// What the first process says to the others.
pub(super) struct Opening<'a> {
    pub(super) checkpoint: Option<&'a Checkpoint>,
    pub(super) decisions: &'a Decisions,
    pub(super) partitions: Partitions,
}

impl Company {
    /// The processes of this configuration; `None` if there is one.
    ///
    /// # Errors
    /// The file of the secret cannot be read, or is empty.
    pub(super) fn of(
        configuration: &Configuration,
        until_end: bool,
        stop: &Arc<AtomicBool>,
    ) -> Result<Option<Self>, Failure> {
        let cluster = &configuration.cluster;
        if cluster.processes <= 1 {
            return Ok(None);
        }
        let file = &cluster.secret_file;
        let secret = match file.is_empty() {
            true => Secret::default(),
            false => Secret::new(&std::fs::read(file).map_err(|error| unreadable(file, &error.to_string()))?)
                .filled()
                .ok_or_else(|| unreadable(file, "it is empty"))?,
        };
        let mut settings: serde_json::Value = serde_json::from_str(&configuration.of_topic_as_json())?;
        settings["until_end"] = until_end.into();
        settings["archive"] = configuration.dataflow().archive.into();
        settings["output.checkpoint_every"] = json!(configuration.output.checkpoint_every.as_secs_f64());
        let party = Party {
            process: cluster.process,
            workers: configuration.workers,
            hosts: cluster.hosts(),
            secret,
            settings: settings.to_string(),
            program: env!("CARGO_PKG_VERSION").to_owned(),
        };
        Ok(Some(Self { party, stop: Arc::clone(stop) }))
    }

    /// Whether this is the process that has the folder.
    pub(super) fn is_first(&self) -> bool {
        self.party.process == 0
    }

    fn shape(&self) -> Shape {
        let Party { process, workers, hosts, .. } = &self.party;
        Shape { process: *process, processes: hosts.len(), workers: *workers }
    }

    /// Waits for the other processes; `None` if it was stopped before.
    fn meet(&self) -> Result<Option<Connections>, Failure> {
        let met = self.party.meet(&self.stop).map_err(|error| {
            let hint = match &error {
                MeetingError::Listen { .. } => {
                    "cluster.hosts must have an address of this machine at the place cluster.process, with a port that is free"
                }
                MeetingError::Refused { .. } => {
                    "all processes need the same version, settings, number of workers, list of hosts and secret"
                }
            };
            Failure::with_hint(error, hint)
        })?;
        Ok(met.map(|Met { control, data }| Connections { control, data }))
    }

    /// As the first process: says to all others how the run begins, once they are there.
    ///
    /// # Errors
    /// A process is of another run, or its connection breaks.
    pub(super) fn gather(&self, opening: &Opening<'_>) -> Result<Option<Cluster>, Failure> {
        let more = serde_json::to_string(&opening.partitions)?;
        let beginning = Beginning::new(opening.checkpoint, opening.decisions, more);
        let Some(connections) = self.meet()? else { return Ok(None) };
        let cluster = Cluster::first(self.shape(), connections, beginning, self.lose()).map_err(broken)?;
        tracing::info!("all {} processes are here", self.party.hosts.len());
        Ok(Some(cluster))
    }

    /// As another process: follows the first one to its end.
    ///
    /// # Errors
    /// A process is of another run, or its connection breaks; or the run fails.
    pub(super) fn follow(&self, args: &WatchArgs, configuration: &Configuration) -> Result<(), Failure> {
        if args.standby || args.decisions.is_some() {
            return Err(Failure::usage(
                "--standby and --decisions concern the output folder, which process 0 has",
                "give them to process 0 alone; the others wait for it",
            ));
        }
        let config = configuration.dataflow();
        let Some(connections) = self.meet()? else { return Ok(()) };
        let (cluster, beginning) = Cluster::other(self.shape(), connections, self.lose()).map_err(broken)?;
        let partitions: Partitions = serde_json::from_str(&beginning.more)?;
        let sources = sources(configuration, partitions, args.until_end, beginning.checkpoint())?;
        let every = if args.until_end { None } else { hops(configuration.output.checkpoint_every, config.clock()) };
        let of_first = cluster.of_first(beginning, every);
        let (decisions, checkpoints) = of_first.map_err(|error| Failure::usage(error, "give all the same version"))?;
        tracing::info!(
            "process {} of {} reads its part of topic {} at {} with {} workers; process 0 writes tables and alerts",
            self.party.process,
            self.party.hosts.len(),
            configuration.kafka.topic,
            configuration.kafka.client.brokers,
            configuration.workers,
        );
        let idle_after = if args.until_end { None } else { configuration.kafka.idle_after() };
        let terms = Terms { clock: config.clock(), idle_after };
        let console =
            Console::new(Pulse::default(), Receivers::default(), terms, InUse::new(configuration, wall_now()));
        let latencies = Latencies::new();
        let ticker = show(configuration, args.until_end, &console, &latencies)?;
        supervisor::ready();
        let (stop, pulse, wall) = (Arc::clone(&self.stop), console.pulse().clone(), WallClock::System);
        let service = run::Service { stop, idle_after, decisions, limits: None, pulse, checkpoints, wall };
        let ended = run_in_cluster(&config, cluster, sources, Box::new(OfAnother), service);
        supervisor::stopping();
        ticker.finish();
        conclude(&console.overview(), ended?, args.until_end)
    }

    /// Ends this process, since the run has lost another one.
    fn lose(&self) -> Box<Lose> {
        let hosts = self.party.hosts.clone();
        Box::new(move |process, why| {
            let host = hosts.get(process).map_or("", String::as_str);
            tracing::error!(
                "process {process} at {host} is lost: {why}. This process ends too; started again, all go on from the last checkpoint"
            );
            std::process::exit(1);
        })
    }
}

fn broken(error: std::io::Error) -> Failure {
    Failure::with_hint(
        std::io::Error::other(format!("a process of the service has ended while the run began: {error}")),
        "start all of them again",
    )
}

fn unreadable(file: &str, why: &str) -> Failure {
    Failure::usage(
        format!("cluster.secret_file: {file}: {why}"),
        "write anything that nobody can guess into it, as `openssl rand -hex 32` gives, the same for all processes",
    )
}

/// Rows go to the first process.
struct OfAnother;

impl Sink for OfAnother {
    fn take(&mut self, _: Hop, _: Tables) -> Result<(), SinkError> {
        Ok(())
    }
}
