//! Files of this machine that hold symbols: where they may be, and which are opened.
//!
//! Whoever wrote a recording chose the paths in it. So only regular files that have a length are opened, no device, pipe or socket, and no more
//! of one is read than a limit.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Largest file that is opened: no program is larger, but what looks like a file may be (`/proc/kcore`). A guess.
const LARGEST: u64 = 16 << 30;

/// Most that is read of a table of symbols in text. A guess: the kernel's takes 20 MB.
const LARGEST_TEXT: u64 = 256 << 20;

/// The table of this machine's kernel.
const KALLSYMS: &str = "/proc/kallsyms";

/// Opens a regular file that is not empty.
pub(super) fn open(path: &Path) -> Option<File> {
    let is_read = |metadata: &fs::Metadata| metadata.is_file() && (1..=LARGEST).contains(&metadata.len());
    // NB: looked at before it is opened, since opening a pipe waits for whoever writes to it, and opening a device may do anything.
    fs::metadata(path).ok().filter(is_read)?;
    let file = File::open(path).ok()?;
    file.metadata().ok().filter(is_read)?;
    Some(file)
}

/// The table of symbols that a JIT compiler wrote, if nobody else could write it.
pub(super) fn jitted(path: &str) -> Option<String> {
    let file = open(Path::new(path))?;
    let owner = file.metadata().ok()?.uid();
    let own = fs::metadata("/proc/self").ok()?.uid();
    if owner != own && owner != 0 {
        return None;
    }
    read(file)
}

/// The symbols of this machine's kernel.
pub(super) fn own_kallsyms() -> Option<String> {
    File::open(KALLSYMS).ok().and_then(read)
}

/// A table of symbols in a file.
pub(super) fn text(path: &Path) -> Option<String> {
    open(path).and_then(read)
}

fn read(file: File) -> Option<String> {
    let mut bytes = Vec::new();
    file.take(LARGEST_TEXT).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Where perf keeps what it has recorded, and where distributions put symbols: files of this build.
pub(super) fn of_build(id: &[u8], name: &str) -> Vec<PathBuf> {
    let Some((first, rest)) = id.split_first() else { return Vec::new() };
    let digits: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
    let within = |folder: PathBuf| folder.join(".build-id").join(format!("{first:02x}"));
    let home = std::env::home_dir().map(|home| within(home.join(".debug")).join(&digits).join(name));
    let system = (name == DEBUG).then(|| within("/usr/lib/debug".into()).join(format!("{digits}.debug")));
    home.into_iter().chain(system).collect()
}

/// Names of files in perf's folder of builds.
pub(super) const PROGRAM: &str = "elf";
pub(super) const DEBUG: &str = "debug";
pub(super) const VDSO: &str = "vdso";
pub(super) const SYMBOLS_OF_KERNEL: &str = "kallsyms";
