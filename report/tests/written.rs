//! What a report says, and that each of its figures is that of the row that it cites.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "written/cited.rs"]
mod cited;
#[path = "support/fleets.rs"]
#[expect(dead_code, reason = "other tests draw them")]
mod fleets;
#[path = "written/said.rs"]
mod said;
