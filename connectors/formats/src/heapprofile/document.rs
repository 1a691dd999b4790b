//! The file as it stands.

use serde::Deserialize;

use super::tree::Tree;
use crate::json::List;

/// The file.
#[derive(Deserialize)]
pub(super) struct Document<'a> {
    #[serde(borrow)]
    pub(super) head: Tree<'a>,
    pub(super) samples: Option<List<Sample>>,
}

/// An allocation that was drawn.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Sample {
    pub(super) node_id: u32,
}
