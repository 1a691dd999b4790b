//! Which functions wait for work that has not come yet: the lists that ship with fleetdiff, one a runtime.
//!
//! These are data. What an entry means is in section 2 of `docs/semantics.md`; the dataflow and its oracle each have their own
//! code for it.

/// The lists, by runtime.
const LISTS: [&str; 9] = [
    include_str!("idle/kernel_and_libc.txt"),
    include_str!("idle/go.txt"),
    include_str!("idle/jvm.txt"),
    include_str!("idle/node.txt"),
    include_str!("idle/python.txt"),
    include_str!("idle/dotnet.txt"),
    include_str!("idle/ruby.txt"),
    include_str!("idle/rust.txt"),
    include_str!("idle/cpp.txt"),
];

/// The entries of all lists: names of functions, in which `*` stands for any text. An entry with `!` before it names a
/// function whose stacks are kept.
///
/// ```
/// use fleetdiff_schemas::idle::idle_defaults;
/// assert!(idle_defaults().any(|entry| entry == "ep_poll"));
/// assert!(!idle_defaults().any(|entry| entry == "futex_wait"), "a request may wait for a lock");
/// ```
pub fn idle_defaults() -> impl Iterator<Item = &'static str> {
    let lines = LISTS.into_iter().flat_map(str::lines).map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_entry_is_listed_twice_or_matches_everything() {
        let entries: Vec<&str> = idle_defaults().collect();
        assert_eq!(entries.iter().collect::<BTreeSet<_>>().len(), entries.len());
        let letters = |entry: &str| entry.chars().filter(char::is_ascii_alphabetic).count();
        assert!(entries.len() > 100 && entries.iter().all(|entry| letters(entry) > 3), "{entries:?}");
        assert!(entries.iter().all(|entry| !entry.contains(" #") && !entry.contains("**")));
    }

    #[test]
    fn every_list_says_why() {
        for list in LISTS {
            let mut explained = false;
            for line in list.lines() {
                assert!(line.is_empty() || line.starts_with('#') || explained, "no comment before {line:?}");
                explained = line.starts_with("# ") || explained && !line.is_empty();
            }
        }
    }
}
