//! Profiles of passing time, most of which is idle.

use std::collections::BTreeSet;
use std::sync::Arc;

use fleetdiff_schemas::config::Config;
use fleetdiff_schemas::identity::stable_hash;
use fleetdiff_schemas::profile::{Decoded, Profile, ProfileType, Samples, Stack, Temporality};
use fleetdiff_schemas::rows::{LedgerRow, Tables};
use fleetdiff_schemas::time::Nanos;

use super::{agreed, builder, config, delivered, run_in_memory};

/// Functions of threads that wait for work; the last two are never idle alone.
const WAITING: [&str; 5] = ["ep_poll_[k] @ io-1", "runtime.findRunnable", "my::own::wait", "loop @ io-1", "futex_wait"];

/// Stacks of which one of the default lists says that they are idle, so that 19 of 20 samples are.
fn idle_stacks(profile: &Profile) -> Vec<Stack> {
    let samples = 19 * profile.total() + stable_hash(profile.identity.pod.as_str().as_bytes()) % 50;
    let of = |frames: &[u32], count| Stack { frames: frames.to_vec(), count, cohort: None, value: 0 };
    vec![of(&[3, 0], samples / 2), of(&[1, 4], samples - samples / 2)]
}

fn profiles(partitions: &mut [Vec<Decoded>]) -> impl Iterator<Item = &mut Profile> {
    partitions.iter_mut().flatten().flat_map(|record| &mut record.parts).flatten()
}

/// Makes profiles of passing time of a fleet's; `more` stacks are added to each. Every seventh has only those.
fn waiting(partitions: &[Vec<Decoded>], kind: ProfileType, more: fn(&Profile) -> Vec<Stack>) -> Vec<Vec<Decoded>> {
    let mut made = partitions.to_vec();
    for profile in profiles(&mut made) {
        let more = more(profile);
        profile.profile_type = kind;
        // The fleet has a listener and an event loop of its own, which are not idle by these names.
        let own = profile.names.iter().map(|name| format!("own_{name}").into());
        profile.names = WAITING.into_iter().map(Arc::from).chain(own).collect();
        let Samples::Stacks(stacks) = &mut profile.samples else { continue };
        stacks.iter_mut().flat_map(|stack| &mut stack.frames).for_each(|frame| *frame += 5);
        if (profile.window.start.0 / 1_000_000_000) % 7 == 0 {
            stacks.clear();
        }
        stacks.extend(more);
    }
    made
}

fn sum(tables: &Tables, of: fn(&LedgerRow) -> i64) -> i64 {
    tables.ledger.iter().map(of).sum()
}

/// Every row but those of the ledger, with every bit.
fn rows(tables: &Tables) -> Vec<String> {
    let mut rows: Vec<String> = tables.cells.iter().map(|row| format!("{row:?}")).collect();
    rows.extend(tables.flags.iter().map(|row| format!("{row:?}")));
    rows.extend(tables.evidence.iter().map(|row| format!("{row:?}")));
    rows.extend(tables.comparisons.iter().map(|row| format!("{row:?}")));
    rows.extend(tables.incidents.iter().map(|row| format!("{row:?}")));
    rows
}

fn equal(left: &Tables, right: &Tables) -> bool {
    rows(left) == rows(right)
}

/// The law: rows are those of a fleet whose profilers had never seen the idle stacks.
#[test]
fn oracle_rows_are_those_of_the_fleet_without_its_idle_stacks() {
    for (seed, kind) in [(701, ProfileType::OffCpu), (702, ProfileType::Wall)] {
        let partitions = delivered(builder(seed).stacks()).partitions(3);
        let run = |config: &Config, partitions: &[Vec<Decoded>]| run_in_memory(config, partitions.to_vec(), 2).unwrap();
        let with = waiting(&partitions, kind, idle_stacks);
        let (got, busy) = (run(&config(), &with), run(&config(), &waiting(&partitions, kind, |_| Vec::new())));
        assert!(equal(&got, &busy), "seed {seed}: rows differ");
        assert!(got.cells.len() > 1000 && !got.flags.is_empty(), "seed {seed}: too little to compare");

        assert!(got.ledger.iter().all(LedgerRow::balances), "seed {seed}");
        assert_eq!(sum(&busy, |row| row.samples_idle), 0, "seed {seed}");
        assert_eq!(sum(&got, |row| row.samples_counted), sum(&busy, |row| row.samples_counted), "seed {seed}");
        assert!(sum(&got, |row| row.samples_idle) > 19 * sum(&got, |row| row.samples_counted), "seed {seed}");
        // What is dropped is dropped with its idle samples.
        let reasons: [fn(&LedgerRow) -> i64; 2] = [|row| row.samples_warm_up, |row| row.samples_duplicate];
        for dropped in reasons {
            let (idle_too, alone) = (sum(&got, dropped), sum(&busy, dropped));
            assert!(alone > 0 && idle_too > 19 * alone, "seed {seed}: {idle_too} {alone}");
        }

        let off = Config { idle_defaults: false, ..config() };
        let counted = run(&off, &with);
        assert!(!equal(&counted, &busy) && sum(&counted, |row| row.samples_idle) == 0, "seed {seed}");
        let own = Config { idle: vec!["ep_*ll @ io-*".into(), "runtime.findRunnable".into()], ..off };
        assert!(equal(&run(&own, &with), &busy), "seed {seed}: rows differ with entries of a configuration");
        let kept = Config { idle: vec!["!loop".into(), "!futex_wait".into()], ..config() };
        assert_eq!(rows(&run(&kept, &with)), rows(&counted), "seed {seed}");
        let cpu = run(&config(), &waiting(&partitions, ProfileType::Cpu, idle_stacks));
        assert_eq!(sum(&cpu, |row| row.samples_idle), 0, "seed {seed}: the processor is never idle");
    }
}

#[test]
fn oracle_idle_stacks() {
    let (mut idle, mut counted, mut temporalities) = (0, 0, BTreeSet::new());
    for seed in 711..=716 {
        let plain = builder(seed).regions(["east"]);
        let plain = match seed % 3 {
            0 => plain.cumulative(),
            1 => plain.cohorts_by_request().stacks(),
            _ => plain.stacks(),
        };
        let kind = if seed % 2 == 0 { ProfileType::OffCpu } else { ProfileType::Wall };
        let config = Config {
            idle_defaults: seed != 715,
            idle: if seed > 713 {
                vec!["my::*::wait".into(), "!loop @ io*".into(), "!futex_wait @ io*".into()]
            } else {
                Vec::new()
            },
            drain: Nanos::from_seconds(if seed == 713 { 20 } else { 0 }),
            ..config()
        };
        let mut partitions = waiting(&delivered(plain).partitions(3), kind, idle_stacks);
        for profile in profiles(&mut partitions) {
            if let Samples::Stacks(stacks) = &mut profile.samples {
                let count = 1 + profile.window.start.0.unsigned_abs() % 40;
                stacks.push(Stack { frames: vec![3, 2], count, cohort: None, value: 0 });
            }
            temporalities.insert(profile.temporality);
        }
        let got = agreed(seed, &config, &partitions);
        assert!(got.ledger.iter().all(LedgerRow::balances), "seed {seed}");
        idle += sum(&got, |row| row.samples_idle);
        counted += sum(&got, |row| row.samples_counted);
    }
    println!("seeds 711 to 716: {idle} samples idle, {counted} counted");
    assert!(idle > 100_000 && counted > 100_000, "{idle} idle, {counted} counted");
    assert!(temporalities.contains(&Temporality::Delta) && temporalities.contains(&Temporality::Cumulative));
}
