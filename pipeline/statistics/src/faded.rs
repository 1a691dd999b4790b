//! When a raised row has faded: slow warm-up, or a cause that went away.

use crate::effect::LnInterval;

/// So many reports in a row must say it.
pub const LOOKS: usize = 3;

/// Whether a row that was raised with log ratio `theta_raised` is cleared by `looks`: the 95 % intervals against the scale in the
/// window's latest reports, each at least ten minutes after the one before.
///
/// In the last three each interval covers 0 and leaves out half of what was raised. Checked against the reference program
/// (`families.json`), exactly.
#[must_use]
pub fn has_faded(theta_raised: f64, looks: &[LnInterval]) -> bool {
    looks.len() >= LOOKS && looks[looks.len() - LOOKS..].iter().all(|look| is_refuted(theta_raised, look))
}

/// Whether a 95 % interval against the scale covers 0 and leaves out half of the log ratio `theta_raised`.
#[must_use]
pub fn is_refuted(theta_raised: f64, look: &LnInterval) -> bool {
    let half = 0.5 * theta_raised;
    let without_half = if theta_raised > 0.0 { look.high < half } else { look.low > half };
    look.low <= 0.0 && look.high >= 0.0 && without_half
}
