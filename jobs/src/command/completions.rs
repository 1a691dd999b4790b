//! `completions`: what a shell completes.

use std::io::Write;

use clap::{Args, Command};
use clap_complete::{Shell, generate};

use crate::failure::Failure;

/// How it is used.
pub(crate) const EXAMPLES: &str = "\
Examples:
  fleetdiff completions bash > ~/.local/share/bash-completion/completions/fleetdiff
  fleetdiff completions zsh > ~/.zfunc/_fleetdiff
  fleetdiff completions fish > ~/.config/fish/completions/fleetdiff.fish";

/// Arguments of `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell that runs the script
    #[arg(value_enum, value_name = "SHELL")]
    pub(crate) shell: Shell,
}

/// Prints the script for a shell.
pub(crate) fn run(args: &CompletionsArgs, mut program: Command) -> Result<(), Failure> {
    // NB: the generator panics if it cannot write.
    let mut script = Vec::new();
    let name = program.get_name().to_owned();
    generate(args.shell, &mut program, name, &mut script);
    Ok(std::io::stdout().write_all(&script)?)
}
