//! What is written for other programs, read as they read it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "export/difffolded.rs"]
mod difffolded;
#[path = "export/examples.rs"]
mod examples;
#[path = "export/json.rs"]
mod json;
#[path = "export/markdown.rs"]
mod markdown;
#[path = "export/pprof.rs"]
mod pprof;
#[path = "export/speedscope.rs"]
mod speedscope;
#[path = "export/tables.rs"]
mod tables;
