//! What could have been seen, in one sentence.

use super::headline::LONGEST;
use crate::compare::{Compared, Reach};
use crate::figures::grouped;
use crate::shorten::shortened;

/// From which change on the largest functions would have been significant, and how many runs a change of 10 % takes; nothing where the
/// variation between runs is not known.
pub fn reach(compared: &Compared) -> Option<String> {
    let each = |reach: &Reach| {
        let Reach { function, share, ratio, .. } = reach;
        format!("x {ratio:.2} in {} ({:.1} %)", shortened(function, LONGEST), 100.0 * share)
    };
    let listed: Vec<String> = compared.reach.iter().map(each).collect();
    let most = compared.reach.iter().map(|reach| reach.runs.unwrap_or(usize::MAX)).max()?;
    let runs = match most {
        usize::MAX => "more than 1,000".to_owned(),
        runs => grouped(runs),
    };
    let these = if listed.len() == 1 { "it" } else { "each of them" };
    Some(format!(
        "A change is found with a probability of 80 % from about {} on. 10 % in {these} takes {runs} runs of each side.",
        listed.join(", ")
    ))
}
