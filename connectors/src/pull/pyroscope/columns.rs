//! Which of Pyroscope's types become the columns of a profile.
//!
//! A type is `NAME:COLUMN:UNIT:PERIOD:PERIOD-UNIT`, as `process_cpu:cpu:nanoseconds:cpu:nanoseconds`: one column of the pprof files that were sent.

use std::collections::BTreeSet;

use super::super::Pull;

/// What a type is of, and its columns: the first that counts samples, then what each of these stands for.
struct Columns {
    name: &'static str,
    counts: &'static str,
    values: &'static str,
    /// Whether samples can be found in the values alone.
    or_values: bool,
}

fn columns(what: Pull) -> Columns {
    let of = |name, counts, values| Columns { name, counts, values, or_values: false };
    match what {
        Pull::Cpu => Columns { or_values: true, ..of("process_cpu", "samples:count", "cpu:nanoseconds") },
        Pull::Heap => of("memory", "alloc_objects:count", "alloc_space:bytes"),
        Pull::Mutex => of("mutex", "contentions:count", "delay:nanoseconds"),
        Pull::Block => of("block", "contentions:count", "delay:nanoseconds"),
    }
}

/// The types to ask for, of those that are stored; none if they do not suffice.
pub(super) fn chosen(what: Pull, stored: &BTreeSet<String>) -> Vec<String> {
    let Columns { name, counts, values, or_values } = columns(what);
    let find = |column: &str| {
        let begins = format!("{name}:{column}:");
        stored.iter().find(|id| id.starts_with(&begins)).cloned()
    };
    match (find(counts), find(values)) {
        (None, Some(values)) if or_values => vec![values],
        (None, _) => Vec::new(),
        // Samples of the allocator are found by both.
        (Some(_), None) if what == Pull::Heap => Vec::new(),
        (Some(counts), values) => std::iter::once(counts).chain(values).collect(),
    }
}

/// What to write for the period, where it is not what the server says. NB: Pyroscope writes 1 s for the period of every profile of the
/// processor, whatever it was, and 512 KiB, Go's default, for every profile of memory.
pub(super) fn period(what: Pull) -> Option<i64> {
    (what == Pull::Cpu).then_some(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_come_first_and_times_alone_suffice_for_the_processor() {
        let stored = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<BTreeSet<_>>();
        let (time, samples) =
            ("process_cpu:cpu:nanoseconds:cpu:nanoseconds", "process_cpu:samples:count:cpu:nanoseconds");
        assert_eq!(
            chosen(Pull::Cpu, &stored(&[time, samples, "wall:wall:nanoseconds:wall:nanoseconds"])),
            [samples, time]
        );
        assert_eq!(chosen(Pull::Cpu, &stored(&[time])), [time]);
        let delay = "mutex:delay:nanoseconds:contentions:count";
        assert!(chosen(Pull::Mutex, &stored(&[delay])).is_empty());
        let (objects, space) = ("memory:alloc_objects:count:space:bytes", "memory:alloc_space:bytes:space:bytes");
        assert!(chosen(Pull::Heap, &stored(&[objects])).is_empty(), "bytes say how many samples they were");
        assert_eq!(chosen(Pull::Heap, &stored(&[space, objects])), [objects, space]);
    }
}
