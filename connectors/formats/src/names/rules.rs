//! What is taken off every name: rules that are data, one file a runtime (`rules/*.toml`).
//!
//! A function is its name, so a name must not say what changes though the function does not: a line, a hash, the number of a class
//! that a process made. A rule is a pattern and its replacement, with names that it changes and names that it keeps; a test holds it
//! to both, and `docs/names.md` is written from the same data. What one build keeps apart on purpose stays apart: `main.serve.func1`
//! and `main.serve.func2` are two functions.
//!
//! Law: applying the rules to what they gave changes nothing.

mod catalogue;
mod mangled;
mod off;

use std::borrow::Cow;
use std::collections::BTreeSet;

use fleetdiff_schemas::profile::UNSYMBOLISED;

pub use catalogue::{RUNTIMES, Rule, rules};
pub(crate) use mangled::demangled_as_by_perf;
pub use off::UnknownRule;

/// Suffixes by which tools say what kind of frame it is; they stay, whatever is taken off before them.
const KINDS: [&str; 3] = ["_[k]", "_[j]", "_[i]"];

/// How often the rules are applied to one name at most: what a rule leaves may be of interest to another.
///
/// A guess: names of programs need up to 3.
const PASSES: usize = 16;

/// The rules that are applied to names: all, but for those that are switched off.
///
/// ```
/// use fleetdiff_formats::names::NameRules;
/// let all = NameRules::default();
/// assert_eq!(all.apply("shop.Cart$$Lambda$4/1831932724.run"), "shop.Cart$$Lambda.run");
/// assert_eq!(all.apply("main.serve.func1.2"), "main.serve.func1.2");
///
/// let without = NameRules::without(&["jvm"]).unwrap();
/// assert_eq!(without.apply("shop.Cart$$Lambda$4/1831932724.run"), "shop.Cart$$Lambda$4/1831932724.run");
/// assert_eq!(without.apply("run (pool.py:86)"), "run (pool.py)");
/// assert!(NameRules::without(&["jwm-lambda"]).unwrap_err().to_string().contains("\"jvm-lambda\""));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameRules {
    /// Places of the rules that are switched off.
    off: BTreeSet<usize>,
}

impl NameRules {
    /// All rules but those of these names; the name of a runtime stands for all of its file.
    ///
    /// # Errors
    /// [`UnknownRule`] of the first name that no rule and no runtime has.
    pub fn without(names: &[impl AsRef<str>]) -> Result<Self, UnknownRule> {
        off::places(names).map(|off| Self { off })
    }

    /// A name as the rules leave it. A name of which they leave nothing has no symbol: it is [`UNSYMBOLISED`].
    ///
    /// NB: time is linear in the name, up to [`mangled`]'s factor. One that no end of passes leaves as it is, as nobody but an attacker writes it, stays as it came.
    pub fn apply<'n>(&self, raw: &'n str) -> Cow<'n, str> {
        let mut name = Cow::Borrowed(raw);
        for _ in 0..PASSES {
            match self.pass(&name) {
                Some(changed) => name = Cow::Owned(changed),
                None => return name,
            }
        }
        Cow::Borrowed(raw)
    }

    /// The name after each rule that matches was applied once; nothing if it stays.
    fn pass(&self, name: &str) -> Option<String> {
        let kind = KINDS.into_iter().find(|kind| name.ends_with(kind)).unwrap_or_default();
        let stem = name.strip_suffix(kind).unwrap_or(name);
        let places = catalogue::matching(stem).filter(|place| !self.off.contains(place));
        let rules = places.filter_map(|place| rules().get(place));
        let left = rules.fold(Cow::Borrowed(stem), |left, rule| rule.apply(left));
        match left.as_ref() {
            "" => Some(UNSYMBOLISED.to_owned()),
            left if left == stem => None,
            left => Some(format!("{left}{kind}")),
        }
    }
}

#[cfg(test)]
mod tests;
