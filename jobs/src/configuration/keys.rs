//! Every key of the configuration: its name, meaning, the source of its default, and the field that it sets.

use serde_json::Value as Json;

use super::setting::Setting;
use super::values::Configuration;

/// One key.
pub(crate) struct Key {
    /// Its path in a file: `section.name`.
    pub(crate) path: &'static str,
    /// Its name as a flag, without the dashes.
    pub(crate) flag: &'static str,
    /// The name of the flag's value in help texts.
    pub(crate) value_name: &'static str,
    /// The heading of the flag in help texts.
    pub(crate) heading: Heading,
    /// What it means.
    pub(crate) meaning: &'static str,
    /// The source of its default: measured, published, a guess, or why there is no other.
    pub(crate) origin: &'static str,
    /// What a change of it means.
    pub(crate) change: Change,
    /// What is expected of a value, in words.
    pub(crate) expected: &'static str,
    /// Its value in a configuration.
    pub(crate) get: fn(&Configuration) -> Json,
    /// Sets it from the text of a flag or variable; returns whether that was possible.
    pub(crate) set_text: fn(&mut Configuration, &str) -> bool,
    /// Sets it from a value of a file; returns whether that was possible.
    pub(crate) set_json: fn(&mut Configuration, &Json) -> bool,
}

/// What a change of a key means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Rows depend on it, so it needs a new output folder.
    Rows,
    /// It says where things are and how the program runs, which is decided at the start.
    Start,
    /// A running service takes it.
    Running,
    /// A running service takes it, and rows depend on it from then on.
    Onward,
}

/// Headings of flags in help texts, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Heading {
    Kafka,
    Identity,
    Compared,
    Windows,
    Decision,
    Limits,
    Running,
    Processes,
    Output,
    Status,
}

impl Heading {
    /// As it is printed.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Kafka => "Kafka",
            Self::Identity => "Identity",
            Self::Compared => "What is compared",
            Self::Windows => "Windows and time",
            Self::Decision => "Decision",
            Self::Limits => "Limits of each service",
            Self::Running => "Running",
            Self::Processes => "Several processes",
            Self::Output => "Output",
            Self::Status => "How the service is",
        }
    }
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

const ROWS: Change = Change::Rows;
const WORK: Change = Change::Start;
const LIVE: Change = Change::Running;
const NEXT: Change = Change::Onward;

macro_rules! keys {
    ($(
        $path:literal = $($field:ident).+, $change:ident, $heading:ident $flag:literal $value_name:literal:
            $meaning:literal
            $origin:literal;
    )*) => {
        &[$(Key {
            path: $path,
            flag: $flag,
            value_name: $value_name,
            heading: Heading::$heading,
            meaning: $meaning,
            origin: $origin,
            change: $change,
            expected: expected(|configuration| &configuration.$($field).+),
            get: |configuration| Setting::to_json(&configuration.$($field).+),
            set_text: |configuration, text| set(&mut configuration.$($field).+, Setting::from_text(text)),
            set_json: |configuration, value| set(&mut configuration.$($field).+, Setting::from_json(value)),
        }),*]
    };
}

