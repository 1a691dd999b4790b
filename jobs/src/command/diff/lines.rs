//! Rows as lines of text: aligned for people, or with a separator for programs.

use std::io::{self, Write};

use console::{Style, Term, measure_text_width};

use crate::columns::{Column, aligned};

/// Names are not cut to less than this, however narrow the terminal is.
const NARROWEST: usize = 20;
/// Blanks between columns.
const GAP: usize = 2;

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

/// A row's cells.
pub(crate) struct Line {
    pub(crate) cells: Vec<String>,
    /// Whether it is significant or stands out.
    pub(crate) is_strong: bool,
}

/// What shows lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Screen {
    /// Its width; without one, lines are as long as they are.
    pub(crate) width: Option<usize>,
    /// Whether it shows bold lines.
    pub(crate) is_styled: bool,
}

impl Screen {
    /// Standard output: `COLUMNS` says how wide a terminal is, else the terminal does. `NO_COLOR`, `CLICOLOR` and `CLICOLOR_FORCE` say
    /// whether lines are bold.
    pub(crate) fn of_stdout() -> Self {
        let terminal = Term::stdout();
        let said = || std::env::var("COLUMNS").ok()?.trim().parse().ok().filter(|columns| *columns > 0);
        let measured = || terminal.size_checked().map(|(_, columns)| usize::from(columns));
        let width = terminal.is_term().then(|| said().or_else(measured)).flatten();
        Self { width, is_styled: console::colors_enabled() }
    }
}

/// How lines are laid out.
pub(crate) struct Layout<'a> {
    /// The separator of columns that are not aligned; without it they are aligned.
    pub(crate) separator: Option<&'a str>,
    /// Whether the titles of columns are printed.
    pub(crate) titles: bool,
    /// What shows aligned lines.
    pub(crate) screen: Screen,
}

impl Layout<'_> {
    /// Prints rows below their titles.
    pub(crate) fn print(&self, out: &mut impl Write, heads: &[Head], rows: Vec<Line>) -> io::Result<()> {
        let titles = self.titles.then(|| heads.iter().map(|head| head.title.clone()).collect());
        let titles = titles.map(|cells| Line { cells, is_strong: false });
        let (mut rows, strong): (Vec<Vec<String>>, Vec<bool>) =
            titles.into_iter().chain(rows).map(|line| (line.cells, line.is_strong)).unzip();
        let lines: Vec<String> = match self.separator {
            Some(separator) => rows.iter().map(|row| separated(row, separator)).collect(),
            None => {
                self.screen.fit(&mut rows);
                aligned(&heads.iter().map(|head| head.column).collect::<Vec<_>>(), GAP, &rows)
            }
        };
        let is_styled = self.separator.is_none() && self.screen.is_styled;
        let bold = Style::new().bold().force_styling(true);
        lines.into_iter().zip(strong).try_for_each(|(line, is_strong)| {
            if is_strong && is_styled { writeln!(out, "{}", bold.apply_to(line)) } else { writeln!(out, "{line}") }
        })
    }
}

impl Screen {
    /// Cuts the names, which are the last cells, to what the other columns leave of the width.
    fn fit(self, rows: &mut [Vec<String>]) {
        let Some(width) = self.width else { return };
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let widest = |place: usize| {
            rows.iter().filter_map(|row| row.get(place)).map(|cell| measure_text_width(cell)).max().unwrap_or(0)
        };
        let others: usize = (0..columns.saturating_sub(1)).map(|place| widest(place) + GAP).sum();
        let left = width.saturating_sub(others).max(NARROWEST);
        for name in rows.iter_mut().filter_map(|row| row.last_mut()) {
            *name = cut(name, left);
        }
    }
}

/// At most this wide: the middle is left out, and twice as much of the end is kept as of the beginning, since a name ends with the method.
fn cut(name: &str, width: usize) -> String {
    if measure_text_width(name) <= width {
        return name.to_owned();
    }
    let kept = width.saturating_sub(1);
    let start = taken(name.chars(), kept / 3);
    let end = taken(name.chars().rev(), kept - measure_text_width(&start));
    let end: String = end.chars().rev().collect();
    format!("{start}\u{2026}{end}")
}

/// The first characters, at most this wide.
fn taken(characters: impl Iterator<Item = char>, width: usize) -> String {
    let mut left = width;
    let fits = |character: &char| {
        let wide = measure_text_width(character.encode_utf8(&mut [0; 4]));
        left.checked_sub(wide).inspect(|rest| left = *rest).is_some()
    };
    characters.take_while(fits).collect()
}

/// The text of a cell must not contain the separator.
fn separated(row: &[String], separator: &str) -> String {
    row.iter().map(|cell| cell.replace(separator, ".")).collect::<Vec<_>>().join(separator)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(screen: Screen, separator: Option<&str>) -> String {
        let line =
            |share: &str, name: &str, is_strong| Line { cells: vec![share.to_owned(), name.to_owned()], is_strong };
        let rows = vec![
            line("12.00 %", "com.example.shop.checkout.pricing.Cart.total", true),
            line(
                "1.00 %",
                "\u{51e6}\u{7406}\u{3059}\u{308b}\u{51e6}\u{7406}\u{3059}\u{308b}\u{51e6}\u{7406}\u{3059}\u{308b}",
                false,
            ),
            line("1.00 %", "main", false),
        ];
        let mut out = Vec::new();
        let layout = Layout { separator, titles: true, screen };
        layout.print(&mut out, &[Head::figures("base"), Head::words("function")], rows).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_terminal_cuts_names_in_the_middle_and_has_strong_rows_bold() {
        let shown = printed(Screen { width: Some(30), is_styled: true }, None);
        assert!(shown.contains("\x1b[1m12.00 %  com.ex\u{2026}ing.Cart.total\x1b[0m\n"), "{shown:?}");
        assert!(shown.contains(" 1.00 %  \u{51e6}\u{7406}\u{3059}\u{2026}") && shown.contains("  main\n"), "{shown:?}");
        assert!(shown.lines().all(|line| measure_text_width(line) <= 30), "{shown}");
        assert_eq!(shown.matches("\x1b[1m").count(), 1, "{shown:?}");
    }

    #[test]
    fn what_is_no_terminal_has_whole_names_and_no_styles() {
        let whole = printed(Screen::default(), None);
        assert!(whole.contains("12.00 %  com.example.shop.checkout.pricing.Cart.total\n"), "{whole}");
        let separated = printed(Screen { width: Some(20), is_styled: true }, Some("\t"));
        assert!(separated.contains("12.00 %\tcom.example.shop.checkout.pricing.Cart.total\n"), "{separated}");
        assert!(!whole.contains('\x1b') && !separated.contains('\x1b'));
    }
}
