//! The kernel's functions: in its table of symbols, if it is the kernel that was recorded.

use std::fs;
use std::path::PathBuf;

use super::files::{self, SYMBOLS_OF_KERNEL};
use super::machine::{KERNEL, Objects};
use super::recording::Recording;
use super::table::{Binding, Symbol, Table};

/// The type of a note that is a build id.
const BUILD_ID: u32 = 3;

/// The functions at addresses of the kernel.
///
/// A kernel begins at another address with each start of the machine, and the recorded address of one of its symbols says where it was.
/// Without that, and in a table without addresses, as whoever may not see them gets it, nothing is found.
pub(super) fn find(recording: &Recording<'_>, objects: &Objects, addresses: &[u64]) -> Vec<Option<String>> {
    let known = objects.landmark.as_ref().and_then(|(symbol, recorded)| {
        let text = kallsyms(recording)?;
        let here = lines(&text).find(|line| line.name == symbol).map(|line| line.address).filter(|here| *here != 0)?;
        Some((table(&text), recorded.wrapping_sub(here)))
    });
    let find = |address: &u64| known.as_ref().and_then(|(table, moved)| table.find(address.wrapping_sub(*moved)));
    addresses.iter().map(find).collect()
}

/// The table of the kernel that was recorded, known by its build id; of a recording without one, by its release.
fn kallsyms(recording: &Recording<'_>) -> Option<String> {
    let recorded = recording.build_ids.iter().find(|(path, _)| path == KERNEL.as_bytes()).map(|(_, id)| id);
    match recorded {
        Some(id) if own_build_id().as_ref() == Some(id) => files::own_kallsyms(),
        Some(id) => files::of_build(id, SYMBOLS_OF_KERNEL).iter().find_map(|path: &PathBuf| files::text(path)),
        None => {
            let recorded = recording.release.as_deref()?;
            let own = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
            if own.trim() == recorded { files::own_kallsyms() } else { None }
        }
    }
}

/// The build id of this machine's kernel: one of its notes.
fn own_build_id() -> Option<Vec<u8>> {
    let notes = fs::read("/sys/kernel/notes").ok()?;
    let mut left = notes.as_slice();
    while let Some((header, rest)) = left.split_first_chunk::<12>() {
        let word = |place: usize| header.get(place..place + 4)?.try_into().ok().map(u32::from_ne_bytes);
        let length = |place: usize| usize::try_from(word(place)?).ok();
        let (name, content) = (length(0)?, length(4)?);
        let (named, rest) = rest.split_at_checked(name.next_multiple_of(4))?;
        if word(8) == Some(BUILD_ID) && named.starts_with(b"GNU\0") {
            return rest.get(..content).map(<[u8]>::to_owned);
        }
        left = rest.get(content.next_multiple_of(4)..)?;
    }
    None
}

/// A line of the table: `address type name`, and the module that it is of.
struct Line<'t> {
    address: u64,
    kind: &'t str,
    name: &'t str,
}

fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let address = u64::from_str_radix(words.next()?, 16).ok()?;
        Some(Line { address, kind: words.next()?, name: words.next()? })
    })
}

/// The symbols of code and data.
fn table(text: &str) -> Table {
    let mut symbols = Vec::new();
    let mut names = Vec::new();
    for Line { address, kind, name } in lines(text) {
        if !["T", "W", "D", "B"].iter().any(|known| kind.eq_ignore_ascii_case(known)) || name.starts_with('$') {
            continue;
        }
        let binding = match kind {
            "W" | "w" => Binding::Weak,
            kind if kind.starts_with(|letter: char| letter.is_ascii_uppercase()) => Binding::Global,
            _ => Binding::Local,
        };
        let (start, end, is_linkage) = (address, address, false);
        symbols.push(Symbol { start, end, binding, has_type: true, name: names.len(), is_linkage });
        names.extend_from_slice(name.as_bytes());
        names.push(0);
    }
    Table::new(symbols, names)
}
