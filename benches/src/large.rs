//! A generated CPU profile of a large program, in which stacks, not names, are most of the profile.

use std::ops::Range;

use fleetdiff_formats::pprof::proto::{Function, Line, Location, Profile, Sample, ValueType};
use prost::Message;

const FUNCTIONS: u64 = 5_000;
const SAMPLES: usize = 100_000;

/// Frames of a stack of a program as most are.
pub const USUAL: Range<u64> = 8..56;
/// Frames of a stack of a program that calls itself, or whose framework has many layers.
pub const DEEP: Range<u64> = 200..500;

/// The bytes of a pprof profile of 100,000 samples over 5,000 locations, each of one function; the frames of a stack are as many as
/// drawn from `depths`, with few different functions near the root and any function from the twelfth frame on. Nearly all
/// stacks differ. There are no labels or mappings.
#[must_use]
pub fn profile(depths: Range<u64>) -> Vec<u8> {
    let mut strings: Vec<String> = ["", "samples", "count", "cpu", "nanoseconds"].map(str::to_owned).to_vec();
    strings.extend(
        (0..FUNCTIONS).map(|function| format!("service/part{}.Type{}.method{function}", function % 40, function % 700)),
    );
    let column = |kind, unit| ValueType { r#type: kind, unit };
    let mut message = Profile {
        sample_type: vec![column(1, 2), column(3, 4)],
        period_type: Some(column(3, 4)),
        period: 10_000_000,
        string_table: strings,
        ..Profile::default()
    };
    for (id, name) in (1..=FUNCTIONS).zip(5..) {
        message.function.push(Function { id, name, system_name: name, ..Function::default() });
        let line = vec![Line { function_id: id, line: 10, column: 0 }];
        message.location.push(Location { id, address: 0x40_0000 + id * 16, line, ..Location::default() });
    }
    let mut draw = Draw(1);
    for _ in 0..SAMPLES {
        let frames = depths.start + draw.below(depths.end - depths.start);
        let mut stack: Vec<u64> =
            (0..frames).map(|depth| 1 + draw.below((2 << depth.min(12)).min(FUNCTIONS))).collect();
        stack.reverse();
        let count = if draw.below(8) == 0 { 2 } else { 1 };
        message.sample.push(Sample { location_id: stack, value: vec![count, count * 10_000_000], label: Vec::new() });
    }
    message.encode_to_vec()
}

/// A linear congruential generator (Knuth's MMIX), of which the high bits are used.
struct Draw(u64);

impl Draw {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}
