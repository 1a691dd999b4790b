//! Rows as lines of text: aligned for people, or with a separator for programs.

use std::io::{self, Write};

/// A column: what it is called, and whether what is in it stands to the right.
pub(crate) struct Head {
    title: String,
    right: bool,
}

impl Head {
    /// A column of figures.
    pub(crate) fn figures(title: impl Into<String>) -> Self {
        Self { title: title.into(), right: true }
    }

    /// A column of words.
    pub(crate) fn words(title: impl Into<String>) -> Self {
        Self { title: title.into(), right: false }
    }
}

/// How lines are put.
pub(crate) struct Layout<'a> {
    /// What stands between columns that are not aligned; without it they are.
    pub(crate) separator: Option<&'a str>,
    /// Whether the titles of columns are printed.
    pub(crate) titles: bool,
}

impl Layout<'_> {
    /// Prints rows; the last column is not padded, for names are of any length.
    pub(crate) fn print(&self, out: &mut impl Write, heads: &[Head], rows: &[Vec<String>]) -> io::Result<()> {
        let titles: Vec<String> = heads.iter().map(|head| head.title.clone()).collect();
        let lines = self.titles.then_some(&titles).into_iter().chain(rows);
        match self.separator {
            Some(separator) => lines.into_iter().try_for_each(|line| writeln!(out, "{}", separated(line, separator))),
            None => {
                let width = |column: usize| {
                    lines
                        .clone()
                        .filter_map(|line| line.get(column))
                        .map(|cell| cell.chars().count())
                        .max()
                        .unwrap_or(0)
                };
                let widths: Vec<usize> = (0..heads.len()).map(width).collect();
                lines.into_iter().try_for_each(|line| writeln!(out, "{}", aligned(line, heads, &widths).trim_end()))
            }
        }
    }
}

/// What is in a cell must not look like what is between them.
fn separated(line: &[String], separator: &str) -> String {
    line.iter().map(|cell| cell.replace(separator, ".")).collect::<Vec<_>>().join(separator)
}

fn aligned(line: &[String], heads: &[Head], widths: &[usize]) -> String {
    let last = heads.len().saturating_sub(1);
    let cells =
        line.iter().zip(heads).zip(widths).enumerate().map(|(place, ((cell, head), &width))| match head.right {
            _ if place == last => cell.clone(),
            true => format!("{cell:>width$}"),
            false => format!("{cell:<width$}"),
        });
    cells.collect::<Vec<_>>().join("  ")
}
