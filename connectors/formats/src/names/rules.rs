//! Rules of names: what changes in a name from build to build, or from process to process, though the function does not.
//!
//! They are data, a file a runtime in `rules/`, each with examples of what it changes and of what it must leave alone. A rule does not
//! merge what one build keeps apart on purpose: Go's `func1` and `func2`, Rust's `{closure#0}` and `{closure#1}` stay two.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use fleetdiff_schemas::profile::UNSYMBOLISED;
use regex::{Regex, RegexSet};
use serde::Deserialize;

/// Suffixes by which tools say what kind of frame it is; they stay, whatever is taken off before them.
const KINDS: [&str; 3] = ["_[k]", "_[j]", "_[i]"];

/// Hexadecimal digits from which on `0x...` is taken for an address and not for a name.
const ADDRESS: usize = 4;

/// Runtimes and their rules, in the order in which they are applied.
const FILES: [(&str, &str); 8] = [
    ("jvm", include_str!("rules/jvm.toml")),
    ("v8", include_str!("rules/v8.toml")),
    ("go", include_str!("rules/go.toml")),
    ("rust", include_str!("rules/rust.toml")),
    ("native", include_str!("rules/native.toml")),
    ("dotnet", include_str!("rules/dotnet.toml")),
    ("scripts", include_str!("rules/scripts.toml")),
    ("any", include_str!("rules/any.toml")),
];

/// One rule.
#[derive(Clone, Debug, Deserialize)]
pub struct NameRule {
    /// The file that it is in.
    #[serde(skip)]
    pub runtime: &'static str,
    /// By what it is switched off.
    pub name: String,
    /// What it takes off.
    pub what: String,
    /// Names as they come, and as they are counted with all rules.
    pub examples: Vec<[String; 2]>,
    /// Names that it leaves alone.
    pub keeps: Vec<String>,
    pattern: String,
    /// Groups of the pattern by `$1` or `${1}`.
    replacement: String,
}

#[derive(Deserialize)]
struct RuleFile {
    rule: Vec<NameRule>,
}

/// All rules, compiled.
struct Compiled {
    rules: Vec<NameRule>,
    /// By rule.
    patterns: Vec<Regex>,
    /// Finds the rules that can apply to a name, in one pass over it.
    any: RegexSet,
}

static ALL: LazyLock<Compiled> = LazyLock::new(|| {
    let of_file = |(runtime, text): (&'static str, &str)| {
        let file: RuleFile = toml::from_str(text).expect("tests read every file of rules");
        file.rule.into_iter().map(move |rule| NameRule { runtime, ..rule })
    };
    let rules: Vec<NameRule> = FILES.into_iter().flat_map(of_file).collect();
    let compiled = |rule: &NameRule| Regex::new(&rule.pattern).expect("tests compile every pattern");
    let patterns = rules.iter().map(compiled).collect();
    let any = RegexSet::new(rules.iter().map(|rule| &rule.pattern)).expect("tests compile every pattern");
    Compiled { rules, patterns, any }
});

/// The rules that are applied to every name: all of them, but those that are switched off.
///
/// ```
/// use fleetdiff_formats::names::NameRules;
/// let all = NameRules::default();
/// assert_eq!(all.apply("run (concurrent/futures/thread.py:86)"), "run (concurrent/futures/thread.py)");
/// assert_eq!(all.apply("Work$$Lambda$14+0x0000000800c03000.run"), "Work$$Lambda.run");
/// assert_eq!(all.apply("main.serve.func1"), "main.serve.func1");
/// let some = NameRules::without(&["jvm"]).unwrap();
/// assert_eq!(some.apply("Work$$Lambda$14.run"), "Work$$Lambda$14.run");
/// assert!(NameRules::without(&["jmv"]).unwrap_err().to_string().contains("jvm-lambda"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameRules {
    /// Places of those that are switched off.
    off: Arc<[usize]>,
}

/// There is no such rule and no such runtime.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no rule of names {0:?}; rules: {rules}; all of a runtime: {runtimes}", rules = rule_names(), runtimes = FILES.map(|(runtime, _)| runtime).join(", "))]
pub struct UnknownRule(String);

