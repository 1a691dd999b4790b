//! Which files are compared.

use std::path::PathBuf;

use clap::Args;
use fleetdiff_formats::Unit;
use fleetdiff_schemas::profile::ProfileType;

use super::reading::ReadingArgs;
use crate::configuration::{Flags, OfNames};

/// What is compared.
#[derive(Debug, Args)]
#[command(next_help_heading = "What is compared")]
pub(crate) struct FileArgs {
    /// Profiles of the baseline; each file is a run
    #[arg(long, required = true, num_args = 1.., value_name = "FILE")]
    pub(crate) base: Vec<PathBuf>,
    /// Profiles of the canary; each file is a run
    #[arg(long, required = true, num_args = 1.., value_name = "FILE")]
    pub(crate) head: Vec<PathBuf>,
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
