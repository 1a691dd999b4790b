//! Every key of the configuration: its name, what it means, where its default comes from, and the field that it sets.

use serde_json::Value as Json;

use super::setting::Setting;
use super::values::Configuration;

/// One key.
pub(crate) struct Key {
    /// Where it stands in a file: `section.name`.
    pub(crate) path: &'static str,
    /// Its name as a flag, without the dashes.
    pub(crate) flag: &'static str,
    /// What it means.
    pub(crate) meaning: &'static str,
    /// Where its default comes from: measured, published, a guess, or why there is no other.
    pub(crate) origin: &'static str,
    /// Whether rows depend on it; all others only say where things are and how the program works.
    pub(crate) decides_rows: bool,
    /// What is expected of a value, in words.
    pub(crate) expected: &'static str,
    /// Its value in a configuration.
    pub(crate) get: fn(&Configuration) -> Json,
    /// Sets it from the text of a flag or variable; whether that was possible.
    pub(crate) set_text: fn(&mut Configuration, &str) -> bool,
    /// Sets it from a value of a file; whether that was possible.
    pub(crate) set_json: fn(&mut Configuration, &Json) -> bool,
}

impl Key {
    /// Its section.
    pub(crate) fn section(&self) -> &'static str {
        self.path.rsplit_once('.').map_or("", |(section, _)| section)
    }

    /// Its name within the section.
    pub(crate) fn name(&self) -> &'static str {
        self.path.rsplit_once('.').map_or(self.path, |(_, name)| name)
    }

    /// Its variable of the environment.
    pub(crate) fn variable(&self) -> String {
        format!("FLEETDIFF_{}", self.path.replace('.', "_").to_uppercase())
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.path)
    }
}

/// The key of a path.
pub(crate) fn find(path: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.path == path)
}

fn set<S: Setting>(field: &mut S, value: Option<S>) -> bool {
    value.map(|value| *field = value).is_some()
}

const fn expected<S: Setting>(_: fn(&Configuration) -> &S) -> &'static str {
    S::EXPECTED
}

const ROWS: bool = true;
const WORK: bool = false;

macro_rules! key {
    ($path:literal, $flag:literal, $decides:expr, $($field:ident).+, $meaning:literal, $origin:literal) => {
        Key {
            path: $path,
            flag: $flag,
            meaning: $meaning,
            origin: $origin,
            decides_rows: $decides,
            expected: expected(|configuration| &configuration.$($field).+),
            get: |configuration| Setting::to_json(&configuration.$($field).+),
            set_text: |configuration, text| set(&mut configuration.$($field).+, Setting::from_text(text)),
            set_json: |configuration, value| set(&mut configuration.$($field).+, Setting::from_json(value)),
        }
    };
}

