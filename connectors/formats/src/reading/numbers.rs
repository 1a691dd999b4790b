//! Lists of numbers, as perf takes them for processors, processes and threads.

use std::ops::RangeInclusive;
use std::str::FromStr;

/// Numbers and ranges of them: `0,2-3`. One at least.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbers(Vec<RangeInclusive<i64>>);

impl Numbers {
    /// Whether a number is of the list.
    pub(crate) fn has(&self, number: i64) -> bool {
        self.0.iter().any(|range| range.contains(&number))
    }
}

impl FromStr for Numbers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = |word: &str| format!("{word:?} in {text:?} is no number, expected a list such as 0,2-3");
        let number = |word: &str| {
            let digits = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| word.parse::<i64>().ok()).flatten()
        };
        let range = |word: &str| {
            let ends = word.split_once('-').unwrap_or((word, word));
            let (first, last) = number(ends.0).zip(number(ends.1)).ok_or_else(|| wrong(word))?;
            if first <= last { Ok(first..=last) } else { Err(format!("{word:?} ends before it begins")) }
        };
        text.split(',').map(|word| range(word.trim())).collect::<Result<_, _>>().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_ranges() {
        let list: Numbers = "0, 2-3,17".parse().unwrap();
        let found: Vec<i64> = (-1..20).filter(|number| list.has(*number)).collect();
        assert_eq!(found, [0, 2, 3, 17]);
    }

    #[test]
    fn what_is_no_list_is_said() {
        for text in ["", "x", "1,", "1-", "-1", "1-2-3", "0x1", "99999999999999999999"] {
            assert!(text.parse::<Numbers>().unwrap_err().contains("is no number"), "{text}");
        }
        assert!("3-2".parse::<Numbers>().unwrap_err().contains("ends before it begins"));
    }
}
