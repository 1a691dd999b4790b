//! The pair of pprof files: what our decoder reads from them, and what the messages contain.

use fleetdiff_diff::compare::{Recording, Settings};
use fleetdiff_diff::export::NotExported;
use fleetdiff_diff::export::pprof::pprof;
use fleetdiff_diff::flame::Sides;
use fleetdiff_formats::compression::decompress;
use fleetdiff_formats::pprof::proto;
use fleetdiff_formats::{Format, Labels, Options};
use fleetdiff_schemas::profile::{Profile, ProfileType};
use prost::Message;

use super::examples::{by_name, export, found, merged, sides, weighed_sides};

fn pair(sides: &Sides<Vec<Recording>>) -> Sides<Vec<u8>> {
    let settings = Settings::default();
    pprof(sides, &export(&found(sides, &settings), &settings)).unwrap()
}

fn message(file: &[u8]) -> proto::Profile {
    proto::Profile::decode(&*decompress(file, 1 << 24).unwrap()).unwrap()
}

/// Type and unit of each column.
fn columns(message: &proto::Profile) -> Vec<String> {
    let text = |place: i64| message.string_table[usize::try_from(place).unwrap()].as_str();
    message.sample_type.iter().map(|column| format!("{}/{}", text(column.r#type), text(column.unit))).collect()
}

fn decoded(file: &[u8], like: &Profile) -> Profile {
    let mut parts = Format::Pprof.decoder(&Options::default()).decode(file, &Ok(Labels::of(like)));
    let place = parts.iter().position(|part| part.as_ref().unwrap().profile_type == like.profile_type).unwrap();
    parts.remove(place).unwrap()
}

#[test]
fn oracle_decoding_gives_the_merged_stacks_back() {
    for sides in [sides(), weighed_sides()] {
        let pair = pair(&sides);
        for (file, side) in [(&pair.base, &sides.base), (&pair.head, &sides.head)] {
            assert_eq!(by_name(&decoded(file, &side[0].profile)), merged(side));
        }
        assert_ne!(pair.base, pair.head);
    }
}

#[test]
fn both_files_have_the_same_columns_and_a_period_of_one_sample() {
    for (sides, expected, sum) in [
        (sides(), vec!["samples/count"], vec![25_620]),
        (weighed_sides(), vec!["samples/count", "cpu/nanoseconds"], vec![25_620, 25_620 * 500_250]),
    ] {
        let pair = pair(&sides);
        let (base, head) = (message(&pair.base), message(&pair.head));
        assert_eq!(columns(&base), expected);
        assert_eq!((columns(&head), head.period, head.period_type), (columns(&base), base.period, base.period_type));
        assert_eq!((base.period, base.period_type), (1, Some(base.sample_type[0])));
        assert_eq!(base.default_sample_type, base.sample_type.last().unwrap().r#type);
        let sums: Vec<i64> =
            (0..expected.len()).map(|column| base.sample.iter().map(|sample| sample.value[column]).sum()).collect();
        assert_eq!(sums, sum);
        assert!(base.sample.iter().all(|sample| sample.value.len() == expected.len()));
    }
}

/// Each type has the columns from which its counts are read back; viewers do not show a column with unknown values
/// first.
#[test]
fn every_type_is_read_back() {
    let expected = [
        (ProfileType::Wall, vec!["samples/count"]),
        (ProfileType::OffCpu, vec!["samples/count"]),
        (ProfileType::Mutex, vec!["contentions/count"]),
        (ProfileType::Block, vec!["contentions/count"]),
        (ProfileType::Heap, vec!["alloc_objects/count", "alloc_space/bytes"]),
        (ProfileType::LiveHeap, vec!["inuse_objects/count", "inuse_space/bytes"]),
    ];
    for (profile_type, expected) in expected {
        let mut sides = sides();
        sides.base.iter_mut().chain(&mut sides.head).for_each(|run| run.profile.profile_type = profile_type);
        let pair = pair(&sides);
        let file = message(&pair.base);
        assert_eq!(columns(&file), expected);
        assert_eq!(file.default_sample_type, file.sample_type[0].r#type, "{expected:?}");
        let mut like = sides.base[0].profile.clone();
        if profile_type.is_level() {
            like.temporality = fleetdiff_schemas::profile::Temporality::Gauge;
        }
        assert_eq!(by_name(&decoded(&pair.base, &like)), merged(&sides.base), "{expected:?}");
    }
}

#[test]
fn a_sum_beyond_the_format_is_an_error() {
    let mut sides = weighed_sides();
    let settings = Settings::default();
    let compared = found(&sides, &settings);
    let weights = &mut sides.head[0].weights.as_mut().unwrap().profile.samples;
    let fleetdiff_schemas::profile::Samples::Stacks(stacks) = weights else { panic!("folded") };
    stacks[0].count = u64::MAX - 1;
    let fault = pprof(&sides, &export(&compared, &settings)).unwrap_err();
    assert!(matches!(fault, NotExported::TooLarge { value } if value >= u64::MAX - 1), "{fault}");
}