fn rule_names() -> String {
    NameRules::list().iter().map(|rule| rule.name.as_str()).collect::<Vec<_>>().join(", ")
}

impl NameRules {
    /// All rules there are, in the order in which they are applied.
    pub fn list() -> &'static [NameRule] {
        &ALL.rules
    }

    /// All but the rules of these names, or of these runtimes.
    ///
    /// # Errors
    /// The first that names nothing.
    pub fn without(names: &[impl AsRef<str>]) -> Result<Self, UnknownRule> {
        let is_one = |rule: &NameRule, name: &str| rule.name == name || rule.runtime == name;
        let names = || names.iter().map(AsRef::as_ref);
        if let Some(unknown) = names().find(|name| !Self::list().iter().any(|rule| is_one(rule, name))) {
            return Err(UnknownRule(unknown.to_owned()));
        }
        let off = (0..).zip(Self::list()).filter(|(_, rule)| names().any(|name| is_one(rule, name)));
        Ok(Self { off: off.map(|(place, _)| place).collect() })
    }

    /// A name without what changes though the function does not; a name that says nothing (`""`, `[unknown]`, an address) is
    /// [`UNSYMBOLISED`].
    ///
    /// Rules are applied again until none applies: what stood before the end that was taken off may itself end in one. A rule applies only if the name
    /// gets shorter by it, so that this ends. Law: `apply(apply(x)) == apply(x)`.
    pub fn apply<'n>(&self, name: &'n str) -> Cow<'n, str> {
        let kind = KINDS.into_iter().find(|kind| name.ends_with(kind)).unwrap_or_default();
        let mut stem = Cow::Borrowed(name.strip_suffix(kind).unwrap_or(name));
        let mut is_whole = true;
        loop {
            if has_no_symbol(&stem) {
                return UNSYMBOLISED.into();
            }
            match self.once(&stem) {
                Some(shorter) => (stem, is_whole) = (shorter.into(), false),
                None if is_whole => return name.into(),
                // What is left may itself end in a kind.
                None if kind.is_empty() => return self.apply(&stem).into_owned().into(),
                None => return format!("{stem}{kind}").into(),
            }
        }
    }

    /// A stem after each rule that can apply; nothing if none does.
    fn once(&self, stem: &str) -> Option<String> {
        let mut left: Option<String> = None;
        for place in ALL.any.matches(stem).into_iter().filter(|place| !self.off.contains(place)) {
            let before = left.as_deref().unwrap_or(stem);
            let (pattern, rule) = (&ALL.patterns[place], &ALL.rules[place]);
            let shorter =
                Some(pattern.replace_all(before, rule.replacement.as_str())).filter(|new| new.len() < before.len());
            if let Some(shorter) = shorter.map(Cow::into_owned) {
                left = Some(shorter);
            }
        }
        left
    }
}

