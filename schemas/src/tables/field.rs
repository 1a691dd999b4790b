//! How columns represent the types of fields.

use std::sync::Arc;

use super::value::{Kind, Value};
use crate::comparison::Side;
use crate::identity::{Build, Cohort, Hardware, PodId, Region, Service};
use crate::profile::{CountKind, Measure, ProfileType};
use crate::rejected::Reason;
use crate::rows::Interval;
use crate::time::{Hop, Nanos};
use crate::verdict::{
    BaseKind, ComparisonVerdict, FlagState, HeapClass, IncidentState, LevelDirection, LevelReason, Limited, RowReason,
    ScalingReason, ScalingVerdict, Scope, Severity, Support, TimeMeasure, TimePer, Verdict,
};

/// A type of field that a column can hold.
pub(super) trait Field: Sized {
    /// What its column holds.
    const KIND: Kind;
    /// Whether it can be unknown.
    const NULLABLE: bool = false;

    /// The field as a value.
    fn value(&self) -> Value<'_>;

    /// The field of this value; `None` if the value does not fit.
    fn from_value(value: Value<'_>) -> Option<Self>;
}

/// Kind and nullability of the field that `_field` points to.
pub(super) fn shape_of<P, F: Field>(_field: fn(&P) -> &F) -> (Kind, bool) {
    (F::KIND, F::NULLABLE)
}

/// One of the three numbers of an interval.
pub(super) fn end_of(interval: Option<&Interval>, end: fn(&Interval) -> f64) -> Value<'static> {
    interval.map_or(Value::Null, |interval| Value::Number(end(interval)))
}

/// Sets one of the three numbers of an interval. Numbers that were never set are NaN, which no table accepts, so
/// [`super::Column::checked`] detects an interval of which a file holds only a part.
pub(super) fn set_end(
    interval: &mut Option<Interval>,
    value: Value<'_>,
    end: fn(&mut Interval) -> &mut f64,
) -> Option<()> {
    if let Some(number) = Option::<f64>::from_value(value)? {
        let unset = Interval { value: f64::NAN, low: f64::NAN, high: f64::NAN };
        *end(interval.get_or_insert(unset)) = number;
    }
    Some(())
}

impl<F: Field> Field for Option<F> {
    const KIND: Kind = F::KIND;
    const NULLABLE: bool = true;

    fn value(&self) -> Value<'_> {
        self.as_ref().map_or(Value::Null, Field::value)
    }

    fn from_value(value: Value<'_>) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            known => F::from_value(known).map(Some),
        }
    }
}

impl Field for f64 {
    const KIND: Kind = Kind::Number;

    fn value(&self) -> Value<'_> {
        Value::Number(*self)
    }

    fn from_value(value: Value<'_>) -> Option<Self> {
        let Value::Number(number) = value else { return None };
        Some(number)
    }
}

impl Field for bool {
    const KIND: Kind = Kind::Truth;

    fn value(&self) -> Value<'_> {
        Value::Truth(*self)
    }

    fn from_value(value: Value<'_>) -> Option<Self> {
        let Value::Truth(truth) = value else { return None };
        Some(truth)
    }
}

impl Field for Nanos {
    const KIND: Kind = Kind::Instant;

    fn value(&self) -> Value<'_> {
        Value::Instant(*self)
    }

    fn from_value(value: Value<'_>) -> Option<Self> {
        let Value::Instant(instant) = value else { return None };
        Some(instant)
    }
}

impl Field for Hop {
    const KIND: Kind = Kind::Count;

    fn value(&self) -> Value<'_> {
        self.0.value()
    }

    fn from_value(value: Value<'_>) -> Option<Self> {
        u64::from_value(value).map(Self)
    }
}

impl Field for Vec<String> {
    const KIND: Kind = Kind::Texts;

    fn value(&self) -> Value<'_> {
        Value::Texts(self)
    }

    fn from_value(value: Value<'_>) -> Option<Self> {
        let Value::Texts(texts) = value else { return None };
        Some(texts.to_vec())
    }
}

impl Field for Vec<i64> {
    const KIND: Kind = Kind::Counts;

    fn value(&self) -> Value<'_> {
        Value::Counts(self)
    }

    fn from_value(value: Value<'_>) -> Option<Self> {
        let Value::Counts(counts) = value else { return None };
        Some(counts.to_vec())
    }
}

macro_rules! integers {
    ($($name:ty),+) => {$(
        /// Numbers above the range of int64 are written as its largest number.
        impl Field for $name {
            const KIND: Kind = Kind::Count;

            fn value(&self) -> Value<'_> {
                Value::Count(i64::try_from(*self).unwrap_or(i64::MAX))
            }

            fn from_value(value: Value<'_>) -> Option<Self> {
                let Value::Count(count) = value else { return None };
                Self::try_from(count).ok()
            }
        }
    )+};
}

