//! The lines of a stack: `address symbol+offset (module)`, and the names that their frames get.
//!
//! Names follow the convention of the flame graph tools (`stackcollapse-perf.pl --kernel`, `inferno-collapse-perf
//! --kernel`), so that a fleet of folded files and one of these texts speak of the same functions: kernel functions end
//! in `_[k]`, what a JIT compiler inlined in `_[i]`, a frame without a symbol is its module (`[libc.so.6]`), parameter
//! lists are left out.

/// Symbol of a frame without one.
const UNKNOWN: &str = "[unknown]";

/// Modules in brackets that are no part of the kernel.
const USER_SPACE: [&str; 7] = [UNKNOWN, "[vdso]", "[vsyscall]", "[heap]", "[stack]", "[anon]", "[uprobes]"];

/// One line of a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameLine<'a> {
    address: &'a str,
    /// The symbol with its offset; empty or `[unknown]` if there is none.
    symbol: &'a str,
    /// The file, where it was printed.
    module: Option<&'a str>,
}

impl<'a> FrameLine<'a> {
    /// Reads a line; nothing if it is none of a stack.
    pub(super) fn read(line: &'a str) -> Option<Self> {
        let line = line.trim();
        let (address, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        if address.is_empty() || !address.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        let (symbol, module) = symbol_and_module(rest.trim());
        Some(Self { address, symbol, module })
    }

    /// The line that perf prints of an address whose symbol and file are known; without them, these are `[unknown]`.
    pub(crate) fn of(symbol: Option<&'a str>, module: Option<&'a str>) -> Self {
        let known = |text: Option<&'a str>| text.unwrap_or(UNKNOWN);
        Self { address: "", symbol: known(symbol), module: Some(known(module)) }
    }

    /// Gives the names of its frames, outermost first: one, or more if a JIT compiler inlined some.
    pub(super) fn each_name<E>(&self, mut take: impl FnMut(&str) -> Result<(), E>) -> Result<(), E> {
        if self.has_no_symbol() {
            return take(&self.stand_in());
        }
        if !self.is_jitted() {
            return take(&self.named(self.symbol));
        }
        let mut inlined = "";
        for symbol in self.symbol.split("->") {
            take(&format!("{}{inlined}", self.named(symbol)))?;
            inlined = "_[i]";
        }
        Ok(())
    }

    /// The file as it was printed.
    pub(super) fn module(&self) -> Option<&'a str> {
        self.module
    }

    /// The file, if it is known.
    pub(super) fn dso(&self) -> Option<&'a str> {
        self.module.filter(|module| *module != UNKNOWN)
    }

    pub(super) fn has_no_symbol(&self) -> bool {
        self.symbol.is_empty() || self.symbol == UNKNOWN
    }

    /// What stands for a frame without a symbol: its module, if that is more than a process's own table of JIT code.
    fn stand_in(&self) -> String {
        match self.module {
            None | Some(UNKNOWN) => UNKNOWN.to_owned(),
            Some(_) if self.is_jitted() => UNKNOWN.to_owned(),
            Some(module) => {
                let file = module.rsplit('/').next().unwrap_or(module);
                format!("[{file}]{}", self.kind())
            }
        }
    }

    fn named(&self, symbol: &str) -> String {
        let tidy = without_descriptor(without_parameters(symbol)).replace(';', ":");
        format!("{tidy}{}", self.kind())
    }

    fn kind(&self) -> &'static str {
        if self.is_kernel() { "_[k]" } else { "" }
    }

    fn is_kernel(&self) -> bool {
        let Some(module) = self.module else {
            // NB: without the module the address decides: the upper half of 64 bits is the kernel's.
            return self.address.len() == 16 && self.address.starts_with("ffff");
        };
        let bracketed = module.starts_with('[') && !USER_SPACE.contains(&module) && !module.starts_with("[anon:");
        let file = module.rsplit('/').next().unwrap_or(module);
        let loaded = file.split('.').skip(1).any(|part| part == "ko");
        bracketed || loaded || file.starts_with("vmlinux")
    }

    /// Whether its symbol comes from a table that a JIT compiler wrote.
    fn is_jitted(&self) -> bool {
        let file = self.module.and_then(|module| module.rsplit('/').next()).unwrap_or_default();
        let table = file.strip_prefix("perf-").and_then(|file| file.strip_suffix(".map")).is_some();
        table || (file.starts_with("jitted-") && file.ends_with(".so"))
    }
}

/// Splits off the module: the last thing in round brackets, if a space stands before it.
fn symbol_and_module(text: &str) -> (&str, Option<&str>) {
    let Some(within) = text.strip_suffix(')') else { return (text, None) };
    let mut depth = 1usize;
    for (place, byte) in within.bytes().enumerate().rev() {
        match byte {
            b')' => depth += 1,
            b'(' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            let (before, module) = (text.get(..place).unwrap_or_default(), within.get(place + 1..));
            let is_separate = before.is_empty() || before.ends_with(char::is_whitespace);
            return if is_separate { (before.trim_end(), module) } else { (text, None) };
        }
    }
    (text, None)
}

