//! The limit of this machine: additions at random places of arrays of the size of the counters, and nothing else.
//!
//! A thread takes its columns (one byte per function) in turn and adds one at as many places of each as a pod has
//! samples in a hop. The places are drawn beforehand, popular functions more often, as the workload does. No decoding,
//! no expiry, no carry, no names, no exchange, no close of a hop. With the roof, figures of two machines, or of one
//! machine on two days, can be related.

use std::hint::black_box;
use std::time::Instant;

use crate::spread::Spread;
use crate::workload::{Draws, Size, zipf};

/// How often every column is processed.
const ROUNDS: usize = 20;
/// Places that are drawn beforehand; a prime, so that columns do not repeat each other.
const DRAWN: usize = 999_983;

/// Additions per second, in millions, of all `threads` together over all `columns`; of `repeats` repeats.
///
/// # Panics
/// If a thread dies.
#[must_use]
pub fn scatter_add(size: Size, columns: usize, threads: usize, repeats: usize) -> Spread {
    let one = |_| {
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads)
                .map(|thread| scope.spawn(move || add_at_random(size, columns / threads, thread)))
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or(f64::NAN)).sum::<f64>()
        })
    };
    Spread::of((0..repeats).map(one).collect())
}

/// Millions of additions per second of one thread.
fn add_at_random(size: Size, columns: usize, thread: usize) -> f64 {
    let mut draws = Draws::seeded(u64::try_from(thread).unwrap_or(0));
    let scale = f64::from(size.functions + 1).ln();
    let functions = usize::try_from(size.functions).unwrap_or(1);
    let samples = usize::try_from(size.samples).unwrap_or(1);
    let place =
        |draws: &mut Draws| usize::try_from(zipf(draws.unit(), scale)).map_or(0, |rank| rank.min(functions - 1));
    let places: Vec<usize> = (0..DRAWN).map(|_| place(&mut draws)).collect();
    let mut counters = vec![vec![black_box(1u8); functions]; columns];
    let begun = Instant::now();
    let mut at = 0;
    for _ in 0..ROUNDS {
        for column in &mut counters {
            if at + samples > places.len() {
                at = 0;
            }
            for &place in &places[at..at + samples] {
                column[place] = column[place].wrapping_add(1);
            }
            at += samples;
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    black_box(&counters);
    let adds = f64::from(size.samples) * f64::from(u32::try_from(ROUNDS * columns).unwrap_or(0));
    adds / seconds / 1e6
}
