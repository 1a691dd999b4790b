//! The values of a configuration: the fields that keys set, and what the program derives from them.

use std::path::PathBuf;
use std::time::Duration;

use fleetdiff_connectors::kafka::alerts;
use fleetdiff_connectors::kafka::client::ClientSettings;
use fleetdiff_formats::identity::IdentityMapping;
use fleetdiff_formats::names::{NameRules, Rewrites};
use fleetdiff_formats::otlp::metrics::REQUEST_METRICS;
use fleetdiff_formats::{Format, Options, Symbols};
use fleetdiff_schemas::alert::{Guidance, GuidanceRule};
use fleetdiff_schemas::config::{Comparing, Config};
use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::time::Nanos;
use serde::{Deserialize, Serialize};

use super::receivers::Receiver;
use super::setting::RewriteTexts;
use crate::logging::LogLevel;

/// Everything that can be configured.
#[derive(Clone, Debug)]
pub(crate) struct Configuration {
    /// The settings that decide rows; [`Self::dataflow`] adds the comparison.
    pub(crate) dataflow: Config,
    pub(crate) named: Named,
    /// Names of rules of function names, or of runtimes.
    pub(crate) name_rules_off: Vec<String>,
    pub(crate) rewrites: RewriteTexts,
    /// Worker threads.
    pub(crate) workers: usize,
    /// The processes that do the work together.
    pub(crate) cluster: Processes,
    /// Where profiles come from.
    pub(crate) kafka: Kafka,
    /// Where tables go.
    pub(crate) output: Output,
    /// What is kept of what was counted.
    pub(crate) archive: Archive,
    /// How the service says how it is.
    pub(crate) status: Status,
    /// The least severe lines that are logged.
    pub(crate) log_level: LogLevel,
    /// Where alerts go.
    pub(crate) alerts: Alerts,
    /// Who gets incidents besides.
    pub(crate) receivers: Vec<Receiver>,
}

/// What is kept of what was counted, pod by pod.
#[derive(Clone, Debug)]
pub(crate) struct Archive {
    /// For how long; 0 for nothing.
    pub(crate) keep: Nanos,
    /// How many bytes; 0 for any.
    pub(crate) max_bytes: u64,
}

/// The processes of one service.
#[derive(Clone, Debug)]
pub(crate) struct Processes {
    pub(crate) processes: usize,
    pub(crate) process: usize,
    /// Where each listens; empty for this machine.
    pub(crate) hosts: Vec<String>,
    pub(crate) secret_file: String,
}

impl Processes {
    /// The port at which the first process listens if nothing else is said, as timely's does.
    const FIRST_PORT: usize = 2101;

    /// Where each process listens.
    pub(crate) fn hosts(&self) -> Vec<String> {
        let on_this_machine = |process: usize| format!("127.0.0.1:{}", Self::FIRST_PORT + process);
        if self.hosts.is_empty() { (0..self.processes).map(on_this_machine).collect() } else { self.hosts.clone() }
    }
}

/// The one comparison, if it is named.
#[derive(Clone, Debug, Default)]
pub(crate) struct Named {
    /// Builds that together are the base.
    pub(crate) base: Vec<String>,
    /// The build in question.
    pub(crate) head: String,
    /// Builds of a roll-out, the earliest first.
    pub(crate) rings: Vec<String>,
}

/// The topic of profiles.
#[derive(Clone, Debug)]
pub(crate) struct Kafka {
    /// How to reach the cluster.
    pub(crate) client: ClientSettings,
    /// The topic.
    pub(crate) topic: String,
    /// The format of its records.
    pub(crate) format: Format,
    /// The topic of metrics that count requests; empty for none.
    pub(crate) metrics_topic: String,
    /// The metrics that do.
    pub(crate) request_metrics: Vec<String>,
    pub(crate) cohort: String,
    pub(crate) contention: ProfileType,
    pub(crate) max_record_bytes: usize,
    pub(crate) max_built_bytes: usize,
    /// How long a partition may be silent; 0 for ever.
    pub(crate) idle_after: Duration,
    /// How long the cluster may be gone.
    pub(crate) give_up_after: Duration,
    pub(crate) identity: IdentityMapping,
}

/// The folder of tables.
#[derive(Clone, Debug)]
pub(crate) struct Output {
    /// The folder.
    pub(crate) folder: PathBuf,
    /// The object store instead of it, `s3://BUCKET/PREFIX`; empty for none.
    pub(crate) store: String,
    /// Event time that a file spans.
    pub(crate) flush: Duration,
    /// Event time between checkpoints; 0 for none.
    pub(crate) checkpoint_every: Duration,
    /// The file of metrics; empty for none.
    pub(crate) metrics: String,
}

/// How the service says how it is.
#[derive(Clone, Debug)]
pub(crate) struct Status {
    /// Where it is served; empty for nowhere.
    pub(crate) listen: String,
    /// How far behind a service may be that is ready.
    pub(crate) ready_within: Duration,
}

/// Where alerts go, and what they say.
#[derive(Clone, Debug)]
pub(crate) struct Alerts {
    /// The topic; empty for a file.
    pub(crate) topic: String,
    /// Its number of partitions if it must be created.
    pub(crate) partitions: i32,
    /// What they say besides their rows.
    pub(crate) guidance: GuidanceTexts,
}

