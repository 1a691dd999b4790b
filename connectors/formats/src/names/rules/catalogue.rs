//! The rules, read from their files once a process.

use std::borrow::Cow;
use std::sync::{LazyLock, OnceLock};

use regex::RegexSet;
use serde::Deserialize;

use super::super::rewrites::Rewrite;
use super::mangled::demangled;

/// The files of rules, in the order in which their rules are applied: a module without a symbol is known by what `any` takes off.
const FILES: [(&str, &str); 8] = [
    ("native", include_str!("native.toml")),
    ("jvm", include_str!("jvm.toml")),
    ("v8", include_str!("v8.toml")),
    ("go", include_str!("go.toml")),
    ("rust", include_str!("rust.toml")),
    ("dotnet", include_str!("dotnet.toml")),
    ("scripts", include_str!("scripts.toml")),
    ("any", include_str!("any.toml")),
];

/// The runtimes, each of which has a file of rules, in the order in which these are applied.
pub const RUNTIMES: [&str; 8] = {
    let mut names = [""; 8];
    let mut place = 0;
    while place < FILES.len() {
        names[place] = FILES[place].0;
        place += 1;
    }
    names
};

/// One rule: what it takes off a name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Its name, by which it is switched off.
    pub name: String,
    /// The runtime in whose file it is.
    #[serde(skip)]
    pub runtime: &'static str,
    /// What it does, a sentence.
    pub what: String,
    /// What it replaces, in the syntax of the crate `regex`.
    pub pattern: String,
    /// By what, where `$1` and `${name}` are groups of the pattern.
    #[serde(default)]
    pub replacement: String,
    /// Whether it writes out mangled names instead; its pattern says which may be some.
    #[serde(default)]
    pub demangles: bool,
    /// Names as they come, and as they are counted.
    pub examples: Vec<[String; 2]>,
    /// Names that it leaves alone though they look like that.
    pub keeps: Vec<String>,
    /// The pattern, once a name has matched it.
    #[serde(skip)]
    compiled: OnceLock<Rewrite>,
}

impl Rule {
    /// What it leaves of a name.
    pub(super) fn apply<'n>(&self, name: Cow<'n, str>) -> Cow<'n, str> {
        if self.demangles {
            return demangled(&name).map_or(name, Cow::Owned);
        }
        let compiled = self.compiled.get_or_init(|| match Rewrite::new(&self.pattern, &self.replacement) {
            Ok(rewrite) => rewrite,
            Err(fault) => panic!("the rule {} cannot be used: {fault}", self.name),
        });
        compiled.apply(name)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    rule: Vec<Rule>,
}

/// All rules, in the order in which they are applied.
pub fn rules() -> &'static [Rule] {
    // NB: the files are part of the program, and a test reads them.
    static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
        let read = |(runtime, text): (&'static str, &str)| match toml::from_str::<File>(text) {
            Ok(file) => file.rule.into_iter().map(move |rule| Rule { runtime, ..rule }),
            Err(fault) => panic!("the rules of {runtime} cannot be read: {fault}"),
        };
        FILES.into_iter().flat_map(read).collect()
    });
    &RULES
}

/// The places of the rules whose patterns match a name, ascending: found in one walk over the name, whatever the number of rules.
pub(super) fn matching(name: &str) -> impl Iterator<Item = usize> {
    static PATTERNS: LazyLock<RegexSet> = LazyLock::new(|| {
        let patterns = rules().iter().map(|rule| &rule.pattern);
        RegexSet::new(patterns).unwrap_or_else(|fault| panic!("a rule of names cannot be used: {fault}"))
    });
    PATTERNS.matches(name).into_iter()
}
