//! Text in aligned columns. Widths are those of a terminal: escape codes take no place, wide characters take two.

use console::{Alignment, measure_text_width, pad_str};

/// How the cells of a column are aligned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    alignment: Alignment,
    least: usize,
    most: usize,
}

impl Column {
    /// Aligned to the left.
    pub(crate) const WORDS: Self = Self { alignment: Alignment::Left, least: 0, most: usize::MAX };
    /// Aligned to the right.
    pub(crate) const FIGURES: Self = Self { alignment: Alignment::Right, ..Self::WORDS };

    /// At least this wide, whatever the width of its cells.
    pub(crate) const fn at_least(self, least: usize) -> Self {
        Self { least, ..self }
    }

    /// At most this wide; a wider cell moves the rest of its line.
    pub(crate) const fn at_most(self, most: usize) -> Self {
        Self { most, ..self }
    }
}

/// A line for each row, without blanks at its end; `gap` blanks separate columns.
pub(crate) fn aligned(columns: &[Column], gap: usize, rows: &[Vec<String>]) -> Vec<String> {
    let width = |(place, column): (usize, &Column)| {
        let cells = rows.iter().filter_map(|row| row.get(place));
        let widest = cells.map(|cell| measure_text_width(cell)).max().unwrap_or(0);
        widest.min(column.most).max(column.least)
    };
    let widths: Vec<usize> = columns.iter().enumerate().map(width).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(columns).zip(&widths);
        let padded = cells.map(|((cell, column), width)| pad_str(cell, *width, column.alignment, None));
        padded.collect::<Vec<_>>().join(&" ".repeat(gap)).trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(cells: &[[&str; 3]]) -> Vec<Vec<String>> {
        cells.iter().map(|row| row.map(str::to_owned).to_vec()).collect()
    }

    #[test]
    fn wide_characters_and_escape_codes_are_aligned() {
        let rows = rows(&[["name", "7", "x"], ["処理する", "1,000", "y"], ["\x1b[1mbold\x1b[0m", "20", ""]]);
        let expected = ["name          7  x", "処理する  1,000  y", "\x1b[1mbold\x1b[0m         20"];
        assert_eq!(aligned(&[Column::WORDS, Column::FIGURES, Column::WORDS], 2, &rows), expected);
    }

    #[test]
    fn widths_keep_to_their_bounds() {
        let rows = rows(&[["a", "b", "c"], ["longer", "b", "c"]]);
        let columns = [Column::WORDS.at_most(3), Column::WORDS.at_least(4), Column::WORDS];
        assert_eq!(aligned(&columns, 1, &rows), ["a   b    c", "longer b    c"]);
    }
}
