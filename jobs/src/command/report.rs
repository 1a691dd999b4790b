//! `report`: what an output says, for somebody who was not there.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use fleetdiff_connectors::store::Place;
use fleetdiff_report::{Records, Subject, document};

use crate::failure::Failure;
use crate::written_report::{self, ReportFormat};

/// How it is used.
pub(crate) const EXAMPLES: &str = "\
Examples:
  fleetdiff report out
  fleetdiff report out --comparison v42 --output v42.html
  fleetdiff report out --comparison v42:v41 --output - --format markdown
  fleetdiff report s3://telemetry/fleetdiff/checkout --output v42.html";

/// Arguments of `report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Output folder of demo, replay or watch, or the object store of watch as s3://BUCKET/PREFIX
    #[arg(value_name = "OUTPUT")]
    pub(crate) of: PathBuf,
    /// Only comparisons of these builds; all of them by default, in one report
    #[arg(long, value_name = "HEAD[:BASE],...", value_delimiter = ',')]
    pub(crate) comparison: Vec<String>,
    /// File to write, or - for stdout; by default report.html and report.md in the output folder, or in the current one for a store, where they replace older ones
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Format of the report; by default that of the ending of --output, or both
    #[arg(long, value_enum)]
    pub(crate) format: Option<ReportFormat>,
}

/// Writes the report and says where it is.
pub(crate) fn run(args: &ReportArgs) -> Result<(), Failure> {
    let target = target(args)?;
    let place = Place::to_read(&args.of)?;
    let records = written_report::read(&place)?;
    let subjects = chosen(&records, &args.comparison)?;
    let report = document(&records, &subjects)?;
    let mut out = std::io::stdout().lock();
    let files = match target {
        Target::Stdout(format) => {
            out.write_all(written_report::text(&report, format)?.as_bytes())?;
            return Ok(());
        }
        Target::File(file, format) => {
            written_report::write(&report, format, &file)?;
            vec![file]
        }
        Target::Beside(format) => {
            let folder = if let Place::Folder(root) = &place { root } else { Path::new(".") };
            written_report::write_into(&report, folder, format)?
        }
    };
    for part in &report.parts {
        writeln!(out, "{}: {}", part.title, part.verdict.word)?;
    }
    written_report::announce(&mut out, &files)?;
    Ok(())
}

/// Where the report goes.
enum Target {
    Stdout(ReportFormat),
    File(PathBuf, ReportFormat),
    /// The output's folder, or the current one.
    Beside(Option<ReportFormat>),
}

fn target(args: &ReportArgs) -> Result<Target, Failure> {
    let Some(file) = &args.output else { return Ok(Target::Beside(args.format)) };
    if file.as_os_str() == "-" {
        let format = args.format.ok_or_else(|| {
            Failure::usage("--output - does not say which format", "add --format html or --format markdown")
        })?;
        return Ok(Target::Stdout(format));
    }
    let format = args.format.or_else(|| ReportFormat::of_file(file)).ok_or_else(|| {
        let problem = format!("the ending of {} does not say which format", file.display());
        Failure::usage(problem, "end the name in .html or .md, or add --format html or --format markdown")
    })?;
    Ok(Target::File(file.clone(), format))
}

/// The comparisons that are named, or all.
fn chosen(records: &Records, names: &[String]) -> Result<Vec<Subject>, Failure> {
    let all = records.subjects();
    if all.is_empty() {
        return Err(Failure::with_hint(
            "the output holds no comparison",
            "nothing was compared in that run: two builds of a service must run at the same time, or name them with --base and --head",
        ));
    }
    let is_named = |subject: &Subject, name: &String| subject.is_named(name);
    if let Some(unknown) = names.iter().find(|name| !all.iter().any(|subject| is_named(subject, name))) {
        let there: Vec<String> =
            all.iter().map(|subject| format!("{} ({})", subject.builds(), subject.service)).collect();
        return Err(Failure::usage(
            format!("the output has no comparison {unknown}"),
            format!("it has {}", there.join(", ")),
        ));
    }
    let is_wanted = |subject: &Subject| names.is_empty() || names.iter().any(|name| is_named(subject, name));
    Ok(all.into_iter().filter(is_wanted).collect())
}
