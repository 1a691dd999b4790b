//! What is taken off every name.

use std::borrow::Cow;

use fleetdiff_schemas::profile::UNSYMBOLISED;

/// Suffixes by which tools say what kind of frame it is; they stay, whatever is taken off before them.
const KINDS: [&str; 3] = ["_[k]", "_[j]", "_[i]"];

/// Digits of the hash that rustc puts behind a symbol.
const HASH: usize = 16;

/// Hexadecimal digits from which on `0x...` is taken for an address and not for a name.
const ADDRESS: usize = 4;

/// A name without what changes from build to build though the function does not.
///
/// | what | example | becomes |
/// |---|---|---|
/// | a line, a column too, behind a file in brackets | `run (pool.py:86)` | `run (pool.py)` |
/// | the hash of a Rust symbol | `core::fmt::write::h0123456789abcdef` | `core::fmt::write` |
/// | the same, not demangled | `_ZN4core3fmt5write17h0123456789abcdefE` | `_ZN4core3fmt5writeE` |
/// | the hash of a function that LLVM moved | `encode.llvm.8843167243218` | `encode` |
/// | an offset within the function | `vfs_read+0x1f_[k]` | `vfs_read_[k]` |
/// | an address, `[unknown]`, nothing | `0x7f3a00c4` | [`UNSYMBOLISED`] |
///
/// Go's closures (`main.serve.func1.2`) and generics (`slices.Sort[...]`), C++ templates and the clones of GCC
/// (`read.part.0`) keep their names. Law: `normalised(normalised(x)) == normalised(x)`.
///
/// NB: two functions of one name in one file are one function, and anonymous ones (`<lambda> (pool.py)`) often are.
///
/// ```
/// use fleetdiff_formats::names::normalised;
/// assert_eq!(normalised("run (concurrent/futures/thread.py:86)"), "run (concurrent/futures/thread.py)");
/// assert_eq!(normalised("main.serve.func1.2"), "main.serve.func1.2");
/// ```
pub fn normalised(name: &str) -> Cow<'_, str> {
    let mut name = Cow::Borrowed(name);
    // What stood before the end that was taken off may itself end in one.
    while let Some(shorter) = pass(&name) {
        name = shorter.into();
    }
    name
}

/// The name after the end of it was looked at once; nothing if it stays.
fn pass(name: &str) -> Option<String> {
    let kind = KINDS.into_iter().find(|kind| name.ends_with(kind)).unwrap_or_default();
    let whole = name.strip_suffix(kind).unwrap_or(name);
    if has_no_symbol(whole) {
        return Some(UNSYMBOLISED.to_owned());
    }
    if let Some((function, file)) = without_line(whole) {
        return Some(format!("{function} ({file}){kind}"));
    }
    if let Some(path) = without_mangled_hash(whole) {
        return Some(format!("{path}E{kind}"));
    }
    shortened(whole).map(|shorter| format!("{shorter}{kind}"))
}

fn has_no_symbol(stem: &str) -> bool {
    let address = stem.strip_prefix("0x").is_some_and(|digits| digits.len() >= ADDRESS && is_hexadecimal(digits));
    stem.is_empty() || stem == "[unknown]" || address
}

/// The name without the last thing of its end that does not belong to it, if there is one.
fn shortened(stem: &str) -> Option<&str> {
    let shorter = without_offset(stem).or_else(|| without_hash(stem)).or_else(|| without_move(stem))?;
    (!shorter.is_empty()).then_some(shorter)
}

fn without_offset(stem: &str) -> Option<&str> {
    let (name, digits) = stem.rsplit_once("+0x")?;
    is_hexadecimal(digits).then_some(name)
}

fn without_hash(stem: &str) -> Option<&str> {
    stem.rsplit_once("::h").filter(|(_, digits)| is_hash(digits)).map(|(name, _)| name)
}

/// The path of a mangled Rust symbol, whose last part is a hash of 17 letters.
fn without_mangled_hash(stem: &str) -> Option<&str> {
    let (path, digits) = stem.strip_suffix('E')?.rsplit_once("17h")?;
    (path.starts_with("_ZN") && is_hash(digits)).then_some(path)
}

