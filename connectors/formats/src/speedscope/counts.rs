//! Which weights are samples.

use fleetdiff_schemas::rejected::{Reason, Rejection};

use super::document::{Kind, Part, ValueUnit};
use crate::float::{negative, whole};
use crate::labels::{Measure, Unit};
use crate::values::Values;

/// How far weights of one period may lie apart, as a part of the largest: the error of a number printed with few digits.
const SAME_PERIOD: f64 = 1e-6;

/// How the samples of a file are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counting {
    /// Weights are counts.
    Weights,
    /// Each entry of a sampled profile is one sample; lengths of time between events are none.
    Entries,
    /// The same, but lengths between events and entries of any length will do: they weigh what they last.
    Lengths,
}

impl Counting {
    /// How to count what is in the profiles of a file. `unit` stands in where a file names none, and `count` says of
    /// weights of time that each entry is one sample whatever its weight.
    ///
    /// # Errors
    /// `unit_mismatch` if they hold different units or bytes, `unknown_period` if times that are no common period.
    pub(super) fn of(parts: &[Part<'_>], Measure { unit, values, .. }: Measure) -> Result<Self, Rejection> {
        let Some(first) = parts.first() else { return Err(Rejection::new(Reason::Empty, "the file holds no profile")) };
        if let Some(other) = parts.iter().find(|part| part.unit != first.unit) {
            let detail =
                format!("profiles in {:?} and {:?}: these are several measures, expected one", first.unit, other.unit);
            return Err(unit_mismatch(&detail.to_lowercase()));
        }
        match (first.unit, unit) {
            (ValueUnit::None, None | Some(Unit::Count)) => Ok(Self::Weights),
            (ValueUnit::Bytes, _) | (ValueUnit::None, Some(Unit::Bytes)) => {
                Err(unit_mismatch("weights in bytes are no samples; pprof holds what turns them into samples"))
            }
            _ if values == Values::Times => Ok(Self::Lengths),
            (_, Some(Unit::Count)) => Ok(Self::Entries),
            _ => one_period(parts).map(|()| Self::Entries),
        }
    }

    /// The samples of an entry of this weight; none if it weighs nothing.
    pub(super) fn samples(self, weight: f64) -> Result<u64, Rejection> {
        match self {
            Self::Weights => whole(weight),
            Self::Entries | Self::Lengths if weight < 0.0 => Err(negative(weight)),
            Self::Entries | Self::Lengths => Ok(u64::from(weight > 0.0)),
        }
    }

    /// Whether lengths between events can be read.
    pub(super) fn lengths(self) -> Result<(), Rejection> {
        match self {
            Self::Weights | Self::Lengths => Ok(()),
            Self::Entries => Err(unknown_period(
                "an evented profile holds lengths of time and no samples; sample the program, or write pprof",
            )),
        }
    }
}

/// Whether all weights of all sampled profiles are one period. A single one does not tell.
fn one_period(parts: &[Part<'_>]) -> Result<(), Rejection> {
    let sampled = parts.iter().filter(|part| part.kind == Kind::Sampled);
    let weights = sampled.filter_map(|part| part.weights.as_deref()).flatten().copied().filter(|weight| *weight > 0.0);
    let (mut least, mut most, mut number) = (f64::INFINITY, 0f64, 0u64);
    for weight in weights {
        (least, most, number) = (least.min(weight), most.max(weight), number + 1);
    }
    let hint = "write counts (unit none) or pprof, or label the unit count if each entry is one sample";
    match number {
        0 => Ok(()),
        1 => Err(unknown_period(&format!("a single weight of {most} does not tell how many samples it is; {hint}"))),
        _ if most - least <= most * SAME_PERIOD => Ok(()),
        _ => Err(unknown_period(&format!("weights from {least} to {most} are no samples of one period; {hint}"))),
    }
}

fn unit_mismatch(detail: &str) -> Rejection {
    Rejection::new(Reason::UnitMismatch, detail)
}

fn unknown_period(detail: &str) -> Rejection {
    Rejection::new(Reason::UnknownPeriod, detail)
}
