//! `watch`: the service from a Kafka topic to Parquet and an alert topic.

mod checkpoints;
mod cluster;
mod console;
mod decisions;
mod done;
mod generation;
mod http;
mod metrics;
mod progress;
mod promise;
mod reload;
mod service;
mod standby;
mod status;
mod supervisor;
mod ticker;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use fleetdiff_connectors::kafka::alerts::AlertSettings;
use fleetdiff_connectors::kafka::source::{Contents, Share, TopicSettings, TopicSource};
use fleetdiff_connectors::kafka::topic;
use fleetdiff_connectors::lock::FolderLock;
use fleetdiff_connectors::receivers::Receivers;
use fleetdiff_connectors::store::{Place, Store, StoreAddress};
use fleetdiff_formats::otlp::metrics::Decoder as RequestDecoder;
use fleetdiff_pipeline::checkpoint::Checkpoint;
use fleetdiff_pipeline::rules::decisions::limits::LimitsInForce;
use fleetdiff_pipeline::run::pulse::Pulse;
use fleetdiff_pipeline::run::pulse::diagnosis::refusals;
use fleetdiff_pipeline::run::wall::{WallClock, wall_now};
use fleetdiff_pipeline::run::{self, Ended, RunError, SourceFactory, run_in_cluster, run_service};
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::source::{Source, SourceError};
use fleetdiff_schemas::tables::calendar::rfc3339;
use serde::{Deserialize, Serialize};

use self::checkpoints::{Checkpointing, Owner};
use self::cluster::{Company, Opening};
use self::console::{Console, InUse, Overview, Terms};
use self::metrics::{Latencies, Metrics};
use self::reload::{Origin, Reload, Takers};
use self::service::Service;
use self::ticker::{Ticker, Writer};
use crate::configuration::{Configuration, Everything, Flags, Loaded};
use crate::failure::Failure;
use crate::logging::Log;
use crate::output::guidance::GuidanceLog;
use crate::output::patience::Patience;
use crate::output::{AlertTarget, GRACE, Output};
use crate::signals::stop_on_signals;

/// How it is used.
pub(crate) const EXAMPLES: &str = "\
Examples:
  fleetdiff watch --config fleetdiff.toml
  fleetdiff watch --brokers kafka:9092 --topic profiles --output out --until-end
  fleetdiff watch --config fleetdiff.toml --output again --until-end --decisions out/decisions.jsonl
  FLEETDIFF_KAFKA_CLIENT_SASL_PASSWORD=... fleetdiff watch --config fleetdiff.toml --warm-up 2m
  fleetdiff watch --config fleetdiff.toml --shard 2/3 --output out-2 --standby
  fleetdiff watch --config fleetdiff.toml --window 15m --new-generation
  fleetdiff watch --config fleetdiff.toml --store s3://telemetry/fleetdiff/checkout
  fleetdiff watch --config fleetdiff.toml --hosts a:2101,b:2101 --processes 2 --process 1
  fleetdiff watch --show-config > fleetdiff.toml";

/// Arguments of `watch`.
#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Configuration file; keys that it leaves out have their defaults
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print the configuration in effect as a commented file, without secrets, and exit
    #[arg(long)]
    pub(crate) show_config: bool,
    /// Read up to the current end of the topic, close all intervals, write all rows and exit
    #[arg(long)]
    pub(crate) until_end: bool,
    /// Decide as an earlier run did, whose decisions.jsonl this is: the same topic then gives the same rows in another folder
    #[arg(long, value_name = "FILE")]
    pub(crate) decisions: Option<PathBuf>,
    /// If another process writes into the output folder, wait until it has ended, and go on where it was
    #[arg(long, conflicts_with = "until_end")]
    pub(crate) standby: bool,
    /// If settings that rows depend on have changed, put the output of before aside in its folder `generations`, and begin anew
    #[arg(long)]
    pub(crate) new_generation: bool,
    /// Every key of the file.
    #[command(flatten)]
    pub(crate) flags: Flags<Everything>,
}