fn is_hash(digits: &str) -> bool {
    let lower = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    digits.len() == HASH && digits.bytes().all(lower)
}

fn without_move(stem: &str) -> Option<&str> {
    let (name, digits) = stem.rsplit_once(".llvm.")?;
    is_decimal(digits).then_some(name)
}

/// Function and file of `function (file:line)` or `function (file:line:column)`.
fn without_line(stem: &str) -> Option<(&str, &str)> {
    let (function, place) = stem.strip_suffix(')')?.rsplit_once(" (")?;
    let (mut file, line) = place.rsplit_once(':')?;
    if !is_decimal(line) {
        return None;
    }
    while let Some((before, _)) = file.rsplit_once(':').filter(|(_, number)| is_decimal(number)) {
        file = before;
    }
    (!file.is_empty() && !function.is_empty()).then_some((function, file))
}

fn is_hexadecimal(digits: &str) -> bool {
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_decimal(digits: &str) -> bool {
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_changes_from_build_to_build_is_taken_off() {
        let cases = [
            ("run (concurrent/futures/thread.py:86)", "run (concurrent/futures/thread.py)"),
            ("_find_and_load (<frozen importlib._bootstrap>:991)", "_find_and_load (<frozen importlib._bootstrap>)"),
            ("parse (file:///srv/app.js:12:34)", "parse (file:///srv/app.js)"),
            ("core::fmt::write::h0123456789abcdef", "core::fmt::write"),
            ("<T as Trait>::call::h0123456789abcdef.llvm.77", "<T as Trait>::call"),
            ("_ZN4core3fmt5write17h0123456789abcdefE+0x1f", "_ZN4core3fmt5writeE"),
            ("encode.llvm.8843167243218", "encode"),
            ("vfs_read+0x1f_[k]", "vfs_read_[k]"),
            ("runtime.mallocgc+0x4A", "runtime.mallocgc"),
            ("", UNSYMBOLISED),
            ("[unknown]", UNSYMBOLISED),
            ("[unknown]_[k]", UNSYMBOLISED),
            ("0x00007f3a00c4", UNSYMBOLISED),
            ("0x7f3a00c4+0x12", UNSYMBOLISED),
        ];
        for (raw, expected) in cases {
            assert_eq!(normalised(raw), expected, "{raw}");
        }
    }

    #[test]
    fn names_stay_what_they_are() {
        let names = [
            "main.serve.func1.2",
            "slices.SortFunc[...]",
            "net/http.(*Client).Do",
            "std::vector<int, std::allocator<int> >::push_back(int const&)",
            "operator+",
            "_ZN4core3fmt5writeE",
            "_ZN4core3fmt5write17hsomethingE",
            "a::h0123456789abcde",
            "a::h0123456789ABCDEF",
            "a::hello",
            "::h0123456789abcdef",
            "finish_task_switch.isra.0_[k]",
            "run (pool.py)",
            "thread (0x7F2A)",
            "0x12",
            "0xhello",
            "sum+0x",
            "f (:12)",
            "[libc.so.6]",
            "x.llvm.",
            UNSYMBOLISED,
        ];
        for name in names {
            assert_eq!(normalised(name), name);
        }
    }

    proptest! {
        /// Normalising twice is normalising once.
        #[test]
        fn what_is_normalised_stays(parts in proptest::collection::vec(prop_oneof![
            Just("::h0123456789abcdef".to_owned()), Just("+0x1f".to_owned()), Just(".llvm.12".to_owned()),
            Just(" (a.py:3)".to_owned()), Just(":4".to_owned()), Just(")".to_owned()), Just(" (".to_owned()),
            Just("_[k]".to_owned()), Just("_ZN".to_owned()), Just("17h0123456789abcdefE".to_owned()), Just("0x1234".to_owned()), Just("[unknown]".to_owned()), "[a-c0-9µ :]{0,3}",
        ], 0..8)) {
            let once = normalised(&parts.concat()).into_owned();
            prop_assert_eq!(normalised(&once), once.as_str());
        }
    }
}
