//! dd-trace-go's fastdelta as a program, built from its module in Go's module cache.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const MODULE: &str = "github.com/DataDog/dd-trace-go/v2";

/// The parts of the module that the package needs.
const NEEDED: [&str; 5] =
    ["go.mod", "go.sum", "profiler/internal/fastdelta", "profiler/internal/pproflite", "profiler/internal/pprofutils"];

/// The module in the cache, and the program built from it.
#[derive(Debug)]
pub struct Fastdelta {
    /// The version of the module.
    pub version: String,
    /// Its recorded profiles.
    pub testdata: PathBuf,
    program: PathBuf,
}

impl Fastdelta {
    /// Fetches the module that `benches/peers/fastdelta/go.mod` names, unless it is in the cache, and builds the
    /// program in `folder`.
    ///
    /// # Errors
    /// What is missing (Go, the module, what it needs), in words.
    pub fn build(folder: &Path) -> Result<Self, String> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/fastdelta");
        let output = run(Command::new("go").args(["mod", "download", "-json", MODULE]).current_dir(&source))?;
        let field = |name: &str| {
            let line = output.lines().find_map(|line| line.trim().strip_prefix(&format!("\"{name}\": \"")));
            line.and_then(|line| line.trim_end_matches(',').strip_suffix('"'))
                .map(str::to_owned)
                .ok_or_else(|| format!("go names no {name}: {output}"))
        };
        let (module, version) = (PathBuf::from(field("Dir")?), field("Version")?);
        // The package is internal to its module, so the program is built within a copy of that.
        let tree = folder.join(format!("fastdelta-{version}"));
        for part in NEEDED {
            copy(&module.join(part), &tree.join(part)).map_err(|failure| format!("{part}: {failure}"))?;
        }
        copy(&source.join("main.go"), &tree.join("profiler/fleetdiff/main.go"))
            .map_err(|failure| failure.to_string())?;
        let program = folder.join("fastdelta");
        // `-mod=mod`, since checksums for the rest of the module are not needed.
        run(Command::new("go")
            .args(["build", "-mod=mod", "-o"])
            .arg(&program)
            .arg("./profiler/fleetdiff")
            .current_dir(&tree))?;
        Ok(Self { version, testdata: module.join("profiler/internal/fastdelta/testdata"), program })
    }

    /// The program with a pair of files and the columns that are subtracted.
    #[must_use]
    pub fn command(&self, before: &Path, after: &Path, columns: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.arg(before).arg(after).args(columns);
        command
    }
}

/// A program that times itself: a word on its stdin, nanoseconds on its stdout.
#[derive(Debug)]
pub struct Clock {
    child: Child,
    words: Option<ChildStdin>,
    times: BufReader<ChildStdout>,
}

impl Clock {
    /// Starts it.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(command: &mut Command) -> Result<Self, String> {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(|failure| failure.to_string())?;
        let words = child.stdin.take();
        let times = child.stdout.take().ok_or("no stdout")?;
        Ok(Self { child, words, times: BufReader::new(times) })
    }

    /// Milliseconds of one pass.
    ///
    /// # Errors
    /// If it gives none; the reason is on its stderr.
    pub fn milliseconds(&mut self, word: &str) -> Result<f64, String> {
        let line = self.answer(word)?;
        let nanoseconds: f64 = line.trim().parse().map_err(|_| format!("no time but {line:?}"))?;
        Ok(nanoseconds / 1e6)
    }

    /// The line that it gives for a word.
    ///
    /// # Errors
    /// If it has ended; the reason is on its stderr.
    pub fn answer(&mut self, word: &str) -> Result<String, String> {
        let words = self.words.as_mut().ok_or("it has ended")?;
        writeln!(words, "{word}").map_err(|failure| failure.to_string())?;
        let mut line = String::new();
        self.times.read_line(&mut line).map_err(|failure| failure.to_string())?;
        Ok(line)
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        // It ends at the end of its stdin.
        self.words = None;
        let _ = self.child.wait();
    }
}

/// The stdout of a program.
///
/// # Errors
/// If it cannot be started or fails, with its stderr.
pub fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|failure| format!("{}: {failure}", command.get_program().display()))?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    String::from_utf8(output.stdout).map_err(|failure| failure.to_string())
}

/// Copies a file, or a folder with all that is in it; files in Go's cache are read-only, copies of their bytes are not.
fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    if !from.is_dir() {
        if let Some(folder) = to.parent() {
            std::fs::create_dir_all(folder)?;
        }
        return std::fs::write(to, std::fs::read(from)?);
    }
    for entry in std::fs::read_dir(from)? {
        let name = entry?.file_name();
        copy(&from.join(&name), &to.join(&name))?;
    }
    Ok(())
}
