use fleetdiff_pipeline::testing::fleet::Fleet;
use fleetdiff_schemas::source::{Polled, Source};
use std::time::Instant;
fn main() {
    for (name, b) in [("demo", Fleet::demo(1)), ("cells", Fleet::null_cells(1)), ("labels", Fleet::null_request_labels(1)), ("hour", Fleet::null_hour_edge(1)), ("rollout", Fleet::rollout(1)), ("demo stacks", Fleet::demo(1).stacks())] {
        if std::env::args().nth(1).is_some_and(|a| a != name) { continue; }
        let t0 = Instant::now();
        let fleet = b.build();
        let t1 = Instant::now();
        let mut s = fleet.source(0, 1);
        let (mut samples, mut profiles, mut records) = (0u64, 0u64, 0u64);
        loop {
            match s.poll().unwrap() {
                Polled::Record(r) => { records += 1; for p in &r.parts { let p = p.as_ref().unwrap(); samples += p.total(); profiles += 1; } }
                Polled::End => break,
                _ => {}
            }
        }
        println!("{name}: pods {} expected profiles {} build {:?} records {records} profiles {profiles} samples {samples} in {:?} = {:.2} us/profile", fleet.pods(), fleet.profiles(), t1 - t0, t1.elapsed(), t1.elapsed().as_secs_f64() * 1e6 / profiles as f64);
    }
}