/// What alerts say besides their rows, as written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GuidanceTexts {
    /// Who owns what.
    pub(crate) owners: Vec<String>,
    /// Which runbook applies to what.
    pub(crate) runbooks: Vec<String>,
    /// The template of links; empty for none.
    pub(crate) link: String,
}

impl GuidanceTexts {
    /// The rules that are written.
    pub(crate) fn read(&self) -> Guidance {
        // NB: `check` has checked that each rule can be read.
        let rules = |texts: &[String]| texts.iter().filter_map(|text| GuidanceRule::parse(text)).collect();
        Guidance { owners: rules(&self.owners), runbooks: rules(&self.runbooks), link: self.link.clone() }
    }
}

impl Default for Configuration {
    fn default() -> Self {
        let options = Options::default();
        Self {
            dataflow: Config::default(),
            named: Named::default(),
            name_rules_off: Vec::new(),
            rewrites: RewriteTexts::default(),
            workers: 2,
            cluster: Processes { processes: 1, process: 0, hosts: Vec::new(), secret_file: String::new() },
            kafka: Kafka {
                client: ClientSettings::new("127.0.0.1:9092"),
                topic: "fleetdiff.profiles".to_owned(),
                format: Format::Pprof,
                metrics_topic: String::new(),
                request_metrics: REQUEST_METRICS.map(str::to_owned).to_vec(),
                cohort: options.cohort_label.to_string(),
                contention: options.contention,
                max_record_bytes: options.max_bytes,
                max_built_bytes: options.max_built_bytes,
                idle_after: Duration::from_secs(60),
                give_up_after: Duration::from_secs(60),
                identity: IdentityMapping::default(),
            },
            output: Output {
                folder: "fleetdiff-output".into(),
                store: String::new(),
                flush: Duration::from_secs(600),
                checkpoint_every: Duration::from_secs(120),
                metrics: String::new(),
            },
            archive: Archive { keep: Nanos(0), max_bytes: 0 },
            status: Status { listen: "127.0.0.1:9464".to_owned(), ready_within: Duration::from_secs(60) },
            log_level: LogLevel::Info,
            alerts: Alerts {
                topic: alerts::DEFAULT_TOPIC.to_owned(),
                partitions: 1,
                guidance: GuidanceTexts::default(),
            },
            receivers: Vec::new(),
        }
    }
}

impl Configuration {
    /// The configuration of a run whose dataflow is set by the program.
    pub(crate) fn of_dataflow(config: Config) -> Self {
        let named = match &config.comparing {
            Comparing::Deploys => Named::default(),
            Comparing::Named { base, head } => {
                let base = base.iter().map(ToString::to_string).collect();
                Named { base, head: head.to_string(), rings: Vec::new() }
            }
            Comparing::Rings(rings) => {
                Named { rings: rings.iter().map(ToString::to_string).collect(), ..Named::default() }
            }
        };
        Self { dataflow: config, named, ..Self::default() }
    }

    /// The settings that decide rows.
    pub(crate) fn dataflow(&self) -> Config {
        let Named { base, head, rings } = &self.named;
        let builds = |names: &[String]| names.iter().map(|build| build.as_str().into()).collect();
        let comparing = match (rings.is_empty(), head.is_empty()) {
            (false, _) => Comparing::Rings(builds(rings)),
            (true, false) => Comparing::Named { base: builds(base), head: head.as_str().into() },
            (true, true) => Comparing::Deploys,
        };
        let requests_from_metrics = !self.kafka.metrics_topic.is_empty();
        Config { comparing, requests_from_metrics, archive: self.archive.keep.0 > 0, ..self.dataflow.clone() }
    }

    /// By which name this run sends alerts: each shard by one of its own, so that none keeps another from sending.
    pub(crate) fn sender(&self) -> String {
        match self.dataflow.shard {
            whole if whole.is_whole() => self.kafka.topic.clone(),
            // NB: no topic has a slash in its name.
            shard => format!("{}/{shard}", self.kafka.topic),
        }
    }

    /// How the records of a topic are decoded.
    pub(crate) fn of_records(&self) -> Options {
        let Kafka { max_record_bytes, max_built_bytes, cohort, contention, .. } = &self.kafka;
        Options {
            max_bytes: *max_record_bytes,
            max_built_bytes: *max_built_bytes,
            cohort_label: cohort.as_str().into(),
            identity: self.kafka.identity(),
            contention: *contention,
            // Whoever sends a record does not choose which files of this machine are opened.
            symbols: Symbols::Nowhere,
            ..self.of_files()
        }
    }

    /// How the files of a folder are decoded.
    pub(crate) fn of_files(&self) -> Options {
        // NB: `check` has checked that each rule is known and each rewrite can be used.
        Options {
            name_rules: NameRules::without(&self.name_rules_off).unwrap_or_default(),
            rewrites: Rewrites::parse(&self.rewrites.0).unwrap_or_default(),
            symbols: Symbols::ThisMachine,
            ..Options::default()
        }
    }
}

impl Kafka {
    /// Which headers, or attributes of a resource, identify a profile.
    pub(crate) fn identity(&self) -> IdentityMapping {
        IdentityMapping { cohort: vec![self.cohort.clone()], ..self.identity.clone() }
    }

    /// How long a partition may be silent before event time goes on without it.
    pub(crate) fn idle_after(&self) -> Option<Duration> {
        Some(self.idle_after).filter(|length| !length.is_zero())
    }
}
