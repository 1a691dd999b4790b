//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::time::Nanos;
use fleetdiff_simulation::fleet::Fleet;

use crate::calibrate::CalibrateSettings;
use crate::configuration::{Everything, Flags, OfDataflow, OfTopic, Setting};
use crate::diff::DiffSettings;
use crate::power::PowerSettings;

/// An honest differential profiler for fleets: which difference between two builds is real, where, and by how much.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true)]
pub struct Program {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What fleetdiff does.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// A synthetic fleet with a canary, through the real dataflow, and what it finds
    #[command(
        after_help = "Examples:\n  fleetdiff demo\n  fleetdiff demo --by 1.0 --seed 7\n  fleetdiff demo --regress cache::probe --cells eu-west-1:Web-Desktop --by 1.2"
    )]
    Demo(DemoSettings),
    /// A recorded fleet through the same dataflow
    #[command(
        after_help = "Example:\n  fleetdiff replay fleets/rd-listpack --output out --warm-up 0s --cell cohort --base A,A2 --head B --count-kind self"
    )]
    Replay(ReplaySettings),
    /// The service: profiles of a Kafka topic through the dataflow, to Parquet and an alert topic
    ///
    /// Without --until-end it runs until SIGINT or SIGTERM. What is then on disk are the files of intervals that were over, and
    /// the alerts of all hops that were closed; started again on the same folder, it reads the topic anew, compares what is
    /// there, and goes on. With --until-end it reads up to the offsets found at the start, closes all hops, and writes all
    /// rows. What a wall clock decided stands in decisions.jsonl of the output folder and is decided the same again.
    #[command(
        after_help = "Examples:\n  fleetdiff watch --config fleetdiff.toml\n  fleetdiff watch --brokers kafka:9092 --topic profiles --output out --until-end\n  FLEETDIFF_KAFKA_CLIENT_SASL_PASSWORD=... fleetdiff watch --config fleetdiff.toml --warm-up 2m\n  fleetdiff watch --show-config > fleetdiff.toml"
    )]
    Watch(WatchSettings),
    /// A recorded fleet onto a Kafka topic
    ///
    /// Records go in order of the ends of their profiles, which are their times. The topic is made if it is absent, so that
    /// records of any age stay in it. As pprof every file is sent, also a damaged one; as delta what cannot be decoded is
    /// left out and told.
    #[command(
        after_help = "Examples:\n  fleetdiff publish fleets/kv-snapshot --brokers kafka:9092 --topic profiles --key pod\n  fleetdiff publish fleets/rd-listpack --brokers kafka:9092 --topic deltas --format delta --key none --partitions 8"
    )]
    Publish(PublishSettings),
    /// A synthetic fleet whose truth is known, as a folder to be replayed or onto a Kafka topic
    ///
    /// A folder is read in order of time, so nothing in it is late; a topic gets late and duplicate records as they would come.
    #[command(
        after_help = "Examples:\n  fleetdiff generate --output fleet --seed 7 --pods 5:20 --lasts 10m\n  fleetdiff generate --brokers kafka:9092 --topic profiles --format delta --late 0.02 --late-by 7m --duplicates 0.01\n  fleetdiff generate --output quiet --preset null-cells --lasts 10m"
    )]
    Generate(GenerateSettings),
    /// What a process counted between two cumulative pprof profiles, as pprof
    ///
    /// Every column is subtracted stack by stack and label by label, but for levels (inuse_...), which are those of AFTER; what
    /// is zero in all columns is left out. A value that fell says that the process began anew: that is an error, not a delta.
    #[command(
        after_help = "Examples:\n  fleetdiff delta mutex-1.pb.gz mutex-2.pb.gz -o mutex.delta.pb.gz\n  fleetdiff delta heap-1.pb.gz heap-2.pb.gz --output heap.delta.pb.gz && go tool pprof -sample_index=alloc_space -top heap.delta.pb.gz"
    )]
    Delta(DeltaSettings),
    /// Two profiles, or many runs a side: which functions really changed, and a differential flame graph
    ///
    /// Each file is a run. With two or more a side, how much runs differ is measured, and a change must exceed it; with one a side
    /// nobody knows that: what stands out from most functions is called, and a warning stands beside it. Ratios have what moved all
    /// functions alike taken out, since shares sum to one. Exit code 0 says that sides were compared, whatever was found.
    #[command(
        after_help = "Examples:\n  fleetdiff diff --base before.pb.gz --head after.pb.gz\n  fleetdiff diff --base before-*.pb.gz --head after-*.pb.gz --format html --output diff.html\n  fleetdiff diff --base old.folded --head new.folded --count-kind total --top 50"
    )]
    Diff(Box<DiffSettings>),
    /// How often the statistics are wrong, and what they find: measured on simulated fleets whose truth is known
    ///
    /// Exit code 1 says that a figure is outside what is required of it. A rate may miss a bound by three standard errors.
    #[command(
        after_help = "Examples:\n  fleetdiff calibrate --runs 20\n  fleetdiff calibrate --row aa looks-cv10 --runs 1000 --seed 7\n  fleetdiff calibrate --method article --runs 20\n  fleetdiff calibrate --list"
    )]
    Calibrate(CalibrateSettings),
    /// Before a deploy: how long, or how many pods, until a change of some size can be known
    ///
    /// Pods of one build differ, and no time makes that smaller: where it hides the change, more pods are asked for. Time is event
    /// time, counted from the first sample that both builds have.
    #[command(
        after_help = "Examples:\n  fleetdiff power\n  fleetdiff power --head-pods 5 --base-pods 180 --samples-per-pod-second 19 --share 2% --change 3%,5%,10% --cv 3%\n  fleetdiff power --from out\n  fleetdiff power --from out --head-pods 60 --change 5% --format json"
    )]
    Power(PowerSettings),
}

