//! Speedscope's JSON: what its weights are taken for.

use fleetdiff_formats::{Format, Labels, Options, Unit};
use fleetdiff_schemas::profile::{Profile, ProfileType};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::examples::{EVENTED, SPEEDSCOPE};
use super::fixtures::{labels, part, window, written_out};

fn decode_all(unit: Option<Unit>, text: &str) -> Vec<Result<Profile, Rejection>> {
    let labels = Ok(Labels { unit, ..labels(ProfileType::Wall) });
    Format::Speedscope.decoder(&Options::default()).decode(text.as_bytes(), &labels)
}

fn decode(text: &str) -> Result<Profile, Rejection> {
    part(&mut *Format::Speedscope.decoder(&Options::default()), text.as_bytes(), &Ok(labels(ProfileType::Cpu)))
}

fn lines(profile: &Profile) -> Vec<String> {
    written_out(profile).into_iter().map(|(frames, count, _)| format!("{} {count}", frames.join(";"))).collect()
}

/// A file of sampled profiles over the frames a, b and c.
fn sampled(unit: &str, parts: &[(Value, Value)]) -> String {
    let parts: Vec<Value> = parts
        .iter()
        .map(|(samples, weights)| json!({"type": "sampled", "name": "t", "unit": unit, "startValue": 0, "endValue": 1, "samples": samples, "weights": weights}))
        .collect();
    json!({"shared": {"frames": [{"name": "a"}, {"name": "b"}, {"name": "c"}]}, "profiles": parts}).to_string()
}

#[test]
fn each_entry_of_one_period_is_a_sample_and_threads_are_added_up() {
    let expected = [
        "<module> (shop.py);serve (shop.py) 1",
        "<module> (shop.py);serve (shop.py);encode (json/encoder.py) 1",
        "<module> (shop.py);serve (shop.py);encode (json/encoder.py) 1",
        "<module> (shop.py);serve (shop.py);[libc.so] 1",
        " 1",
        "<module> (shop.py) 1",
        "<module> (shop.py);serve (shop.py) 1",
    ];
    assert_eq!(lines(&decode(SPEEDSCOPE).unwrap()), expected);
}

#[test]
fn counts_between_events_are_those_of_the_open_stack() {
    assert_eq!(lines(&decode(EVENTED).unwrap()), ["main 2", "main;work 7", "main 3"]);
}

#[test]
fn functions_of_wall_time_are_those_of_their_thread() {
    let wall = &decode_all(None, EVENTED)[0];
    let names = lines(wall.as_ref().unwrap());
    assert!(names.iter().all(|line| line.contains(" @ ")), "{names:?}");
    let pools = sampled("milliseconds", &[(json!([[0], [1]]), json!([10.0, 30.0]))]).replace("\"t\"", "\"pool-7\"");
    let profile = decode_all(None, &pools).remove(0).map(|profile| (lines(&profile), profile.value()));
    assert!(profile.is_err(), "no period: {profile:?}");
}

#[test]
fn weights_without_a_unit_are_counts() {
    let file = sampled("none", &[(json!([[0], [0, 1], [2]]), json!([3, 40.0, 0]))]);
    assert_eq!(lines(&decode(&file).unwrap()), ["a 3", "a;b 40"]);
    let fraction = sampled("none", &[(json!([[0]]), json!([1.5]))]);
    let fault = decode(&fraction).unwrap_err();
    assert_eq!(fault.reason, Reason::UnitMismatch);
    assert!(fault.detail.contains("profile 1 \"t\": a weight of 1.5"), "{fault:?}");
}

/// What is not known to be one sample an entry is refused, unless the labels say that it is.
#[test]
fn times_that_are_no_period_are_refused() {
    let uneven = sampled("milliseconds", &[(json!([[0], [1]]), json!([10, 10])), (json!([[2]]), json!([130]))]);
    let single = sampled("seconds", &[(json!([[0]]), json!([30]))]);
    for (file, samples) in [(&uneven, 3), (&single, 1)] {
        let fault = decode(file).unwrap_err();
        assert_eq!(fault.reason, Reason::UnknownPeriod);
        assert!(fault.detail.contains("unit count"), "{fault:?}");
        let counted = decode_all(Some(Unit::Count), file).remove(0).unwrap();
        assert_eq!(counted.total(), samples);
    }
    let printed = sampled("seconds", &[(json!([[0], [1]]), json!([0.1, 0.100_000_001]))]);
    assert_eq!(decode(&printed).unwrap().total(), 2);
}

