//! Rows as lines of text: aligned for people, or with a separator for programs.

use std::io::{self, Write};

use crate::columns::{Column, aligned};

/// Title and alignment of a column.
pub(crate) struct Head {
    title: String,
    column: Column,
}

impl Head {
    /// A column of figures.
    pub(crate) fn figures(title: impl Into<String>) -> Self {
        Self { title: title.into(), column: Column::FIGURES }
    }

    /// A column of words.
    pub(crate) fn words(title: impl Into<String>) -> Self {
        Self { title: title.into(), column: Column::WORDS }
    }
}

/// How lines are laid out.
pub(crate) struct Layout<'a> {
    /// The separator of columns that are not aligned; without it they are aligned.
    pub(crate) separator: Option<&'a str>,
    /// Whether the titles of columns are printed.
    pub(crate) titles: bool,
}

impl Layout<'_> {
    /// Prints rows below their titles.
    pub(crate) fn print(&self, out: &mut impl Write, heads: &[Head], rows: Vec<Vec<String>>) -> io::Result<()> {
        let titles: Option<Vec<String>> = self.titles.then(|| heads.iter().map(|head| head.title.clone()).collect());
        let rows: Vec<Vec<String>> = titles.into_iter().chain(rows).collect();
        let lines: Vec<String> = match self.separator {
            Some(separator) => rows.iter().map(|row| separated(row, separator)).collect(),
            None => aligned(&heads.iter().map(|head| head.column).collect::<Vec<_>>(), 2, &rows),
        };
        lines.into_iter().try_for_each(|line| writeln!(out, "{line}"))
    }
}

/// The text of a cell must not contain the separator.
fn separated(row: &[String], separator: &str) -> String {
    row.iter().map(|cell| cell.replace(separator, ".")).collect::<Vec<_>>().join(separator)
}
