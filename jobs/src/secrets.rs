//! Texts that must not be seen: from a file or from the environment, never from the command line.

use std::path::Path;

use fleetdiff_connectors::receivers::Secret;

/// A file in words that cannot be read.
pub(crate) fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|fault| format!("{} cannot be read: {fault}", path.display()))
}

/// What a file holds, without white space around it.
pub(crate) fn of_file(path: &Path) -> Result<Secret, String> {
    read(path).map(|text| Secret::new(text.trim()))
}

/// What a variable of the environment holds.
pub(crate) fn of_variable(name: &str) -> Result<Secret, String> {
    // NB: the library's own text of the error shows the value.
    let text = std::env::var(name).map_err(|_| format!("the environment has no variable {name} that is text"))?;
    Ok(Secret::new(text.trim()))
}