/// Runs the service until its end, or until it is stopped.
pub(crate) fn run(args: &WatchArgs, log: &Log) -> Result<(), Failure> {
    let asked = if args.until_end { None } else { Some(reload_on_signal()?) };
    let configuration = Configuration::load(args.config.as_deref(), &args.flags).map_err(Failure::of_configuration)?;
    if args.show_config {
        write!(std::io::stdout(), "{}", configuration.to_toml())?;
        return Ok(());
    }
    log.follow(configuration.log_level);
    let config = configuration.dataflow();
    refuse_uncalibrated(&config)?;
    tracing::info!("{}", promise::false_alerts(&config));
    let stop = stop_on_signals()?;
    let loaded = Loaded::of(configuration).map_err(Failure::of_configuration)?;
    let company = Company::of(&loaded.configuration, args.until_end, &stop)?;
    if let Some(company) = company.as_ref().filter(|company| !company.is_first()) {
        return company.follow(args, &loaded.configuration);
    }
    // NB: before there is a folder, so that none is made for a topic that is not there. A standby asks when it takes over.
    let partitions = (!args.standby).then(|| Partitions::ask(&loaded.configuration)).transpose()?;
    // NB: before anything in it is opened, which may change as long as another process has it.
    match standby::take_folder(&loaded.configuration.output.folder, args.standby, &stop)? {
        Some(lock) => {
            generation::settle(lock.root(), &loaded, args.new_generation)?;
            let place = place(&loaded.configuration)?;
            serve(args, &loaded, Start { lock, place, partitions, company, stop, asked, log: log.clone() })
        }
        None => Ok(()),
    }
}

/// What a service has before it opens anything.
struct Start {
    /// The output folder is its own.
    lock: FolderLock,
    /// Where its output is kept.
    place: Place,
    /// If they are known already.
    partitions: Option<Partitions>,
    /// The processes of which it is the first, if there are others.
    company: Option<Company>,
    /// Set by signals that end it.
    stop: Arc<AtomicBool>,
    /// Set by SIGHUP, if it follows its configuration.
    asked: Option<Arc<AtomicBool>>,
    log: Log,
}

/// Runs the service on a folder that is its own. The folder is another's only once receivers have what they get.
fn serve(args: &WatchArgs, loaded: &Loaded, start: Start) -> Result<(), Failure> {
    let Start { lock, place, partitions, company, stop, asked, log } = start;
    let configuration = &loaded.configuration;
    let config = configuration.dataflow();
    let receivers = Receivers::start(&loaded.receivers, &place).map_err(Failure::of_receiver)?;
    // A bounded read needs no wall clock: each of its partitions ends.
    let idle_after = if args.until_end { None } else { configuration.kafka.idle_after() };
    let terms = Terms { clock: config.clock(), idle_after };
    let in_use = InUse::new(configuration, wall_now());
    let console = Console::new(Pulse::default(), receivers.clone(), terms, in_use);
    let latencies = Latencies::new();
    let partitions = partitions.map_or_else(|| Partitions::ask(configuration), Ok)?;
    // NB: in this order. What cannot be gone on from must not take the store and the topic of alerts from another.
    let checkpointing = open_checkpoints(configuration, &place, args.until_end, &console)?;
    let patience = match args.until_end {
        true => Patience::none(),
        false => Patience::of_service(Arc::clone(&stop), console.pulse().clone()),
    };
    let (output, guidance) = open(&place, lock.clone(), configuration, partitions, &receivers, &stop)?;
    let output = output.patient(patience.clone());
    let decisions = decisions::open(&place, args.decisions.as_deref(), patience)?;
    let decided_before = output.decided_before(config.clock()).max(checkpointing.decided_before());
    let decisions = decisions.with_decided_before(decided_before);
    let limits = LimitsInForce::begin(&decisions, config.limits).map_err(RunError::Decision)?;
    let service =
        Service::new(output, Arc::clone(&console), latencies.clone(), config.clock().hops_in(config.evaluate_every));
    let ticker = show(configuration, args.until_end, &console, &latencies)?;
    let taking = decisions::Limiter { limits: limits.clone(), decisions: decisions.clone(), clock: config.clock() };
    let takers = {
        let (console, receivers, place) = (Arc::clone(&console), receivers.clone(), place.clone());
        Takers { console, guidance, receivers, limits: taking, place, in_company: company.is_some(), log }
    };
    let origin = Origin { file: args.config.clone(), flags: args.flags.clone() };
    let reload = asked.map(|asked| Reload::start(origin, loaded.clone(), takers, asked)).transpose()?;
    let sources = sources(configuration, partitions, args.until_end, checkpointing.begun_with())?;
    let opening = Opening { checkpoint: checkpointing.begun_with(), decisions: &decisions, partitions };
    let gathered = company.as_ref().map(|company| company.gather(&opening)).transpose()?;
    if let Some(None) = gathered {
        return Ok(());
    }
    supervisor::ready();
    let (checkpoints, writing) = checkpointing.start();
    let pulse = console.pulse().clone();
    let wall = WallClock::System;
    let terms = run::Service { stop, idle_after, decisions, limits: Some(limits), pulse, checkpoints, wall };
    let sink = Box::new(service.clone());
    let ended = match gathered.flatten() {
        Some(cluster) => run_in_cluster(&config, cluster, sources, sink, terms),
        None => run_service(&config, configuration.workers, sources, sink, terms),
    };
    if let Some(reload) = reload {
        reload.finish();
    }
    supervisor::stopping();
    writing.finish();
    let ended = ended.and_then(|ended| match ended {
        Ended::Complete => service.finish().map(|()| ended),
        Ended::Stopped => Ok(ended),
    });
    // However it ended, what was announced goes out.
    receivers.finish(GRACE);
    ticker.finish();
    drop(lock);
    conclude(&console.overview(), ended?, args.until_end)
}

