//! Time ranges for several files in perf's syntax: separated by `:`.

use std::str::FromStr;

use fleetdiff_formats::reading::Times;

/// Time ranges: for all files, for each side, or for each file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TimesOfFiles(Vec<Times>);

impl FromStr for TimesOfFiles {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split(':').map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

/// The number of ranges does not match the number of files.
#[derive(Debug, thiserror::Error)]
#[error(
    "--time names {stretches} stretches separated by ':' for {files} files, expected one for all, two for base and head, or one a file"
)]
pub(crate) struct Unmatched {
    stretches: usize,
    files: usize,
}

impl TimesOfFiles {
    /// The range of each file, those of the base first.
    pub(crate) fn of(&self, base: usize, head: usize) -> Result<Vec<&Times>, Unmatched> {
        let times = &self.0;
        let side = |place: usize, files: usize| {
            times.get(place).into_iter().flat_map(move |times| std::iter::repeat_n(times, files))
        };
        match times.len() {
            1 => Ok(side(0, base + head).collect()),
            stretches if stretches == base + head => Ok(times.iter().collect()),
            2 => Ok(side(0, base).chain(side(1, head)).collect()),
            stretches => Err(Unmatched { stretches, files: base + head }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_for_all_two_for_sides_or_one_a_file() {
        let times = |text: &str| text.parse::<Times>().unwrap();
        let of = |text: &str, base, head| {
            text.parse::<TimesOfFiles>()
                .unwrap()
                .of(base, head)
                .map(|found| found.into_iter().cloned().collect::<Vec<_>>())
                .ok()
        };
        let (a, b, c) = (times("1,2"), times("10%/2"), times("3,"));
        assert_eq!(of("1,2", 1, 2), Some(vec![a.clone(), a.clone(), a.clone()]));
        assert_eq!(of("1,2:10%/2", 2, 1), Some(vec![a.clone(), a.clone(), b.clone()]));
        assert_eq!(of("1,2:10%/2:3,", 1, 2), Some(vec![a, b, c]));
        assert_eq!(of("1,2:10%/2:3,", 2, 2), None);
    }
}
