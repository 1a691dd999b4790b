//! Rewrites of names that are configured.

use std::borrow::Cow;
use std::sync::Arc;

use regex::Regex;

/// What stands between the pattern and its replacement.
const ARROW: &str = " => ";

/// Rewrites of names, applied in order, each to every match in what the one before it left.
///
/// Patterns are those of the crate `regex`, which takes time linear in the name whatever the pattern. A replacement
/// refers to groups of its pattern by `$1` or `${name}`; `$$` is a dollar sign.
///
/// ```
/// use fleetdiff_formats::names::Rewrites;
/// let rewrites = Rewrites::parse(&[r"^/srv/releases/\d+/ => ", r"\bv\d+\. => v."]).unwrap();
/// assert_eq!(rewrites.apply("/srv/releases/77/api.v12.Serve".into()), "api.v.Serve");
/// assert!(Rewrites::parse(&["(a => b"]).unwrap_err().to_string().contains("\"(a\""));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Rewrites {
    list: Arc<[Rewrite]>,
}

/// A pattern, and what replaces each of its matches.
#[derive(Debug)]
pub(super) struct Rewrite {
    pattern: Regex,
    replacement: String,
}

/// Why a rewrite cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadRewrite {
    /// It has no arrow.
    #[error("the rewrite {0:?} has no {ARROW:?}, expected PATTERN{ARROW}REPLACEMENT")]
    Arrow(String),
    /// Its pattern is not one.
    #[error("the pattern {pattern:?} of a rewrite cannot be read: {cause}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        cause: String,
    },
    /// Its replacement refers to nothing: without this check that would silently be empty text.
    #[error(
        "the replacement {replacement:?} refers to ${{{group}}}, but the pattern {pattern:?} has no such group; \
         write ${{1}}x for the group 1 before an x"
    )]
    Group {
        /// The pattern.
        pattern: String,
        /// The replacement.
        replacement: String,
        /// The group that is not there.
        group: String,
    },
}

impl Rewrites {
    /// Rewrites of `PATTERN => REPLACEMENT` each; the last arrow counts, and what follows it may be empty.
    ///
    /// # Errors
    /// [`BadRewrite`] of the first that cannot be used.
    pub fn parse(texts: &[impl AsRef<str>]) -> Result<Self, BadRewrite> {
        let pairs = texts.iter().map(|text| {
            let text = text.as_ref();
            text.rsplit_once(ARROW).ok_or_else(|| BadRewrite::Arrow(text.to_owned()))
        });
        pairs.map(|pair| pair.and_then(|(pattern, replacement)| Rewrite::new(pattern, replacement))).collect()
    }

    /// A name after all rewrites.
    pub fn apply<'n>(&self, name: Cow<'n, str>) -> Cow<'n, str> {
        self.list.iter().fold(name, |name, rewrite| rewrite.apply(name))
    }
}

impl FromIterator<Rewrite> for Rewrites {
    fn from_iter<I: IntoIterator<Item = Rewrite>>(rewrites: I) -> Self {
        Self { list: rewrites.into_iter().collect() }
    }
}

/// Equal texts are equal rewrites.
impl PartialEq for Rewrites {
    fn eq(&self, other: &Self) -> bool {
        fn texts(of: &Rewrites) -> impl Iterator<Item = (&str, &str)> {
            of.list.iter().map(|rewrite| (rewrite.pattern.as_str(), rewrite.replacement.as_str()))
        }
        texts(self).eq(texts(other))
    }
}

impl Eq for Rewrites {}

