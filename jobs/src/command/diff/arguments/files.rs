//! Which files are compared.

use std::path::{Path, PathBuf};

use clap::Args;
use fleetdiff_diff::flame::Sides;
use fleetdiff_formats::Unit;
use fleetdiff_schemas::profile::ProfileType;

use super::reading::ReadingArgs;
use crate::configuration::{Flags, OfNames};
use crate::failure::Failure;

/// What is compared.
#[derive(Debug, Args)]
#[command(next_help_heading = "What is compared")]
pub(crate) struct FileArgs {
    /// The baseline's profile, then the canary's; for several runs of a side use --base and --head
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Profiles of the baseline; each file is a run, - is standard input
    #[arg(long, num_args = 1.., value_name = "FILE")]
    base: Vec<PathBuf>,
    /// Profiles of the canary; each file is a run, - is standard input
    #[arg(long, num_args = 1.., value_name = "FILE")]
    head: Vec<PathBuf>,
    /// Profile type to compare [default: the type that the first file holds: cpu, else heap, mutex, wall, off_cpu]
    #[arg(long, value_name = "TYPE")]
    pub(crate) profile_type: Option<ProfileType>,
    /// Unit of the values, for files that do not say it: nanoseconds, microseconds, milliseconds, seconds, bytes, count
    #[arg(long, value_name = "UNIT")]
    pub(crate) unit: Option<Unit>,
    #[command(flatten)]
    pub(crate) names: Flags<OfNames>,
    #[command(flatten)]
    pub(crate) reading: ReadingArgs,
}

/// Files that are not two sides.
#[derive(Debug, thiserror::Error)]
enum NotTwoSides {
    #[error("files without a side ({0}), and others with --base or --head")]
    BothWays(usize),
    #[error("{0} files without a side, expected two: the baseline's, then the canary's")]
    Many(usize),
    #[error("one file, {path}, expected two: the baseline's, then the canary's", path = .0.display())]
    One(PathBuf),
    #[error("no file of the {0}")]
    None(&'static str),
    #[error("- is standard input, which can be read once, and is given {0} times")]
    Piped(usize),
}

/// Whether a file is standard input.
pub(crate) fn is_piped(path: &Path) -> bool {
    path.as_os_str() == "-"
}

impl FileArgs {
    /// The files of each side.
    pub(crate) fn sides(&self) -> Result<Sides<&[PathBuf]>, Failure> {
        let sides = self.two_sides().map_err(|fault| {
            Failure::usage(
                fault,
                "give two files, as in fleetdiff diff BASE HEAD, or fleetdiff diff --base FILE... --head FILE...",
            )
        })?;
        match sides.base.iter().chain(sides.head).filter(|path| is_piped(path)).count() {
            0 | 1 => Ok(sides),
            times => Err(Failure::usage(NotTwoSides::Piped(times), "write all but one of them to a file first")),
        }
    }

    fn two_sides(&self) -> Result<Sides<&[PathBuf]>, NotTwoSides> {
        match (self.files.as_slice(), self.base.as_slice(), self.head.as_slice()) {
            ([], [], []) => Err(NotTwoSides::None("baseline, and none of the canary")),
            ([], [], _) => Err(NotTwoSides::None("baseline")),
            ([], _, []) => Err(NotTwoSides::None("canary")),
            ([], base, head) => Ok(Sides { base, head }),
            ([base, head], [], []) => Ok(Sides { base: std::slice::from_ref(base), head: std::slice::from_ref(head) }),
            ([one], [], []) => Err(NotTwoSides::One(one.clone())),
            (many, [], []) => Err(NotTwoSides::Many(many.len())),
            (files, _, _) => Err(NotTwoSides::BothWays(files.len())),
        }
    }
}