#[test]
fn other_measures_are_refused() {
    let bytes = sampled("bytes", &[(json!([[0]]), json!([512]))]);
    let timed = EVENTED.replace("\"none\"", "\"milliseconds\"");
    let mut both: Value = serde_json::from_str(SPEEDSCOPE).unwrap();
    both["profiles"][1]["unit"] = json!("none");
    for (file, reason) in
        [(bytes, Reason::UnitMismatch), (timed, Reason::UnknownPeriod), (both.to_string(), Reason::UnitMismatch)]
    {
        assert_eq!(decode(&file).unwrap_err().reason, reason, "{file}");
    }
    let counts = sampled("none", &[(json!([[0]]), json!([512]))]);
    assert_eq!(decode_all(Some(Unit::Bytes), &counts)[0].as_ref().unwrap_err().reason, Reason::UnitMismatch);
}

#[test]
fn a_broken_profile_spoils_no_other() {
    let good = (json!([[0], [1]]), json!([2, 3]));
    let beyond = (json!([[0], [9]]), json!([2, 3]));
    let short = (json!([[0], [1]]), json!([2]));
    let negative = (json!([[0]]), json!([-1]));
    let parts = decode_all(None, &sampled("none", &[beyond.clone(), good, short, negative]));
    let found: Vec<Result<u64, Reason>> =
        parts.iter().map(|part| part.as_ref().map(Profile::total).map_err(|fault| fault.reason)).collect();
    assert_eq!(found, [Ok(5), Err(Reason::IndexOutOfRange), Err(Reason::Malformed), Err(Reason::NegativeValue)]);
    for fault in parts.iter().filter_map(|part| part.as_ref().err()) {
        assert_eq!((fault.profile_type, fault.at), (Some(ProfileType::Wall), Some(window().midpoint())));
    }
    let alone = decode_all(None, &sampled("none", &[beyond]));
    assert_eq!(alone.len(), 1);
    assert_eq!(alone[0].as_ref().unwrap_err().reason, Reason::IndexOutOfRange);
}

#[test]
fn events_that_do_not_fit_together_are_malformed() {
    let change = |from: &str, to: &str| decode(&EVENTED.replace(from, to)).unwrap_err().reason;
    assert_eq!(change("\"at\": 9", "\"at\": 1"), Reason::Malformed);
    assert_eq!(change("\"C\", \"frame\": 1", "\"C\", \"frame\": 0"), Reason::Malformed);
    assert_eq!(change("\"C\", \"frame\": 0, \"at\": 12", "\"O\", \"frame\": 0, \"at\": 12"), Reason::Malformed);
    assert_eq!(change("\"O\", \"frame\": 1", "\"O\", \"frame\": 7"), Reason::IndexOutOfRange);
    assert_eq!(change("\"at\": 9", "\"at\": 9.5"), Reason::UnitMismatch);
}

#[test]
fn every_cut_is_truncated() {
    for end in 1..SPEEDSCOPE.len() {
        assert_eq!(decode(&SPEEDSCOPE[..end]).unwrap_err().reason, Reason::Truncated, "cut at {end}");
    }
}

proptest! {
    /// Counts in a sampled profile and between events are the same samples.
    #[test]
    fn oracle_evented_equals_sampled(entries in vec((vec(0..3u32, 1..6), 1..1000u32), 1..12)) {
        let samples: Vec<&Vec<u32>> = entries.iter().map(|(frames, _)| frames).collect();
        let weights: Vec<u32> = entries.iter().map(|(_, weight)| *weight).collect();
        let file = sampled("none", &[(json!(samples), json!(weights))]);
        let mut events = Vec::new();
        let mut at = 0;
        for (frames, weight) in &entries {
            events.extend(frames.iter().map(|frame| json!({"type": "O", "frame": frame, "at": at})));
            at += weight;
            events.extend(frames.iter().rev().map(|frame| json!({"type": "C", "frame": frame, "at": at})));
        }
        let mut evented: Value = serde_json::from_str(&file).unwrap();
        evented["profiles"] = json!([{"type": "evented", "name": "t", "unit": "none", "startValue": 0, "endValue": at, "events": events}]);
        let (sampled, evented) = (decode(&file).unwrap(), decode(&evented.to_string()).unwrap());
        prop_assert_eq!(lines(&sampled), lines(&evented));
        prop_assert_eq!(sampled.total(), u64::from(at));
    }
}
