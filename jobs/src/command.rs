//! The command line: one file a command, with its arguments and what it does.

mod calibrate;
mod delta;
mod demo;
mod diff;
mod generate;
mod power;
mod publish;
mod replay;
mod watch;

use clap::{Parser, Subcommand};

use crate::failure::Failure;

/// An honest differential profiler for fleets: which difference between two builds is real, where, and by how much.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true)]
pub(crate) struct Program {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What fleetdiff does.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// A synthetic fleet with a canary, through the real dataflow, and what it finds
    #[command(after_help = demo::EXAMPLES)]
    Demo(demo::DemoArgs),
    /// A recorded fleet through the same dataflow
    #[command(after_help = replay::EXAMPLES)]
    Replay(replay::ReplayArgs),
    /// The service: profiles of a Kafka topic through the dataflow, to Parquet and an alert topic
    ///
    /// Without --until-end it runs until SIGINT or SIGTERM. What is then on disk are the files of intervals that were over, and
    /// the alerts of all hops that were closed; started again on the same folder, it reads the topic anew, compares what is
    /// there, and goes on. With --until-end it reads up to the offsets found at the start, closes all hops, and writes all
    /// rows. What a wall clock decided stands in decisions.jsonl of the output folder and is decided the same again.
    #[command(after_help = watch::EXAMPLES)]
    Watch(watch::WatchArgs),
    /// A recorded fleet onto a Kafka topic
    ///
    /// Records go in order of the ends of their profiles, which are their times. The topic is made if it is absent, so that
    /// records of any age stay in it. As pprof every file is sent, also a damaged one; as delta what cannot be decoded is
    /// left out and told.
    #[command(after_help = publish::EXAMPLES)]
    Publish(publish::PublishArgs),
    /// A synthetic fleet whose truth is known, as a folder to be replayed or onto a Kafka topic
    ///
    /// A folder is read in order of time, so nothing in it is late; a topic gets late and duplicate records as they would come.
    #[command(after_help = generate::EXAMPLES)]
    Generate(generate::GenerateArgs),
    /// What a process counted between two cumulative pprof profiles, as pprof
    ///
    /// Every column is subtracted stack by stack and label by label, but for levels (inuse_...), which are those of AFTER; what
    /// is zero in all columns is left out. A value that fell says that the process began anew: that is an error, not a delta.
    #[command(after_help = delta::EXAMPLES)]
    Delta(delta::DeltaArgs),
    /// Two profiles, or many runs a side: which functions really changed, and a differential flame graph
    ///
    /// Each file is a run. With two or more a side, how much runs differ is measured, and a change must exceed it; with one a side
    /// nobody knows that: what stands out from most functions is called, and a warning stands beside it. Ratios have what moved all
    /// functions alike taken out, since shares sum to one. Exit code 0 says that sides were compared, whatever was found.
    #[command(after_help = diff::EXAMPLES)]
    Diff(Box<diff::DiffArgs>),
    /// How often the statistics are wrong, and what they find: measured on simulated fleets whose truth is known
    ///
    /// Exit code 1 says that a figure is outside what is required of it. A rate may miss a bound by three standard errors.
    #[command(after_help = calibrate::EXAMPLES)]
    Calibrate(calibrate::CalibrateArgs),
    /// Before a deploy: how long, or how many pods, until a change of some size can be known
    ///
    /// Pods of one build differ, and no time makes that smaller: where it hides the change, more pods are asked for. Time is event
    /// time, counted from the first sample that both builds have.
    #[command(after_help = power::EXAMPLES)]
    Power(power::PowerArgs),
}

impl Command {
    /// Does it.
    pub(crate) fn run(&self) -> Result<(), Failure> {
        match self {
            Self::Demo(args) => demo::run(args),
            Self::Replay(args) => replay::run(args),
            Self::Watch(args) => watch::run(args),
            Self::Publish(args) => publish::run(args),
            Self::Generate(args) => generate::run(args),
            Self::Delta(args) => delta::run(args),
            Self::Diff(args) => diff::run(args),
            Self::Calibrate(args) => calibrate::run(args),
            Self::Power(args) => power::run(args),
        }
    }

    /// What is logged where FLEETDIFF_LOG does not say it: a service logs what it does, the other commands only what is wrong.
    pub(crate) fn default_log(&self) -> &'static str {
        match self {
            Self::Watch(_) => "warn,fleetdiff=info,fleetdiff_pipeline=info,fleetdiff_connectors=info",
            _ => "warn",
        }
    }
}
