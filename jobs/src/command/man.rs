//! `man`: the help texts as man pages, for packages.

use std::fs;
use std::path::PathBuf;

use clap::{Args, Command};
use clap_mangen::generate_to;

use crate::failure::Failure;

/// How it is used.
pub(crate) const EXAMPLES: &str = "\
Example:
  fleetdiff man --output ~/.local/share/man/man1";

/// Arguments of `man`.
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Folder for the pages; it is created if it is absent
    #[arg(long, value_name = "DIR")]
    pub(crate) output: PathBuf,
}

/// Writes a page for the program and one for each command.
pub(crate) fn run(args: &ManArgs, program: Command) -> Result<(), Failure> {
    fs::create_dir_all(&args.output)
        .and_then(|()| generate_to(program, &args.output))
        .map_err(|failure| Failure::with_hint(failure, "name a folder that this user may write"))
}
