//! The types of settings, and how they are read from a flag, an environment variable or a file, and written.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fleetdiff_formats::Format;
use fleetdiff_schemas::config::{CellBy, Method, Shard};
use fleetdiff_schemas::profile::{CountKind, ProfileType};
use fleetdiff_schemas::time::Nanos;
use serde_json::{Value as Json, json};

use crate::logging::LogLevel;

/// A value that a key may have.
pub(crate) trait Setting: Sized {
    /// What is expected, in words.
    const EXPECTED: &'static str;

    /// Reads it from the text of a flag or a variable.
    fn from_text(text: &str) -> Option<Self>;

    /// Reads it from a value of a file.
    fn from_json(value: &Json) -> Option<Self> {
        value.as_str().and_then(Self::from_text)
    }

    /// The value as a file would hold it.
    fn to_json(&self) -> Json;
}

/// Units of lengths of time, largest first.
const UNITS: [(&str, i64); 4] =
    [("h", 3_600_000_000_000), ("m", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000)];

impl Setting for Nanos {
    const EXPECTED: &'static str = "a duration: a whole number with ms, s, m or h, as in \"30s\"";

    fn from_text(text: &str) -> Option<Self> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let (_, unit) = UNITS.iter().find(|(name, _)| text.strip_prefix(digits) == Some(name))?;
        let number: i64 = digits.parse().ok().filter(|number| *number >= 0)?;
        number.checked_mul(*unit).map(Nanos)
    }

    fn to_json(&self) -> Json {
        let fits = UNITS.iter().find(|(_, unit)| self.0 % unit == 0 && self.0 != 0);
        let (name, unit) = fits.unwrap_or(&("s", 1_000_000_000));
        json!(format!("{}{name}", self.0 / unit))
    }
}

impl Setting for Duration {
    const EXPECTED: &'static str = Nanos::EXPECTED;

    fn from_text(text: &str) -> Option<Self> {
        Nanos::from_text(text).and_then(|length| u64::try_from(length.0).ok()).map(Duration::from_nanos)
    }

    fn to_json(&self) -> Json {
        Nanos(i64::try_from(self.as_nanos()).unwrap_or(i64::MAX)).to_json()
    }
}

macro_rules! whole_number {
    ($($kind:ty),*) => {$(
        impl Setting for $kind {
            const EXPECTED: &'static str = "a whole number";

            fn from_text(text: &str) -> Option<Self> {
                text.parse().ok()
            }

            fn from_json(value: &Json) -> Option<Self> {
                value.as_i64().and_then(|number| number.try_into().ok())
            }

            fn to_json(&self) -> Json {
                json!(self)
            }
        }
    )*};
}

whole_number!(i32, u64, usize);

impl Setting for f64 {
    const EXPECTED: &'static str = "a number";

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok().filter(|number: &f64| number.is_finite())
    }

    fn from_json(value: &Json) -> Option<Self> {
        value.as_f64()
    }

    fn to_json(&self) -> Json {
        json!(self)
    }
}

impl Setting for bool {
    const EXPECTED: &'static str = "true or false";

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn from_json(value: &Json) -> Option<Self> {
        value.as_bool()
    }

    fn to_json(&self) -> Json {
        json!(self)
    }
}

impl Setting for String {
    const EXPECTED: &'static str = "a string";

    fn from_text(text: &str) -> Option<Self> {
        Some(text.to_owned())
    }

    fn to_json(&self) -> Json {
        json!(self)
    }
}

impl Setting for PathBuf {
    const EXPECTED: &'static str = "a path";

    fn from_text(text: &str) -> Option<Self> {
        (!text.is_empty()).then(|| text.into())
    }

    fn to_json(&self) -> Json {
        json!(self.to_string_lossy())
    }
}

impl Setting for Vec<String> {
    const EXPECTED: &'static str = "a list of strings, as in [\"a\", \"b\"] (a,b as a flag)";

    fn from_text(text: &str) -> Option<Self> {
        Some(text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect())
    }

    fn from_json(value: &Json) -> Option<Self> {
        value.as_array()?.iter().map(|part| part.as_str().map(str::to_owned)).collect()
    }

    fn to_json(&self) -> Json {
        json!(self)
    }
}

/// NB: a function's name may contain a comma, so a flag is one name, or the list as JSON.
impl Setting for Vec<Arc<str>> {
    const EXPECTED: &'static str =
        "a list of strings, as in [\"a\", \"b\"] (as a flag a single one, or the list as JSON)";

    fn from_text(text: &str) -> Option<Self> {
        RewriteTexts::from_text(text).map(|texts| texts.0.into_iter().map(Arc::from).collect())
    }

    fn from_json(value: &Json) -> Option<Self> {
        value.as_array()?.iter().map(|part| part.as_str().map(Arc::from)).collect()
    }

    fn to_json(&self) -> Json {
        json!(self.iter().map(|part| &**part).collect::<Vec<_>>())
    }
}

/// Rewrites of names as they were written, `PATTERN => REPLACEMENT` each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RewriteTexts(pub(crate) Vec<String>);

