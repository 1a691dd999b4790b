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

pub use columns::ColumnArgs;
pub use files::FileArgs;
pub use output::{OutputArgs, OutputFormat};
pub use table::{ROWS, TableArgs};

/// Heading of the options that decide what is called.
const WHAT_IS_CALLED: &str = "What is called";

/// Arguments of `diff`.
#[derive(Debug, Args)]
pub struct DiffArgs {
    #[command(flatten)]
    pub files: FileArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub table: TableArgs,
    #[command(flatten)]
    pub columns: ColumnArgs,
    /// What calls a function changed
    #[arg(long, help_heading = WHAT_IS_CALLED, value_enum, default_value_t = MethodName::Honest)]
    pub method: MethodName,
    /// Smallest change that is called, as a log ratio
    #[arg(long, help_heading = WHAT_IS_CALLED, default_value_t = 0.01)]
    pub delta: f64,
    /// False-discovery rate
    #[arg(long, help_heading = WHAT_IS_CALLED, default_value_t = 0.05)]
    pub q: f64,
    /// Smallest count of both sides together that is tested
    #[arg(long, help_heading = WHAT_IS_CALLED, default_value_t = 30)]
    pub min_count: u64,
    /// With one run a side: by how much functions differ from run to run beyond what independent samples do, as a standard deviation
    /// of log ratios (0.03: 3 %); without it, what most functions show; 0: samples alone decide
    #[arg(long, help_heading = WHAT_IS_CALLED, value_name = "DEVIATION")]
    pub background: Option<f64>,
}

/// What calls a function changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MethodName {
    /// Runs as replicates, a robust scale, false discovery controlled
    Honest,
    /// G on merged counts, p below 1e-4: for comparison, not calibrated
    Article,
}

impl DiffArgs {
    /// What decides which functions are significant.
    pub fn decides(&self) -> Settings {
        let method = match self.method {
            MethodName::Honest => Method::Honest,
            MethodName::Article => Method::Article,
        };
        Settings { method, q: self.q, delta: self.delta, min_count: self.min_count, background: self.background }
    }
}
