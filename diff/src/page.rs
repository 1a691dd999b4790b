//! The differential flame graph as one self-contained page: no network, no other files, the same bytes for the same
//! report.
//!
//! The page is made of `page/page.html`, `page/palette.css`, `page/page.css` and the scripts of `page/`, in the order of `SCRIPTS`. Its
//! data are JSON within it. Its content security policy forbids every request and every script except its own, by hash, and workers made of these.

mod embedded;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use self::embedded::Embedded;
use crate::escape::{for_script, for_text};

pub use crate::report::{FrameClass, Function, Ratio, Replicate, Report, ReportSide};

const TEMPLATE: &str = include_str!("page/page.html");
/// The colours that every page of fleetdiff has, light and dark.
pub const PALETTE: &str = include_str!("page/palette.css");
/// The style of the page.
pub const STYLE: &str = concat!(include_str!("page/palette.css"), include_str!("page/page.css"));

/// The scripts of the page in order: later ones use earlier ones.
const SCRIPTS: [&str; 18] = [
    include_str!("page/data.js"),
    include_str!("page/words.js"),
    include_str!("page/tree.js"),
    include_str!("page/reshape.js"),
    include_str!("page/turn.js"),
    include_str!("page/layout.js"),
    include_str!("page/paint.js"),
    include_str!("page/search.js"),
    include_str!("page/state.js"),
    include_str!("page/draw.js"),
    include_str!("page/card.js"),
    include_str!("page/link.js"),
    include_str!("page/interval.js"),
    include_str!("page/table.js"),
    include_str!("page/functions.js"),
    include_str!("page/pan.js"),
    include_str!("page/input.js"),
    include_str!("page/page.js"),
];

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
#[error("the report cannot be written as JSON: {0}")]
pub struct Unwritable(#[from] serde_json::Error);

/// The page of a report.
///
/// # Errors
/// [`Unwritable`] if the report cannot be written as JSON.
pub fn page(report: &Report) -> Result<String, Unwritable> {
    let script = script();
    let data = for_script(&serde_json::to_string(&Embedded::of(report))?);
    Ok(filled(TEMPLATE, |place| match place {
        "title" => for_text(&report.title),
        "headline" => for_text(&report.headline),
        "caution" => for_text(&report.caution),
        "policy" => policy(&[&script], &[STYLE]),
        "style" => STYLE.to_owned(),
        "data" => data.clone(),
        "script" => script.clone(),
        _ => String::new(),
    }))
}

/// The script of the page.
pub fn script() -> String {
    SCRIPTS.concat()
}

/// A content security policy: nothing may be fetched, and only these scripts and these styles are used.
pub fn policy(scripts: &[&str], styles: &[&str]) -> String {
    let hash = |text: &&str| format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text.as_bytes())));
    let hashes = |texts: &[&str]| texts.iter().map(hash).collect::<Vec<_>>().join(" ");
    format!(
        "default-src 'none'; script-src {}; style-src {}; worker-src blob:; base-uri 'none'; form-action 'none'",
        hashes(scripts),
        hashes(styles)
    )
}

/// The template with each `{{place}}` filled in; the inserted text is not searched again, so that a name may contain
/// braces.
fn filled(template: &str, fill: impl Fn(&str) -> String) -> String {
    let mut parts = template.split("{{");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (place, rest) = part.split_once("}}").unwrap_or((part, ""));
        text.push_str(&fill(place));
        text.push_str(rest);
    }
    text
}
