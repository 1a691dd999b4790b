//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use fleetdiff_pipeline::config::{CellBy, Comparing, Config};
use fleetdiff_schemas::profile::{CountKind, ProfileType};
use fleetdiff_schemas::time::Nanos;

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
    #[command(after_help = "Examples:\n  fleetdiff demo\n  fleetdiff demo --by 1.0 --seed 7\n  fleetdiff demo --regress jwt_verify --cells eu-west-1:Web-Desktop --by 1.2")]
    Demo(DemoSettings),
    /// A recorded fleet through the same dataflow
    #[command(after_help = "Example:\n  fleetdiff replay fleets/rd-listpack --output out --warm-up 0s --cell cohort --base A,A2 --head B --count-kind self")]
    Replay(ReplaySettings),
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
    /// Function that costs more in the head
    #[arg(long, default_value = "serialize_video_chunk")]
    pub regress: String,
    /// Where it does: REGION:COHORT,...
    #[arg(long, default_value = "ap-south-1:Android-TV,ap-southeast-1:Android-TV")]
    pub cells: String,
    /// By which factor
    #[arg(long, default_value_t = 1.10)]
    pub by: f64,
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
    /// Builds that together are the base
    #[arg(long, value_delimiter = ',', requires = "head")]
    pub base: Vec<String>,
    /// The build in question
    #[arg(long, requires = "base")]
    pub head: Option<String>,
    /// Only this service
    #[arg(long)]
    pub service: Option<String>,
    /// Only this profile type
    #[arg(long)]
    pub profile_type: Option<ProfileType>,
    /// Which counts are tested; both by default
    #[arg(long, value_delimiter = ',')]
    pub count_kind: Vec<CountKind>,
    /// What makes a cell
    #[arg(long, value_enum, default_value_t = Cell::RegionCohort)]
    pub cell: Cell,
    /// Length of the sliding window
    #[arg(long, value_parser = length, default_value = "30m")]
    pub window: Nanos,
    /// Width of a hop
    #[arg(long, value_parser = length, default_value = "10s")]
    pub hop: Nanos,
    /// What is cropped after a process start
    #[arg(long, value_parser = length, default_value = "60s")]
    pub warm_up: Nanos,
    /// How far event times may lie apart
    #[arg(long, value_parser = length, default_value = "30s")]
    pub lateness: Nanos,
    /// How often the live rule looks
    #[arg(long, value_parser = length, default_value = "10s")]
    pub evaluate_every: Nanos,
    /// How often the table of cells is written
    #[arg(long, value_parser = length, default_value = "10m")]
    pub report_every: Nanos,
    /// Worker threads; rows do not depend on it
    #[arg(long, default_value_t = 2)]
    pub workers: usize,
}

/// What makes a cell.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Cell {
    /// Region and cohort
    #[value(name = "region,cohort")]
    RegionCohort,
    /// Cohort alone
    Cohort,
    /// Region alone
    Region,
    /// One cell for all
    All,
}

impl ReplaySettings {
    /// The dataflow's configuration.
    pub fn config(&self) -> Config {
        let comparing = self.head.as_ref().map_or_else(Comparing::default, |head| Comparing::Named {
            base: self.base.iter().map(|build| build.as_str().into()).collect(),
            head: head.as_str().into(),
        });
        let mut kinds = if self.count_kind.is_empty() { CountKind::ALL.to_vec() } else { self.count_kind.clone() };
        kinds.sort_unstable();
        kinds.dedup();
        Config {
            hop: self.hop,
            window: self.window,
            warm_up: self.warm_up,
            lateness: self.lateness,
            evaluate_every: self.evaluate_every,
            report_every: self.report_every,
            cell_by: match self.cell {
                Cell::RegionCohort => CellBy::RegionCohort,
                Cell::Cohort => CellBy::Cohort,
                Cell::Region => CellBy::Region,
                Cell::All => CellBy::All,
            },
            comparing,
            count_kinds: kinds,
            ..Config::default()
        }
    }
}

/// A length of time: a whole number with ms, s, m or h.
fn length(text: &str) -> Result<Nanos, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: i64 = match &text[digits.len()..] {
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return Err("expected a whole number with ms, s, m or h, as in 30s".to_owned()),
    };
    let number: i64 = digits.parse().map_err(|_| "expected a whole number with ms, s, m or h, as in 30s".to_owned())?;
    number.checked_mul(unit).filter(|length| *length >= 0).map(Nanos).ok_or_else(|| "out of range".to_owned())
}
