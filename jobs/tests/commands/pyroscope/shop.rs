//! What pods did, as they send it to Pyroscope: known counts, so that what is pulled can be compared function by function.

use std::collections::BTreeMap;

use fleetdiff_formats::pprof::proto::{Function, Line, Location, Profile, Sample, ValueType};
use prost::Message;
use serde_json::{Value, json};

use super::recorded::base64;

/// How far apart profiles of the processor are, and others.
const CPU_EVERY: u64 = 15_000_000_000;
const OTHERS_EVERY: u64 = 60_000_000_000;
/// How long all of it takes: from before what is pulled to behind it.
const LENGTH: u64 = 240_000_000_000;
/// Leaf first.
const STACKS: [&[&str]; 4] =
    [&["main.price", "main.serve"], &["main.serve"], &["main.encode", "main.serve"], &["main.price", "main.report"]];

/// A pod of the fleet.
#[derive(Clone, Copy)]
pub struct Pod {
    pub name: &'static str,
    pub build: &'static str,
    /// How much later than on the second its profiles are, in nanoseconds.
    offset: u64,
    /// Which of the columns of the processor it sends.
    columns: &'static [(&'static str, &'static str)],
}

const BOTH: &[(&str, &str)] = &[("samples", "count"), ("cpu", "nanoseconds")];
const TIME: &[(&str, &str)] = &[("cpu", "nanoseconds")];

pub const PODS: [Pod; 4] = [
    // NB: its profiles are at whole seconds, some of them where a slice begins and another ends.
    Pod { name: "shop-0", build: "v41", offset: 0, columns: BOTH },
    // NB: a little more than the millisecond before it, to which servers round.
    Pod { name: "shop-1", build: "v41", offset: 14_998_999_999, columns: BOTH },
    Pod { name: "shop-2", build: "v42", offset: 3_000_000_001, columns: BOTH },
    Pod { name: "shop-3", build: "v42", offset: 0, columns: BOTH },
];

/// Pods of another service, which send times alone, as agents of eBPF do.
pub const TIMES: [Pod; 2] = [
    Pod { name: "cart-0", build: "v7", offset: 1_000_000_000, columns: TIME },
    Pod { name: "cart-1", build: "v8", offset: 2_000_000_000, columns: TIME },
];

/// Stacks, leaf first, with what each column holds of them.
pub type Values = BTreeMap<Vec<String>, Vec<i64>>;

impl Pod {
    fn seed(&self) -> u64 {
        self.name.bytes().map(u64::from).sum()
    }

    /// What it counted in its nth profile of the processor.
    fn samples(&self, nth: u64) -> Values {
        let each = if self.build == "v42" { 3 } else { 2 };
        let count = |place: u64| match place {
            0 => each * (20 + (self.seed() + nth) % 5),
            2 => (self.seed() + nth) % 3,
            _ => 10 + (self.seed() * nth + place) % 7,
        };
        let values = |count: u64| {
            let count = i64::try_from(count).unwrap();
            self.columns.iter().map(|(name, _)| if *name == "cpu" { count * 10_000_000 } else { count }).collect()
        };
        STACKS.iter().zip(0..).map(|(stack, place)| (owned(stack), values(count(place)))).collect()
    }

    /// The times at which it began profiles.
    fn times(&self, start: u64, every: u64) -> impl Iterator<Item = (u64, u64)> {
        let offset = self.offset;
        (0..LENGTH / every).map(move |nth| (nth, start + nth * every + offset))
    }

    /// What it did in the processor from one time to another, the end not included.
    pub fn cpu(&self, start: u64, from: u64, until: u64) -> Values {
        let within = self.times(start, CPU_EVERY).filter(|(_, at)| (from..until).contains(at));
        sum(within.map(|(nth, _)| self.samples(nth)))
    }

    /// The same of waits for locks.
    pub fn mutex(&self, start: u64, from: u64, until: u64) -> Values {
        let within = self.times(start, OTHERS_EVERY).filter(|(_, at)| (from..until).contains(at));
        sum(within.map(|(nth, _)| waits(nth)))
    }

    /// The same of allocations.
    pub fn heap(&self, start: u64, from: u64, until: u64) -> Values {
        let within = self.times(start, OTHERS_EVERY).filter(|(_, at)| (from..until).contains(at));
        sum(within.map(|(nth, _)| allocations(nth)))
    }

    /// All that it sends, for `/push.v1.PusherService/Push`.
    pub fn pushed(&self, service: &str, start: u64) -> Value {
        let cpu = self.times(start, CPU_EVERY).map(|(nth, at)| file(self.columns, at, &self.samples(nth)));
        let others = |columns, of: fn(u64) -> Values| {
            let times = self.times(start, OTHERS_EVERY);
            times.map(|(nth, at)| file(columns, at, &of(nth))).collect::<Vec<_>>()
        };
        let (mutex, heap) = (others(CONTENDED, waits), others(ALLOCATED, allocations));
        let all = [("process_cpu", cpu.collect()), ("mutex", mutex), ("memory", heap)];
        let series = |(kind, files): (&str, Vec<Vec<u8>>)| {
            files.iter().map(|file| self.series(service, kind, file)).collect::<Vec<_>>()
        };
        json!({"series": all.into_iter().flat_map(series).collect::<Vec<_>>()})
    }

