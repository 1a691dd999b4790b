//! The names and call paths of a process with their numbers.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Unreadable;
use crate::counts::functions::FunctionTable;
use crate::counts::ids::{FunctionId, PathId};

/// Names and call paths with the numbers by which states know them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Ascending by number.
    names: Vec<(FunctionId, Arc<str>)>,
    /// Each by its number with the path without its last function, and that function; ascending by number.
    paths: Vec<(PathId, (PathId, FunctionId))>,
}

impl Image {
    pub(super) fn of(table: &FunctionTable) -> Self {
        // NB: paths first. A path that is met later may have a name that is not in the image; a name without a path does no harm.
        let paths = table.paths().numbered();
        Self { names: table.numbered(), paths }
    }

    /// The bytes of names, and of what each call path adds to another.
    pub(super) fn size(&self) -> usize {
        let names: usize = self.names.iter().map(|(number, name)| size_of_val(number) + name.len()).sum();
        names + size_of_val(self.paths.as_slice())
    }

    pub(super) fn table(&self) -> Result<FunctionTable, Unreadable> {
        FunctionTable::of(&self.names, &self.paths)
            .ok_or_else(|| Unreadable { state: "names".to_owned(), detail: "a number is given twice".to_owned() })
    }
}