/// Settings of `demo`.
#[derive(Debug, Args)]
pub struct DemoSettings {
    /// Folder for Parquet tables and alerts.jsonl; it must not hold those of another run
    #[arg(long)]
    pub output: Option<PathBuf>,
    /// Seed of the fleet
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Function that costs more in the head; (all): every one
    #[arg(long, default_value = Fleet::DEMO_FUNCTION)]
    pub regress: String,
    /// Where it does: REGION:COHORT,...
    #[arg(long, default_value = Fleet::DEMO_CELLS)]
    pub cells: String,
    /// By which factor
    #[arg(long, default_value_t = Fleet::DEMO_FACTOR)]
    pub by: f64,
    /// Requests that a pod serves a second; 0: nobody counts them
    #[arg(long, default_value_t = 0.0)]
    pub requests: f64,
    /// Worker threads
    #[arg(long, default_value_t = 2)]
    pub workers: usize,
}

/// Settings of `replay`.
#[derive(Debug, Args)]
pub struct ReplaySettings {
    /// Folder with a manifest.jsonl
    pub fleet: PathBuf,
    /// Folder for Parquet tables and alerts.jsonl; it must not hold those of another run
    #[arg(long)]
    pub output: PathBuf,
    /// Configuration file, of which the dataflow is taken
    #[arg(long)]
    pub config: Option<PathBuf>,
    /// What decides rows.
    #[command(flatten)]
    pub flags: Flags<OfDataflow>,
    /// Only this service
    #[arg(long)]
    pub service: Option<String>,
    /// Only this profile type
    #[arg(long)]
    pub profile_type: Option<ProfileType>,
}

/// Settings of `watch`.
#[derive(Debug, Args)]
pub struct WatchSettings {
    /// Configuration file; what it leaves out has its default
    #[arg(long)]
    pub config: Option<PathBuf>,
    /// Stop at the offsets that the topic ends at now, close all hops and write all rows
    #[arg(long)]
    pub until_end: bool,
    /// Print the configuration in effect as a commented file, without secrets, and stop
    #[arg(long)]
    pub show_config: bool,
    /// Every key of the file.
    #[command(flatten)]
    pub flags: Flags<Everything>,
}

