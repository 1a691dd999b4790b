//! The file for speedscope: its shape, and each of its profiles through our own decoder.

use fleetdiff_diff::export::speedscope::speedscope;
use fleetdiff_formats::{Format, Labels, Options};
use serde_json::{Value, json};

use super::examples::{by_name, merged, sides};

fn written() -> Value {
    serde_json::from_str(&speedscope(&sides(), "two builds").unwrap()).unwrap()
}

#[test]
fn two_profiles_share_their_frames() {
    let file = written();
    assert_eq!(file["$schema"], "https://www.speedscope.app/file-format-schema.json");
    assert_eq!([&file["name"], &file["activeProfileIndex"]], [&json!("two builds"), &json!(0)]);
    let frames: Vec<&str> =
        file["shared"]["frames"].as_array().unwrap().iter().map(|frame| frame["name"].as_str().unwrap()).collect();
    assert_eq!(frames, ["_unsymbolised", "main", "legacy", "poll", "serve", "encode", "parse"]);
    let base = json!({
        "type": "sampled", "name": "base", "unit": "none", "startValue": 0, "endValue": 25_620,
        "samples": [[0], [1, 2], [1, 3], [1, 4, 5], [1, 4, 6]], "weights": [120, 1_500, 11_550, 3_000, 9_450],
    });
    let head = json!({
        "type": "sampled", "name": "head", "unit": "none", "startValue": 0, "endValue": 27_120,
        "samples": [[0], [1, 3], [1, 4, 5], [1, 4, 6]], "weights": [120, 11_550, 6_000, 9_450],
    });
    assert_eq!(file["profiles"], json!([base, head]));
}

/// Each profile in a file of its own holds the stacks of its side.
#[test]
fn oracle_the_decoder_reads_each_side() {
    let (file, example) = (written(), sides());
    for (place, side) in [&example.base, &example.head].into_iter().enumerate() {
        let mut single = file.clone();
        single["profiles"] = json!([file["profiles"][place]]);
        let labels = Labels::of(&side[0].profile);
        let decoded =
            Format::Speedscope.decoder(&Options::default()).decode(single.to_string().as_bytes(), &Ok(labels));
        let [Ok(profile)] = decoded.as_slice() else { panic!("{decoded:?}") };
        assert_eq!(by_name(profile), merged(side));
        assert!(profile.total() > 17_000);
    }
}
