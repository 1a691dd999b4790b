//! The configuration of every command: one list of [`keys`], each with a default, and over it a file, the environment and
//! flags, in this order. All problems are found before anything begins, and told together.
//!
//! Secrets (passwords and keys of the Kafka client) come from the file or the environment, never from a flag, and are
//! neither printed nor written into output.

mod file;
mod flags;
mod keys;
mod problems;
mod setting;
mod written;

use std::path::{Path, PathBuf};
use std::time::Duration;

use fleetdiff_connectors::kafka::alerts;
use fleetdiff_connectors::kafka::client::ClientSettings;
use fleetdiff_connectors::parquet::FlushInterval;
use fleetdiff_schemas::config::{Comparing, Config};
use fleetdiff_formats::identity::IdentityMapping;
use fleetdiff_formats::names::Rewrites;
use fleetdiff_formats::otlp::metrics::REQUEST_METRICS;
use fleetdiff_formats::{Format, Options};
use fleetdiff_schemas::profile::ProfileType;

pub use flags::{Everything, Flags, OfDataflow, OfTopic};
pub use problems::{Problem, Problems};
use setting::RewriteTexts;
pub use setting::Setting;

use keys::KEYS;

/// Everything that can be configured.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// What decides rows besides records; [`Self::dataflow`] gives it with the comparison.
    dataflow: Config,
    named: Named,
    rewrites: RewriteTexts,
    /// Worker threads.
    pub workers: usize,
    /// Where profiles come from.
    pub kafka: Kafka,
    /// Where tables go.
    pub output: Output,
    /// Where alerts go.
    pub alerts: Alerts,
}

/// The one comparison, if it is named.
#[derive(Clone, Debug, Default)]
struct Named {
    base: Vec<String>,
    head: String,
}

/// The topic of profiles.
#[derive(Clone, Debug)]
pub struct Kafka {
    /// How to reach the cluster.
    pub client: ClientSettings,
    /// The topic.
    pub topic: String,
    /// The format of its records.
    pub format: Format,
    /// The topic of metrics that count requests; empty for none.
    pub metrics_topic: String,
    /// The metrics that do.
    pub request_metrics: Vec<String>,
    cohort: String,
    contention: ProfileType,
    max_record_bytes: usize,
    /// How long a partition may be silent; 0 for ever.
    idle_after: Duration,
    /// How long the cluster may be gone.
    pub give_up_after: Duration,
    identity: IdentityMapping,
}

/// The folder of tables.
#[derive(Clone, Debug)]
pub struct Output {
    /// The folder.
    pub folder: PathBuf,
    /// Event time that a file spans.
    pub flush: Duration,
    /// The file of metrics; empty for none.
    pub metrics: String,
}

/// The topic of alerts.
#[derive(Clone, Debug)]
pub struct Alerts {
    /// Its name; empty for a file.
    pub topic: String,
    /// Its partitions if it has to be made.
    pub partitions: i32,
}

impl Default for Configuration {
    fn default() -> Self {
        let options = Options::default();
        Self {
            dataflow: Config::default(),
            named: Named::default(),
            rewrites: RewriteTexts::default(),
            workers: 2,
            kafka: Kafka {
                client: ClientSettings::new("127.0.0.1:9092"),
                topic: "fleetdiff.profiles".to_owned(),
                format: Format::Pprof,
                metrics_topic: String::new(),
                request_metrics: REQUEST_METRICS.map(str::to_owned).to_vec(),
                cohort: options.cohort_label.to_string(),
                contention: options.contention,
                max_record_bytes: options.max_bytes,
                idle_after: Duration::from_secs(60),
                give_up_after: Duration::from_secs(60),
                identity: IdentityMapping::default(),
            },
            output: Output {
                folder: "fleetdiff-output".into(),
                flush: Duration::from_secs(600),
                metrics: String::new(),
            },
            alerts: Alerts { topic: alerts::DEFAULT_TOPIC.to_owned(), partitions: 1 },
        }
    }
}

impl Configuration {
    /// The defaults, over them the file if there is one, the environment, and the flags.
    ///
    /// # Errors
    /// Every problem of all of them.
    pub fn load<S>(path: Option<&Path>, flags: &Flags<S>) -> Result<Self, Problems> {
        let mut configuration = Self::default();
        let mut problems = Vec::new();
        if let Some(path) = path {
            file::read(path, &mut configuration, &mut problems);
        }
        let variables =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        configuration.take_variables(variables.collect(), &mut problems);
        flags.apply(&mut configuration, &mut problems);
        configuration.check(&mut problems);
        Problems::none_or(problems).map(|()| configuration)
    }

    /// The configuration of a run whose dataflow is set by the program.
    pub fn of_dataflow(config: Config) -> Self {
        let named = match &config.comparing {
            Comparing::Deploys => Named::default(),
            Comparing::Named { base, head } => {
                Named { base: base.iter().map(ToString::to_string).collect(), head: head.to_string() }
            }
        };
        Self { dataflow: config, named, ..Self::default() }
    }

