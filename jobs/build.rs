//! The commit that the program is built from, for `fleetdiff --version`.
//!
//! Builds without a checkout, as from a package or in a container, may name it in `FLEETDIFF_BUILD_COMMIT`.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=FLEETDIFF_BUILD_COMMIT");
    let named = std::env::var("FLEETDIFF_BUILD_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit = named.or_else(of_checkout).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=FLEETDIFF_COMMIT={commit}");
}

/// The commit of the repository that this file is tracked in. Sources within the repository of another project are not
/// part of its commit.
fn of_checkout() -> Option<String> {
    // Each commit and checkout is a line of the log of HEAD. If there is no log, one of the other files changes.
    let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
    for reference in ["logs/HEAD", "HEAD", "packed-refs"].into_iter().chain(branch.as_deref()) {
        let path = git(&["rev-parse", "--git-path", reference])?;
        // NB: cargo runs this script at every build if a watched path does not exist.
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    git(&["ls-files", "--error-unmatch", "build.rs"])?;
    git(&["rev-parse", "--short=12", "HEAD"])
}

/// What git prints; `None` if it is absent or fails. Cargo runs this script in the folder of its package.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
