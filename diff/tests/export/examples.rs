//! Comparisons and findings for the writers.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleetdiff_diff::compare::{Compared, Finding, Recording, Settings, Weights, compare};
use fleetdiff_diff::export::Export;
use fleetdiff_diff::flame::Sides;
use fleetdiff_formats::Values;
use fleetdiff_schemas::profile::{CountKind, Profile, ProfileType, Samples, Stack};
use fleetdiff_schemas::rows::Interval;
use fleetdiff_schemas::verdict::{RowReason, Verdict};
use proptest::prelude::*;

/// A profile of these stacks, frames as a list.
pub fn profile(profile_type: ProfileType, stacks: &[(Vec<&str>, u64)]) -> Profile {
    let mut names: Vec<Arc<str>> = Vec::new();
    let mut number = |name: &str| {
        let known = names.iter().position(|known| **known == *name);
        let place = known.unwrap_or_else(|| {
            names.push(name.into());
            names.len() - 1
        });
        u32::try_from(place).unwrap()
    };
    let stacks = stacks.iter().map(|(frames, count)| Stack {
        frames: frames.iter().map(|name| number(name)).collect(),
        count: *count,
        cohort: None,
        value: 0,
    });
    let stacks = stacks.collect();
    Recording::of_stacks("", profile_type, names.into(), stacks).profile
}

/// A run of these stacks, `root;...;leaf`; nothing is a stack without frames.
pub fn run(label: &str, stacks: &[(&str, u64)]) -> Recording {
    let frames = |stack: &'_ str| -> Vec<String> {
        stack.split(';').filter(|name| !name.is_empty()).map(str::to_owned).collect()
    };
    let stacks: Vec<(Vec<String>, u64)> = stacks.iter().map(|(stack, count)| (frames(stack), *count)).collect();
    let stacks: Vec<(Vec<&str>, u64)> =
        stacks.iter().map(|(frames, count)| (frames.iter().map(String::as_str).collect(), *count)).collect();
    Recording {
        label: label.to_owned(),
        profile: profile(ProfileType::Cpu, &stacks),
        weights: None,
        values: Values::Samples,
        slices: None,
    }
}

/// The same run, with a weight for each sample.
pub fn weighed(run: Recording, unit: &str, each: u64) -> Recording {
    let Samples::Stacks(stacks) = &run.profile.samples else { panic!("folded") };
    let stacks = stacks.iter().map(|stack| Stack { count: stack.count * each, ..stack.clone() }).collect();
    let profile = Profile { samples: Samples::Stacks(stacks), ..run.profile.clone() };
    Recording { weights: Some(Weights { unit: unit.into(), profile }), ..run }
}

/// Three runs per side, between which `parse` and `poll` vary: `encode` costs twice as much, `legacy` is gone.
pub fn sides() -> Sides<Vec<Recording>> {
    let base = |more: u64| {
        run(
            "v1.folded",
            &[
                ("main;serve;parse", 3_000 + more),
                ("main;serve;encode", 1_000),
                ("main;legacy", 500),
                ("main;poll", 4_000 - more),
                ("", 40),
            ],
        )
    };
    let head = |more: u64| {
        run(
            "v2.folded",
            &[("main;serve;parse", 3_000 + more), ("main;serve;encode", 2_000), ("main;poll", 4_000 - more), ("", 40)],
        )
    };
    Sides { base: vec![base(0), base(300), base(150)], head: vec![head(0), head(300), head(150)] }
}

/// The same with weights.
pub fn weighed_sides() -> Sides<Vec<Recording>> {
    let Sides { base, head } = sides();
    let weigh = |side: Vec<Recording>| side.into_iter().map(|run| weighed(run, "cpu/nanoseconds", 500_250)).collect();
    Sides { base: weigh(base), head: weigh(head) }
}

/// One run per side, with enough samples that something is significant.
pub fn single() -> Sides<Vec<Recording>> {
    let Sides { mut base, mut head } = sides();
    base.truncate(1);
    head.truncate(1);
    Sides { base, head }
}

