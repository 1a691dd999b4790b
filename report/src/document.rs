//! A report as a document: sections of blocks of text. It is made once and written in two ways, as HTML and as Markdown, which
//! therefore cannot disagree.

use serde::Serialize;

use crate::references::{Citation, Reference};

/// A whole report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Document {
    /// What it is about.
    pub title: String,
    /// One part for each comparison, in order.
    pub parts: Vec<Part>,
    /// What is known of the whole output folder.
    pub folder: Vec<Section>,
    /// The rows and queries that figures come from, in the order in which they are cited.
    pub references: Vec<Reference>,
}

/// What is reported of one comparison.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// Its place in the page.
    pub anchor: String,
    /// Which builds of what.
    pub title: String,
    /// The verdict in a word.
    pub verdict: Verdict,
    /// Its sections; those that have nothing to say are left out.
    pub sections: Vec<Section>,
}

/// A heading with what is below it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Section {
    /// The heading; none right below the title of a comparison.
    pub title: Option<String>,
    /// What it says.
    pub blocks: Vec<Block>,
}

/// One block of a section.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Block {
    /// A heading of the second order, with a verdict.
    Heading {
        /// The heading.
        text: Text,
        /// The verdict beside it.
        verdict: Verdict,
    },
    /// A paragraph.
    Paragraph {
        /// What it says.
        text: Text,
    },
    /// Answers to questions, one below the other.
    Facts {
        /// Each question with its answer.
        facts: Vec<Fact>,
    },
    /// A table.
    Table(Table),
    /// Pictures side by side, if there is room. Their figures are also in a table or a text, so Markdown leaves them out.
    Charts {
        /// The pictures.
        charts: Vec<Chart>,
    },
    /// A differential flame graph.
    Flame(Flame),
}

/// A question and its answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fact {
    /// The question, in a word or two.
    pub question: String,
    /// The answer.
    pub answer: Text,
}

/// Rows of cells with a heading above each column.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Table {
    /// What its rows are, for those who cannot see it.
    pub caption: String,
    /// How it is shown where there is little room.
    pub shape: Shape,
    /// A heading for each column.
    pub head: Vec<Text>,
    /// Its rows, each with as many cells.
    pub rows: Vec<Vec<Cell>>,
}

/// How a table is shown on a narrow screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Each row becomes a block, with its headings at the side.
    List,
    /// It stays a grid, since its columns are places.
    Grid,
}

/// One cell of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// What it says.
    pub text: Text,
    /// What that means.
    pub tone: Option<Tone>,
}

/// A picture.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Chart {
    /// What it shows.
    pub title: Text,
    /// How it is read; not said where there is no picture.
    pub caption: Text,
    /// What it says in figures and names, for those who cannot see it too.
    pub says: Text,
    /// The picture as an SVG element.
    pub svg: String,
}

/// A differential flame graph: a page of its own within the page, and a picture of it for paper.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Flame {
    /// What it shows.
    pub title: Text,
    /// Of how many samples it is.
    pub says: Text,
    /// The title of its page.
    pub name: String,
    /// Its page, which can be searched and zoomed.
    pub page: String,
    /// The picture as an SVG element.
    pub svg: String,
}

/// A verdict in a word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Verdict {
    /// The word.
    pub word: String,
    /// Its meaning.
    pub tone: Tone,
}

impl Verdict {
    pub(crate) fn new(word: impl Into<String>, tone: Tone) -> Self {
        Self { word: word.into(), tone }
    }
}

/// What a verdict means; it decides the colour, which never stands without a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    /// Something costs more.
    More,
    /// Something is cheaper.
    Less,
    /// Nothing changed.
    Same,
    /// Not decided.
    Open,
}

/// Pieces of a sentence.
pub type Text = Vec<Span>;

/// A piece of a sentence.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Span {
    /// Words.
    Words {
        /// What they say.
        text: String,
    },
    /// Words that matter most.
    Strong {
        /// What they say.
        text: String,
    },
    /// The name of a function, a pod or a file, which may contain anything.
    Name {
        /// The whole name.
        text: String,
    },
    /// A verdict.
    Verdict(Verdict),
    /// A figure, linked to where it comes from.
    Figure(Figure),
    /// A sentence of a table as it is there, followed by a link to its row.
    Quote(Figure),
}

/// Figures of one row, or of one query.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// As they are printed.
    pub text: String,
    /// The row or the query.
    pub citation: Citation,
    /// The columns of the row, in the order of the printed numbers; empty for a query.
    pub columns: Vec<&'static str>,
}

/// Words as a piece of text.
pub(crate) fn words(text: impl Into<String>) -> Span {
    Span::Words { text: text.into() }
}

/// A name as a piece of text.
pub(crate) fn name(text: impl Into<String>) -> Span {
    Span::Name { text: text.into() }
}

/// A paragraph.
pub(crate) fn paragraph(text: Text) -> Block {
    Block::Paragraph { text }
}

impl Block {
    /// A table of these columns, whose rows become blocks where there is little room.
    pub(crate) fn list(caption: &str, head: &[&str], rows: impl IntoIterator<Item = Vec<Cell>>) -> Self {
        let head = head.iter().map(|title| vec![words(*title)]).collect();
        Self::Table(Table { caption: caption.to_owned(), shape: Shape::List, head, rows: rows.into_iter().collect() })
    }
}

impl Fact {
    pub(crate) fn new(question: &str, answer: Text) -> Self {
        Self { question: question.to_owned(), answer }
    }
}

impl Cell {
    /// A cell without a meaning of its own.
    pub(crate) fn of(text: Text) -> Self {
        Self { text, tone: None }
    }

    /// A cell of words.
    pub(crate) fn words(text: impl Into<String>) -> Self {
        Self::of(vec![words(text)])
    }

    /// A verdict in a cell.
    pub(crate) fn verdict(verdict: Verdict) -> Self {
        Self::of(vec![Span::Verdict(verdict)])
    }

    /// The same cell with a meaning.
    pub(crate) fn toned(self, tone: Tone) -> Self {
        Self { tone: Some(tone), ..self }
    }
}

impl Document {
    /// Every figure, in no particular order: what tests compare with the tables.
    pub fn figures(&self) -> Vec<&Figure> {
        let sections = self.parts.iter().flat_map(|part| &part.sections).chain(&self.folder);
        let texts = sections.flat_map(|section| &section.blocks).flat_map(texts_of);
        let figure = |span| match span {
            &Span::Figure(ref figure) | &Span::Quote(ref figure) => Some(figure),
            _ => None,
        };
        texts.flatten().filter_map(figure).collect()
    }
}

/// Every text of a block.
fn texts_of(block: &Block) -> Vec<&Text> {
    match block {
        Block::Heading { text, .. } | Block::Paragraph { text } => vec![text],
        Block::Facts { facts } => facts.iter().map(|fact| &fact.answer).collect(),
        Block::Table(table) => table.head.iter().chain(table.rows.iter().flatten().map(|cell| &cell.text)).collect(),
        Block::Charts { charts } => {
            charts.iter().flat_map(|chart| [&chart.title, &chart.caption, &chart.says]).collect()
        }
        Block::Flame(flame) => vec![&flame.title, &flame.says],
    }
}
