//! Whose code a function is: the program's own, its language's runtime, a library's, or the kernel's.

use fleetdiff_schemas::profile::{KERNEL, UNSYMBOLISED};

/// Whose code a function is, as far as its name tells: what a flame graph may fold away. It decides no row.
///
/// First that holds:
///
/// | class | names |
/// |---|---|
/// | `Kernel` | end in `_[k]`, and what the kernel lends to programs: `__vdso_` |
/// | `Unknown` | have no symbol, or are a file that has none: `[libjemalloc.so]` |
/// | `Runtime` | Go's `runtime.` and `runtime/internal/`; Rust's `std::rt::`, `core::` and `alloc::`; the JVM's `Interpreter`, `JavaCalls::` and `JavaThread::`; Python's `_PyEval_`, `<module> (`, which runs once when a file is imported, and what imports it: `<frozen ` and `(importlib/`; V8's `(garbage collector)`, `(program)`, `(idle)` and `node:` files |
/// | `Native` | the C library and C++'s: `__libc_`, `__GI_`, `_int_malloc`, `malloc` and its kin, `pthread_`, `std::` of C++, `operator new` |
/// | `Program` | all others |
///
/// NB: a name is all there is: a program's own function called `malloc` is taken for the library's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FrameClass {
    /// The program's own, or of a library that no rule knows.
    Program,
    /// The runtime of its language.
    Runtime,
    /// The libraries below every program: C's and C++'s.
    Native,
    /// The kernel.
    Kernel,
    /// Nobody knows.
    Unknown,
}

const RUNTIME: [&str; 13] = [
    "runtime.",
    "runtime/internal/",
    "internal/runtime/",
    "std::rt::",
    "core::",
    "alloc::",
    "JavaCalls::",
    "JavaThread::",
    "_PyEval_",
    "<module> (",
    "(garbage collector)",
    "(program)",
    "(idle)",
];

const RUNTIME_FILES: [&str; 3] = ["(<frozen ", "(importlib/", "(node:"];

const NATIVE: [&str; 9] =
    ["__libc_", "__GI_", "__mem", "__str", "_int_malloc", "_int_free", "pthread_", "std::", "operator new"];

const NATIVE_WHOLE: [&str; 9] =
    ["malloc", "calloc", "realloc", "free", "memcpy", "memmove", "memset", "memcmp", "start_thread"];

impl FrameClass {
    /// The class of a name as it is counted.
    ///
    /// ```
    /// use fleetdiff_formats::names::FrameClass;
    /// assert_eq!(FrameClass::of("vfs_read_[k]"), FrameClass::Kernel);
    /// assert_eq!(FrameClass::of("runtime.mallocgc"), FrameClass::Runtime);
    /// assert_eq!(FrameClass::of("main.serve.func1"), FrameClass::Program);
    /// ```
    pub fn of(name: &str) -> Self {
        let begins = |known: &[&str]| known.iter().any(|known| name.starts_with(known));
        if name.ends_with(KERNEL) || name.starts_with("__vdso_") {
            Self::Kernel
        } else if name.is_empty() || name == UNSYMBOLISED || (name.starts_with('[') && name.ends_with(']')) {
            Self::Unknown
        } else if begins(&RUNTIME) || name == "Interpreter" || RUNTIME_FILES.iter().any(|file| name.contains(file)) {
            Self::Runtime
        } else if begins(&NATIVE) || NATIVE_WHOLE.contains(&name) {
            Self::Native
        } else {
            Self::Program
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_has_its_class() {
        use FrameClass::{Kernel, Native, Program, Runtime, Unknown};
        let cases = [
            ("do_syscall_64_[k]", Kernel),
            ("[[kernel.kallsyms]]_[k]", Kernel),
            ("__vdso_clock_gettime", Kernel),
            (UNSYMBOLISED, Unknown),
            ("[libjemalloc.so]", Unknown),
            ("", Unknown),
            ("runtime.gcBgMarkWorker", Runtime),
            ("core::fmt::write", Runtime),
            ("_find_and_load (<frozen importlib._bootstrap>)", Runtime),
            ("<module> (certifi/core.py)", Runtime),
            ("find_spec (importlib/util.py)", Runtime),
            ("processTicksAndRejections (node:internal/process/task_queues)", Runtime),
            ("(garbage collector)", Runtime),
            ("__memcmp_evex_movbe", Native),
            ("malloc", Native),
            ("std::vector<int>::push_back", Native),
            ("mallocator", Program),
            ("main.serve.func1.2", Program),
            ("coreScheduler", Program),
            ("run (pool.py)", Program),
            ("lpFind", Program),
        ];
        for (name, class) in cases {
            assert_eq!(FrameClass::of(name), class, "{name}");
        }
    }
}