/// The findings of a comparison, for [`export`].
pub fn found(sides: &Sides<Vec<Recording>>, settings: &Settings) -> Compared {
    compare(sides, settings).unwrap()
}

pub const HEADLINE: &str = "3 of 5 functions shifted by more than 1 %, 2 are significant";

pub fn export<'a>(compared: &'a Compared, settings: &'a Settings) -> Export<'a> {
    let labels = |name: &'static str, runs| vec![name; runs];
    let labels = Sides { base: labels("v1.folded", compared.runs.base), head: labels("v2.folded", compared.runs.head) };
    Export {
        compared,
        settings,
        labels,
        headline: HEADLINE,
        count_kind: CountKind::SelfCount,
        spread: "three runs a side",
    }
}

/// Stacks by name with their samples, none of them 0.
pub fn by_name(profile: &Profile) -> BTreeMap<Vec<String>, u64> {
    let Samples::Stacks(stacks) = &profile.samples else { panic!("folded") };
    let mut sums = BTreeMap::new();
    for stack in stacks {
        let frames = stack.frames.iter().map(|frame| profile.names[usize::try_from(*frame).unwrap()].to_string());
        let mut frames: Vec<String> = frames.collect();
        if frames.is_empty() {
            frames.push("_unsymbolised".to_owned());
        }
        *sums.entry(frames).or_default() += stack.count;
    }
    sums
}

/// All runs of a side.
pub fn merged(side: &[Recording]) -> BTreeMap<Vec<String>, u64> {
    let mut sums = BTreeMap::new();
    for (path, count) in side.iter().flat_map(|run| by_name(&run.profile)) {
        *sums.entry(path).or_default() += count;
    }
    sums
}

/// A number without a short decimal form.
fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>().prop_filter("NaN", |number| !number.is_nan()),
        Just(f64::INFINITY),
        Just(1e-300),
        Just(0.1 + 0.2),
        Just(0.0)
    ]
}

/// Text with every character that is special in some format.
pub fn hostile() -> impl Strategy<Value = String> {
    let special = r#"[-,;"'\\`|<>&*_~\[\](){}#@!=+ \t\r\n\u{1}\u{85}\u{2028}äλ🦀a-z0-9]{1,24}"#;
    prop_oneof![special.prop_map(|text: String| text), ".{1,40}".prop_map(|text: String| text)]
}

/// Findings that no comparison would make.
pub fn findings() -> impl Strategy<Value = Finding> {
    let interval = (number(), number(), number()).prop_map(|(value, low, high)| Interval { value, low, high });
    let reasons = proptest::sample::select(RowReason::NAMES).prop_map(|name| RowReason::from_name(name).unwrap());
    let verdicts = proptest::sample::select(Verdict::NAMES).prop_map(|name| Verdict::from_name(name).unwrap());
    let counts =
        (any::<[u64; 2]>(), proptest::option::of(any::<[u64; 2]>()), proptest::option::of(1i64..), number(), number());
    let tests = (proptest::option::of(interval), proptest::option::of(number()), proptest::option::of(number()));
    let said =
        (verdicts, proptest::option::of(reasons), proptest::option::of(hostile()), proptest::option::of(hostile()));
    (hostile(), any::<bool>(), counts, tests, said).prop_map(
        |(
            function,
            own,
            (count, weight, functions, base, head),
            (ratio, ln_p, q_value),
            (verdict, reason, cause, detail),
        )| Finding {
            function: function.into(),
            base_function: detail.as_deref().map(Into::into),
            functions,
            count_kind: if own { CountKind::SelfCount } else { CountKind::Total },
            count: Some(Sides { base: count[0], head: count[1] }),
            weight: weight.map(|[base, head]| Sides { base, head }),
            share: Sides { base, head },
            ratio,
            ln_p,
            q_value,
            verdict,
            reason,
            cause,
            detail,
        },
    )
}
