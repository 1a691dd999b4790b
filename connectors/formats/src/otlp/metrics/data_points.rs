//! The five kinds of metrics, and a data point of each as it stands.

use fleetdiff_schemas::profile::Temporality;
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::time::Nanos;

use crate::budget::Budget;
use crate::wire::{Value, WireFault, fields};

/// The kinds of metrics that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Gauge,
    Sum,
    Histogram,
    ExponentialHistogram,
    Summary,
}

impl Kind {
    /// The kind whose data stands under this tag of a metric.
    pub(super) fn of(tag: u32) -> Option<Self> {
        match tag {
            5 => Some(Self::Gauge),
            7 => Some(Self::Sum),
            9 => Some(Self::Histogram),
            10 => Some(Self::ExponentialHistogram),
            11 => Some(Self::Summary),
            _ => None,
        }
    }

    /// Where attributes and flags of a data point stand.
    fn tags(self) -> (u32, u32) {
        match self {
            Self::Gauge | Self::Sum | Self::Summary => (7, 8),
            Self::Histogram => (9, 10),
            Self::ExponentialHistogram => (1, 10),
        }
    }

    /// The data points, and whether they count since their start or in their window.
    pub(super) fn cut<'d>(self, data: &'d [u8], budget: &Budget) -> Result<(Vec<&'d [u8]>, Temporality), Rejection> {
        let (mut points, mut temporality, mut monotonic) = (Vec::new(), 0, 0);
        let mut parts = fields(data);
        while let Some((tag, value)) = parts.next()? {
            match tag {
                1 => budget.push(&mut points, value.bytes()?)?,
                2 => temporality = value.number()?,
                3 => monotonic = value.number()?,
                _ => {}
            }
        }
        let unsupported = |what: &str| Err(Rejection::new(Reason::UnsupportedType, what));
        match (self, temporality) {
            (Self::Gauge, _) => unsupported("a gauge, expected a histogram or a monotonic sum"),
            (Self::Sum, _) if monotonic == 0 => unsupported("a sum that may fall, expected a monotonic one"),
            (Self::Summary, _) | (_, 2) => Ok((points, Temporality::Cumulative)),
            (_, 1) => Ok((points, Temporality::Delta)),
            _ => unsupported("a temporality that is neither delta nor cumulative"),
        }
    }
}

/// The fields of a data point as they stand.
pub(super) struct Raw<'a> {
    pub(super) start: u64,
    pub(super) time: u64,
    pub(super) count: Result<u64, Rejection>,
    pub(super) flags: u64,
    pub(super) attributes: Vec<&'a [u8]>,
}

impl<'a> Raw<'a> {
    /// Reads a data point of this kind.
    pub(super) fn read(message: &'a [u8], kind: Kind, budget: &Budget) -> Result<Self, Rejection> {
        let (attributes, flags) = kind.tags();
        let mut raw = Self { start: 0, time: 0, count: Ok(0), flags: 0, attributes: Vec::new() };
        let mut parts = fields(message);
        while let Some((tag, value)) = parts.next()? {
            match tag {
                2 => raw.start = value.fixed()?,
                3 => raw.time = value.fixed()?,
                4 | 6 => raw.take_count(tag, value, kind)?,
                _ if tag == attributes => budget.push(&mut raw.attributes, value.bytes()?)?,
                _ if tag == flags => raw.flags = value.number()?,
                _ => {}
            }
        }
        Ok(raw)
    }

    /// The count of a histogram, or the value of a sum: `as_double` or `as_int`.
    fn take_count(&mut self, tag: u32, value: Value<'_>, kind: Kind) -> Result<(), WireFault> {
        match (kind, tag) {
            (Kind::Sum, 4) => self.count = whole(f64::from_bits(value.fixed()?)),
            (Kind::Sum, _) => {
                let value = value.fixed()?.cast_signed();
                self.count = u64::try_from(value).map_err(|_| negative(&value));
            }
            (_, 4) => self.count = Ok(value.fixed()?),
            _ => {}
        }
        Ok(())
    }
}

/// The largest count that is taken from a float; up to here floats hold whole numbers: 2^53.
const MOST: f64 = 9_007_199_254_740_992.0;

/// A number of requests that was sent as a float.
fn whole(value: f64) -> Result<u64, Rejection> {
    if value < 0.0 {
        return Err(negative(&value));
    }
    if value.is_nan() || value > MOST {
        return Err(Rejection::new(Reason::TooLarge, format!("a count of {value}")));
    }
    #[expect(clippy::as_conversions, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0..=MOST")]
    let whole = libm::round(value) as u64;
    Ok(whole)
}

fn negative(value: &dyn std::fmt::Display) -> Rejection {
    Rejection::new(Reason::NegativeValue, format!("a count of {value}"))
}

/// A time as it stands in a point.
pub(super) fn instant(nanos: u64) -> Option<Nanos> {
    i64::try_from(nanos).ok().map(Nanos)
}
