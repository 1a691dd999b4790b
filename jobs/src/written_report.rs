//! A report of an output: read from its tables, written as files.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use fleetdiff_connectors::output::OutputError;
use fleetdiff_connectors::parquet::OutputReader;
use fleetdiff_connectors::store::Place;
use fleetdiff_report::{Document, Records, Subject, document, html, markdown};
use fleetdiff_schemas::rows::{
    CellRow, ComparisonRow, EvidenceRow, FlagRow, HeapRow, IncidentRow, LedgerRow, LoadCurveRow, RejectedRow, RingRow,
    ScalingRow, StackRow, WaitingRow,
};

use crate::failure::Failure;

/// How a report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ReportFormat {
    /// One page, without network access or other files
    Html,
    /// GitHub's Markdown
    Markdown,
}

impl ReportFormat {
    /// The format that the ending of a file asks for.
    pub(crate) fn of_file(file: &Path) -> Option<Self> {
        match file.extension()?.to_str()? {
            "html" | "htm" => Some(Self::Html),
            "md" | "markdown" => Some(Self::Markdown),
            _ => None,
        }
    }

    /// The file of an output folder.
    fn in_folder(self, folder: &Path) -> PathBuf {
        folder.join(match self {
            Self::Html => "report.html",
            Self::Markdown => "report.md",
        })
    }
}

/// What a report needs of the tables of an output.
pub(crate) fn read(place: impl Into<Place>) -> Result<Records, OutputError> {
    let mut records = Records::default();
    let mut reader = OutputReader::open(place)?;
    reader.for_each_file::<IncidentRow>(|file, rows| records.take_incidents(file, rows))?;
    reader.for_each_file::<FlagRow>(|file, rows| records.take_flags(file, rows))?;
    reader.for_each_file::<ComparisonRow>(|file, rows| records.take_comparisons(file, rows))?;
    reader.for_each_file::<CellRow>(|file, rows| records.take_cells(file, rows))?;
    reader.for_each_file::<EvidenceRow>(|file, rows| records.take_evidence(file, rows))?;
    reader.for_each_file::<ScalingRow>(|file, rows| records.take_scaling(file, rows))?;
    reader.for_each_file::<RingRow>(|file, rows| records.take_rings(file, rows))?;
    reader.for_each_file::<HeapRow>(|file, rows| records.take_heap(file, rows))?;
    reader.for_each_file::<WaitingRow>(|file, rows| records.take_waiting(file, rows))?;
    reader.for_each_file::<StackRow>(|file, rows| records.take_stacks(file, rows))?;
    reader.for_each_file::<LoadCurveRow>(|file, rows| records.take_load_curves(file, rows))?;
    reader.for_each_file::<LedgerRow>(|_, rows| records.take_ledger(&rows))?;
    reader.for_each_file::<RejectedRow>(|_, rows| records.take_rejected(&rows))?;
    reader.finish()?;
    Ok(records)
}

/// Writes the report of every comparison of a folder into it, in both formats, and gives the files.
pub(crate) fn write_all(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let records = read(folder)?;
    let subjects: Vec<Subject> = records.subjects().into_iter().collect();
    write_into(&document(&records, &subjects)?, folder, None)
}

/// Writes a report into the folder, in one format or in both, and gives the files.
pub(crate) fn write_into(
    report: &Document,
    folder: &Path,
    format: Option<ReportFormat>,
) -> Result<Vec<PathBuf>, Failure> {
    let formats = format.map_or_else(|| vec![ReportFormat::Html, ReportFormat::Markdown], |format| vec![format]);
    let file = |format: ReportFormat| {
        let file = format.in_folder(folder);
        write(report, format, &file).map(|()| file)
    };
    formats.into_iter().map(file).collect()
}

/// Writes a report into a file. A report follows from the tables, so an older one is replaced, which a table never is.
pub(crate) fn write(report: &Document, format: ReportFormat, file: &Path) -> Result<(), Failure> {
    fs::write(file, text(report, format)?).map_err(|error| {
        Failure::with_hint(
            format!("cannot write {}: {error}", file.display()),
            "name a file in a folder that exists and that this user may write",
        )
    })
}

/// Says where the files of a report are.
pub(crate) fn announce(out: &mut impl Write, files: &[PathBuf]) -> io::Result<()> {
    files.iter().try_for_each(|file| writeln!(out, "the report is in {}", file.display()))
}

/// A report in one format.
pub(crate) fn text(report: &Document, format: ReportFormat) -> Result<String, Failure> {
    Ok(match format {
        ReportFormat::Html => html(report)?,
        ReportFormat::Markdown => markdown(report),
    })
}
