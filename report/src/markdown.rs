//! The document in GitHub's Markdown. Figures have footnotes with the row that they come from; pictures are left out, since their
//! figures are in tables.

use std::fmt::Write;

use fleetdiff_diff::export::markdown::escape::{code, text as escaped};

use crate::document::{Block, Document, Section, Span, Table, Text, Verdict};
use crate::references::{Citation, Reference};

/// Most characters of a sentence: none is cut.
const WHOLE: usize = usize::MAX;

/// The report as Markdown.
pub fn markdown(document: &Document) -> String {
    let mut page = String::new();
    if document.parts.len() > 1 {
        let _ = writeln!(page, "# {}\n", escaped(&document.title, WHOLE));
        for part in &document.parts {
            let _ = writeln!(page, "- {}: {}", escaped(&part.title, WHOLE), verdict(&part.verdict));
        }
        page.push('\n');
    }
    for part in &document.parts {
        let _ = writeln!(page, "# {}: {}\n", escaped(&part.title, WHOLE), verdict(&part.verdict));
        part.sections.iter().for_each(|section| write_section(&mut page, section));
    }
    document.folder.iter().for_each(|section| write_section(&mut page, section));
    page.push_str(
        "## Rows\n\nEach figure comes from a row of the output folder. Run a statement with DuckDB there.\n\n",
    );
    document.references.iter().for_each(|reference| footnote(&mut page, reference));
    page
}

fn write_section(page: &mut String, section: &Section) {
    if let Some(title) = &section.title {
        let _ = writeln!(page, "## {}\n", escaped(title, WHOLE));
    }
    for block in &section.blocks {
        match block {
            Block::Heading { text, verdict: of } => {
                let _ = writeln!(page, "### {}: {}\n", sentence(text), verdict(of));
            }
            Block::Paragraph { text } => {
                let _ = writeln!(page, "{}\n", sentence(text).trim_end());
            }
            Block::Facts { facts } => {
                for fact in facts {
                    let _ = writeln!(page, "- **{}**: {}", fact.question, sentence(&fact.answer).trim_end());
                }
                page.push('\n');
            }
            Block::Table(table) => write_table(page, table),
            Block::Charts { charts } => {
                for chart in charts.iter().filter(|chart| !chart.says.is_empty()) {
                    let _ = writeln!(page, "- {}: {}", sentence(&chart.title), sentence(&chart.says).trim());
                }
                page.push('\n');
            }
            Block::Flame(flame) => {
                let _ = writeln!(page, "- {}: {}\n", sentence(&flame.title), sentence(&flame.says));
            }
        }
    }
}

fn write_table(page: &mut String, table: &Table) {
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    page.push_str(&line(table.head.iter().map(sentence).collect()));
    page.push_str(&line(table.head.iter().map(|_| ":---".to_owned()).collect()));
    for row in &table.rows {
        page.push_str(&line(row.iter().map(|cell| sentence(&cell.text)).collect()));
    }
    page.push('\n');
}

fn verdict(of: &Verdict) -> String {
    format!("**{}**", of.word)
}

fn mark(citation: Citation) -> String {
    format!("[^{}]", citation.0)
}

/// A text on one line, in which no name is markup.
fn sentence(text: &Text) -> String {
    let spans = text.iter().map(|span| match span {
        Span::Words { text } => escaped(text, WHOLE),
        Span::Strong { text } => format!("**{}**", escaped(text, WHOLE)),
        Span::Name { text } => code(text),
        Span::Verdict(of) => verdict(of),
        Span::Figure(figure) | Span::Quote(figure) => {
            format!("{}{}", escaped(&figure.text, WHOLE), mark(figure.citation))
        }
    });
    spans.collect()
}

/// The row of a figure. The statement is a block of code, in which nothing is markup.
fn footnote(page: &mut String, reference: &Reference) {
    let Reference { number, table, file, selects, sql, .. } = reference;
    let longest = sql.split(|character| character != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let _ = writeln!(page, "{}: Table {table}, {selects}, in {}", mark(*number), code(file));
    page.push('\n');
    let _ = writeln!(page, "    {fence}sql");
    for line in sql.lines() {
        let _ = writeln!(page, "    {line}");
    }
    let _ = writeln!(page, "    {fence}\n");
}
