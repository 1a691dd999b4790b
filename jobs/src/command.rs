//! The command line: one file per command, with its arguments and its implementation.

mod calibrate;
mod completions;
mod delta;
mod demo;
mod diff;
mod generate;
mod man;
mod power;
mod publish;
mod pull;
mod replay;
mod report;
mod test_receivers;
mod watch;

use clap::{CommandFactory, Parser, Subcommand};

use crate::failure::Failure;
use crate::logging::{Log, LogFormat, LogLevel};

/// The version and the commit that was built. NB: files of output name the version alone, so that builds of one version write the same
/// bytes.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("FLEETDIFF_COMMIT"), ")");

/// Differential profiler for fleets: finds which functions really cost more or less in a canary than in the baseline, where, and by how much.
#[derive(Debug, Parser)]
#[command(name = "fleetdiff", version = VERSION, propagate_version = true)]
pub(crate) struct Program {
    /// How lines of the log are written to standard error: text, or json with one object a line
    #[arg(
        long,
        global = true,
        value_name = "FORMAT",
        env = "FLEETDIFF_LOG_FORMAT",
        default_value = "text",
        hide_env = true,
        hide_default_value = true
    )]
    pub(crate) log_format: LogFormat,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What fleetdiff does.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a synthetic fleet with a canary through the dataflow and print what it finds
    #[command(after_help = demo::EXAMPLES)]
    Demo(demo::DemoArgs),
    /// Run a recorded fleet through the dataflow and print what it finds
    #[command(after_help = replay::EXAMPLES)]
    Replay(replay::ReplayArgs),
    /// Write a report of an output folder: what happened, where, how sure that is, and what to do
    ///
    /// The report has the verdict of each comparison, what to do, a grid of cells, each incident with pictures, what could not be
    /// decided and why, the A/A check, and what data were left out. Every figure leads to the row that it comes from.
    ///
    /// It follows from the tables alone, so it can be written at any time, and the same tables give the same report.
    #[command(after_help = report::EXAMPLES)]
    Report(report::ReportArgs),
    /// Run the service: read profiles from Kafka, write Parquet tables and send alerts
    ///
    /// Without --until-end, the service runs until SIGINT or SIGTERM. All alerts have then been sent up to the
    /// last closed interval, and the tables are complete up to the last --flush boundary. Started again with the same folder,
    /// the service goes on from its last checkpoint; without one it reads the topic from the beginning and checks its rows against
    /// the existing files.
    ///
    /// With --until-end, the service reads up to the offsets found at the start, closes all intervals, writes all rows and stops.
    ///
    /// Decisions that depend on the wall clock are logged in decisions.jsonl in the output folder, so that the next start makes
    /// the same decisions; --decisions takes them into another folder.
    #[command(after_help = watch::EXAMPLES)]
    Watch(watch::WatchArgs),
    /// Send a test message to the receivers of a configuration and print what they answer
    ///
    /// The message says that it is a test. At Alertmanager it is an alert of the service fleetdiff-test with severity info, which
    /// ends by itself in a minute. Exit code 1 means that a receiver did not take it.
    #[command(after_help = test_receivers::EXAMPLES)]
    TestReceivers(test_receivers::TestReceiversArgs),
    /// Write a recorded fleet to a Kafka topic
    ///
    /// Records are written in order of the end times of their profiles, which become their timestamps. The topic is created if it
    /// is absent, without a retention limit. As pprof, folded or perf_script every file is sent, even a damaged one, and one that has
    /// this format already as it is; as otlp or delta, files that cannot be decoded are skipped with a warning.
    #[command(after_help = publish::EXAMPLES)]
    Publish(publish::PublishArgs),
    /// Record profiles of programs that serve them, as Go's /debug/pprof does, or that Pyroscope has stored, into a folder or onto a topic
    ///
    /// Each pod is asked for one profile after the other. Profiles are kept as they come, in a folder that `fleetdiff replay` reads, or on a
    /// topic that `fleetdiff watch` reads. Pods of the baseline and of the canary are recorded by one command whose targets have
    /// labels, or by two commands into one folder or topic.
    ///
    /// A pod that does not answer is asked again in the next round, and a warning says so once. Names and files of targets are looked at each
    /// round, so that pods may come and go.
    ///
    /// A target pyroscope:URL is a server of Grafana Pyroscope, which is asked for one profile of each pod, of each slice of --every: from
    /// --from to --until, or as it comes.
    #[command(after_help = pull::EXAMPLES)]
    Pull(Box<pull::PullArgs>),
    /// Generate a synthetic fleet with known changes, into a folder or a Kafka topic
    ///
    /// --regress, --cells and --factor replace the change that the preset makes; if only some of them are given, the others are
    /// as in `fleetdiff demo`.
    ///
    /// On a topic, late and duplicate records arrive in the order in which agents would send them. A folder is read in order of
    /// time, so that nothing in it is late.
    #[command(after_help = generate::EXAMPLES)]
    Generate(generate::GenerateArgs),
    /// Subtract a cumulative pprof profile from a later one of the same process
    ///
    /// Every column is subtracted for each stack and set of labels, except levels (inuse_...), which are those of AFTER. Entries
    /// that are zero in all columns are left out. A value that decreased means that the process restarted: this is an error.
    #[command(after_help = delta::EXAMPLES)]
    Delta(delta::DeltaArgs),
    /// Compare two profiles, or several runs of each side, and show which functions really changed
    ///
    /// Each file is a run. With two or more runs per side, the variation between runs is measured, and a change must exceed it to
    /// be significant. With one run per side, that variation is unknown: nothing is significant, functions that differ
    /// more than the others let expect stand out, and a warning is printed. Because shares sum to one, ratios are adjusted by a normalization factor: what all
    /// functions have in common is taken out.
    ///
    /// The result is a table, a page with a differential flame graph, or one of several export formats, which the ending of --output or
    /// --format names.
    ///
    /// Exit codes: 0, the sides were compared, whatever was found; 1, they could not be compared; 2, the command line is wrong; 3, they were
    /// compared, and something was found that --fail-on names; 141, nobody read the output to its end.
    #[command(after_help = diff::EXAMPLES)]
    Diff(Box<diff::DiffArgs>),
    /// Measure how often the statistics are wrong, on simulated fleets whose changes are known
    ///
    /// Exit code 1 means that a figure is outside its required bound. A rate may miss its bound by three standard errors.
    #[command(after_help = calibrate::EXAMPLES)]
    Calibrate(calibrate::CalibrateArgs),
    /// Estimate how long, or how many pods, it takes to detect a change of a given size
    ///
    /// Pods of one build differ from each other, and waiting does not reduce this. If these differences hide the change, the
    /// number of pods that would show it is printed. Times are event time, counted from the first samples of both builds.
    #[command(after_help = power::EXAMPLES)]
    Power(power::PowerArgs),
    /// Print a script that completes commands and flags in a shell
    #[command(after_help = completions::EXAMPLES)]
    Completions(completions::CompletionsArgs),
    /// Write man pages into a folder
    #[command(after_help = man::EXAMPLES, hide = true)]
    Man(man::ManArgs),
}

impl Command {
    /// Does it.
    pub(crate) fn run(&self, log: &Log) -> Result<(), Failure> {
        match self {
            Self::Demo(args) => demo::run(args),
            Self::Replay(args) => replay::run(args),
            Self::Report(args) => report::run(args),
            Self::Watch(args) => watch::run(args, log),
            Self::TestReceivers(args) => test_receivers::run(args),
            Self::Publish(args) => publish::run(args),
            Self::Pull(args) => pull::run(args),
            Self::Generate(args) => generate::run(args),
            Self::Delta(args) => delta::run(args),
            Self::Diff(args) => diff::run(args),
            Self::Calibrate(args) => calibrate::run(args),
            Self::Power(args) => power::run(args),
            Self::Completions(args) => completions::run(args, Program::command()),
            Self::Man(args) => man::run(args, Program::command()),
        }
    }

    /// What is logged if FLEETDIFF_LOG is not set: a service logs what it does, the other commands only problems.
    pub(crate) fn default_log(&self) -> LogLevel {
        match self {
            Self::Watch(_) => LogLevel::Info,
            _ => LogLevel::Warn,
        }
    }
}

#[cfg(test)]
mod tests;
