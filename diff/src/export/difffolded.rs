//! Stacks of both sides as `difffolded.pl` of FlameGraph writes them: `root;...;leaf BASE HEAD`, one line per stack,
//! sorted.
//!
//! Counts are the sums of raw samples of all runs of a side, or of nanoseconds where times without a period are compared.
//! If the sides have different numbers of samples,
//! `flamegraph.pl` and `inferno-flamegraph` compare counts and not shares, unless counts are normalized first
//! (`difffolded.pl -n`).
//!
//! As in other writers of folded stacks, `;` within a name becomes `:`, and a line end becomes a blank; stacks that are
//! then equal are one line.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::NotExported;
use crate::compare::Recording;
use crate::sides::Sides;
use crate::stacks;

/// The lines of both sides.
///
/// # Errors
/// [`NotExported::NoStacks`] for a run that came without stacks.
pub fn difffolded(sides: &Sides<Vec<Recording>>) -> Result<String, NotExported> {
    let mut lines: BTreeMap<String, Sides<u64>> = BTreeMap::new();
    for (path, count) in stacks::of_sides(sides)? {
        let frames: Vec<String> = path.iter().map(|name| frame(name)).collect();
        let sum = lines.entry(frames.join(";")).or_default();
        sum.base = sum.base.saturating_add(count.base);
        sum.head = sum.head.saturating_add(count.head);
    }
    let mut text = String::new();
    for (stack, count) in lines {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{stack} {} {}", count.base, count.head);
    }
    Ok(text)
}

fn frame(name: &str) -> String {
    let stands = |character: char| match character {
        ';' => ':',
        other if other.is_control() || other == '\u{2028}' || other == '\u{2029}' => ' ',
        other => other,
    };
    name.chars().map(stands).collect()
}