impl Rewrite {
    /// A rewrite of this pattern.
    ///
    /// # Errors
    /// [`BadRewrite`] if the pattern is none, or the replacement refers to a group that it does not have.
    pub(super) fn new(pattern: &str, replacement: &str) -> Result<Self, BadRewrite> {
        let bad = |cause: regex::Error| BadRewrite::Pattern { pattern: pattern.to_owned(), cause: cause.to_string() };
        let compiled = Regex::new(pattern).map_err(bad)?;
        let known = |group: &str| match group.parse() {
            Ok(number) => compiled.captures_len() > number,
            Err(_) => compiled.capture_names().flatten().any(|name| name == group),
        };
        match groups(replacement).into_iter().find(|group| !known(group)) {
            Some(group) => Err(BadRewrite::Group {
                pattern: pattern.to_owned(),
                replacement: replacement.to_owned(),
                group: group.to_owned(),
            }),
            None => Ok(Self { pattern: compiled, replacement: replacement.to_owned() }),
        }
    }

    /// A name after it.
    pub(super) fn apply<'n>(&self, name: Cow<'n, str>) -> Cow<'n, str> {
        match self.pattern.replace_all(&name, self.replacement.as_str()) {
            Cow::Borrowed(_) => name,
            Cow::Owned(rewritten) => rewritten.into(),
        }
    }
}

/// The groups that a replacement refers to: `${name}`, or the longest run of letters, digits and `_` behind a `$`.
fn groups(replacement: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = replacement;
    while let Some((_, behind)) = rest.split_once('$') {
        if let Some(escaped) = behind.strip_prefix('$') {
            rest = escaped;
        } else if let Some((name, after)) = behind.strip_prefix('{').and_then(|behind| behind.split_once('}')) {
            found.push(name);
            rest = after;
        } else {
            let end = behind.find(|character: char| !(character.is_ascii_alphanumeric() || character == '_'));
            let (name, after) = behind.split_at(end.unwrap_or(behind.len()));
            // A dollar before anything else stands for itself.
            found.extend(Some(name).filter(|name| !name.is_empty()));
            rest = after;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn applied(rewrites: &[&str], name: &str) -> String {
        Rewrites::parse(rewrites).unwrap().apply(name.into()).into_owned()
    }

    #[test]
    fn rewrites_follow_each_other() {
        assert_eq!(applied(&["a => b", "b => c"], "aab"), "ccc");
        assert_eq!(applied(&["b => c", "a => b"], "aab"), "bbc");
        assert_eq!(applied(&[r"^(?<package>\w+)/v\d+\. => ${package}."], "api/v2.Serve"), "api.Serve");
        assert_eq!(applied(&[r"Lambda\$\d+ => Lambda$$"], "Lambda$77.run"), "Lambda$.run");
        assert_eq!(applied(&["x => "], "axb"), "ab");
        assert_eq!(applied(&["=> => ->"], "a => b"), "a -> b", "the last arrow counts");
        assert_eq!(applied(&[], "a"), "a");
        let documented = [r"^(.*) \(/srv/releases/[0-9]+/(.*)\)$ => $1 ($2)", r"\bv[0-9]+\. => v."];
        assert_eq!(applied(&documented, "run (/srv/releases/77/v12.pool.py)"), "run (v.pool.py)");
    }

    #[test]
    fn what_cannot_be_used_is_told_with_its_text() {
        let fault = |text: &str| Rewrites::parse(&["a => b", text]).unwrap_err();
        assert_eq!(fault("a->b"), BadRewrite::Arrow("a->b".to_owned()));
        assert!(matches!(fault("(a => b"), BadRewrite::Pattern { pattern, .. } if pattern == "(a"));
        for (text, missing) in [("(a) => $2", "2"), ("(a) => $1_x", "1_x"), ("a => ${b}", "b"), ("a => x$1", "1")] {
            assert!(matches!(fault(text), BadRewrite::Group { group, .. } if group == missing), "{text}");
        }
        assert!(Rewrites::parse(&["(a) => ${1}_x $0 $$2 $ ${0"]).is_ok());
    }

    #[test]
    fn equal_texts_are_equal_rewrites() {
        let of = |texts: &[&str]| Rewrites::parse(texts).unwrap();
        assert_eq!(of(&["a => b"]), of(&["a => b"]));
        assert_ne!(of(&["a => b"]), of(&["a => c"]));
        assert_ne!(of(&["a => b"]), Rewrites::default());
    }
}
