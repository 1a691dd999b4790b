//! The arguments of `diff`.

mod columns;
mod files;
mod names;
mod output;
mod reading;
mod table;
mod times;

use clap::{Args, ValueEnum};
use fleetdiff_diff::compare::{Method, Settings};

pub(crate) use columns::ColumnArgs;
pub(crate) use files::FileArgs;
pub(crate) use output::{OutputArgs, OutputFormat};
pub(crate) use table::{ROWS, TableArgs};

/// Heading of the options that decide what is called.
const WHAT_IS_CALLED: &str = "What is called";

/// Arguments of `diff`.
#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    #[command(flatten)]
    pub(crate) files: FileArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) table: TableArgs,
    #[command(flatten)]
    pub(crate) columns: ColumnArgs,
    /// What calls a function changed
    #[arg(long, help_heading = WHAT_IS_CALLED, value_enum, default_value_t = MethodName::Honest)]
    pub(crate) method: MethodName,
    /// Smallest change that is called, as a log ratio
    #[arg(long, help_heading = WHAT_IS_CALLED, default_value_t = 0.01)]
    pub(crate) min_effect: f64,
    /// False-discovery rate
    #[arg(long, help_heading = WHAT_IS_CALLED, default_value_t = 0.05)]
    pub(crate) q: f64,
    /// Smallest count of both sides together that is tested
    #[arg(long, help_heading = WHAT_IS_CALLED, default_value_t = 30)]
    pub(crate) min_count: u64,
    /// With one run a side: by how much functions differ from run to run beyond what independent samples do, as a standard deviation
    /// of log ratios (0.03: 3 %); without it, what most functions show; 0: samples alone decide
    #[arg(long, help_heading = WHAT_IS_CALLED, value_name = "DEVIATION")]
    pub(crate) background: Option<f64>,
}

/// What calls a function changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MethodName {
    /// Runs as replicates, a robust scale, false discovery controlled
    Honest,
    /// G on merged counts, p below 1e-4: for comparison, not calibrated
    Article,
}

impl DiffArgs {
    /// What decides which functions are significant.
    pub(crate) fn decides(&self) -> Settings {
        let method = match self.method {
            MethodName::Honest => Method::Honest,
            MethodName::Article => Method::Article,
        };
        Settings { method, q: self.q, delta: self.min_effect, min_count: self.min_count, background: self.background }
    }
}
