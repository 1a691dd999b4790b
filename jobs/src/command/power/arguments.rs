//! The arguments of `power`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::ranges::{checked, is_within_one, whole, within};

/// Heading of the flags that say what the fleet is.
const FLEET: &str = "Fleet";
/// Heading of the flags that say what is to be detected.
const CHANGE: &str = "Change to detect";
/// Heading of the flags that say how surely.
const DETECTION: &str = "Detection";

/// Arguments of `power`.
#[derive(Debug, Args)]
pub(crate) struct PowerArgs {
    /// Number of canary pods [default: 40]
    #[arg(long, help_heading = FLEET, value_name = "PODS", value_parser = pods)]
    pub(crate) head_pods: Option<u32>,
    /// Number of baseline pods [default: 760]
    #[arg(long, help_heading = FLEET, value_name = "PODS", value_parser = pods)]
    pub(crate) base_pods: Option<u32>,
    /// Samples per second that each pod sends [default: 100]
    #[arg(long, help_heading = FLEET, value_name = "SAMPLES", alias = "rate", value_parser = rate)]
    pub(crate) samples_per_pod_second: Option<f64>,
    /// Variation between pods of one build: standard deviation of the log share (tau), which for small values is the coefficient of
    /// variation [default: 5%]
    #[arg(long, help_heading = FLEET, value_name = "FRACTION", alias = "tau", value_parser = spread)]
    pub(crate) cv: Option<f64>,
    /// Take pods, samples and variation of each cell from the output of an earlier run, a folder or s3://BUCKET/PREFIX; the flags above override them
    #[arg(long, help_heading = FLEET, value_name = "OUTPUT")]
    pub(crate) from: Option<PathBuf>,
    /// Share of all samples that the function has
    #[arg(long, help_heading = CHANGE, value_name = "FRACTION,...", value_delimiter = ',', default_value = "1%,0.1%", value_parser = share)]
    pub(crate) share: Vec<f64>,
    /// Relative change of the function's cost; negative for a saving, as in -5%
    #[arg(long, help_heading = CHANGE, value_name = "FRACTION,...", value_delimiter = ',', default_value = "5%,10%", value_parser = change, allow_hyphen_values = true)]
    pub(crate) change: Vec<f64>,
    /// Significance level of a single test, which depends on the number of tested rows: 1e-4 for some thousand
    #[arg(long, help_heading = DETECTION, value_name = "PROBABILITY", default_value_t = 1e-4, value_parser = within_one)]
    pub(crate) alpha: f64,
    /// Probability of detecting the change
    #[arg(long, help_heading = DETECTION, value_name = "PROBABILITY", default_value_t = 0.8, value_parser = within_one)]
    pub(crate) power: f64,
    /// Format of the result
    #[arg(long, help_heading = "Output", value_enum, default_value_t = Format::Table)]
    pub(crate) format: Format,
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned tables
    Table,
    /// One JSON document
    Json,
}

/// A fraction, as `5%` or `0.05`.
fn fraction(text: &str) -> Option<f64> {
    let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    number.trim().parse::<f64>().ok().map(|value| value / unit).filter(|value| value.is_finite())
}

fn share(text: &str) -> Result<f64, String> {
    checked(fraction(text), is_within_one, "expected a fraction of the samples between 0 and 1, as in 1% or 0.01")
}

fn change(text: &str) -> Result<f64, String> {
    checked(
        fraction(text),
        |change| change > -1.0 && change != 0.0 && change <= 100.0,
        "expected a change of more than -100% and at most 10000%, but not 0, as in 5%, 0.05 or -5%",
    )
}

fn spread(text: &str) -> Result<f64, String> {
    checked(
        fraction(text),
        |spread| (0.0..=10.0).contains(&spread),
        "expected a variation of at least 0 and at most 1000%, as in 5% or 0.05",
    )
}

fn rate(text: &str) -> Result<f64, String> {
    within(text, 1e-6..=1e6)
}

fn pods(text: &str) -> Result<u32, String> {
    whole(text, 1..=1_000_000)
}

fn within_one(text: &str) -> Result<f64, String> {
    checked(text.parse().ok(), is_within_one, "expected a probability between 0 and 1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_are_read_with_and_without_a_percent_sign() {
        assert_eq!((share("1%"), share("0.001"), share("0.1 %")), (Ok(0.01), Ok(0.001), Ok(0.001)));
        assert_eq!((change("-5%"), change("250%")), (Ok(-0.05), Ok(2.5)));
        for wrong in ["5", "100%", "0", "-1%", "nan", "x", "", "%"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
        assert!(change("0").is_err() && change("-100%").is_err() && spread("-1%").is_err() && spread("inf").is_err());
        assert!(within_one("1").is_err() && rate("0").is_err() && rate("inf").is_err());
    }
}
