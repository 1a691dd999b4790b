//! Profiles of async-profiler, which names the engine that took the samples, no service, and does not pack values: as `src/otlp.cpp` writes them.

use fleetdiff_formats::reading::Reading;
use fleetdiff_formats::{Format, Options};
use fleetdiff_schemas::profile::{Profile, ProfileType, Temporality};
use fleetdiff_schemas::rejected::{Reason, Rejection};

use super::fixtures::labels;
use super::reading::read_as;

/// A field of bytes.
fn field(tag: u8, contents: &[u8]) -> Vec<u8> {
    assert!(contents.len() < 128 && tag < 16, "lengths and tags here are one byte");
    [&[tag << 3 | 2, u8::try_from(contents.len()).unwrap()], contents].concat()
}

/// A number.
fn number(tag: u8, value: u64) -> Vec<u8> {
    let mut bytes = vec![tag << 3];
    prost::encoding::encode_varint(value, &mut bytes);
    bytes
}

/// A recording of two stacks, `Shop.serve` alone and below `Shop.main`, with these values; `service` is that of its resource.
fn recorded(engine: &str, unit: &str, period: (&str, u64), values: [u64; 2], service: Option<&str>) -> Vec<u8> {
    let strings = ["", engine, period.0, unit, "Shop.serve", "Shop.main", "thread.name"];
    let value_type = |unit: u64| [number(1, 1), number(2, unit)].concat();
    let time = [&[3 << 3 | 1][..], &1_700_000_000_000_000_000_u64.to_le_bytes()].concat();
    let samples = [(1, 0), (2, 1)].map(|(stack, thread): (u64, u64)| {
        let thread = if thread == 0 { Vec::new() } else { number(2, thread) };
        [number(1, stack), thread, number(4, values[usize::try_from(stack - 1).unwrap()])].concat()
    });
    let profile = [
        time,
        number(4, 10_000_000_000),
        field(1, &value_type(3)),
        field(5, &value_type(2)),
        number(6, period.1),
        field(2, &samples[0]),
        field(2, &samples[1]),
    ];
    let line = |function: u64| field(3, &number(1, function));
    let location = |function: u64| [number(1, 0), line(function)].concat();
    let thread = [number(1, 6), field(2, &field(1, b"worker-1"))].concat();
    let dictionary = [
        field(7, &[]),
        field(7, &field(1, &[1])),
        field(7, &field(1, &[1, 2])),
        field(1, &[]),
        field(3, &[]),
        field(3, &number(1, 4)),
        field(3, &number(1, 5)),
        field(2, &[]),
        field(2, &location(1)),
        field(2, &location(2)),
        field(6, &[]),
        field(6, &thread),
        strings.map(|text| field(5, text.as_bytes())).concat(),
    ];
    let resource = service.map_or_else(Vec::new, |service| {
        let attribute = |key: &str, value: &str| {
            field(1, &[field(1, key.as_bytes()), field(2, &field(1, value.as_bytes()))].concat())
        };
        [attribute("service.name", service), attribute("service.version", "v7"), attribute("k8s.pod.uid", "p1")]
            .concat()
    });
    let long = |tag: u8, contents: &[u8]| {
        let mut bytes = vec![tag << 3 | 2];
        prost::encoding::encode_varint(u64::try_from(contents.len()).unwrap(), &mut bytes);
        [bytes, contents.to_vec()].concat()
    };
    let resource = if resource.is_empty() { resource } else { long(1, &resource) };
    let scopes = long(2, &long(2, &profile.concat()));
    [long(1, &[resource, scopes].concat()), long(2, &dictionary.concat())].concat()
}

fn decoded(bytes: &[u8], known: bool) -> Result<Profile, Rejection> {
    let labels = match known {
        true => Ok(labels(ProfileType::Cpu)),
        false => Err(Rejection::new(Reason::MissingIdentity, "nobody")),
    };
    Format::Otlp.decoder(&Options::default()).decode(bytes, &labels).remove(0)
}

#[test]
fn regression_each_engine_is_a_type_and_its_values_are_samples() {
    use ProfileType::{Cpu, Heap, Mutex, Wall};
    let cases = [
        ("itimer", "count", ("ns", 10_000_000), [3, 4], Cpu, 7),
        ("ctimer", "count", ("ns", 10_000_000), [3, 4], Cpu, 7),
        ("perf_events", "count", ("ns", 10_000_000), [3, 4], Cpu, 7),
        ("itimer", "ns", ("ns", 10_000_000), [30_000_000, 40_000_000], Cpu, 7),
        ("wall", "count", ("ns", 50_000_000), [3, 4], Wall, 7),
        ("object_sampler", "count", ("bytes", 524_287), [3, 4], Heap, 7),
        ("alloc_tracer", "count", ("bytes", 1), [3, 4], Heap, 7),
        ("lock_tracer", "count", ("ns", 10_000), [3, 4], Mutex, 7),
    ];
    for (engine, unit, period, values, kind, samples) in cases {
        let profile = decoded(&recorded(engine, unit, period, values, None), true).unwrap();
        assert_eq!((profile.profile_type, profile.total()), (kind, samples), "{engine}/{unit}");
        assert_eq!(profile.temporality, Temporality::Delta, "{engine}/{unit}");
        assert!(profile.names.iter().any(|name| name.contains("Shop.serve")), "{:?}", profile.names);
    }
    // Bytes alone do not say how many samples they are.
    let fault = decoded(&recorded("object_sampler", "bytes", ("bytes", 524_287), [300, 400], None), true).unwrap_err();
    assert_eq!(fault.reason, Reason::UnitMismatch);
}

#[test]
fn regression_a_record_without_a_service_is_of_whom_the_transport_says() {
    let bytes = recorded("itimer", "count", ("ns", 10_000_000), [3, 4], None);
    let known = labels(ProfileType::Cpu);
    assert_eq!(decoded(&bytes, true).unwrap().identity, known.identity);
    assert_eq!(decoded(&bytes, false).unwrap_err().reason, Reason::MissingIdentity);
    // What names its service is of that, whatever the transport says.
    let named = decoded(&recorded("itimer", "count", ("ns", 10_000_000), [3, 4], Some("shop")), true).unwrap();
    assert_eq!((named.identity.service.as_str(), named.identity.build.as_str()), ("shop", "v7"));
    // A comparison of files needs neither.
    let run = read_as(&Reading::default(), Format::Otlp, &bytes, ProfileType::Cpu).unwrap();
    assert_eq!(run.profile.total(), 7);
}
