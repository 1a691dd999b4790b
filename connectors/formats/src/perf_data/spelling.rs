//! Names of C++ and Rust as perf writes them out, so that a recording and its text name the same functions.
//!
//! perf leaves out what a function takes and gives; numbers in names have the suffix of their type, where our demangler writes the type before them.

use crate::names::demangled_as_by_perf;

/// How mangled names begin.
const BEGINNINGS: [&str; 3] = ["_Z", "__Z", "_R"];

/// Types of numbers, and the suffixes that say them.
const SUFFIXES: [(&str, &str); 6] = [
    ("(unsigned long)", "ul"),
    ("(unsigned int)", "u"),
    ("(unsigned long long)", "ull"),
    ("(long)", "l"),
    ("(long long)", "ll"),
    ("(int)", ""),
];

/// How functions that adjust `this` begin, and how perf names them.
const THUNKS: [(&str, &str); 2] = [("_ZTh", "non-virtual thunk to "), ("_ZTv", "virtual thunk to ")];

/// A mangled name written out; nothing if it is none.
pub(super) fn plain(name: &str) -> Option<String> {
    if !BEGINNINGS.iter().any(|beginning| name.starts_with(beginning)) {
        return None;
    }
    for (beginning, kind) in THUNKS {
        if let Some(function) = name.strip_prefix(beginning).and_then(adjusted) {
            let function = demangled_as_by_perf(&format!("_Z{function}"))?;
            return Some(format!("{kind}{}", with_suffixes(&function)));
        }
    }
    demangled_as_by_perf(name).map(|name| with_suffixes(&name))
}

/// What follows the numbers by which `this` is adjusted.
fn adjusted(thunk: &str) -> Option<&str> {
    thunk.split_once('_').and_then(|(numbers, rest)| {
        let is_number = numbers.trim_start_matches('n').bytes().all(|byte| byte.is_ascii_digit());
        is_number.then_some(rest.trim_start_matches(|character: char| character.is_ascii_digit() || character == '_'))
    })
}

/// A name in which numbers say their types by suffixes.
fn with_suffixes(name: &str) -> String {
    let mut left = name;
    let mut written = String::with_capacity(name.len());
    while let Some(place) = left.find('(') {
        let (before, rest) = left.split_at(place);
        written.push_str(before);
        let number = SUFFIXES.iter().find_map(|(kind, suffix)| {
            let digits = rest.strip_prefix(kind)?;
            let length = digits.bytes().take_while(u8::is_ascii_digit).count();
            Some((digits.split_at(length), *suffix)).filter(|_| length > 0)
        });
        if let Some(((digits, behind), suffix)) = number {
            written.push_str(digits);
            written.push_str(suffix);
            left = behind;
        } else {
            written.push('(');
            left = rest.get(1..).unwrap_or_default();
        }
    }
    written + left
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn names_are_those_of_perf() {
        let cases = [
            ("main", None),
            ("_Z3addii", Some("add")),
            ("_ZThn8_N12LIRGenerator8block_doEP10BlockBegin", Some("non-virtual thunk to LIRGenerator::block_do")),
            ("_ZN4shop3bagILm7EE3addEv", Some("shop::bag<7ul>::add")),
            ("_ZN4shop3bagIXadL_ZNS_3addEiEEE3addEv", Some("shop::bag<&shop::add(int)>::add")),
            ("_ZN4core3fmt5write17h0123456789abcdefE", Some("core::fmt::write")),
        ];
        for (mangled, written) in cases {
            assert_eq!(plain(mangled).as_deref(), written, "{mangled}");
        }
    }
}
