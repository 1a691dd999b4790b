//! Text in aligned columns: regions down, cohorts across.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IsTerminal, Write};

use fleetdiff_schemas::identity::MERGED;
use fleetdiff_schemas::rows::CellKey;

/// Space between two columns.
const GAP: usize = 3;
/// Longer titles have a line of their own.
const CORNER: usize = 24;

/// Whether text is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paint {
    /// With escape codes, for a terminal.
    Coloured,
    /// As it is.
    Plain,
}

impl Paint {
    /// Coloured only on a terminal, and not where the environment says `NO_COLOR`.
    pub(crate) fn of_stdout() -> Self {
        let wanted = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        if wanted && io::stdout().is_terminal() { Self::Coloured } else { Self::Plain }
    }
}

/// How an entry is coloured on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    /// Costs more.
    Red,
    /// Costs less.
    Green,
    /// Not known.
    Yellow,
    /// Nothing to see.
    Faint,
}

impl Colour {
    fn code(self) -> &'static str {
        match self {
            Self::Red => "\x1b[1;31m",
            Self::Green => "\x1b[32m",
            Self::Yellow => "\x1b[33m",
            Self::Faint => "\x1b[2m",
        }
    }
}

/// What stands in a cell: two lines.
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
    pub(crate) fn print(&self, out: &mut impl Write, paint: Paint) -> io::Result<()> {
        let regions: BTreeSet<&str> = self.entries.keys().map(|cell| cell.region.as_str()).collect();
        let cohorts: BTreeSet<&str> = self.entries.keys().map(|cell| cell.cohort.as_str()).collect();
        let corner = if width(&self.title) <= CORNER { self.title.as_str() } else { "" };
        if corner.is_empty() {
            writeln!(out, "{}", self.title)?;
        }
        let first =
            regions.iter().map(|region| width(named(region, "all regions"))).chain([width(corner)]).max().unwrap_or(0);
        let columns: Vec<(&str, usize)> = cohorts.iter().map(|cohort| (*cohort, self.width_of(cohort))).collect();
        let heads = columns.iter().map(|(cohort, width)| (named(cohort, "all cohorts").to_owned(), *width, None));
        line(out, corner, first, heads.collect(), paint)?;
        for region in regions {
            let of_region = |part: fn(&Entry) -> (String, Option<Colour>)| {
                let text = |cohort: &str| self.entry(region, cohort).map_or((String::new(), None), part);
                columns
                    .iter()
                    .map(|(cohort, width)| (text(cohort), *width))
                    .map(|((text, colour), width)| (text, width, colour))
                    .collect()
            };
            line(out, named(region, "all regions"), first, of_region(|entry| (entry.figure.clone(), None)), paint)?;
            line(out, "", first, of_region(|entry| (entry.word.clone(), Some(entry.colour))), paint)?;
        }
        Ok(())
    }

    fn entry(&self, region: &str, cohort: &str) -> Option<&Entry> {
        self.entries
            .iter()
            .find(|(cell, _)| cell.region.as_str() == region && cell.cohort.as_str() == cohort)
            .map(|(_, entry)| entry)
    }

    fn width_of(&self, cohort: &str) -> usize {
        let of_cohort = self.entries.iter().filter(|(cell, _)| cell.cohort.as_str() == cohort);
        let widest = of_cohort.map(|(_, entry)| width(&entry.figure).max(width(&entry.word))).max().unwrap_or(0);
        widest.max(width(named(cohort, "all cohorts")))
    }
}

fn named<'a>(name: &'a str, merged: &'a str) -> &'a str {
    if name == MERGED { merged } else { name }
}

/// NB: one character is taken for one column.
fn width(text: &str) -> usize {
    text.chars().count()
}

type Column = (String, usize, Option<Colour>);

/// One line without blanks at its end.
fn line(out: &mut impl Write, head: &str, first: usize, columns: Vec<Column>, paint: Paint) -> io::Result<()> {
    let mut text = head.to_owned();
    let mut at = width(head);
    let mut column_at = first;
    for (word, wide, colour) in columns {
        column_at += GAP;
        if !word.is_empty() {
            text.push_str(&" ".repeat(column_at.saturating_sub(at)));
            at = column_at + width(&word);
            match colour.filter(|_| paint == Paint::Coloured) {
                Some(colour) => text.push_str(&format!("{}{word}\x1b[0m", colour.code())),
                None => text.push_str(&word),
            }
        }
        column_at += wide;
    }
    writeln!(out, "{text}")
}

#[cfg(test)]
mod tests {
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
        let print = |title: &str, paint| {
            let mut text = Vec::new();
            Grid::new(title.to_owned(), entries.clone().into()).print(&mut text, paint).unwrap();
            String::from_utf8(text).unwrap()
        };
        let expected = "\
serialize   tv                 web
eu-west-1                      x
                               y
r           +1.43 pp +- 0.22   -
            regressed          noise
";
        assert_eq!(print("serialize", Paint::Plain), expected);
        let long = "a_function_with_a_name_that_is_longer_than_a_corner";
        assert_eq!(print(long, Paint::Plain), format!("{long}\n{}", expected.replacen("serialize", "         ", 1)));
        let coloured = print("serialize", Paint::Coloured);
        assert_eq!(coloured.replace("\x1b[1;31m", "").replace("\x1b[0m", ""), expected);
        assert_eq!(coloured.matches("\x1b[1;31m").count(), 3);
    }
}