/// NB: a pattern may contain a comma, so a flag is one rewrite, or the list as JSON.
impl Setting for RewriteTexts {
    const EXPECTED: &'static str = "a list of \"PATTERN => REPLACEMENT\" (as a flag a single one, or the list as JSON)";

    fn from_text(text: &str) -> Option<Self> {
        let list = serde_json::from_str(text);
        Some(Self(list.unwrap_or_else(|_| if text.is_empty() { Vec::new() } else { vec![text.to_owned()] })))
    }

    fn from_json(value: &Json) -> Option<Self> {
        Vec::from_json(value).map(Self)
    }

    fn to_json(&self) -> Json {
        self.0.to_json()
    }
}

impl Setting for Vec<CountKind> {
    const EXPECTED: &'static str = "one or both of \"self\" and \"total\", as a list";

    fn from_text(text: &str) -> Option<Self> {
        kinds(text.split(','))
    }

    fn from_json(value: &Json) -> Option<Self> {
        let names: Option<Vec<&str>> = value.as_array()?.iter().map(Json::as_str).collect();
        kinds(names?.into_iter())
    }

    fn to_json(&self) -> Json {
        json!(self.iter().map(|kind| kind.name()).collect::<Vec<_>>())
    }
}

/// Ascending, each once, at least one.
fn kinds<'a>(names: impl Iterator<Item = &'a str>) -> Option<Vec<CountKind>> {
    let mut kinds = names.map(|name| name.trim().parse().ok()).collect::<Option<Vec<CountKind>>>()?;
    kinds.sort_unstable();
    kinds.dedup();
    (!kinds.is_empty()).then_some(kinds)
}

/// Values with a name each.
const CELLS: [(&str, CellBy); 4] = [
    ("region,cohort", CellBy::RegionCohort),
    ("cohort", CellBy::Cohort),
    ("region", CellBy::Region),
    ("all", CellBy::All),
];

impl Setting for CellBy {
    const EXPECTED: &'static str = "one of \"region,cohort\", \"cohort\", \"region\" and \"all\"";

    fn from_text(text: &str) -> Option<Self> {
        CELLS.iter().find(|(name, _)| *name == text).map(|(_, cell)| *cell)
    }

    fn to_json(&self) -> Json {
        json!(CELLS.iter().find(|(_, cell)| cell == self).map(|(name, _)| name))
    }
}

impl Setting for Shard {
    const EXPECTED: &'static str = "a shard I/N with I from 1 to N, as in \"2/3\", the second of three";

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn to_json(&self) -> Json {
        json!(self.to_string())
    }
}

impl Setting for Method {
    const EXPECTED: &'static str =
        "one of \"honest\", \"article\", \"article-b\", \"article-b-stouffer\" and \"naive\"";

    fn from_text(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|method| method.name() == text)
    }

    fn to_json(&self) -> Json {
        json!(self.name())
    }
}

impl Setting for LogLevel {
    const EXPECTED: &'static str = "one of \"error\", \"warn\", \"info\", \"debug\" and \"trace\"";

    fn from_text(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(name, _)| *name == text).map(|(_, level)| level)
    }

    fn to_json(&self) -> Json {
        json!(self.name())
    }
}

/// What contention may be.
const CONTENTION: [ProfileType; 2] = [ProfileType::Mutex, ProfileType::Block];

impl Setting for ProfileType {
    const EXPECTED: &'static str = "one of \"mutex\" and \"block\"";

    fn from_text(text: &str) -> Option<Self> {
        CONTENTION.into_iter().find(|kind| kind.name() == text)
    }

    fn to_json(&self) -> Json {
        json!(self.name())
    }
}

impl Setting for Format {
    const EXPECTED: &'static str = "one of \"pprof\", \"folded\", \"perf_script\", \"speedscope\", \"cpuprofile\", \"chrome_trace\", \"heapprofile\", \"stackprof\", \"gecko\", \"pyroscope\", \"delta\" and \"otlp\"";

    fn from_text(text: &str) -> Option<Self> {
        text.parse().ok()
    }

    fn to_json(&self) -> Json {
        json!(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_read_as_they_are_written() {
        for (text, nanos) in [
            ("0s", 0),
            ("250ms", 250_000_000),
            ("90s", 90_000_000_000),
            ("30m", 1_800_000_000_000),
            ("6h", 21_600_000_000_000),
        ] {
            assert_eq!(Nanos::from_text(text), Some(Nanos(nanos)), "{text}");
            assert_eq!(Nanos(nanos).to_json(), json!(text));
        }
        for text in ["", "s", "5", "-5s", "1.5s", "5 s", "5d", "5sm", "9999999999999999h"] {
            assert_eq!(Nanos::from_text(text), None, "{text}");
        }
        assert_eq!(Nanos::from_json(&json!(30)), None, "a number without a unit is no length");
    }

    #[test]
    fn kinds_are_a_set() {
        assert_eq!(Vec::<CountKind>::from_text("total,self,total"), Some(CountKind::ALL.to_vec()));
        assert_eq!(Vec::<CountKind>::from_text("self,all"), None);
        assert_eq!(Vec::<CountKind>::from_json(&json!([])), None);
    }
}
