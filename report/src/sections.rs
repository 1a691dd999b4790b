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

use crate::chart::Undrawn;
use crate::comparison::Comparison;
use crate::document::Section;
use crate::records::Records;
use crate::references::References;

/// Makes a section of what is known of one comparison; none if it has nothing to say.
type OfComparison = fn(&Comparison<'_>, &mut References) -> Result<Option<Section>, Undrawn>;

/// Makes a section of what is known of the whole output folder.
type OfFolder = fn(&Records, &mut References) -> Result<Option<Section>, Undrawn>;

/// The sections of a comparison, in order.
pub(crate) const OF_COMPARISON: [OfComparison; 11] = [
    summary::section,
    grid::section,
    incidents::section,
    flame::section,
    load::section,
    heap::section,
    waiting::section,
    undecided::section,
    history::section,
    warnings::section,
    aa_check::section,
];

/// The sections of the folder, in order.
pub(crate) const OF_FOLDER: [OfFolder; 2] = [rings::section, data_quality::section];