/// A method that is not calibrated is for comparison only.
fn refuse_uncalibrated(config: &Config) -> Result<(), Failure> {
    if config.method.is_calibrated() {
        return Ok(());
    }
    Err(Failure::usage(
        format!(
            "watch does not take the method {}: it is not calibrated and would wake people for nothing",
            config.method.name()
        ),
        "leave dataflow.method at honest; `fleetdiff replay --method` compares methods on a recorded fleet",
    ))
}

/// Says how it ended, and whether that is what was asked for.
fn conclude(overview: &Overview, ended: Ended, until_end: bool) -> Result<(), Failure> {
    log_end(overview, if ended == Ended::Complete { "ended" } else { "stopped" });
    if ended == Ended::Stopped && until_end {
        return Err(Failure::with_hint(
            "stopped before the end of the topic",
            "rows of the last interval are not written; run it again",
        ));
    }
    Ok(())
}

/// Begins to show how the service is: over HTTP, in the file of metrics and in the log.
fn show(
    configuration: &Configuration,
    until_end: bool,
    console: &Arc<Console>,
    latencies: &Latencies,
) -> Result<Ticker, Failure> {
    let metrics = Arc::new(Metrics::new(latencies));
    let listen = &configuration.status.listen;
    if !listen.is_empty() && !until_end {
        let (listener, bound) = http::listen(listen)?;
        http::serve(listener, Arc::clone(console), Arc::clone(&metrics))?;
        tracing::info!("status at http://{bound}/status, /metrics, /readyz, /healthz");
    }
    let file = &configuration.output.metrics;
    let file = (!file.is_empty()).then(|| PathBuf::from(file));
    let writer = Writer { console: Arc::clone(console), metrics, file };
    writer.try_write_metrics()?;
    Ok(Ticker::start(writer)?)
}

/// How many partitions each topic has, asked once for all workers: another answer a moment later would be another topic to one of them.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Partitions {
    profiles: i32,
    /// 0 if requests are not read from a topic.
    requests: i32,
}

impl Partitions {
    fn ask(Configuration { kafka, .. }: &Configuration) -> Result<Self, Failure> {
        let ask = |topic: &str| topic::partition_count(&kafka.client, topic).map_err(Failure::of_broker);
        let profiles = ask(&kafka.topic)?;
        let requests = if kafka.metrics_topic.is_empty() { 0 } else { ask(&kafka.metrics_topic)? };
        Ok(Self { profiles, requests })
    }
}

/// Where the output is kept.
fn place(Configuration { output, .. }: &Configuration) -> Result<Place, Failure> {
    if output.store.is_empty() {
        return Ok(Place::from(output.folder.as_path()));
    }
    let address: StoreAddress = output.store.parse().map_err(|what| Failure::usage(what, "see output.store"))?;
    Ok(Place::Store(Store::open(&address)?))
}

