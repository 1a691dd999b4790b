//! `watch`: the service from a Kafka topic to Parquet and an alert topic.

mod decisions;
mod done;
mod metrics;
mod promise;
mod service;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use fleetdiff_connectors::kafka::alerts::AlertSettings;
use fleetdiff_connectors::kafka::source::{Contents, Share, TopicSettings, TopicSource};
use fleetdiff_connectors::kafka::topic;
use fleetdiff_connectors::receivers::Receivers;
use fleetdiff_formats::otlp::metrics::Decoder as RequestDecoder;
use fleetdiff_pipeline::run::{self, Ended, SourceFactory, run_service};
use fleetdiff_schemas::source::{Source, SourceError};
use fleetdiff_schemas::tables::calendar::rfc3339;
use fleetdiff_schemas::time::HopClock;

use self::done::Done;
use self::metrics::Metrics;
use self::service::{Service, by_reason};
use crate::configuration::{Configuration, Everything, Flags};
use crate::failure::Failure;
use crate::output::{AlertTarget, GRACE, Output};

/// How it is used.
pub(crate) const EXAMPLES: &str = "\
Examples:
  fleetdiff watch --config fleetdiff.toml
  fleetdiff watch --brokers kafka:9092 --topic profiles --output out --until-end
  FLEETDIFF_KAFKA_CLIENT_SASL_PASSWORD=... fleetdiff watch --config fleetdiff.toml --warm-up 2m
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
    /// Every key of the file.
    #[command(flatten)]
    pub(crate) flags: Flags<Everything>,
}

/// Runs the service until its end, or until it is stopped.
pub(crate) fn run(args: &WatchArgs) -> Result<(), Failure> {
    let configuration = Configuration::load(args.config.as_deref(), &args.flags).map_err(Failure::of_configuration)?;
    if args.show_config {
        write!(std::io::stdout(), "{}", configuration.to_toml())?;
        return Ok(());
    }
    let config = configuration.dataflow();
    if !config.method.is_calibrated() {
        let refusal = format!(
            "watch does not take the method {}: it is not calibrated and would wake people for nothing",
            config.method.name()
        );
        return Err(Failure::usage(
            refusal,
            "leave dataflow.method at honest; `fleetdiff replay --method` compares methods on a recorded fleet",
        ));
    }
    tracing::info!("{}", promise::false_alerts(&config));
    let stop = stop_on_signals()?;
    let receivers = configuration.receivers().map_err(Failure::of_configuration)?;
    let receivers = Receivers::start(&receivers, &configuration.output.folder).map_err(Failure::of_receiver)?;
    let service = open(&configuration, &receivers, config.clock())?;
    let decisions = decisions::open(&configuration.output.folder)?;
    // A bounded read needs no wall clock: each of its partitions ends.
    let idle_after = if args.until_end { None } else { configuration.kafka.idle_after() };
    let terms = run::Service { stop, idle_after, decisions };
    let sources = sources(&configuration, args.until_end);
    let ended = run_service(&config, configuration.workers, sources, Box::new(service.clone()), terms);
    let ended = ended.and_then(|ended| match ended {
        Ended::Complete => Ok((ended, service.finish()?)),
        Ended::Stopped => Ok((ended, service.leave())),
    });
    // However it ended, what was announced goes out.
    receivers.finish(GRACE);
    let (ended, done) = ended?;
    log_end(&done, if ended == Ended::Complete { "ended" } else { "stopped" }, config.clock());
    if ended == Ended::Stopped && args.until_end {
        return Err(Failure::with_hint(
            "stopped before the end of the topic",
            "rows of the last interval are not written; run it again",
        ));
    }
    Ok(())
}

/// Opens everything that can fail before anything is read.
fn open(configuration: &Configuration, receivers: &Receivers, clock: HopClock) -> Result<Service, Failure> {
    let (kafka, alerts) = (&configuration.kafka, &configuration.alerts);
    let partitions = topic::partition_count(&kafka.client, &kafka.topic).map_err(Failure::of_broker)?;
    let folder = &configuration.output.folder;
    // NB: in this order. A second run in this folder is refused before it could take the topic of alerts from the first.
    let output = Output::create(folder, configuration.of_topic_as_json(), configuration.output.flush)?;
    let target = if alerts.topic.is_empty() {
        AlertTarget::file(folder)?
    } else {
        let settings = AlertSettings { topic: &alerts.topic, partitions: alerts.partitions, sender: &kafka.topic };
        AlertTarget::topic(&kafka.client, settings).map_err(Failure::of_broker)?
    };
    let output = output.alerting(target).guided(alerts.guidance()).announced_to(receivers.clone());
    let requests = if kafka.metrics_topic.is_empty() {
        String::new()
    } else {
        format!(", requests of topic {}", kafka.metrics_topic)
    };
    tracing::info!(
        "reading topic {} ({partitions} partitions, {}){requests} at {} with {} workers; tables to {}, alerts to {}",
        kafka.topic,
        kafka.format.name(),
        kafka.client.brokers,
        configuration.workers,
        folder.display(),
        if alerts.topic.is_empty() { "alerts.jsonl" } else { &alerts.topic },
    );
    let metrics = &configuration.output.metrics;
    let metrics = (!metrics.is_empty()).then(|| Metrics::new(Path::new(metrics)));
    if let Some(metrics) = &metrics {
        metrics.write(&Done::default(), receivers, clock)?;
    }
    Ok(Service::new(output, receivers.clone(), metrics, clock))
}

fn sources(configuration: &Configuration, until_end: bool) -> Arc<SourceFactory> {
    let (kafka, options) = (configuration.kafka.clone(), configuration.of_records());
    Arc::new(move |worker, workers| -> Result<Vec<Box<dyn Source>>, SourceError> {
        let open = |topic: &str, contents| -> Result<Box<dyn Source>, SourceError> {
            let args = TopicSettings {
                until_end,
                identity: kafka.identity(),
                give_up_after: kafka.give_up_after,
                ..TopicSettings::new(topic)
            };
            let source = TopicSource::open(&kafka.client, args, Share { worker, workers }, contents);
            Ok(Box::new(source.map_err(|failure| failure.into_source_error(topic))?))
        };
        let mut sources = vec![open(&kafka.topic, Contents::Profiles(kafka.format.decoder(&options)))?];
        if !kafka.metrics_topic.is_empty() {
            let requests = RequestDecoder::new(&options, kafka.request_metrics.iter().cloned());
            sources.push(open(&kafka.metrics_topic, Contents::Requests(Box::new(requests)))?);
        }
        Ok(sources)
    })
}

/// Set by SIGINT or SIGTERM; a second one ends the program at once.
fn stop_on_signals() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        // NB: in this order, so that the first signal does not see the flag that it sets itself.
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(&stop))?;
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    Ok(stop)
}

fn log_end(done: &Done, how: &str, clock: HopClock) {
    let closed = if done.hops == 0 {
        "nothing was closed".to_owned()
    } else {
        format!("closed through {}", rfc3339(clock.end_of(done.through)))
    };
    tracing::info!("{how}; {closed}: {} profiles, {} changes of flags", done.decoded, done.flags);
    if done.aa_check.tests > 0 {
        tracing::info!("{}", done.aa_check);
    }
    if !done.rejected.is_empty() {
        tracing::warn!("rejected: {}", by_reason(&done.rejected));
    }
}
