//! The document as one page: no network, no other files, and no script but those of its flame graphs. It follows the light or dark scheme of its reader, and is light
//! on paper.

use fleetdiff_diff::escape::for_text;
use fleetdiff_diff::page::{self, PALETTE, policy};
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, UndefinedBehavior, context};

use crate::document::Document;

const PAGE: &str = include_str!("html/page.html.jinja");
const STYLE: &str = include_str!("html/page.css");

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
#[error("the page cannot be written: {0:#}; this is an error in fleetdiff, please report it")]
pub struct Unwritable(#[from] minijinja::Error);

/// The page of a report. All text is escaped: a function may have any name.
///
/// # Errors
/// [`Unwritable`] if the template fails.
pub fn html(document: &Document) -> Result<String, Unwritable> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.add_filter("printable", printable);
    environment.add_filter("name", name);
    environment.add_template("page", PAGE)?;
    let style = [PALETTE, STYLE].concat();
    let variables = context! {
        report => Value::from(Serde(document)),
        policy => policy(&[&page::script()], &[&style, page::STYLE]),
        style => Value::from_safe_string(style),
    };
    Ok(environment.get_template("page")?.render(variables)?)
}

/// Text without the control characters that a page cannot show; no line ends between a number and its percent sign.
fn printable(text: &str) -> String {
    let shown = |character: char| {
        if character.is_control() && character != '\n' { '\u{fffd}' } else { character }
    };
    text.chars().map(shown).collect::<String>().replace(" %", "\u{a0}%")
}

/// A name, which may break after its parts; the breaks are not copied with it.
fn name(text: &str) -> Value {
    Value::from_safe_string(for_text(text).replace("::", "::<wbr>").replace('_', "_<wbr>"))
}
