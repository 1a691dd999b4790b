//! Checks of values in context: values that are out of range, or do not go together.

use std::sync::Arc;

use fleetdiff_connectors::parquet::FlushInterval;
use fleetdiff_connectors::store::StoreAddress;
use fleetdiff_formats::names::{NameRules, Rewrites};
use fleetdiff_pipeline::run::cluster::Shape;
use fleetdiff_schemas::alert::GuidanceRule;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::time::Nanos;

use super::problems::Problem;
use super::values::{Alerts, Archive, Configuration, Named, Output, Processes};
use crate::ranges::{is_log_ratio, is_within_one};

impl Configuration {
    /// The problems that no single value shows.
    pub(crate) fn check(&self, problems: &mut Vec<Problem>) {
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
            "must be shorter than dataflow.window, because profiles are held back for that time",
        );
        need(config.window >= config.hop, "dataflow.window", "must be at least as long as dataflow.hop");
        need(config.evaluate_every.0 > 0, "dataflow.evaluate_every", "must be longer than 0s");
        need(config.report_every.0 > 0, "dataflow.report_every", "must be longer than 0s");
        need(config.epoch >= config.hop, "dataflow.epoch", "must be at least as long as dataflow.hop");
        need(config.history_every.0 > 0, "dataflow.history_every", "must be longer than 0s");
        need(is_within_one(config.q), "dataflow.q", "must be between 0 and 1");
        need(is_log_ratio(config.min_effect), "dataflow.min_effect", "must be at least 0 and less than 10");
        let is_named = |entry: &Arc<str>| !entry.trim_start_matches('!').trim_matches('*').trim().is_empty();
        need(config.idle.iter().all(is_named), "dataflow.idle", "must be names of functions, none empty or only *");
        check_counts(config, &mut need);
        self.named.check(&mut need);
        need((1..=1024).contains(&self.workers), "run.workers", "must be between 1 and 1024");
        self.cluster.check(&mut need);
        self.archive.check(config.hop, &mut need);
        need(!self.kafka.client.brokers.trim().is_empty(), "kafka.brokers", "must name a broker");
        need(!self.kafka.topic.is_empty(), "kafka.topic", "must name a topic");
        need(!self.kafka.cohort.is_empty(), "kafka.cohort", "must name an attribute");
        need(self.kafka.max_record_bytes > 0, "kafka.max_record_bytes", "must be at least 1");
        need(self.kafka.max_built_bytes > 0, "kafka.max_built_bytes", "must be at least 1");
        need(!self.kafka.client.connect_timeout.is_zero(), "kafka.connect_timeout", "must be longer than 0s");
        for (names, path) in [
            (&self.kafka.identity.service, "kafka.identity.service"),
            (&self.kafka.identity.build, "kafka.identity.build"),
            (&self.kafka.identity.pod, "kafka.identity.pod"),
        ] {
            need(!names.is_empty(), path, "must name a header: without one, every record is rejected");
        }
        self.output.check(&self.alerts, &mut need);
        need(FlushInterval::new(self.output.flush).is_ok(), "output.flush", "must divide an hour: 60s, 10m, 1h");
        let listen = &self.status.listen;
        need(
            listen.is_empty() || is_address(listen),
            "status.listen",
            "must be HOST:PORT, as in 127.0.0.1:9464, or empty",
        );
        need(self.alerts.partitions > 0, "alerts.partitions", "must be at least 1");
        let guidance = &self.alerts.guidance;
        for (rules, path) in [(&guidance.owners, "alerts.owners"), (&guidance.runbooks, "alerts.runbooks")] {
            let is_rule = |text: &String| GuidanceRule::parse(text).is_some();
            need(rules.iter().all(is_rule), path, "must be rules SERVICE -> VALUE or SERVICE:FUNCTION -> VALUE");
        }
        need(self.kafka.metrics_topic != self.kafka.topic, "kafka.metrics_topic", "must differ from kafka.topic");
        need(!self.kafka.request_metrics.is_empty(), "kafka.request_metrics", "must name a metric");
        need(self.alerts.topic != self.kafka.topic, "alerts.topic", "must differ from kafka.topic");
        self.check_names(&mut need);
        for (number, receiver) in self.receivers.iter().enumerate() {
            receiver.check(self.receivers.get(..number).unwrap_or_default(), problems);
        }
    }

    /// The problems of what is taken off names and rewritten in them.
    fn check_names(&self, need: &mut impl FnMut(bool, &'static str, &str)) {
        if let Err(unknown) = NameRules::without(&self.name_rules_off) {
            need(false, "dataflow.name_rules_off", &unknown.to_string());
        }
        if let Err(bad) = Rewrites::parse(&self.rewrites.0) {
            need(false, "dataflow.rewrites", &bad.to_string());
        }
    }
}

