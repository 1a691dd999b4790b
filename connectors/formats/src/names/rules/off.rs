//! Rules that are switched off by their names.

use std::collections::BTreeSet;

use super::catalogue::{RUNTIMES, Rule, rules};

/// A name that is none of a rule and none of a runtime.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is no rule of names, did you mean {nearest:?}? Known are the runtimes {runtimes} and the rules {rules}",
    runtimes = RUNTIMES.join(", "), rules = names_of_rules().join(", "))]
pub struct UnknownRule {
    /// The name.
    pub name: String,
    /// The known one that is most like it.
    pub nearest: &'static str,
}

fn names_of_rules() -> Vec<&'static str> {
    rules().iter().map(|rule| rule.name.as_str()).collect()
}

/// The places of the rules of these names, and of all rules of runtimes of these names.
pub(super) fn places(names: &[impl AsRef<str>]) -> Result<BTreeSet<usize>, UnknownRule> {
    let mut off = BTreeSet::new();
    for name in names.iter().map(AsRef::as_ref) {
        let named = |(_, rule): &(usize, &Rule)| rule.name == name || rule.runtime == name;
        let found: Vec<usize> = rules().iter().enumerate().filter(named).map(|(place, _)| place).collect();
        if found.is_empty() {
            return Err(UnknownRule { name: name.to_owned(), nearest: nearest(name) });
        }
        off.extend(found);
    }
    Ok(off)
}

/// The known name that is the fewest edits away.
fn nearest(name: &str) -> &'static str {
    let known = RUNTIMES.into_iter().chain(names_of_rules());
    known.min_by_key(|known| strsim::levenshtein(name, known)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_takes_the_fewest_edits() {
        for (from, to, expected) in [("", "ab", 2), ("jvm", "jvm", 0), ("kitten", "sitting", 3), ("abc", "", 3)] {
            assert_eq!(strsim::levenshtein(from, to), expected, "{from} {to}");
        }
        assert_eq!(nearest("jvm-lamdba"), "jvm-lambda");
    }

    #[test]
    fn a_runtime_stands_for_its_rules() {
        let of = |names: &[&str]| places(names).unwrap();
        assert!(of(&["jvm-lambda"]).is_subset(&of(&["jvm"])));
        assert_eq!(of(&RUNTIMES).len(), rules().len());
        assert_eq!(of(&[]), BTreeSet::new());
    }

    #[test]
    fn an_unknown_name_is_told_with_the_known_ones() {
        let fault = places(&["jvm", "jvm-lamda"]).unwrap_err();
        assert_eq!(fault, UnknownRule { name: "jvm-lamda".to_owned(), nearest: "jvm-lambda" });
        let text = fault.to_string();
        assert!(
            text.contains("did you mean \"jvm-lambda\"?") && text.contains("dotnet") && text.contains("bpf-tag"),
            "{text}"
        );
    }
}
