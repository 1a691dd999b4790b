//! Programs that tests run, and what they install for that. Tests of other crates include this by `#[path]`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a command prints, which must succeed.
pub fn must(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; scripts/setup.sh installs it"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stdout).unwrap()
}

/// An environment of Python in the build folder, in which pip has installed these packages from an index; anew, if `versions` are
/// others than last time.
pub fn environment(name: &str, packages: &[impl AsRef<OsStr>], versions: &str) -> PathBuf {
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let installed = environment.join("installed.txt");
    if fs::read_to_string(&installed).ok().as_deref() != Some(versions) {
        must(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&environment));
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        must(Command::new(environment.join("bin/python")).args(pip).args(packages));
        fs::write(&installed, versions).unwrap();
    }
    environment
}
