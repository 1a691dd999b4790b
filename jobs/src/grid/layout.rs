//! Text in aligned columns: regions down, cohorts across.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use console::{Style, measure_text_width};
use fleetdiff_schemas::identity::MERGED;
use fleetdiff_schemas::rows::CellKey;

use crate::columns::{Column, aligned};

/// Blanks between two columns.
const GAP: usize = 3;
/// Longer titles get their own line.
const CORNER: usize = 24;

/// The meaning of an entry's colour on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    /// Costs more.
    Red,
    /// Costs less.
    Green,
    /// Not known.
    Yellow,
    /// No change.
    Faint,
}

impl Colour {
    /// The text in this colour if stdout is a terminal that shows colours.
    fn of(self, text: &str) -> String {
        let style = match self {
            Self::Red => Style::new().red().bold(),
            Self::Green => Style::new().green(),
            Self::Yellow => Style::new().yellow(),
            Self::Faint => Style::new().dim(),
        };
        style.apply_to(text).to_string()
    }
}

/// The text of a cell: two lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The upper line.
    pub(crate) figure: String,
    /// The lower line.
    pub(crate) word: String,
    /// Of the lower line.
    pub(crate) colour: Colour,
}

/// A grid of cells with its title in the corner.
#[derive(Debug)]
pub(crate) struct Grid {
    title: String,
    entries: BTreeMap<CellKey, Entry>,
}

impl Grid {
    /// A grid; cells that are missing stay empty.
    pub(crate) fn new(title: String, entries: BTreeMap<CellKey, Entry>) -> Self {
        Self { title, entries }
    }

    /// Prints it.
    pub(crate) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let regions: BTreeSet<&str> = self.entries.keys().map(|cell| cell.region.as_str()).collect();
        let cohorts: BTreeSet<&str> = self.entries.keys().map(|cell| cell.cohort.as_str()).collect();
        let corner = if measure_text_width(&self.title) <= CORNER { self.title.as_str() } else { "" };
        if corner.is_empty() {
            writeln!(out, "{}", self.title)?;
        }
        let heads = cohorts.iter().map(|cohort| named(cohort, "all cohorts").to_owned());
        let mut rows: Vec<Vec<String>> = vec![[corner.to_owned()].into_iter().chain(heads).collect()];
        for region in regions {
            let of_region = |part: fn(&Entry) -> String| {
                cohorts.iter().map(move |cohort| self.entry(region, cohort).map_or_else(String::new, part))
            };
            let name = named(region, "all regions").to_owned();
            rows.push([name].into_iter().chain(of_region(|entry| entry.figure.clone())).collect());
            let words = of_region(|entry| entry.colour.of(&entry.word));
            rows.push([String::new()].into_iter().chain(words).collect());
        }
        let columns = vec![Column::WORDS; 1 + cohorts.len()];
        aligned(&columns, GAP, &rows).into_iter().try_for_each(|line| writeln!(out, "{line}"))
    }

    fn entry(&self, region: &str, cohort: &str) -> Option<&Entry> {
        self.entries
            .iter()
            .find(|(cell, _)| cell.region.as_str() == region && cell.cohort.as_str() == cohort)
            .map(|(_, entry)| entry)
    }
}

fn named<'a>(name: &'a str, merged: &'a str) -> &'a str {
    if name == MERGED { merged } else { name }
}

#[cfg(test)]
mod tests {
    use console::strip_ansi_codes;

    use super::*;

    fn entry(figure: &str, word: &str) -> Entry {
        Entry { figure: figure.to_owned(), word: word.to_owned(), colour: Colour::Red }
    }

    fn cell(region: &str, cohort: &str) -> CellKey {
        CellKey { region: region.into(), cohort: cohort.into() }
    }

    #[test]
    fn columns_are_aligned_and_never_touch() {
        let entries = [
            (cell("r", "tv"), entry("+1.43 pp +- 0.22", "regressed")),
            (cell("r", "web"), entry("-", "noise")),
            (cell("eu-west-1", "web"), entry("x", "y")),
        ];
        // Tests may run on a terminal or not.
        console::set_colors_enabled(true);
        let print = |title: &str| {
            let mut text = Vec::new();
            Grid::new(title.to_owned(), entries.clone().into()).print(&mut text).unwrap();
            String::from_utf8(text).unwrap()
        };
        let plain = |title: &str| strip_ansi_codes(&print(title)).into_owned();
        let expected = "\
serialize   tv                 web
eu-west-1                      x
                               y
r           +1.43 pp +- 0.22   -
            regressed          noise
";
        assert_eq!(plain("serialize"), expected);
        let long = "a_function_with_a_name_that_is_longer_than_a_corner";
        assert_eq!(plain(long), format!("{long}\n{}", expected.replacen("serialize", "         ", 1)));
        assert_eq!(print("serialize").matches("\x1b[31m\x1b[1m").count(), 3);
    }
}
