//! Names that a compiler numbered in the order of the source: closures, anonymous classes, generated methods.
//!
//! One build keeps `f.func1` and `f.func2` apart, and so do names here; but a closure that is added above them makes them `f.func2` and `f.func3`.
//! Whoever compares two builds can see by what they cost that only the numbers moved.

use std::sync::LazyLock;

use regex::{Captures, Regex};

/// The parts of a name that are numbered so, each with its numbers.
static NUMBERED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let parts = [
        // Go: closures, also within closures, and what `go` and `defer` wrap.
        r"\.(?:func|gowrap)\d+(?:\.(?:func|gowrap)?\d+)*",
        // JVM: lambdas and anonymous classes.
        r"\$\d+\b",
        // .NET: lambdas, closures, iterators, local functions.
        r"[bdg]__(?:\w+\|)?\d+(?:_\d+)?\b|DisplayClass\d+(?:_\d+)?\b",
        // Rust and C++.
        r"\{(?:closure|lambda|impl|unnamed type|block)[^{}]*#\d+\}|'lambda\d*'",
    ];
    Regex::new(&parts.join("|")).ok()
});

/// A number within such a part.
static NUMBER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\d+").ok());

/// A numbered name: what it has in common with its neighbours, and its own numbers.
///
/// ```
/// use fleetdiff_formats::names::Numbered;
/// let second = Numbered::of("main.serve.func2").unwrap();
/// assert_eq!((second.family.as_str(), second.numbers.as_slice()), ("main.serve.func#", &[2][..]));
/// assert_eq!(Numbered::of("app.Main.lambda$run$10").unwrap().numbers, [10]);
/// assert_eq!(Numbered::of("crypto/md5.block2"), None);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Numbered {
    /// The name with `#` for each number.
    pub family: String,
    /// Its numbers, in the order of the name; at least one.
    pub numbers: Vec<u64>,
}

impl Numbered {
    /// None if a compiler numbered nothing in it.
    pub fn of(name: &str) -> Option<Self> {
        let (part, number) = (NUMBERED.as_ref()?, NUMBER.as_ref()?);
        let mut numbers = Vec::new();
        let family = part.replace_all(name, |found: &Captures<'_>| {
            number
                .replace_all(&found[0], |digits: &Captures<'_>| {
                    numbers.push(digits[0].parse().unwrap_or(u64::MAX));
                    "#"
                })
                .into_owned()
        });
        let family = family.into_owned();
        (!numbers.is_empty()).then_some(Self { family, numbers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_compilers_are_found_and_others_are_part_of_the_name() {
        let numbered = [
            ("main.(*Server).run.func1.2", "main.(*Server).run.func#.#", vec![1, 2]),
            ("main.start.gowrap3", "main.start.gowrap#", vec![3]),
            ("app.Main$2.run", "app.Main$#.run", vec![2]),
            ("App.Program.<>c.<Main>b__3_0", "App.Program.<>c.<Main>b__#_#", vec![3, 0]),
            ("app::run::{closure#4}", "app::run::{closure##}", vec![4]),
            ("run()::{lambda(int)#2}::operator()", "run()::{lambda(int)##}::operator()", vec![2]),
        ];
        for (name, family, numbers) in numbered {
            assert_eq!(Numbered::of(name), Some(Numbered { family: family.to_owned(), numbers }), "{name}");
        }
        for name in ["sha256", "utf8_decode_v2", "main.func", "libssl3.so", "a$b", "{closure#x}"] {
            assert_eq!(Numbered::of(name), None, "{name}");
        }
    }
}