/// Every key, by section: its path and field, what a change of it means, its flag with heading and value, what it means, and where
/// its default comes from.
pub(crate) const KEYS: &[Key] = keys! {
    "dataflow.hop" = dataflow.hop, ROWS, Windows "hop" "DURATION":
        "Length of the intervals in which event time is counted."
        "published: agents upload every 10 s";
    "dataflow.window" = dataflow.window, ROWS, Windows "window" "DURATION":
        "Length of the sliding window."
        "published: the window of the method's article";
    "dataflow.lateness" = dataflow.lateness, ROWS, Windows "lateness" "DURATION":
        "How far apart the event times of one partition may be; at least half of the longest profile plus its transport time."
        "guess: half a 30 s profile and its transport";
    "dataflow.agreement" = dataflow.agreement, ROWS, Windows "agreement" "PODS":
        "How many pods of a partition must have reached an event time before it is believed, if the topic has timestamps of senders (CreateTime); more than half if fewer send."
        "guess: two wrong clocks are outvoted";
    "dataflow.warm_up" = dataflow.warm_up, ROWS, Windows "warm-up" "DURATION":
        "Time after the start of a process whose samples are left out."
        "guess: caches and compilers of most services settle within it";
    "dataflow.young" = dataflow.young, ROWS, Windows "young" "DURATION":
        "A process is young for this long after its start. Only pods of the same age are compared once there are any; until then flags are provisional. 0s turns this off."
        "guess: caches, compilers and connections of most services settle within it";
    "dataflow.drain" = dataflow.drain, ROWS, Windows "drain" "DURATION":
        "Time before the end of a process whose samples are left out. It delays every profile and alert by this time and one more profile."
        "guess: few programs behave differently at their end, and results would come later";
    "dataflow.evaluate_every" = dataflow.evaluate_every, ROWS, Windows "evaluate-every" "DURATION":
        "How often the live rule, which raises alerts, is evaluated."
        "at every interval: alerts come as early as possible";
    "dataflow.report_every" = dataflow.report_every, ROWS, Windows "report-every" "DURATION":
        "How often rows of the table cells are written."
        "guess";
    "dataflow.epoch" = dataflow.epoch, ROWS, Windows "epoch" "DURATION":
        "How long a comparison accumulates evidence before it starts again."
        "published: the family of the live rule";
    "dataflow.history" = dataflow.history, ROWS, Windows "history" "DURATION":
        "How far back the history reaches, at least. A canary is compared with the same hours on earlier days once no baseline build runs beside it; 0s turns this off."
        "guess: a week holds each day of the week";
    "dataflow.history_every" = dataflow.history_every, ROWS, Windows "history-every" "DURATION":
        "One interval of each such period is kept for the history."
        "guess: 60 intervals of each hour and day";
    "dataflow.base" = named.base, ROWS, Compared "base" "BUILD,...":
        "Builds that together are the baseline. With head, this is the only comparison; else comparisons follow from deploys."
        "none: comparisons follow from deploys";
    "dataflow.head" = named.head, ROWS, Compared "head" "BUILD":
        "Build that is the canary; needs base."
        "none: comparisons follow from deploys";
    "dataflow.rings" = named.rings, ROWS, Compared "rings" "BUILD,...":
        "Builds that are rolled out in this order and run side by side: each is compared with the one before it and with the first. Instead of base and head."
        "none: rings follow from deploys";
    "dataflow.min_head_pods" = dataflow.min_head_pods, ROWS, Compared "min-head-pods" "PODS":
        "Number of pods of a new build that open a comparison."
        "one pod is not a replicate";
    "dataflow.cell" = dataflow.cell_by, ROWS, Compared "cell" "DIMENSION,...":
        "Dimensions that make a cell: \"region,cohort\", region, cohort, or all for a single cell; other dimensions are merged."
        "fleets differ by region and cohort";
    "dataflow.count_kind" = dataflow.count_kinds, ROWS, Compared "count-kind" "KIND,...":
        "Counts that are tested: self (the function is at the leaf of the stack), total (anywhere on the stack), or both."
        "both: a change moves self of one function and total of its callers";
    "dataflow.name_rules_off" = name_rules_off, ROWS, Compared "name-rules-off" "RULE,...":
        "Rules of function names that are switched off, or runtimes whose rules are: native, jvm, v8, go, rust, dotnet, scripts, any. They take off what changes though the function does not; docs/names.md lists them."
        "none: a function with a line, a hash or the number of a process in its name would be another in each build";
    "dataflow.rewrites" = rewrites, ROWS, Compared "rewrites" "REWRITE":
        "Rewrites of function names in order, after the rules, each PATTERN => REPLACEMENT with a regular expression; several as a JSON list. Names in the delta format are not rewritten."
        "none: names are as tools give them, after the rules";
    "dataflow.idle_defaults" = dataflow.idle_defaults, ROWS, Compared "idle-defaults" "BOOL":
        "Whether off_cpu and wall profiles are counted without the stacks of threads that wait for work, by fleetdiff's lists for each runtime."
        "guess: threads of services spend most time off the processor waiting for work";
    "dataflow.idle" = dataflow.idle, ROWS, Compared "idle" "FUNCTION":
        "Further functions whose stacks are left out of off_cpu and wall profiles, as profilers write them, or function @ thread; * stands for any text, and ! before a name keeps its stacks. Several as a JSON list."
        "none: only you know them";
    "dataflow.q" = dataflow.q, ROWS, Decision "q" "RATE":
        "False-discovery rate of each family of tests, between 0 and 1."
        "published: Benjamini and Hochberg 1995";
    "dataflow.min_effect" = dataflow.min_effect, ROWS, Decision "min-effect" "LOG_RATIO":
        "Minimum effect: a change must be larger than this to be significant, as a log ratio (0.01 is about 1 %)."
        "measured: simulated fleets";
    "dataflow.min_count" = dataflow.min_count, ROWS, Decision "min-count" "SAMPLES":
        "Fewest samples of canary and baseline together for which a function is tested."
        "published: the floor of the method's article";
    "dataflow.method" = dataflow.method, ROWS, Decision "method" "METHOD":
        "Method that decides what is significant: honest. For comparison in replay only, and not calibrated: article (G test on merged counts), article-b and article-b-stouffer (G test of each pod, merged), naive (difference of shares, no test)."
        "measured: the others are wrong more often than they say";
    "limits.retention" = dataflow.limits.retention, ROWS, Limits "retention" "DURATION":
        "Functions, call paths, cells, builds and pods that were not seen for this long are forgotten, at the latest after twice as long; at least two windows are kept. Forgotten builds have no history."
        "guess: what is not seen for hours is gone";
    "limits.functions" = dataflow.limits.functions, NEXT, Limits "limit-functions" "COUNT":
        "Functions of one service. Of this and of what follows, what exceeds the limit is counted together as _overflow."
        "guess: twice the largest program that was measured";
    "limits.paths" = dataflow.limits.paths, NEXT, Limits "limit-paths" "COUNT":
        "Call paths of one service."
        "guess: ten for each function";
    "limits.cells" = dataflow.limits.cells, NEXT, Limits "limit-cells" "COUNT":
        "Cells of one service, over all types of profile."
        "guess: 50 cohorts in 20 regions";
    "limits.builds" = dataflow.limits.builds, NEXT, Limits "limit-builds" "COUNT":
        "Builds of one service."
        "guess: a deploy every few minutes";
    "limits.pods" = dataflow.limits.pods, NEXT, Limits "limit-pods" "COUNT":
        "Pods of one service."
        "guess: deploys of a large service, each with new pods";
    "limits.bytes" = dataflow.limits.bytes, NEXT, Limits "limit-bytes" "BYTES":
        "Counts of one service within the window: 400 bytes a profile, and 3 for each of its functions and call paths."
        "guess: half the memory of a small machine";
    "run.workers" = workers, WORK, Running "workers" "THREADS":
        "Number of worker threads; results do not depend on it."
        "guess: most machines have two cores";
    "cluster.processes" = cluster.processes, WORK, Processes "processes" "COUNT":
        "Processes that do the work of one service together, on one machine or on several; results do not depend on it."
        "guess: one machine is enough for most fleets";
    "cluster.process" = cluster.process, WORK, Processes "process" "NUMBER":
        "Which of them this one is, from 0. The first one, 0, has the output folder."
        "the first";
    "cluster.hosts" = cluster.hosts, WORK, Processes "hosts" "HOST:PORT,...":
        "Where each process listens for the others, in the order of their numbers, the same list for all; without it, on this machine at ports 2101, 2102 and so on."
        "guess: all on this machine";
    "cluster.secret_file" = cluster.secret_file, WORK, Processes "cluster-secret-file" "FILE":
        "File with what only the processes of this service know, by which they know each other; empty to believe whoever connects. Records between them are not encrypted."
        "guess: a network of their own";
    "kafka.brokers" = kafka.client.brokers, WORK, Kafka "brokers" "HOST:PORT,...":
        "Brokers to contact first: HOST:PORT, separated by commas."
        "guess: one on this machine";
    "kafka.topic" = kafka.topic, ROWS, Kafka "topic" "TOPIC":
        "Topic of the profiles."
        "guess";
    "kafka.shard" = dataflow.shard, ROWS, Running "shard" "I/N":
        "Which services this process counts, if N processes share them, each with an output folder of its own: 2/3 is the second of three. Each reads all records; a hash of the service's name decides who counts it."
        "all services: one process";
    "kafka.format" = kafka.format, ROWS, Kafka "format" "FORMAT":
        "Format of the records: pprof, folded, perf_script, speedscope, cpuprofile, chrome_trace, heapprofile, stackprof, gecko, pyroscope, delta or otlp. Records in delta and otlp name their pods themselves, all others in headers."
        "published: what continuous profilers send";
    "kafka.metrics_topic" = kafka.metrics_topic, ROWS, Kafka "metrics-topic" "TOPIC":
        "Topic of OTLP metrics that count requests, for profiles without request counts of their own; empty for none."
        "guess: many fleets count requests elsewhere";
    "kafka.request_metrics" = kafka.request_metrics, ROWS, Kafka "request-metrics" "METRIC,...":
        "Metrics of that topic that count requests; the counts of all named metrics are added."
        "published: OpenTelemetry's names";
    "kafka.cohort" = kafka.cohort, ROWS, Identity "cohort" "ATTRIBUTE":
        "Attribute that names the cohort, taken from the sample if it is there, else from the record."
        "guess";
    "kafka.contention" = kafka.contention, ROWS, Kafka "contention" "TYPE":
        "Type of contention profiles in otlp records that do not say it: mutex (who holds a lock) or block (who waits for it)."
        "guess: who holds a lock can be changed";
    "kafka.max_record_bytes" = kafka.max_record_bytes, ROWS, Kafka "max-record-bytes" "BYTES":
        "Largest size of a record after decompression; larger records are rejected."
        "guess: far above the largest recorded profile";
    "kafka.max_built_bytes" = kafka.max_built_bytes, ROWS, Kafka "max-built-bytes" "BYTES":
        "Most memory that one record is unfolded into: 4 times its size after decompression, but at least 128 MiB and at most this; what does not fit is rejected."
        "guess: twice the largest record";
    "kafka.idle_after" = kafka.idle_after, WORK, Kafka "idle-after" "DURATION":
        "Event time no longer waits for a partition that has been silent for this long; 0s waits forever. Not used with --until-end."
        "guess: six profiles of a pod";
    "kafka.connect_timeout" = kafka.client.connect_timeout, WORK, Kafka "connect-timeout" "DURATION":
        "How long to wait for the first answer of a broker."
        "guess: a handshake across an ocean";
    "kafka.give_up_after" = kafka.give_up_after, WORK, Kafka "give-up-after" "DURATION":
        "With --until-end, how long the cluster may be unreachable before the run ends with an error; a service waits until it is back."
        "guess: a broker restarts within seconds";
    "kafka.identity.service" = kafka.identity.service, ROWS, Identity "identity-service" "NAME,...":
        "Headers or attributes that name the service. In this list and those below, the first that is present is used."
        "published: OpenTelemetry's names";
    "kafka.identity.build" = kafka.identity.build, ROWS, Identity "identity-build" "NAME,...":
        "Headers or attributes that name the build."
        "published: OpenTelemetry's names";
    "kafka.identity.region" = kafka.identity.region, ROWS, Identity "identity-region" "NAME,...":
        "Headers or attributes that name the region."
        "published: OpenTelemetry's names";
    "kafka.identity.hardware" = kafka.identity.hardware, ROWS, Identity "identity-hardware" "NAME,...":
        "Headers or attributes that name the type of machine."
        "published: OpenTelemetry's names";
    "kafka.identity.node" = kafka.identity.node, ROWS, Identity "identity-node" "NAME,...":
        "Headers or attributes that name the machine."
        "published: OpenTelemetry's names";
    "kafka.identity.pod" = kafka.identity.pod, ROWS, Identity "identity-pod" "NAME,...":
        "Headers or attributes that name the pod; names joined by + are required together."
        "published: OpenTelemetry's names";
    "kafka.identity.process_start" = kafka.identity.process_start, ROWS, Identity "identity-process-start" "NAME,...":
        "Headers or attributes that hold the start time of the process, in RFC 3339 or as nanoseconds since 1970."
        "published: OpenTelemetry's names";
    "output.folder" = output.folder, WORK, Output "output" "DIR":
        "Folder for the tables, the log of decisions and, if there is no topic for them, the alerts."
        "guess";
    "output.store" = output.store, WORK, Output "store" "URL":
        "Object store instead of the folder, s3://BUCKET/PREFIX: tables, archive, checkpoints and logs are kept there, so that any machine goes on with them; empty for none. Server, region and credentials are those of AWS_ENDPOINT_URL, AWS_REGION, AWS_ACCESS_KEY_ID and so on. Alerts need a topic then. One prefix for each service or shard."
        "guess: most begin on one machine";
    "output.flush" = output.flush, WORK, Output "flush" "DURATION":
        "Event time that one file covers; must divide an hour."
        "guess: files of some MB";
    "output.checkpoint_every" = output.checkpoint_every, WORK, Output "checkpoint-every" "DURATION":
        "Event time between two checkpoints, with which a service that starts again goes on at once; 0s for none, so that it reads the topic from its beginning. Not used with --until-end."
        "guess: a minute or two of records to read again";
    "output.metrics" = output.metrics, WORK, Output "metrics" "FILE":
        "File for metrics in the Prometheus text format, rewritten every 10 s; empty for none."
        "guess: many have another way";
    "archive.keep" = archive.keep, WORK, Output "archive-keep" "DURATION":
        "How long what was counted is kept, pod by pod and hop by hop, in the folder archive of the output folder; 0s for no archive."
        "guess: most want comparisons, not counts";
    "archive.max_bytes" = archive.max_bytes, WORK, Output "archive-max-bytes" "BYTES":
        "Largest size of the archive: its oldest hops are removed; 0 for any size."
        "guess: its age is limit enough";
    "status.listen" = status.listen, WORK, Status "listen" "HOST:PORT":
        "Where /status, /metrics, /readyz and /healthz are served over HTTP, without a password; port 0 takes any free port, which the log names; empty for nowhere. Not used with --until-end."
        "guess: only this machine may ask";
    "status.ready_within" = status.ready_within, LIVE, Status "ready-within" "DURATION":
        "How old the last record of each partition may be, if more are waiting, for /readyz to answer yes."
        "guess: six profiles of a pod";
    "log.level" = log_level, LIVE, Running "log-level" "LEVEL":
        "Least severe lines that are logged: error, warn, info, debug or trace; of libraries at most warn. FLEETDIFF_LOG wins over it."
        "guess: what a service does is a line each 10 s";
    "alerts.topic" = alerts.topic, WORK, Output "alerts-topic" "TOPIC":
        "Topic for alerts, created if it is absent; empty to write alerts.jsonl into the output folder."
        "fleetdiff's own name";
    "alerts.partitions" = alerts.partitions, WORK, Output "alerts-partitions" "COUNT":
        "Number of partitions of that topic if it is created."
        "guess: alerts are few";
    "alerts.owners" = alerts.guidance.owners, LIVE, Output "alerts-owners" "RULE,...":
        "Owners that alerts name: \"SERVICE -> OWNER\" or \"SERVICE:FUNCTION -> OWNER\"; * stands for any text, and the first rule that fits decides."
        "none: only you know them";
    "alerts.runbooks" = alerts.guidance.runbooks, LIVE, Output "alerts-runbooks" "RULE,...":
        "Runbooks that alerts name: \"SERVICE -> URL\" or \"SERVICE:FUNCTION -> URL\"; * stands for any text, and the first rule that fits decides."
        "none: only you know them";
    "alerts.link" = alerts.guidance.link, LIVE, Output "alerts-link" "URL":
        "Link in alerts about incidents; {service}, {head}, {base}, {cause} and {incident} are replaced. Empty for none."
        "none: only you know it";
};