/// HOST:PORT.
fn is_address(text: &str) -> bool {
    text.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

/// The problems of how many there must or may be of something.
fn check_counts(config: &Config, need: &mut impl FnMut(bool, &'static str, &str)) {
    let limits = &config.limits;
    need(limits.retention.0 > 0, "limits.retention", "must be longer than 0s");
    for (count, path) in [
        (config.agreement, "dataflow.agreement"),
        (config.min_head_pods, "dataflow.min_head_pods"),
        (limits.functions, "limits.functions"),
        (limits.paths, "limits.paths"),
        (limits.cells, "limits.cells"),
        (limits.builds, "limits.builds"),
        (limits.pods, "limits.pods"),
        (limits.bytes, "limits.bytes"),
    ] {
        need(count > 0, path, "must be at least 1");
    }
}

impl Output {
    /// The problems of an object store.
    fn check(&self, alerts: &Alerts, need: &mut impl FnMut(bool, &'static str, &str)) {
        if self.store.is_empty() {
            return;
        }
        if let Err(what) = self.store.parse::<StoreAddress>() {
            need(false, "output.store", what);
        }
        need(
            !alerts.topic.is_empty(),
            "alerts.topic",
            "must name a topic if there is an output.store: a file of alerts would stay on this machine",
        );
    }
}

impl Archive {
    /// The problems of an archive of these hops.
    fn check(&self, hop: Nanos, need: &mut impl FnMut(bool, &'static str, &str)) {
        need(
            self.keep.0 == 0 || hop.0 % Nanos::from_seconds(1).0 == 0,
            "archive.keep",
            "needs a dataflow.hop of whole seconds, by which files of the archive are named",
        );
    }
}

impl Processes {
    /// The problems of processes that do the work together.
    fn check(&self, need: &mut impl FnMut(bool, &'static str, &str)) {
        let Processes { processes, process, hosts, .. } = self;
        let most = Shape::MOST_PROCESSES;
        need((1..=most).contains(processes), "cluster.processes", &format!("must be between 1 and {most}"));
        need(process < processes, "cluster.process", "must be less than cluster.processes: the first process is 0");
        need(
            hosts.is_empty() || hosts.len() == *processes,
            "cluster.hosts",
            "must be one address for each of cluster.processes, or empty",
        );
        need(hosts.iter().all(|host| is_address(host)), "cluster.hosts", "must be HOST:PORT, as in 10.0.0.7:2101");
    }
}

impl Named {
    /// The problems of builds that are named.
    fn check(&self, need: &mut impl FnMut(bool, &'static str, &str)) {
        need(self.head.is_empty() || !self.base.is_empty(), "dataflow.base", "must name a build if dataflow.head does");
        need(self.base.is_empty() || !self.head.is_empty(), "dataflow.head", "must name a build if dataflow.base does");
        let rings = &self.rings;
        need(
            rings.is_empty() || self.head.is_empty(),
            "dataflow.rings",
            "must be empty if dataflow.head names a build",
        );
        let is_known = |(place, ring): (usize, &String)| rings.iter().take(place).any(|earlier| earlier == ring);
        need(
            rings.len() != 1 && !rings.iter().enumerate().any(is_known),
            "dataflow.rings",
            "must name at least two builds, and none twice",
        );
    }
}