    /// What decides rows besides records.
    pub fn dataflow(&self) -> Config {
        let comparing = if self.named.head.is_empty() {
            Comparing::Deploys
        } else {
            let base = self.named.base.iter().map(|build| build.as_str().into()).collect();
            Comparing::Named { base, head: self.named.head.as_str().into() }
        };
        Config { comparing, requests_from_metrics: !self.kafka.metrics_topic.is_empty(), ..self.dataflow.clone() }
    }

    /// How the records of a topic are decoded.
    pub fn of_records(&self) -> Options {
        let Kafka { max_record_bytes, cohort, contention, .. } = &self.kafka;
        Options {
            max_bytes: *max_record_bytes,
            cohort_label: cohort.as_str().into(),
            identity: self.kafka.identity(),
            contention: *contention,
            ..self.of_files()
        }
    }

    /// How the files of a folder are decoded.
    pub fn of_files(&self) -> Options {
        // NB: `check` has seen that each rewrite can be used.
        Options { rewrites: Rewrites::parse(&self.rewrites.0).unwrap_or_default(), ..Options::default() }
    }

    fn take_variables(&mut self, variables: Vec<(String, String)>, problems: &mut Vec<Problem>) {
        for (name, value) in variables {
            if let Some(key) = KEYS.iter().find(|key| key.variable() == name) {
                if !(key.set_text)(self, &value) {
                    problems.push(Problem::value(&name, key, &value));
                }
            } else if let Some(property) = name.strip_prefix("FLEETDIFF_KAFKA_CLIENT_") {
                self.kafka.client.properties.insert(property.to_lowercase().replace('_', "."), value);
            }
        }
    }

    /// What no single value shows.
    fn check(&self, problems: &mut Vec<Problem>) {
        let config = &self.dataflow;
        let mut need = |holds: bool, path: &'static str, what: &str| {
            if !holds {
                problems.push(Problem { place: None, key: path.to_owned(), what: what.to_owned() });
            }
        };
        need(config.hop.0 > 0, "dataflow.hop", "must be longer than 0s");
        need(
            config.drain < config.window,
            "dataflow.drain",
            "must be shorter than dataflow.window: profiles are held back for so long",
        );
        need(config.window >= config.hop, "dataflow.window", "must be at least one hop");
        need(config.evaluate_every.0 > 0, "dataflow.evaluate_every", "must be longer than 0s");
        need(config.report_every.0 > 0, "dataflow.report_every", "must be longer than 0s");
        need(config.epoch >= config.hop, "dataflow.epoch", "must be at least one hop");
        need(config.baseline_every.0 > 0, "dataflow.baseline_every", "must be longer than 0s");
        need(config.q > 0.0 && config.q < 1.0, "dataflow.q", "must lie between 0 and 1");
        need((0.0..10.0).contains(&config.delta), "dataflow.delta", "must be at least 0 and less than 10");
        need(config.min_head_pods > 0, "dataflow.min_head_pods", "must be at least 1");
        need(
            self.named.head.is_empty() || !self.named.base.is_empty(),
            "dataflow.base",
            "must name a build where dataflow.head does",
        );
        need(
            self.named.base.is_empty() || !self.named.head.is_empty(),
            "dataflow.head",
            "must name a build where dataflow.base does",
        );
        need((1..=1024).contains(&self.workers), "run.workers", "must lie between 1 and 1024");
        need(!self.kafka.client.brokers.trim().is_empty(), "kafka.brokers", "must name a broker");
        need(!self.kafka.topic.is_empty(), "kafka.topic", "must name a topic");
        need(!self.kafka.cohort.is_empty(), "kafka.cohort", "must name an attribute");
        need(self.kafka.max_record_bytes > 0, "kafka.max_record_bytes", "must be at least 1");
        need(!self.kafka.client.connect_timeout.is_zero(), "kafka.connect_timeout", "must be longer than 0s");
        for (names, path) in [
            (&self.kafka.identity.service, "kafka.identity.service"),
            (&self.kafka.identity.build, "kafka.identity.build"),
            (&self.kafka.identity.pod, "kafka.identity.pod"),
        ] {
            need(!names.is_empty(), path, "must name a header: without one every record is rejected");
        }
        need(FlushInterval::new(self.output.flush).is_ok(), "output.flush", "must divide an hour: 60s, 10m, 1h");
        need(self.alerts.partitions > 0, "alerts.partitions", "must be at least 1");
        need(self.kafka.metrics_topic != self.kafka.topic, "kafka.metrics_topic", "must be another than kafka.topic");
        need(!self.kafka.request_metrics.is_empty(), "kafka.request_metrics", "must name a metric");
        need(self.alerts.topic != self.kafka.topic, "alerts.topic", "must be another than kafka.topic");
        if let Err(bad) = Rewrites::parse(&self.rewrites.0) {
            need(false, "dataflow.rewrites", &bad.to_string());
        }
    }
}

impl Kafka {
    /// Which headers, or attributes of a resource, say whose a profile is.
    pub fn identity(&self) -> IdentityMapping {
        IdentityMapping { cohort: vec![self.cohort.clone()], ..self.identity.clone() }
    }

    /// How long a partition may be silent before event time goes on without it.
    pub fn idle_after(&self) -> Option<Duration> {
        Some(self.idle_after).filter(|length| !length.is_zero())
    }
}

#[cfg(test)]
mod tests;