    /// A profile of the processor of one moment, which it sends alone.
    pub fn pushed_now(&self, service: &str, nth: u64, at: u64) -> Value {
        json!({"series": [self.series(service, "process_cpu", &file(self.columns, at, &self.samples(nth)))]})
    }

    /// The sum of such profiles.
    pub fn all(&self, nth: std::ops::Range<u64>) -> Values {
        sum(nth.map(|nth| self.samples(nth)))
    }

    /// NB: one file a series, since a server of 1.7 that is sent several with `__delta__` fails.
    fn series(&self, service: &str, kind: &str, file: &[u8]) -> Value {
        let labels = [
            ("__name__", kind),
            // Each is the difference from the one before already, as those of the SDK for Go are.
            ("__delta__", "false"),
            ("service_name", service),
            ("pod", self.name),
            ("version", self.build),
            ("region", "eu-west-1"),
        ];
        let labels: Vec<Value> = labels.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        json!({"labels": labels, "samples": [{"rawProfile": base64(file)}]})
    }
}

const CONTENDED: &[(&str, &str)] = &[("contentions", "count"), ("delay", "nanoseconds")];
const ALLOCATED: &[(&str, &str)] = &[("alloc_objects", "count"), ("alloc_space", "bytes")];

fn owned(stack: &[&str]) -> Vec<String> {
    stack.iter().map(|name| (*name).to_owned()).collect()
}

fn waits(nth: u64) -> Values {
    let contended = i64::try_from(4 + nth).unwrap();
    BTreeMap::from([
        (owned(&["sync.(*Mutex).Unlock", "main.serve"]), vec![contended, contended * 1_500]),
        (owned(&["sync.(*Mutex).Unlock", "main.report"]), vec![2, 77]),
    ])
}

/// Of so many bytes each that the allocator draws every one.
fn allocations(nth: u64) -> Values {
    let objects = i64::try_from(3 + nth).unwrap();
    BTreeMap::from([
        (owned(&["main.price", "main.serve"]), vec![objects, objects * 20_000_000]),
        (owned(&["main.encode", "main.serve"]), vec![1, 16_000_000]),
    ])
}

fn sum(profiles: impl Iterator<Item = Values>) -> Values {
    let mut all = Values::new();
    for (stack, values) in profiles.flatten() {
        let sums = all.entry(stack).or_insert_with(|| vec![0; values.len()]);
        sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
    }
    // As nobody keeps it.
    all.retain(|_, values| values.iter().any(|value| *value != 0));
    all
}

/// A profile as Go writes it.
fn file(columns: &[(&str, &str)], at: u64, values: &Values) -> Vec<u8> {
    let mut strings = vec![String::new()];
    let mut text = |text: &str| {
        let found = strings.iter().position(|known| known == text);
        let place = found.unwrap_or_else(|| {
            strings.push(text.to_owned());
            strings.len() - 1
        });
        i64::try_from(place).unwrap()
    };
    let mut file = Profile { time_nanos: i64::try_from(at).unwrap(), ..Profile::default() };
    file.sample_type = columns.iter().map(|(name, unit)| ValueType { r#type: text(name), unit: text(unit) }).collect();
    file.duration_nanos = i64::try_from(CPU_EVERY).unwrap();
    let (kind, unit, period) = match columns {
        [("alloc_objects", _), ..] => ("space", "bytes", 512 << 10),
        [("contentions", _), ..] => ("contentions", "count", 1),
        _ => ("cpu", "nanoseconds", 10_000_000),
    };
    file.period_type = Some(ValueType { r#type: text(kind), unit: text(unit) });
    file.period = period;
    for (stack, values) in values {
        let mut location_id = Vec::new();
        for name in stack {
            let name = text(name);
            let known = file.function.iter().position(|function| function.name == name);
            let id = u64::try_from(known.unwrap_or(file.function.len())).unwrap() + 1;
            if known.is_none() {
                file.function.push(Function { id, name, system_name: name, ..Function::default() });
                let line = vec![Line { function_id: id, line: 7, ..Line::default() }];
                file.location.push(Location { id, line, ..Location::default() });
            }
            location_id.push(id);
        }
        file.sample.push(Sample { location_id, value: values.clone(), label: Vec::new() });
    }
    file.string_table = strings;
    file.encode_to_vec()
}

/// What a file holds, by stack.
pub fn read(bytes: &[u8]) -> (Vec<String>, Values) {
    let plain = fleetdiff_formats::compression::decompress(bytes, 1 << 24).unwrap();
    let file = Profile::decode(&*plain).unwrap();
    let text = |index: i64| file.string_table[usize::try_from(index).unwrap()].clone();
    let columns = file.sample_type.iter().map(|column| format!("{}/{}", text(column.r#type), text(column.unit)));
    let name = |id: &u64| {
        let location = file.location.iter().find(|location| location.id == *id).unwrap();
        let function = file.function.iter().find(|function| function.id == location.line[0].function_id).unwrap();
        text(function.name)
    };
    let mut values = Values::new();
    for sample in &file.sample {
        let stack: Vec<String> = sample.location_id.iter().map(name).collect();
        assert_eq!(values.insert(stack, sample.value.clone()), None, "each stack once");
    }
    (columns.collect(), values)
}