/// Every key, by section.
pub(crate) const KEYS: [Key; 44] = [
    key!(
        "dataflow.hop",
        "hop",
        ROWS,
        dataflow.hop,
        "Width of a hop: event time is counted in these.",
        "published: agents upload every 10 s"
    ),
    key!(
        "dataflow.window",
        "window",
        ROWS,
        dataflow.window,
        "Length of the sliding window.",
        "published: the window of the method's article"
    ),
    key!(
        "dataflow.lateness",
        "lateness",
        ROWS,
        dataflow.lateness,
        "How far the event times of one partition may lie apart; at least half of the longest profile and its transport.",
        "guess: half a 30 s profile and its transport"
    ),
    key!(
        "dataflow.warm_up",
        "warm-up",
        ROWS,
        dataflow.warm_up,
        "What is cropped after the start of a process.",
        "guess: caches and compilers of most services settle within it"
    ),
    key!(
        "dataflow.drain",
        "drain",
        ROWS,
        dataflow.drain,
        "What is cropped before the end of a process; each profile then waits for so long and one more profile, and so do alerts.",
        "guess: few programs cost otherwise at their end, and results would come later"
    ),
    key!(
        "dataflow.evaluate_every",
        "evaluate-every",
        ROWS,
        dataflow.evaluate_every,
        "How often the live rule looks.",
        "every hop: alerts come as early as they can"
    ),
    key!(
        "dataflow.report_every",
        "report-every",
        ROWS,
        dataflow.report_every,
        "How often the table cells is written.",
        "guess"
    ),
    key!(
        "dataflow.epoch",
        "epoch",
        ROWS,
        dataflow.epoch,
        "What a comparison accumulates over before it begins anew.",
        "published: the family of the live rule"
    ),
    key!(
        "dataflow.history",
        "history",
        ROWS,
        dataflow.baseline,
        "How far the past goes back, at least, that a build is compared with once no base build runs beside it; 0s compares with none.",
        "guess: a week holds each day of the week"
    ),
    key!(
        "dataflow.history_every",
        "history-every",
        ROWS,
        dataflow.baseline_every,
        "Of each so long a stretch of time one hop is kept for that past.",
        "guess: 60 hops of each hour and day"
    ),
    key!(
        "dataflow.q",
        "q",
        ROWS,
        dataflow.q,
        "False-discovery rate of each family.",
        "published: Benjamini and Hochberg 1995"
    ),
    key!(
        "dataflow.min_effect",
        "min-effect",
        ROWS,
        dataflow.delta,
        "Smallest change on the log scale that is called.",
        "measured: simulated fleets"
    ),
    key!(
        "dataflow.min_count",
        "min-count",
        ROWS,
        dataflow.min_count,
        "Smallest count of both arms together that is tested.",
        "published: the floor of the method's article"
    ),
    key!(
        "dataflow.min_head_pods",
        "min-head-pods",
        ROWS,
        dataflow.min_head_pods,
        "Pods of a new build that open a comparison.",
        "one pod is no replicate"
    ),
    key!(
        "dataflow.cell",
        "cell",
        ROWS,
        dataflow.cell_by,
        "What makes a cell; the other dimension is merged.",
        "where fleets differ: region and cohort"
    ),
    key!(
        "dataflow.base",
        "base",
        ROWS,
        named.base,
        "Builds that together are the base of the one comparison; needs head.",
        "none: comparisons follow from deploys"
    ),
    key!(
        "dataflow.head",
        "head",
        ROWS,
        named.head,
        "The build in question of the one comparison; needs base.",
        "none: comparisons follow from deploys"
    ),
    key!(
        "dataflow.count_kind",
        "count-kind",
        ROWS,
        dataflow.count_kinds,
        "Which counts are tested.",
        "both: a callee moves self, its callers total"
    ),
    key!(
        "dataflow.rewrites",
        "rewrites",
        ROWS,
        rewrites,
        "Rewrites of function names, in order, each PATTERN => REPLACEMENT with a regular expression; names of deltas stay.",
        "none: names are what tools give, without lines, hashes and offsets"
    ),
    key!(
        "dataflow.method",
        "method",
        ROWS,
        dataflow.method,
        "What calls rows: honest; for comparison in replay, and not calibrated, article (G on merged counts), article-b and article-b-stouffer (G of each pod, merged), naive (shares subtracted).",
        "measured: the others are wrong more often than they say"
    ),
    key!(
        "run.workers",
        "workers",
        WORK,
        workers,
        "Worker threads; rows do not depend on it.",
        "guess: two cores are everywhere"
    ),
    key!(
        "kafka.brokers",
        "brokers",
        WORK,
        kafka.client.brokers,
        "Brokers to ask first, host:port joined by commas.",
        "guess: one on this machine"
    ),
    key!("kafka.topic", "topic", ROWS, kafka.topic, "Topic of profiles.", "guess"),
    key!(
        "kafka.format",
        "format",
        ROWS,
        kafka.format,
        "Format of its records: delta and otlp carry the identity, all others have it in headers.",
        "published: what continuous profilers send"
    ),
    key!(
        "kafka.metrics_topic",
        "metrics-topic",
        ROWS,
        kafka.metrics_topic,
        "Topic of OTLP metrics that count requests, for profiles that bring no requests of their own; empty: none.",
        "guess: many fleets put requests elsewhere"
    ),
    key!(
        "kafka.request_metrics",
        "request-metrics",
        ROWS,
        kafka.request_metrics,
        "Metrics of that topic whose points count requests; all that are named are added up.",
        "published: OpenTelemetry's names"
    ),
    key!(
        "kafka.cohort",
        "cohort",
        ROWS,
        kafka.cohort,
        "Attribute that names the cohort, looked for on the sample first, then on the record.",
        "guess"
    ),
    key!(
        "kafka.contention",
        "contention",
        ROWS,
        kafka.contention,
        "What profiles of contention in otlp are where nothing says it: mutex (of who holds a lock) or block (of who waits).",
        "guess: who holds a lock can be changed"
    ),
    key!(
        "kafka.max_record_bytes",
        "max-record-bytes",
        ROWS,
        kafka.max_record_bytes,
        "Largest record after decompression; larger ones are rejected.",
        "guess: far above the largest recorded profile"
    ),
    key!(
        "kafka.idle_after",
        "idle-after",
        WORK,
        kafka.idle_after,
        "Event time goes on without a partition that has given nothing for so long; 0s waits for ever. Not with --until-end.",
        "guess: six profiles of a pod"
    ),
    key!(
        "kafka.connect_timeout",
        "connect-timeout",
        WORK,
        kafka.client.connect_timeout,
        "How long a first answer may take.",
        "guess: a handshake across an ocean"
    ),
    key!(
        "kafka.give_up_after",
        "give-up-after",
        WORK,
        kafka.give_up_after,
        "How long the cluster may be gone before the run ends with an error.",
        "guess: a broker's restart takes seconds"
    ),
    key!(
        "kafka.identity.service",
        "identity-service",
        ROWS,
        kafka.identity.service,
        "Headers or attributes that name the service; of each of these lists the first hit wins.",
        "published: OpenTelemetry's names"
    ),
    key!(
        "kafka.identity.build",
        "identity-build",
        ROWS,
        kafka.identity.build,
        "Headers or attributes that name the build.",
        "published: OpenTelemetry's names"
    ),
    key!(
        "kafka.identity.region",
        "identity-region",
        ROWS,
        kafka.identity.region,
        "Headers or attributes that name the region.",
        "published: OpenTelemetry's names"
    ),
    key!(
        "kafka.identity.hardware",
        "identity-hardware",
        ROWS,
        kafka.identity.hardware,
        "Headers or attributes that name the kind of machine.",
        "published: OpenTelemetry's names"
    ),
    key!(
        "kafka.identity.node",
        "identity-node",
        ROWS,
        kafka.identity.node,
        "Headers or attributes that name the machine.",
        "published: OpenTelemetry's names"
    ),
    key!(
        "kafka.identity.pod",
        "identity-pod",
        ROWS,
        kafka.identity.pod,
        "Headers or attributes that name the pod; several joined by + are needed together.",
        "published: OpenTelemetry's names"
    ),
    key!(
        "kafka.identity.process_start",
        "identity-process-start",
        ROWS,
        kafka.identity.process_start,
        "Headers or attributes that hold the start of the process: RFC 3339, or nanoseconds since 1970.",
        "published: OpenTelemetry's names"
    ),
    key!(
        "output.folder",
        "output",
        WORK,
        output.folder,
        "Folder of the tables, the decisions and, without a topic for them, the alerts.",
        "guess"
    ),
    key!(
        "output.flush",
        "flush",
        WORK,
        output.flush,
        "Event time that one file spans; divides an hour.",
        "guess: files of some MB"
    ),
    key!(
        "output.metrics",
        "metrics",
        WORK,
        output.metrics,
        "File of metrics in the text format of Prometheus, rewritten every 10 s; empty: none.",
        "guess: many have another way"
    ),
    key!(
        "alerts.topic",
        "alerts-topic",
        WORK,
        alerts.topic,
        "Topic of alerts, made if it is absent; empty: alerts.jsonl in the output folder.",
        "fleetdiff's own name"
    ),
    key!(
        "alerts.partitions",
        "alerts-partitions",
        WORK,
        alerts.partitions,
        "Partitions of that topic if it has to be made.",
        "guess: alerts are few"
    ),
];
