//! Where the result goes, and how it is written.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Where the result goes, and how it is written.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// How the result is written
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    pub(crate) format: OutputFormat,
    /// File for the result instead of stdout; one that is there is overwritten. With pprof, what comes before .base.pb.gz and .head.pb.gz
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// How a result is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Columns for people
    Table,
    /// A page with a differential flame graph, for a browser
    Html,
    /// A picture of the same
    Svg,
    /// All that was found as one document, for programs
    Json,
    /// Findings as a table, for spreadsheets
    Csv,
    /// The same as a Parquet file; needs --output
    Parquet,
    /// A comment for a pull request
    Markdown,
    /// Stacks of both sides, STACK BASE HEAD a line, as FlameGraph's difffolded.pl writes them
    Difffolded,
    /// Stacks of both sides, as two profiles for speedscope.app
    Speedscope,
    /// Stacks of both sides, as two files for go tool pprof -diff_base; needs --output
    Pprof,
}
