//! A report per comparison: what happened, where, how sure that is, and what to do, for somebody who was not there.
//!
//! [`Records`] takes the rows of an output folder file by file and keeps what may be shown. [`document()`] makes one
//! [`Document`] of them, section by section (`sections`), in which every figure cites the row that it comes from. [`html()`] and
//! [`markdown()`] write that document; they compute nothing, so they cannot disagree. The same rows give the same bytes.

mod aa_check;
mod chart;
mod comparison;
mod document;
mod figures;
mod html;
mod markdown;
mod records;
mod references;
mod sections;
mod subject;
pub mod verdicts;

pub use aa_check::AaCheckRate;
pub use chart::Undrawn;
pub use document::{
    Block, Cell, Chart, Document, Fact, Figure, Part, Section, Shape, Span, Table, Text, Tone, Verdict,
};
pub use html::{Unwritable, html};
pub use markdown::markdown;
pub use records::{Filed, Records};
pub use references::{Citation, Literal, Reference, Takes};
pub use subject::Subject;

use comparison::Comparison;
use references::References;

/// The report of some comparisons.
///
/// # Errors
/// [`Undrawn`]: a picture could not be drawn.
pub fn document(records: &Records, subjects: &[Subject]) -> Result<Document, Undrawn> {
    let mut references = References::default();
    let parts: Vec<Part> = subjects
        .iter()
        .zip(1..)
        .map(|(subject, number)| part(records, subject, number, &mut references))
        .collect::<Result<_, _>>()?;
    let folder = sections::OF_FOLDER.iter().map(|section| section(records, &mut references));
    let folder: Result<Vec<Option<Section>>, Undrawn> = folder.collect();
    let folder = folder?.into_iter().flatten().collect();
    let title = match subjects {
        [only] => format!("fleetdiff report: {only}"),
        all => format!("fleetdiff report: {} comparisons", all.len()),
    };
    Ok(Document { title, parts, folder, references: references.into_entries() })
}

fn part(records: &Records, subject: &Subject, number: usize, references: &mut References) -> Result<Part, Undrawn> {
    let comparison = Comparison::of(subject, records);
    let sections = sections::OF_COMPARISON.iter().map(|section| section(&comparison, references));
    let sections: Result<Vec<Option<Section>>, Undrawn> = sections.collect();
    Ok(Part {
        anchor: format!("comparison-{number}"),
        title: subject.to_string(),
        verdict: comparison.verdict(),
        sections: sections?.into_iter().flatten().collect(),
    })
}