fn has_no_symbol(stem: &str) -> bool {
    let is_hexadecimal = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let address = stem.strip_prefix("0x").is_some_and(|digits| digits.len() >= ADDRESS && is_hexadecimal(digits));
    stem.is_empty() || stem == "[unknown]" || address
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn counted(name: &str) -> String {
        NameRules::default().apply(name).into_owned()
    }

    /// All rules but one.
    fn without(rule: &NameRule) -> NameRules {
        NameRules::without(&[&rule.name]).unwrap()
    }

    #[test]
    fn examples_of_rules_hold() {
        for rule in NameRules::list() {
            assert!(!rule.examples.is_empty() && !rule.keeps.is_empty(), "{}", rule.name);
            for [raw, expected] in &rule.examples {
                assert_eq!(counted(raw), *expected, "{}: {raw}", rule.name);
                assert_ne!(without(rule).apply(raw), *expected, "{} does nothing for {raw}", rule.name);
            }
            for name in &rule.keeps {
                assert_eq!(counted(name), *name, "{}", rule.name);
            }
        }
    }

    #[test]
    fn a_rule_has_a_name_of_its_own() {
        let names: BTreeSet<&str> = NameRules::list().iter().map(|rule| rule.name.as_str()).collect();
        assert_eq!(names.len(), NameRules::list().len());
        assert!(FILES.iter().all(|(runtime, _)| !names.contains(runtime)), "{names:?}");
        for (runtime, _) in FILES {
            assert!(NameRules::list().iter().any(|rule| rule.runtime == runtime), "{runtime}");
        }
    }

    #[test]
    fn what_says_nothing_has_no_symbol() {
        for raw in ["", "[unknown]", "[unknown]_[k]", "0x00007f3a00c4", "0x7f3a00c4+0x12"] {
            assert_eq!(counted(raw), UNSYMBOLISED, "{raw}");
        }
        for name in ["0x12", "0xhello", UNSYMBOLISED] {
            assert_eq!(counted(name), name);
        }
    }

    #[test]
    fn several_things_are_taken_off() {
        assert_eq!(counted("_ZN4core3fmt5write17h0123456789abcdefE+0x1f"), "_ZN4core3fmt5writeE");
        assert_eq!(counted("com.sun.proxy.$Proxy9.f_[j]"), "com.sun.proxy.$Proxy.f_[j]");
    }

    /// What one build has two of, on purpose, stays two.
    #[test]
    fn what_a_build_keeps_apart_stays_apart() {
        let pairs = [
            ("main.serve.func1", "main.serve.func2"),
            ("main.serve.func1.1", "main.serve.func1.2"),
            ("acme::run::{closure#0}", "acme::run::{closure#1}"),
            ("run(int)::{lambda(int)#1}::operator()", "run(int)::{lambda(int)#2}::operator()"),
            ("Work.<Main>b__3_0", "Work.<Main>b__3_1"),
            ("Work.lambda$run$0", "Work.lambda$run$1"),
            ("t (chunk-ABCD1234.js)", "t (chunk-WXYZ9876.js)"),
            (
                "std::vector<int, std::allocator<int> >::push_back(int const&)",
                "std::vector<long>::push_back(long const&)",
            ),
        ];
        for (a, b) in pairs {
            assert_ne!(counted(a), counted(b));
        }
    }

    #[test]
    fn rules_are_switched_off_by_name_and_by_runtime() {
        let lambda = "Work$$Lambda$4.run+0x1f";
        let with_off = |names: &[&str]| NameRules::without(names).unwrap().apply(lambda).into_owned();
        assert_eq!(with_off(&[]), "Work$$Lambda.run");
        assert_eq!(with_off(&["jvm-lambda"]), "Work$$Lambda$4.run");
        assert_eq!(with_off(&["jvm", "jvm-lambda"]), "Work$$Lambda$4.run");
        assert_eq!(with_off(&["offset"]), "Work$$Lambda.run+0x1f");
        assert!(
            NameRules::without(&["jvm", "lambda"])
                .unwrap_err()
                .to_string()
                .starts_with("there is no rule of names \"lambda\"")
        );
    }

    proptest! {
        /// What is counted is counted as it is.
        #[test]
        fn a_counted_name_stays(parts in proptest::collection::vec(prop_oneof![
            proptest::sample::select(
                NameRules::list().iter().flat_map(|rule| rule.examples.iter().map(|[raw, _]| raw.clone())).collect::<Vec<_>>(),
            ),
            proptest::sample::select(vec![
                "::h0123456789abcdef", "+0x1f", ".llvm.12", " (a.py:3)", ":4", ")", " (", "_[k]", "_ZN", "17h0123456789abcdefE",
                "0x1234", "[unknown]", "$$Lambda$4", "/0x00007f3a1c0a1000", ".part.0", ".cold", "[", "]", ".so.6", ".js",
            ]).prop_map(str::to_owned),
            "[a-c0-9µ :]{0,3}",
        ], 0..8)) {
            let once = counted(&parts.concat());
            prop_assert_eq!(counted(&once), once.as_str());
        }
    }
}
