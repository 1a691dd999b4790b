//! Prints the rules of function names as Markdown, from the data that also make them.
//!
//! `cargo run --release -p fleetdiff-formats --example names > docs/names.md`

use std::io::Write;

mod page;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(page::rules_of_names().as_bytes())
}