/// A symbol without its list of parameters and what follows that; a Go receiver and C++'s anonymous namespace are none.
///
/// Overloads of a function thus are one function. An offset that follows the parameters goes with them.
fn without_parameters(symbol: &str) -> &str {
    let mut depth = 0i64;
    for (place, byte) in symbol.bytes().enumerate() {
        match byte {
            b'<' | b'{' | b'[' => depth += 1,
            b'>' | b'}' | b']' | b')' => depth -= 1,
            b'(' => {
                let (before, after) = symbol.split_at(place);
                let part_of_name = depth != 0
                    || before.is_empty()
                    || before.ends_with('.')
                    || after.starts_with("(anonymous namespace)");
                if !part_of_name {
                    return before;
                }
                depth += 1;
            }
            _ => {}
        }
    }
    symbol
}

/// A class of the JVM without the `L` that its descriptor begins with: `Ljava/io/File;::read`.
fn without_descriptor(symbol: &str) -> &str {
    let class = symbol.split_once(';').map(|(class, _)| class);
    match symbol.strip_prefix('L') {
        Some(rest) if class.is_some_and(|class| class.contains('/')) => rest,
        _ => symbol,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(line: &str) -> Vec<String> {
        let mut found = Vec::new();
        let read = FrameLine::read(line).map(|frame| {
            frame.each_name(|name| {
                found.push(name.to_owned());
                Ok::<(), ()>(())
            })
        });
        assert_eq!(read, Some(Ok(())), "{line}");
        found
    }

    #[test]
    fn each_kind_of_frame_has_its_name() {
        let cases = [
            ("\tffffffff8103ce3b native_safe_halt ([kernel.kallsyms])", "native_safe_halt_[k]"),
            ("ffffffff81aebbfe start_kernel ([kernel.kallsyms].init.text)", "start_kernel_[k]"),
            ("8c3453 tcp_sendmsg (/lib/modules/4.3.0/build/vmlinux-4.3.0)", "tcp_sendmsg_[k]"),
            ("7d8 ipv4_conntrack_local+0x7f ([nf_conntrack_ipv4])", "ipv4_conntrack_local+0x7f_[k]"),
            ("7d8 xfs_read (/lib/modules/6.1/xfs.ko.xz)", "xfs_read_[k]"),
            ("7ffd __vdso_gettimeofday ([vdso])", "__vdso_gettimeofday"),
            ("52f4b3 net/http.(*Client).Do+0x1f3 (/usr/lib/go/bin/go)", "net/http.(*Client).Do+0x1f3"),
            (
                "55d0 std::vector<int, std::allocator<int> >::push_back(int&&)+0x4 (/bin/a)",
                "std::vector<int, std::allocator<int> >::push_back",
            ),
            ("55d0 (anonymous namespace)::run(int) (/bin/a)", "(anonymous namespace)::run"),
            ("55d0 main::{lambda(int)#1}::call(int) const (/bin/a (deleted))", "main::{lambda(int)#1}::call"),
            ("55d0 work (inlined)", "work"),
            ("7f0 Ljava/io/PrintStream;::print (/tmp/perf-19982.map)", "java/io/PrintStream:::print"),
            ("7f0 [unknown] (/usr/lib/libc.so.6)", "[libc.so.6]"),
            ("7f1e2215d058  (/lib/libc-2.15.so)", "[libc-2.15.so]"),
            ("7f0 [unknown] ([kernel.kallsyms])", "[[kernel.kallsyms]]_[k]"),
            ("7f0 [unknown] (/tmp/perf-19982.map)", "[unknown]"),
            ("0 [unknown] ([unknown])", "[unknown]"),
            ("ffffffff8103ce3b do_idle", "do_idle_[k]"),
            ("55d0 work", "work"),
            ("55d0", "[unknown]"),
        ];
        for (line, name) in cases {
            assert_eq!(names(line), [name], "{line}");
        }
    }

    #[test]
    fn what_a_jit_compiler_inlined_are_frames_and_an_operator_is_not() {
        let line = "7f0 Lio/A;::run->Lio/B;::step->Lio/C;::add (/tmp/perf-7.map)";
        assert_eq!(names(line), ["io/A:::run", "io/B:::step_[i]", "io/C:::add_[i]"]);
        assert_eq!(names("7f0 Ptr::operator->() const (/bin/a)").len(), 1);
    }

    #[test]
    fn other_lines_are_no_frames() {
        for line in ["", "java 25607 1.5: cycles:", "read_write.c:123", "xyz f (m)"] {
            assert_eq!(FrameLine::read(line), None, "{line}");
        }
    }
}
