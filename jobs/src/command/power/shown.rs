//! The answers for people.

use std::io::{self, Write};

use super::answers::{Answers, EPOCH, MOMENTS, Remedy, Wait};
use super::arguments::PowerArgs;
use super::study::Study;
use crate::columns::{Column, aligned};

/// Prints each study with its two tables, and what the figures mean once.
pub(crate) fn print(out: &mut impl Write, answers: &[Answers], args: &PowerArgs) -> io::Result<()> {
    for answers in answers {
        print_study(out, answers)?;
        writeln!(out)?;
    }
    writeln!(
        out,
        "Significant after: the p-value of the row is below {} with probability {}. Time is event time, with all pods running.",
        args.alpha, args.power
    )?;
    writeln!(
        out,
        "* 1/(f r^2) samples per arm, as if samples were independent: not calibrated, and it ignores how much pods differ."
    )
}

fn print_study(out: &mut impl Write, answers: &Answers) -> io::Result<()> {
    let Study { source, head_pods, base_pods, rate, tau } = &answers.study;
    if let Some(source) = source {
        let key = &source.comparison;
        let (service, kind) = (&key.service, source.count_kind.name());
        writeln!(
            out,
            "{service} {} ({kind} samples), {} against {}: {} x {}",
            key.profile_type.name(),
            key.head_build,
            key.base_build,
            source.cell.region,
            source.cell.cohort
        )?;
    }
    let spread = tau.map_or_else(
        || "an unknown spread between them".to_owned(),
        |tau| match [tau.head, tau.base].map(percent) {
            [head, base] if head == base => format!("pods that differ by {head}"),
            [head, base] => format!("head pods that differ by {head}, base pods by {base}"),
        },
    );
    writeln!(out, "{head_pods} pods against {base_pods}, {} samples per pod and second, {spread}", digits(*rate))?;
    if tau.is_none() {
        return writeln!(out, "  Nothing was tested there, so the spread between pods is unknown: set it with --cv.");
    }
    writeln!(out)?;
    let waits = answers.waits.iter().map(|wait| {
        vec![percent(wait.share), signed(wait.change), seen_after(wait), independent(wait, &answers.study)]
    });
    print_columns(out, &["share", "change", "significant after", "by the article*"], waits)?;
    writeln!(out)?;
    let heads: Vec<String> =
        MOMENTS.iter().map(|&moment| if moment.is_finite() { length(moment) } else { "any time".to_owned() }).collect();
    let heads: Vec<&str> = ["share"].into_iter().chain(heads.iter().map(String::as_str)).collect();
    let rows = answers.smallest.iter().map(|row| {
        [percent(row.share)].into_iter().chain(row.ratios.iter().map(|ratio| signed(ratio - 1.0))).collect()
    });
    writeln!(out, "smallest change that is significant after")?;
    print_columns(out, &heads, rows)?;
    print_support(out, &answers.study)
}

/// What else the rule requires of pods.
fn print_support(out: &mut impl Write, study: &Study) -> io::Result<()> {
    let pods = study.head_pods.min(study.base_pods);
    if pods < 2 {
        writeln!(out, "With fewer than 2 pods in an arm, nothing is tested: one pod is not a replicate.")
    } else if pods < 5 {
        writeln!(out, "With fewer than 5 pods in an arm, a significant row is tentative and no row can be equivalent.")
    } else {
        Ok(())
    }
}

fn seen_after(wait: &Wait) -> String {
    let seconds = wait.seconds;
    let start = match seconds {
        s if s <= EPOCH => return format!("{} ({} s)", length(s), s.ceil()),
        s if s.is_finite() => format!("{} ({} s), longer than evidence is kept: ", length(s), s.ceil()),
        _ => "never: more time cannot help, ".to_owned(),
    };
    let Some(Remedy { head_pods, base_pods, seconds }) = wait.remedy else {
        return format!("{start}no number of pods can");
    };
    let more = |pods: u32, arm: &str| {
        (pods > 0).then(|| format!("{pods} more {arm} {}", if pods == 1 { "pod" } else { "pods" }))
    };
    let pods: Vec<String> = [more(head_pods, "head"), more(base_pods, "base")].into_iter().flatten().collect();
    format!("{start}{} can, within {}", pods.join(" and "), length(seconds))
}

fn independent(wait: &Wait, study: &Study) -> String {
    let seconds = wait.samples_if_independent / (study.rate * f64::from(study.head_pods));
    format!("{:.0} head samples, {}", wait.samples_if_independent.ceil(), length(seconds))
}

/// A length of time in words, rounded up to at least two digits.
fn length(seconds: f64) -> String {
    let (count, unit) = match seconds {
        s if s < 120.0 => (s, "s"),
        s if s < 7200.0 => (s / 60.0, "min"),
        s if s < 172_800.0 => (s / 3600.0, "h"),
        s => (s / 86_400.0, "days"),
    };
    let tenths = (count * 10.0).ceil() / 10.0;
    if tenths < 10.0 && unit != "s" { format!("{tenths} {unit}") } else { format!("{} {unit}", count.ceil()) }
}

fn percent(fraction: f64) -> String {
    format!("{} %", digits(100.0 * fraction))
}

fn signed(change: f64) -> String {
    format!("{}{}", if change > 0.0 { "+" } else { "" }, percent(change))
}

/// Three significant digits, without trailing zeros.
fn digits(value: f64) -> String {
    format!("{value:.2e}").parse::<f64>().unwrap_or(value).to_string()
}

/// A table below its column titles.
fn print_columns(out: &mut impl Write, heads: &[&str], rows: impl Iterator<Item = Vec<String>>) -> io::Result<()> {
    let heads: Vec<String> = heads.iter().map(|&head| head.to_owned()).collect();
    let columns = vec![Column::WORDS; heads.len()];
    let rows: Vec<Vec<String>> = [heads].into_iter().chain(rows).collect();
    aligned(&columns, 3, &rows).into_iter().try_for_each(|line| writeln!(out, "  {line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_never_rounded_down() {
        for (seconds, words) in [
            (0.2, "1 s"),
            (64.3, "65 s"),
            (300.0, "5 min"),
            (641.0, "11 min"),
            (125.0, "2.1 min"),
            (21_600.0, "6 h"),
            (1e6, "12 days"),
        ] {
            assert_eq!(length(seconds), words);
        }
    }

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!(
            (percent(0.01), percent(0.000_123_4), signed(-0.05), signed(0.1)),
            ("1 %".into(), "0.0123 %".into(), "-5 %".into(), "+10 %".into())
        );
    }
}
