//! Where the result goes, and how it is written.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// Where the result goes, and how it is written.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Format of the result
    #[arg(long, value_enum, default_value_t = OutputFormat::Table)]
    pub(crate) format: OutputFormat,
    /// File for the result instead of stdout; an existing file is overwritten. With --format pprof, the name before .base.pb.gz and .head.pb.gz
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// How a result is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Aligned table
    Table,
    /// Page with a differential flame graph, for a browser
    Html,
    /// Differential flame graph as a picture
    Svg,
    /// All findings as one document, for programs
    Json,
    /// All findings as a table, for spreadsheets
    Csv,
    /// All findings as a Parquet file; needs --output
    Parquet,
    /// Comment for a pull request
    Markdown,
    /// Stacks of both sides, one line STACK BASE HEAD each, as FlameGraph's difffolded.pl writes them
    Difffolded,
    /// Stacks of both sides, as two profiles for speedscope.app
    Speedscope,
    /// Stacks of both sides, as two files for go tool pprof -diff_base; needs --output
    Pprof,
}
