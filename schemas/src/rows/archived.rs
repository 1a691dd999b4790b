//! What was counted, pod by pod: rows of the archive.
//!
//! A file of the archive spans one hop, or 2, 4, 8, ... of them, of which its rows are the sums.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::CellKey;
use crate::identity::{Build, Hardware, PodId, Service};
use crate::profile::ProfileType;
use crate::time::Nanos;

/// The stretch of event time that a row sums up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Span {
    /// Its start.
    pub start_at: Nanos,
    /// Its end.
    pub end_at: Nanos,
}

/// What one pod added to one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PodCountsRow {
    /// When it was counted.
    pub span: Span,
    /// What is deployed.
    pub service: Service,
    /// What the profiler observed.
    pub profile_type: ProfileType,
    /// The cell.
    pub cell: CellKey,
    /// The build of the pod.
    pub build: Build,
    /// The kind of machine.
    pub hardware: Hardware,
    /// The pod.
    pub pod: PodId,
    /// Its samples.
    pub samples: i64,
    /// Requests that it served, if known.
    pub requests: Option<i64>,
    /// What its samples stand for, if known.
    pub value: Option<i64>,
    /// Functions, ascending; the other lists have one element for each.
    pub functions: Vec<i64>,
    /// Samples whose leaf is the function.
    pub own: Vec<i64>,
    /// Samples with the function anywhere on the stack.
    pub total: Vec<i64>,
    /// What these samples stand for, each; empty if that is not known function by function.
    pub own_value: Vec<i64>,
    /// What those samples stand for.
    pub total_value: Vec<i64>,
}

/// The name of a function.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FunctionNameRow {
    /// When it was counted.
    pub span: Span,
    /// The function, as other rows name it.
    pub function: i64,
    /// Its name.
    pub name: Arc<str>,
}

/// The call tree of one build in one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallTreeRow {
    /// When it was counted.
    pub span: Span,
    /// What is deployed.
    pub service: Service,
    /// What the profiler observed.
    pub profile_type: ProfileType,
    /// The cell.
    pub cell: CellKey,
    /// The build.
    pub build: Build,
    /// Nodes, ascending; the other lists have one element for each.
    pub nodes: Vec<i64>,
    /// The node that calls it; 0 for a root.
    pub parents: Vec<i64>,
    /// The function that is called there.
    pub functions: Vec<i64>,
    /// Samples that end there.
    pub samples: Vec<i64>,
}

/// Rows of the archive.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Archived {
    /// Of pods.
    pub counts: Vec<PodCountsRow>,
    /// Names of the functions in the others; one may come several times.
    pub functions: Vec<FunctionNameRow>,
    /// Of builds.
    pub call_trees: Vec<CallTreeRow>,
}

impl Archived {
    /// Whether there is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty() && self.functions.is_empty() && self.call_trees.is_empty()
    }

    /// Sorts each table by its key.
    pub fn sort(&mut self) {
        let of_pod = |row: &PodCountsRow| {
            let of = (row.service.clone(), row.profile_type, row.cell.clone());
            (of, row.build.clone(), row.pod.clone(), row.hardware.clone(), row.span)
        };
        self.counts.sort_by_cached_key(of_pod);
        self.functions.sort();
        let of_tree =
            |row: &CallTreeRow| (row.service.clone(), row.profile_type, row.cell.clone(), row.build.clone(), row.span);
        self.call_trees.sort_by_cached_key(of_tree);
    }

    /// Adds other rows.
    pub fn append(&mut self, mut other: Self) {
        self.counts.append(&mut other.counts);
        self.functions.append(&mut other.functions);
        self.call_trees.append(&mut other.call_trees);
    }
}
