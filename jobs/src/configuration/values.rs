//! The values of a configuration: what every key sets, and what the program takes of it.

use std::path::PathBuf;
use std::time::Duration;

use fleetdiff_connectors::formats::names::Rewrites;
use fleetdiff_connectors::formats::otlp::metrics::REQUEST_METRICS;
use fleetdiff_connectors::formats::{Format, Options};
use fleetdiff_connectors::identity::IdentityMapping;
use fleetdiff_connectors::kafka::alerts;
use fleetdiff_connectors::kafka::client::ClientSettings;
use fleetdiff_pipeline::config::{Comparing, Config};
use fleetdiff_schemas::profile::ProfileType;

use super::setting::RewriteTexts;

/// Everything that can be configured.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// What decides rows besides records; [`Self::dataflow`] gives it with the comparison.
    pub dataflow: Config,
    pub named: Named,
    pub rewrites: RewriteTexts,
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
pub struct Named {
    /// Builds that together are the base.
    pub base: Vec<String>,
    /// The build in question.
    pub head: String,
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
    pub cohort: String,
    pub contention: ProfileType,
    pub max_record_bytes: usize,
    /// How long a partition may be silent; 0 for ever.
    pub idle_after: Duration,
    /// How long the cluster may be gone.
    pub give_up_after: Duration,
    pub identity: IdentityMapping,
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
