//! The sections of a report, one file each. A new section is a function in a file of its own and a line in a list here.

mod aa_check;
mod by_cell;
mod course;
mod data_quality;
mod flame;
mod grid;
mod heap;
mod history;
mod incidents;
mod load;
mod load_curves;
mod pods;
mod rings;
mod summary;
mod undecided;
mod waiting;
mod warnings;

use fleetdiff_pipeline::rules::advice::plural;

use crate::chart::Undrawn;
use crate::comparison::Comparison;
use crate::document::{Block, Section, Span, paragraph, words};
use crate::records::Records;
use crate::references::References;

/// Makes a section of what is known of one comparison; none if it has nothing to say.
type OfComparison = fn(&Comparison<'_>, &mut References) -> Result<Option<Section>, Undrawn>;

/// Makes a section of what is known of the whole output folder.
type OfFolder = fn(&Records, &mut References) -> Result<Option<Section>, Undrawn>;

/// What is not said at the top of a report, of so many of which some were said.
fn rest(number: usize, said: usize, [noun, which]: [&str; 2]) -> Option<Span> {
    let more = number.saturating_sub(said);
    let verb = if more == 1 { "is" } else { "are" };
    (more > 0).then(|| words(format!("{more} more {}{which} {verb} below. ", plural(more, noun))))
}

/// What is in a table alone, of so many rows of which some were shown.
fn in_table(number: usize, shown: usize, noun: &str, table: &str) -> Option<Block> {
    let more = number.saturating_sub(shown);
    (more > 0).then(|| paragraph(vec![words(format!("{more} more {}: see the table {table}.", plural(more, noun)))]))
}

/// The sections of a comparison, in order.
pub(crate) const OF_COMPARISON: [OfComparison; 12] = [
    summary::section,
    grid::section,
    incidents::section,
    flame::section,
    load::section,
    heap::section,
    waiting::section,
    undecided::section,
    incidents::others,
    history::section,
    warnings::section,
    aa_check::section,
];

/// The sections of the folder, in order.
pub(crate) const OF_FOLDER: [OfFolder; 2] = [rings::section, data_quality::section];