/// Settings of `publish`.
#[derive(Debug, Args)]
pub struct PublishSettings {
    /// Folder with a manifest.jsonl
    pub fleet: PathBuf,
    /// Configuration file, of which the section kafka is taken
    #[arg(long)]
    pub config: Option<PathBuf>,
    /// Topic and how to reach it.
    #[command(flatten)]
    pub flags: Flags<OfTopic>,
    /// How records are spread.
    #[command(flatten)]
    pub spread: SpreadSettings,
}

/// How records are spread over a topic.
#[derive(Clone, Copy, Debug, Args)]
pub struct SpreadSettings {
    /// What decides the partition of a record
    #[arg(long, value_enum, default_value_t = RecordKey::Pod)]
    pub key: RecordKey,
    /// Partitions of the topic if it has to be made
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(i32).range(1..))]
    pub partitions: i32,
    /// Write only to the first so many partitions and leave the others empty
    #[arg(long, value_parser = clap::value_parser!(i32).range(1..))]
    pub spread: Option<i32>,
}

/// What decides the partition of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RecordKey {
    /// The pod: all its records are in one partition
    Pod,
    /// Nothing: partitions take turns
    None,
}

/// Settings of `generate`.
#[derive(Debug, Args)]
pub struct GenerateSettings {
    /// New folder for the fleet, as pprof files with a manifest
    #[arg(long)]
    pub output: Option<PathBuf>,
    /// Configuration file, of which the section kafka is taken
    #[arg(long, conflicts_with = "output")]
    pub config: Option<PathBuf>,
    /// Topic and how to reach it.
    #[command(flatten)]
    pub flags: Flags<OfTopic>,
    /// How records are spread.
    #[command(flatten)]
    pub spread: SpreadSettings,
    /// Seed of the fleet
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// What the fleet is like
    #[arg(long, value_enum, default_value_t = Preset::Demo)]
    pub preset: Preset,
    /// Function that costs more in the head, in place of the preset's; (all): every one
    #[arg(long)]
    pub regress: Option<String>,
    /// Where it does: REGION:COHORT,... (* stands for all)
    #[arg(long)]
    pub cells: Option<String>,
    /// By which factor
    #[arg(long)]
    pub by: Option<f64>,
    /// Pods of head and base in a cell, HEAD:BASE
    #[arg(long, value_parser = pods)]
    pub pods: Option<(u32, u32)>,
    /// Requests that a pod serves a second; 0: nobody counts them
    #[arg(long, default_value_t = 0.0)]
    pub requests: f64,
    /// How long the fleet is watched
    #[arg(long, value_parser = length)]
    pub lasts: Option<Nanos>,
    /// Share of profiles that come late
    #[arg(long, default_value_t = 0.0, requires = "late_by")]
    pub late: f64,
    /// By how much at most; at least half of it
    #[arg(long, value_parser = length, default_value = "0s")]
    pub late_by: Nanos,
    /// Share of profiles that come twice
    #[arg(long, default_value_t = 0.0)]
    pub duplicates: f64,
    /// Pods that restart once
    #[arg(long, default_value_t = 0)]
    pub restarts: u32,
}

/// What a synthetic fleet is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Preset {
    /// 3 regions x 3 cohorts; one function costs 10 % more in two cells of the head
    Demo,
    /// Nothing changed, 9 cells of 5 and 84 pods
    NullCells,
    /// Nothing changed, cohorts are labels of requests
    NullRequestLabels,
    /// Nothing changed, the hour changes half way through
    NullHourEdge,
    /// Nothing changed while 100 pods are rolled out
    Rollout,
}

/// Settings of `delta`.
#[derive(Debug, Args)]
pub struct DeltaSettings {
    /// The earlier profile
    pub before: PathBuf,
    /// The later profile of the same process
    pub after: PathBuf,
    /// File for the delta; one that is there is not changed
    #[arg(short, long)]
    pub output: PathBuf,
}

fn length(text: &str) -> Result<Nanos, String> {
    Nanos::from_text(text).ok_or_else(|| format!("expected {}", Nanos::EXPECTED))
}

fn pods(text: &str) -> Result<(u32, u32), String> {
    let parsed = text.split_once(':').and_then(|(head, base)| Some((head.parse().ok()?, base.parse().ok()?)));
    parsed.ok_or_else(|| "expected HEAD:BASE, as in 5:20".to_owned())
}
