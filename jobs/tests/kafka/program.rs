//! The program as its users run it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use crate::broker;

/// The program with these arguments, without the variables of the caller's environment that it would read.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fleetdiff"));
    let own = std::env::vars_os().map(|(name, _)| name).filter(|name| name.to_string_lossy().starts_with("FLEETDIFF_"));
    own.for_each(|name| {
        command.env_remove(name);
    });
    // Services of several tests run at once; the log names the port.
    command.env("FLEETDIFF_STATUS_LISTEN", "127.0.0.1:0");
    command.args(args).stdin(Stdio::null());
    command
}

/// Runs the program to its end.
pub fn run(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

/// Runs the program, which must succeed; gives its stdout.
pub fn succeed(args: &[&str]) -> String {
    let output = run(args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "fleetdiff {args:?} failed:\n{stderr}");
    assert!(!stderr.contains("ERROR"), "fleetdiff {args:?} logged an error:\n{stderr}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs the program, which must fail with this exit code; gives its stderr.
pub fn fail(code: i32, args: &[&str]) -> String {
    let output = run(args);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "fleetdiff {args:?} printed:\n{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    stderr
}

/// Starts a service whose log goes to a file.
pub fn start(args: &[&str], log: &Path) -> Child {
    command(args).stdout(Stdio::null()).stderr(std::fs::File::create(log).unwrap()).spawn().unwrap()
}

/// A recorded fleet of this repository.
pub fn recorded(fleet: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fleets").join(fleet)
}

/// The broker of these tests.
pub fn brokers() -> &'static str {
    broker::shared().address()
}

/// A path as an argument.
pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
