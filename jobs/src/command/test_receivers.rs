//! `test-receivers`: does each receiver answer?

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use fleetdiff_connectors::receivers;

use crate::configuration::{Configuration, Flags, OfDataflow};
use crate::failure::Failure;

/// How it is used.
pub(crate) const EXAMPLES: &str = "\
Examples:
  fleetdiff test-receivers --config fleetdiff.toml
  fleetdiff test-receivers --config fleetdiff.toml oncall chat";

/// Arguments of `test-receivers`.
#[derive(Debug, Args)]
pub(crate) struct TestReceiversArgs {
    /// Configuration file with [[receivers]]
    #[arg(long, value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// Names of receivers; all if none is given
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,
}

/// Sends each receiver a test message and prints what it answered.
pub(crate) fn run(args: &TestReceiversArgs) -> Result<(), Failure> {
    let configuration =
        Configuration::load(Some(&args.config), &Flags::<OfDataflow>::none()).map_err(Failure::of_configuration)?;
    let known: Vec<&str> = configuration.receivers.iter().map(|receiver| receiver.name()).collect();
    if let Some(unknown) = args.names.iter().find(|name| !known.contains(&name.as_str())) {
        let hint = format!("{} has: {}", args.config.display(), known.join(", "));
        return Err(Failure::usage(format!("there is no receiver {unknown}"), hint));
    }
    if known.is_empty() {
        let hint = "add a table [[receivers]]; fleetdiff.toml lists its keys";
        return Err(Failure::usage(format!("{} has no receivers", args.config.display()), hint));
    }
    let settings = configuration.receivers().map_err(Failure::of_configuration)?;
    let chosen = settings.iter().filter(|receiver| args.names.is_empty() || args.names.contains(&receiver.name));
    let mut out = std::io::stdout().lock();
    let mut failed = 0;
    for receiver in chosen {
        let answer = receivers::test(receiver);
        failed += i32::from(answer.is_err());
        let (answer, name) = (answer.unwrap_or_else(|why| format!("failed: {why}")), &receiver.name);
        writeln!(out, "{name} ({} at {}): {answer}", receiver.kind.name(), receiver.endpoint)?;
    }
    match failed {
        0 => Ok(()),
        _ => Err(Failure::with_hint(
            format!("{failed} receivers did not take the test message"),
            "check the URL, the token and the network; a webhook that expects other messages needs a template",
        )),
    }
}
