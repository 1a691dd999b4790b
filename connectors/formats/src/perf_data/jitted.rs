//! The tables that JIT compilers write of their code: `address length name` a line, in hexadecimal digits.

use super::table::{Binding, Symbol, Table};

/// The symbols of a table; lines that are none are passed over.
pub(super) fn table(text: &str) -> Table {
    let mut symbols = Vec::new();
    let mut names = Vec::new();
    for line in text.lines() {
        let Some((start, length, name)) = symbol(line) else { continue };
        let end = start.saturating_add(length);
        let (binding, has_type, is_linkage) = (Binding::Global, true, false);
        symbols.push(Symbol { start, end, binding, has_type, name: names.len(), is_linkage });
        names.extend_from_slice(name.as_bytes());
        names.push(0);
    }
    Table::new(symbols, names)
}

fn symbol(line: &str) -> Option<(u64, u64, &str)> {
    let (start, rest) = line.split_once(' ')?;
    let (length, name) = rest.split_once(' ')?;
    let number = |digits: &str| u64::from_str_radix(digits.trim_start_matches("0x"), 16).ok();
    Some((number(start)?, number(length)?, name.trim_end()))
}
