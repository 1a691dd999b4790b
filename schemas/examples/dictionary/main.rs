//! Prints the data dictionary of the tables as Markdown, from the column lists that also make the files.
//!
//! `cargo run -p fleetdiff-schemas --example dictionary > docs/tables.md`

use std::io::Write;

mod page;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(page::dictionary().as_bytes())
}
