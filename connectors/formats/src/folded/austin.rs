//! What Austin, a profiler of Python, writes above its stacks: `# austin: 4.0.0`, `# interval: 1000`, `# mode: wall`.
//!
//! Its numbers are microseconds from one sample to the next, in mode `memory` bytes, and in mode `full` several in a line.

use fleetdiff_schemas::profile::ProfileType;
use fleetdiff_schemas::rejected::{Reason, Rejection};

use crate::labels::{Measure, Unit};
use crate::period::Period;

/// Nanoseconds in a microsecond, the unit of the interval.
const MICROSECOND: u64 = 1_000;

/// What stands above the stacks.
#[derive(Debug, Default)]
pub(super) struct Header<'t> {
    mode: &'t str,
    interval: Option<Period>,
}

impl<'t> Header<'t> {
    /// The header of a text, if Austin wrote it.
    pub(super) fn of(text: &'t [u8]) -> Option<Self> {
        let lines = text.split(|byte| *byte == b'\n').map(|line| std::str::from_utf8(line).unwrap_or_default().trim());
        let comments = lines.take_while(|line| line.is_empty() || line.starts_with('#'));
        let mut header = Self::default();
        let mut is_of_austin = false;
        for line in comments {
            match line.trim_start_matches(['#', ' ']).split_once(": ") {
                Some(("austin", _)) => is_of_austin = true,
                Some(("mode", mode)) => header.mode = mode.trim(),
                Some(("interval", interval)) => header.interval = period(interval),
                _ => {}
            }
        }
        is_of_austin.then_some(header)
    }

    /// What the numbers are, and how they are measured.
    ///
    /// # Errors
    /// `unsupported_type` of modes that hold no times, `unit_mismatch` if they are of another clock than is asked for.
    pub(super) fn measure(&self, asked: Measure) -> Result<(Measure, Unit), Rejection> {
        let kind = match self.mode {
            "wall" => ProfileType::Wall,
            "cpu" => ProfileType::Cpu,
            mode => {
                let detail = format!(
                    "a profile of Austin in mode {mode:?}, expected wall or cpu: record with austin -o FILE, or with austin --cpu -o FILE"
                );
                return Err(Rejection::new(Reason::UnsupportedType, detail));
            }
        };
        if asked.profile_type != kind {
            let detail =
                format!("Austin's mode {} is a {} profile, not {}", self.mode, kind.name(), asked.profile_type.name());
            return Err(Rejection::new(Reason::UnitMismatch, detail));
        }
        Ok((Measure { period: asked.period.or(self.interval), ..asked }, Unit::Microseconds))
    }
}

fn period(microseconds: &str) -> Option<Period> {
    let microseconds: u64 = microseconds.trim().parse().ok()?;
    Period::of_nanoseconds(microseconds.checked_mul(MICROSECOND)?)
}
