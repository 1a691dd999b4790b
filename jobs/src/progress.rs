//! Progress on stderr.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar on a terminal, nothing elsewhere.
pub(crate) fn bar(length: usize, of: &str) -> ProgressBar {
    styled(length, &format!("{{bar:40}} {{pos}}/{{len}} {of}, {{msg}}, {{eta}} left"))
}

/// A bar over the hops of a run.
pub(crate) fn bar_of_hops(length: u64) -> ProgressBar {
    styled(usize::try_from(length).unwrap_or(usize::MAX), "{bar:40} {pos}/{len} hops, {eta} left")
}

/// A line that says how far it is, on a terminal; nothing elsewhere.
pub(crate) fn spinner() -> ProgressBar {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{elapsed_precise} {msg}") {
        bar.set_style(style);
    }
    bar
}

fn styled(length: usize, template: &str) -> ProgressBar {
    let bar = ProgressBar::new(u64::try_from(length).unwrap_or(u64::MAX));
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar
}
