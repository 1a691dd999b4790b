//! Bad records of a partition in the columnar form: each a rejected row with partition and offset, with the rest
//! unchanged.

use fleetdiff_formats::{Decode, Format, Options};
use fleetdiff_pipeline::run::in_memory::run_in_memory;
use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::delta;
use fleetdiff_schemas::profile::{Decoded, Position, Profile, Stamped};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::time::Nanos;
use fleetdiff_simulation::fleet::Fleet;

fn fleet() -> Fleet {
    Fleet::seeded(5)
        .regions(["east"])
        .cohorts(["tv", "web"])
        .pods_per_cell(5, 8)
        .lasts(Nanos::from_seconds(400))
        .deploy_after(Nanos::from_seconds(100))
        .pods_per_record(4)
        .build()
}

/// Records as bytes, one partition.
fn records() -> Vec<Vec<u8>> {
    let profiles =
        |record: &Decoded| record.parts.iter().filter_map(|part| part.as_ref().ok()).cloned().collect::<Vec<Profile>>();
    fleet().partitions(1)[0].iter().map(|record| delta::encode(&profiles(record))).collect()
}

fn decoded(decoder: &mut Box<dyn Decode>, partition: i32, records: &[Vec<u8>]) -> Vec<Decoded> {
    let anonymous = Err(Rejection::new(Reason::MissingIdentity, "a columnar delta says itself whose it is"));
    let decode = |(offset, record): (i64, &Vec<u8>)| Decoded {
        position: Position { source: "profiles".into(), partition, offset, file: None },
        stamped: Stamped::No,
        parts: decoder.decode(record, &anonymous),
        points: Vec::new(),
    };
    (0..).zip(records).map(decode).collect()
}

#[test]
fn regression_bad_columnar_records_are_named_by_partition_and_offset() {
    let config = Config { warm_up: Nanos(0), report_every: Nanos::from_seconds(200), ..Config::default() };
    let good = records();
    let mut decoder = Format::Delta.decoder(&Options::default());
    let clean = run_in_memory(&config, vec![decoded(&mut decoder, 0, &good)], 2).unwrap();
    assert!(clean.cells.len() > 100 && clean.rejected.is_empty());

    let mut newer = good[40].clone();
    newer[4] = 99;
    let mut spoilt = good[..40].to_vec();
    spoilt.extend([
        newer,
        good[40][..good[40].len() / 2].to_vec(),
        b"no columnar delta".to_vec(),
        b"FLDD".to_vec(),
        Vec::new(),
    ]);
    spoilt.extend_from_slice(&good[40..]);
    let got = run_in_memory(&config, vec![decoded(&mut decoder, 0, &spoilt)], 2).unwrap();
    let rejected: Vec<_> =
        got.rejected.iter().map(|row| (row.position.partition, row.position.offset, row.rejection.reason)).collect();
    let expected = [
        (0, 40, Reason::UnsupportedVersion),
        (0, 41, Reason::Truncated),
        (0, 42, Reason::Malformed),
        (0, 43, Reason::Truncated),
        (0, 44, Reason::Truncated),
    ];
    assert_eq!(rejected, expected);
    assert!(got.rejected[0].rejection.detail.contains("version 99"), "{:?}", got.rejected[0]);
    assert!(
        got.cells == clean.cells && got.flags == clean.flags && got.comparisons == clean.comparisons,
        "the rest changed"
    );
    assert!(got.ledger.iter().all(|row| row.balances()));
}
