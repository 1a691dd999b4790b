//! A profile decoded: the functions with most samples at their leaf, from a file in any format that fleetdiff reads.
//!
//! ```sh
//! cargo run --release -p fleetdiff-formats --example decode -- fleets/kv-snapshot/profiles/kv-08/cpu-000.pb.gz
//! ```

use std::error::Error;
use std::io::Write;
use std::sync::Arc;

use fleetdiff_formats::{Labels, Options, format_of};
use fleetdiff_schemas::fold::fold_stacks;
use fleetdiff_schemas::identity::Identity;
use fleetdiff_schemas::profile::{ProfileType, Samples, Temporality};
use fleetdiff_schemas::time::{Nanos, TimeRange};

/// What is known of the file beside its bytes; here, next to nothing.
fn labels() -> Labels {
    let identity = Identity {
        service: "example".into(),
        build: "v1".into(),
        region: "local".into(),
        cohort: "all".into(),
        hardware: "unknown".into(),
        node: None,
        pod: "pod-1".into(),
        process_start: None,
    };
    Labels {
        identity: Arc::new(identity),
        profile_type: ProfileType::Cpu,
        temporality: Temporality::Delta,
        window: Some(TimeRange { start: Nanos(0), end: Nanos::from_seconds(10) }),
        sent_at: None,
        requests: None,
        requests_window: None,
        unit: None,
        period: None,
        root_is_thread: false,
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let recorded = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fleets/kv-snapshot/profiles/kv-08/cpu-000.pb.gz");
    let file = std::env::args().nth(1).unwrap_or_else(|| recorded.to_owned());
    let bytes = std::fs::read(&file)?;
    let format = format_of(&file, &bytes);
    let mut out = std::io::stdout().lock();
    for part in format.decoder(&Options::default()).decode(&bytes, &Ok(labels())) {
        let profile = part.map_err(|rejection| format!("{}: {}", rejection.reason.name(), rejection.detail))?;
        let stacks = match &profile.samples {
            Samples::Stacks(stacks) => stacks.clone(),
            Samples::Folded { .. } => return Err("the profile has no stacks".into()),
        };
        let folded = fold_stacks(&profile.names, &stacks, &profile.identity.cohort);
        let mut functions: Vec<_> = folded.iter().flat_map(|cohort| &cohort.functions).collect();
        functions.sort_by_key(|function| std::cmp::Reverse(function.own));
        writeln!(out, "{} samples of {}", profile.total(), profile.profile_type.name())?;
        for function in functions.iter().take(10) {
            let name = &profile.names[usize::try_from(function.name)?];
            writeln!(out, "{:6} self {:6} total  {name}", function.own, function.total)?;
        }
        assert!(functions.iter().map(|function| function.own).sum::<u64>() <= profile.total());
    }
    Ok(())
}
