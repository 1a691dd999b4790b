//! Where the result goes, and how it is written.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use crate::failure::Failure;

/// Where the result goes, and how it is written.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// Format of the result [default: by the ending of --output; table without a file]
    #[arg(long, value_enum)]
    format: Option<OutputFormat>,
    /// File for the result instead of stdout, whose ending names the format: .txt, .html, .svg, .json, .csv, .parquet, .md, .folded, .difffolded, .speedscope.json, .pb.gz; an existing file is overwritten. With --format pprof, the name before .base.pb.gz and .head.pb.gz
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Exit with code 3 if a function of the table's count kind has regressed, or stands out and costs more (which includes regressed). The result is written all the same
    #[arg(long, value_enum, value_delimiter = ',', value_name = "WHAT")]
    pub(crate) fail_on: Vec<FailOn>,
}

/// What makes the program fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FailOn {
    /// A function is significantly more expensive
    Regressed,
    /// A function has regressed or, with one run a side, stands out and costs more
    StandsOut,
}

/// Endings of files, and what is written into such a file. NB: of two that fit, the longer one comes first.
const ENDINGS: [(&str, OutputFormat); 11] = [
    (".txt", OutputFormat::Table),
    (".html", OutputFormat::Html),
    (".svg", OutputFormat::Svg),
    (".speedscope.json", OutputFormat::Speedscope),
    (".json", OutputFormat::Json),
    (".csv", OutputFormat::Csv),
    (".parquet", OutputFormat::Parquet),
    (".md", OutputFormat::Markdown),
    (".difffolded", OutputFormat::Difffolded),
    (".folded", OutputFormat::Difffolded),
    (".pb.gz", OutputFormat::Pprof),
];

/// The ending of a file names no format.
#[derive(Debug, thiserror::Error)]
#[error("the ending of {path} names no format, expected one of {endings}", path = .0.display(), endings = ENDINGS.map(|(ending, _)| ending).join(", "))]
struct UnknownEnding(PathBuf);

impl OutputArgs {
    /// The requested format; if none is, that of the file's ending.
    pub(crate) fn format(&self) -> Result<OutputFormat, Failure> {
        match (self.format, &self.output) {
            (Some(format), _) => Ok(format),
            (None, None) => Ok(OutputFormat::Table),
            (None, Some(path)) => of_ending(path).ok_or_else(|| {
                Failure::usage(UnknownEnding(path.clone()), "choose another ending, or name the format with --format")
            }),
        }
    }
}

fn of_ending(path: &Path) -> Option<OutputFormat> {
    let name = path.file_name()?.to_string_lossy().to_lowercase();
    ENDINGS.into_iter().find(|(ending, _)| name.ends_with(ending)).map(|(_, format)| format)
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