integers!(i64, u64, i32);

macro_rules! texts {
    ($($name:ty: $as_text:expr;)+) => {$(
        impl Field for $name {
            const KIND: Kind = Kind::Text;

            fn value(&self) -> Value<'_> {
                let as_text: fn(&Self) -> &str = $as_text;
                Value::Text(as_text(self))
            }

            fn from_value(value: Value<'_>) -> Option<Self> {
                let Value::Text(text) = value else { return None };
                Some(text.into())
            }
        }
    )+};
}

texts! {
    String: Self::as_str;
    Arc<str>: |text| text;
    Service: Self::as_str;
    Build: Self::as_str;
    Region: Self::as_str;
    Cohort: Self::as_str;
    PodId: Self::as_str;
    Hardware: Self::as_str;
}

macro_rules! closed_lists {
    ($($name:ty: $names:expr, $from_name:expr;)+) => {$(
        impl Field for $name {
            const KIND: Kind = Kind::Name($names);

            fn value(&self) -> Value<'_> {
                Value::Text(self.name())
            }

            fn from_value(value: Value<'_>) -> Option<Self> {
                let Value::Text(name) = value else { return None };
                let from_name: fn(&str) -> Option<Self> = $from_name;
                from_name(name)
            }
        }
    )+};
}

closed_lists! {
    Verdict: Self::NAMES, Self::from_name;
    Support: Self::NAMES, Self::from_name;
    RowReason: Self::NAMES, Self::from_name;
    ComparisonVerdict: Self::NAMES, Self::from_name;
    Scope: Self::NAMES, Self::from_name;
    Side: Self::NAMES, Self::from_name;
    BaseKind: Self::NAMES, Self::from_name;
    FlagState: Self::NAMES, Self::from_name;
    IncidentState: Self::NAMES, Self::from_name;
    Severity: Self::NAMES, Self::from_name;
    ScalingVerdict: Self::NAMES, Self::from_name;
    ScalingReason: Self::NAMES, Self::from_name;
    LevelDirection: Self::NAMES, Self::from_name;
    HeapClass: Self::NAMES, Self::from_name;
    TimeMeasure: Self::NAMES, Self::from_name;
    TimePer: Self::NAMES, Self::from_name;
    LevelReason: Self::NAMES, Self::from_name;
    Limited: Self::NAMES, Self::from_name;
    ProfileType: &["cpu", "off_cpu", "wall", "heap", "live_heap", "mutex", "block"], |name| name.parse().ok();
    CountKind: &["self", "total"], |name| name.parse().ok();
    Measure: &["samples", "time", "alloc_space", "inuse_space", "contentions"],
        |name| Self::ALL.into_iter().find(|measure| measure.name() == name);
    Reason: &REASONS, |name| Self::ALL.into_iter().find(|reason| reason.name() == name);
}

const REASONS: [&str; Reason::ALL.len()] = [
    "truncated",
    "malformed",
    "unsupported_version",
    "missing_identity",
    "negative_value",
    "empty",
    "from_future",
    "from_past",
    "missing_file",
    "too_large",
    "unsupported_type",
    "index_out_of_range",
    "unit_mismatch",
    "unknown_period",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn names_of<F: Field>() -> Vec<&'static str> {
        match F::KIND {
            Kind::Name(names) => names.to_vec(),
            other => panic!("{other:?} is not a closed list"),
        }
    }

    #[test]
    fn closed_lists_hold_every_name() {
        assert_eq!(names_of::<Side>(), Side::BOTH.map(Side::name));
        assert_eq!(names_of::<CountKind>(), CountKind::ALL.map(CountKind::name));
        assert_eq!(names_of::<Measure>(), Measure::ALL.map(Measure::name));
        assert_eq!(names_of::<Reason>(), Reason::ALL.map(Reason::name));
        assert_eq!(names_of::<ProfileType>(), ProfileType::ALL.map(|(kind, _)| kind.name()));
    }

    #[test]
    fn a_value_that_does_not_fit_is_refused() {
        assert_eq!(Option::<i64>::from_value(Value::Text("3")), None);
        assert_eq!(Option::<i64>::from_value(Value::Null), Some(None));
        assert_eq!(i32::from_value(Value::Count(i64::MAX)), None);
        assert_eq!(u64::from_value(Value::Count(-1)), None);
        assert_eq!(Verdict::from_value(Value::Text("slower")), None);
        assert_eq!(Verdict::from_value(Value::Null), None);
    }
}
