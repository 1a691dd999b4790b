//! The others: programs in Python and Java that read the same file, made from what their registries have.
//!
//! Each lies in `benches/peers`, with the versions of what it needs, and is a [`Clock`]: a line on its stdin, a pass on its stdout.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::peer::{Clock, run};

use super::Pass;

/// Variables that make numpy's library of linear algebra take this machine for another.
const MISLEADING: [&str; 2] = ["OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"];

/// The Python peers: name, script, threads.
const PYTHON: [(&str, &str, &str); 3] =
    [("numpy", "with_numpy.py", "1"), ("polars", "with_polars.py", "all"), ("DuckDB", "with_duckdb.py", "all")];

/// What Flink needs of a Java that is newer than Flink, and the heap, in which the fleet lies too.
const JAVA: [&str; 3] =
    ["-Xmx4g", "--add-opens=java.base/java.lang=ALL-UNNAMED", "--add-opens=java.base/java.util=ALL-UNNAMED"];

/// A program that has read the fleet.
#[derive(Debug)]
pub struct Program {
    /// Its name and version.
    pub name: String,
    /// Its threads.
    pub threads: &'static str,
    clock: Clock,
}

impl Program {
    fn start(name: String, threads: &'static str, command: &mut Command) -> Result<Self, String> {
        Ok(Self { clock: Clock::start(command).map_err(|failure| format!("{name}: {failure}"))?, name, threads })
    }

    /// One pass.
    ///
    /// # Errors
    /// If it gives none; the reason is on its stderr.
    pub fn pass(&mut self) -> Result<Pass, String> {
        let line = self.clock.answer("pass")?;
        Pass::read(&line).ok_or_else(|| format!("{}: no pass but {line:?}", self.name))
    }
}

/// Those that can be made here, and what is missing for those that cannot.
#[must_use]
pub fn all(folder: &Path, fleet: &Path) -> (Vec<Program>, Vec<String>) {
    let (mut programs, mut missing) = (Vec::new(), Vec::new());
    match python(folder, fleet) {
        Ok(made) => programs.extend(made),
        Err(reason) => missing.push(format!("without numpy, polars and DuckDB: {reason}")),
    }
    match flink(folder, fleet) {
        Ok(made) => programs.push(made),
        Err(reason) => missing.push(format!("without Flink: {reason}")),
    }
    (programs, missing)
}

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(name)
}

/// The scripts, in an environment with the packages that `requirements.txt` names.
fn python(folder: &Path, fleet: &Path) -> Result<Vec<Program>, String> {
    let (source, environment) = (source("python"), folder.join("peers-python"));
    let python = environment.join("bin/python");
    if !python.exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&environment))?;
    }
    let requirements = source.join("requirements.txt");
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet", "--requirement"]).arg(&requirements))?;
    let versions = std::fs::read_to_string(&requirements).map_err(|failure| failure.to_string())?;
    let version = |package: &str| {
        versions.lines().find_map(|line| line.strip_prefix(package)?.strip_prefix("==")).unwrap_or_default().to_owned()
    };
    let start = |(name, script, threads): (&str, &str, &'static str)| {
        let mut command = Command::new(&python);
        command.arg("-B").arg(source.join(script)).arg(fleet);
        for variable in MISLEADING {
            command.env_remove(variable);
        }
        Program::start(format!("{name} {}", version(&name.to_lowercase())), threads, &mut command)
    };
    PYTHON.into_iter().map(start).collect()
}

/// The job in a local Flink, with the packages that `pom.xml` names.
fn flink(folder: &Path, fleet: &Path) -> Result<Program, String> {
    let (source, target) = (source("flink"), folder.join("peers-flink"));
    let classpath = target.join("classpath");
    run(Command::new("mvn")
        .args(["--quiet", "--batch-mode", "compile", "dependency:build-classpath"])
        .arg(format!("-Dpeer.target={}", target.display()))
        .arg(format!("-Dmdep.outputFile={}", classpath.display()))
        .current_dir(&source))?;
    let read = |path: &Path| std::fs::read_to_string(path).map_err(|failure| format!("{}: {failure}", path.display()));
    let project = read(&source.join("pom.xml"))?;
    let version = project.split(['<', '>']).skip_while(|part| *part != "flink.version").nth(1).unwrap_or_default();
    let mut command = Command::new("java");
    command
        .args(JAVA)
        .arg("-cp")
        .arg(format!("{}:{}", target.join("classes").display(), read(&classpath)?.trim()))
        .arg("fleetdiff.Peer")
        .arg(fleet);
    Program::start(format!("Flink {version}"), "2 + 1", &mut command)
}