/// Opens everything that can fail before anything is read; gives also what alerts say besides their rows.
fn open(
    place: &Place,
    lock: FolderLock,
    configuration: &Configuration,
    partitions: Partitions,
    receivers: &Receivers,
    stop: &Arc<AtomicBool>,
) -> Result<(Output, GuidanceLog), Failure> {
    let (kafka, alerts) = (&configuration.kafka, &configuration.alerts);
    let (json, flush) = (configuration.of_topic_as_json(), configuration.output.flush);
    let output = Output::create_in(place.clone(), lock, json.clone(), flush)?.archived(configuration, json)?;
    let target = if alerts.topic.is_empty() {
        AlertTarget::file(&configuration.output.folder)?
    } else {
        let sender = &configuration.sender();
        let settings = AlertSettings { topic: &alerts.topic, partitions: alerts.partitions, sender };
        AlertTarget::topic(&kafka.client, settings, stop).map_err(Failure::of_broker)?
    };
    let guidance = GuidanceLog::open(place, &alerts.guidance, target.through())?;
    let output = output.alerting(target).guided(guidance.clone()).announced_to(receivers.clone());
    let requests = if kafka.metrics_topic.is_empty() {
        String::new()
    } else {
        format!(", requests of topic {}", kafka.metrics_topic)
    };
    let shard = configuration.dataflow.shard;
    let services = if shard.is_whole() { String::new() } else { format!(", counting services of shard {shard}") };
    tracing::info!(
        "reading topic {} ({} partitions, {}){services}{requests} at {} with {} workers; tables to {}, alerts to {}",
        kafka.topic,
        partitions.profiles,
        kafka.format.name(),
        kafka.client.brokers,
        configuration.workers,
        place,
        if alerts.topic.is_empty() { "alerts.jsonl" } else { &alerts.topic },
    );
    Ok((output, guidance))
}

/// The checkpoints of the output. A bounded read ends all intervals, so that nothing goes on from it, and it goes on from nothing.
fn open_checkpoints(
    configuration: &Configuration,
    place: &Place,
    until_end: bool,
    console: &Arc<Console>,
) -> Result<Checkpointing, Failure> {
    let clock = configuration.dataflow().clock();
    let owner = Owner { place, configuration: configuration.of_topic_as_json(), clock };
    if until_end {
        return Checkpointing::unused(&owner);
    }
    Checkpointing::open(owner, configuration.output.checkpoint_every, Arc::clone(console))
}

fn sources(
    configuration: &Configuration,
    partitions: Partitions,
    until_end: bool,
    begun_with: Option<&Checkpoint>,
) -> Result<Arc<SourceFactory>, Failure> {
    let (kafka, options) = (configuration.kafka.clone(), configuration.of_records());
    let offsets = |topic: &str| begun_with.map_or_else(|| Ok(BTreeMap::new()), |checkpoint| checkpoint.offsets(topic));
    let of_profiles = offsets(&kafka.topic).map_err(RunError::Checkpoint)?;
    let of_requests = offsets(&kafka.metrics_topic).map_err(RunError::Checkpoint)?;
    Ok(Arc::new(move |worker, workers| -> Result<Vec<Box<dyn Source>>, SourceError> {
        let open = |topic: &str, count, contents, start: &BTreeMap<i32, i64>| -> Result<Box<dyn Source>, SourceError> {
            let args = TopicSettings {
                until_end,
                start: start.clone(),
                identity: kafka.identity(),
                // A service waits, whatever the time; nobody watches a read to the end that waits.
                give_up_after: until_end.then_some(kafka.give_up_after),
                ..TopicSettings::new(topic)
            };
            let source = TopicSource::open(&kafka.client, args, count, Share { worker, workers }, contents);
            Ok(Box::new(source.map_err(|failure| failure.into_source_error(topic))?))
        };
        let profiles = Contents::Profiles(kafka.format.decoder(&options));
        let mut sources = vec![open(&kafka.topic, partitions.profiles, profiles, &of_profiles)?];
        if !kafka.metrics_topic.is_empty() {
            let requests = RequestDecoder::new(&options, kafka.request_metrics.iter().cloned());
            let requests = Contents::Requests(Box::new(requests));
            sources.push(open(&kafka.metrics_topic, partitions.requests, requests, &of_requests)?);
        }
        Ok(sources)
    }))
}

/// Set by SIGHUP.
fn reload_on_signal() -> Result<Arc<AtomicBool>, Failure> {
    let asked = Arc::new(AtomicBool::new(false));
    signal_hook::flag::register(signal_hook::consts::SIGHUP, Arc::clone(&asked))?;
    Ok(asked)
}

fn log_end(overview: &Overview, how: &str) {
    let done = &overview.done;
    let closed = if done.hops == 0 {
        "nothing was closed".to_owned()
    } else {
        format!("closed through {}", rfc3339(overview.now.clock.end_of(done.through)))
    };
    tracing::info!("{how}; {closed}: {} profiles, {} changes of flags", done.decoded, done.flags);
    if done.aa_check.tests > 0 {
        tracing::info!("{}", done.aa_check);
    }
    if !overview.vitals.refused().is_empty() {
        tracing::warn!("rejected: {}", refusals(&overview.vitals));
    }
}
