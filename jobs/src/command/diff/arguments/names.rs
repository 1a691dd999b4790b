//! Lists of names in perf's syntax: `a,b`, where `file://NAME` stands for the lines of a file.

use std::collections::BTreeSet;
use std::fs;
use std::str::FromStr;
use std::sync::Arc;

/// Names; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names(pub(crate) BTreeSet<Arc<str>>);

impl FromStr for Names {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut names = BTreeSet::new();
        for entry in text.split(',') {
            match entry.strip_prefix("file://") {
                Some(file) => {
                    let lines = fs::read_to_string(file).map_err(|error| format!("cannot read {file}: {error}"))?;
                    names.extend(lines.lines().filter(|line| !line.is_empty()).map(Arc::from));
                }
                None if entry.is_empty() => {}
                None => drop(names.insert(entry.into())),
            }
        }
        if names.is_empty() {
            Err("no name, expected some separated by commas, or file://NAME with one a line".to_owned())
        } else {
            Ok(Self(names))
        }
    }
}
