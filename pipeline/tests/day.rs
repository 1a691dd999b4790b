//! A service that runs for a day holds no more memory in its second half than after the first hours: what is not seen any
//! more is forgotten.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::as_conversions, reason = "sizes in memory are below 2^53")]

#[path = "support/filed.rs"]
mod filed;

use std::alloc::System;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use cap::Cap;
use fleetdiff_pipeline::run::in_memory::{InMemory, each_record};
use fleetdiff_pipeline::run::{SourceFactory, run};
use fleetdiff_schemas::config::{Config, Limits};
use fleetdiff_schemas::rows::Tables;
use fleetdiff_schemas::sink::{Sink, SinkError};
use fleetdiff_schemas::source::{Source, SourceError};
use fleetdiff_schemas::time::{Hop, HopClock, Nanos};
use fleetdiff_simulation::day::Day;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Bytes in use at the close of each hop, by hour.
type Hours = Arc<Mutex<BTreeMap<u64, Vec<usize>>>>;

struct Meter {
    hours: Hours,
    first: Option<Hop>,
    per_hour: u64,
    clock: HopClock,
}

impl Sink for Meter {
    fn take(&mut self, hop: Hop, tables: Tables) -> Result<(), SinkError> {
        filed::assert_filed(self.clock, hop, &tables);
        let first = *self.first.get_or_insert(hop);
        let hour = hop.0.saturating_sub(first.0) / self.per_hour;
        self.hours.lock().unwrap().entry(hour).or_default().push(ALLOCATOR.allocated());
        Ok(())
    }
}

/// The mean of the bytes in use over some hours, from the first to the last.
fn mean(hours: &BTreeMap<u64, Vec<usize>>, from: u64, to: u64) -> f64 {
    let bytes: Vec<usize> = hours.range(from..to).flat_map(|(_, bytes)| bytes).copied().collect();
    bytes.iter().map(|&bytes| bytes as f64).sum::<f64>() / bytes.len() as f64
}

/// Bytes in use by hour while a source is read by two workers.
fn metered(config: &Config, sources: Arc<SourceFactory>) -> BTreeMap<u64, Vec<usize>> {
    let hours = Hours::default();
    let clock = config.clock();
    let per_hour = clock.hops_in(Nanos::from_seconds(3_600));
    let meter = Meter { hours: Arc::clone(&hours), first: None, per_hour, clock };
    run(config, 2, sources, Box::new(meter)).unwrap();
    let hours = hours.lock().unwrap();
    hours.clone()
}

/// 80 pods with new names and 500 functions of which 1 % are new, every hour. The later hours hold no more than the earlier ones.
/// The twin: if nothing is forgotten, they do.
#[test]
fn memory_of_a_day() {
    let of_retention = |hours: i64| {
        let limits = Limits { retention: Nanos::from_seconds(hours * 3_600), ..Limits::default() };
        // What is remembered is the same however seldom it is looked at.
        let (evaluate_every, report_every) = (Nanos::from_seconds(600), Nanos::from_seconds(3_600));
        let config = Config { limits, evaluate_every, report_every, ..Config::default() };
        let sources: Arc<SourceFactory> = Arc::new(|worker, workers| -> Result<Vec<Box<dyn Source>>, SourceError> {
            let [share, of] = [worker, workers].map(|count| u32::try_from(count).unwrap());
            let number = i32::try_from(worker).unwrap();
            Ok(vec![Box::new(InMemory::new([(number, each_record(Day::share(share, of)))]))])
        });
        let hours = metered(&config, sources);
        for (hour, bytes) in &hours {
            println!("hour {}: {:.1} MB", hour + 1, mean(&hours, *hour, hour + 1) / 1e6);
            assert!(!bytes.is_empty());
        }
        mean(&hours, 12, 24) / mean(&hours, 6, 12)
    };
    let (growth, twin) = (of_retention(3), of_retention(100));
    println!("hours 13 to 24 hold {growth:.3} times what hours 7 to 12 hold; {twin:.3} times if nothing is forgotten");
    assert!(growth <= 1.05 && twin > 1.2, "{growth:.3} and {twin:.3}");
}
