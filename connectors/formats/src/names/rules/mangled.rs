//! Names of C++ and Rust as their compilers write them into object files.

use std::fmt::{self, Write};

use cpp_demangle::{DemangleOptions, Symbol};

/// How many times longer a name may become, written out: parts that repeat are mangled once.
///
/// A guess: `std::string`, two letters, becomes 69. It bounds what a hostile name costs.
const LONGER: usize = 64;

/// Mangled names longer than this are left as they are.
///
/// A guess, larger than what templates of Boost and Eigen give.
const LONGEST: usize = 16 * 1024;

/// A mangled name written out; nothing if it is none.
pub(super) fn demangled(name: &str) -> Option<String> {
    written_out(name, &DemangleOptions::new())
}

/// The same without what a function takes and gives, as perf has it.
pub(crate) fn demangled_as_by_perf(name: &str) -> Option<String> {
    written_out(name, &DemangleOptions::new().no_params().no_return_type())
}

fn written_out(name: &str, options: &DemangleOptions) -> Option<String> {
    if name.len() > LONGEST {
        return None;
    }
    let mut text = Bounded { text: String::new(), most: LONGER * name.len() };
    if let Ok(symbol) = rustc_demangle::try_demangle(name) {
        // NB: the alternate form leaves out hashes.
        write!(text, "{symbol:#}").ok()?;
    } else {
        // macOS has one underscore more.
        let begins = name.find('Z')?;
        let name = format!("_{}", name.get(begins..)?);
        Symbol::new(name.as_bytes()).ok()?.structured_demangle(&mut text, options).ok()?;
    }
    Some(text.text).filter(|text| !text.is_empty())
}

/// A text up to a length.
struct Bounded {
    text: String,
    most: usize,
}

impl Write for Bounded {
    fn write_str(&mut self, more: &str) -> fmt::Result {
        if self.text.len() + more.len() > self.most {
            return Err(fmt::Error);
        }
        self.text.push_str(more);
        Ok(())
    }
}
