//! What is in a folder. Tests of other crates include this by `#[path]`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Every Parquet file below a folder, by its path there. A process that is killed may leave parts of others, with other endings.
pub fn tables_below(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let is_table = |path: &Path| path.extension().is_some_and(|end| end == "parquet");
    files_below(root).into_iter().filter(|(path, _)| is_table(path)).collect()
}

/// Every file below a folder, by its path there.
pub fn files_below(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.insert(path.strip_prefix(root).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    files
}
