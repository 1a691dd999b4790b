//! `power`: before a deploy, how long it takes, or how many pods, to detect a change of a given size.

mod answers;
mod arguments;
mod shown;
mod study;

use std::io::Write;

use crate::failure::Failure;
use answers::Answers;
use arguments::Format;
pub(crate) use arguments::PowerArgs;
use study::{Study, studies_of};

/// How it is used.
pub(crate) const EXAMPLES: &str = "\
Examples:
  fleetdiff power
  fleetdiff power --head-pods 5 --base-pods 180 --samples-per-pod-second 19 \\
      --share 2% --change 3%,5%,10% --cv 3%
  fleetdiff power --from out
  fleetdiff power --from out --head-pods 60 --change 5% --format json";

/// Answers for the arms that are given, or for each cell of an earlier run.
pub(crate) fn run(args: &PowerArgs) -> Result<(), Failure> {
    let known = match &args.from {
        Some(folder) => studies_of(folder)?,
        None => vec![Study::guessed()],
    };
    let answers: Vec<Answers> = known.into_iter().map(|study| Answers::of(study.with(args), args)).collect();
    let mut out = std::io::stdout().lock();
    match args.format {
        Format::Table => shown::print(&mut out, &answers, args)?,
        Format::Json => writeln!(out, "{}", answers::to_json(&answers, args))?,
    }
    Ok(())
}
