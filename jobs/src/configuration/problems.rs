//! What is wrong with a configuration: all of it, each with its place.

use std::fmt;

/// One problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// File and line, flag or variable, if known.
    pub(crate) place: Option<String>,
    /// Path of the key; empty for a problem of the file as a whole.
    pub(crate) key: String,
    /// What is wrong.
    pub(crate) what: String,
}

impl Problem {
    /// A value that the key does not take.
    pub(crate) fn value(place: &str, key: &str, expected: &str, value: &str) -> Self {
        let what = format!("{value:?} is not {expected}");
        Self { place: Some(place.to_owned()), key: key.to_owned(), what }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.place {
            write!(f, "{place}: ")?;
        }
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.what)
    }
}

/// Every problem of a configuration, at least one.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Problems(Vec<Problem>);

impl Problems {
    /// No error if there is no problem.
    ///
    /// # Errors
    /// The problems.
    pub(crate) fn none_or(problems: Vec<Problem>) -> Result<(), Self> {
        if problems.is_empty() { Ok(()) } else { Err(Self(problems)) }
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [one] => write!(f, "the configuration cannot be used: {one}"),
            many => {
                write!(f, "the configuration cannot be used, for {} reasons:", many.len())?;
                many.iter().try_for_each(|problem| write!(f, "\n  {problem}"))
            }
        }
    }
}

impl std::error::Error for Problems {}
