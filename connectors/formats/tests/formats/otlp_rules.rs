//! What nothing in an OTLP message says: types, raw counts, temporality, and whose it is.

use fleetdiff_formats::Options;
use fleetdiff_formats::otlp::Decoder;
use fleetdiff_formats::otlp::proto::{
    Any, AnyValue, Array, Dictionary, KeyValue, KeyValueAndUnit, Profile, Request, Resource, ResourceProfiles, Sample,
    Scope, ScopeProfiles, Stack, ValueType,
};
use fleetdiff_schemas::profile::{self, ProfileType, Requests, Temporality};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::time::{Nanos, TimeRange};
use prost::Message;

use super::fixtures::START;

const SECONDS: u64 = 1_000_000_000;

/// A message as it is put together.
pub struct Draft {
    pub request: Request,
}

/// A sample type, with its values and timestamps.
pub type Column<'a> = (&'a str, &'a str, &'a [i64], &'a [u64]);

impl Draft {
    pub fn new() -> Self {
        let dictionary = Dictionary {
            string_table: vec![String::new()],
            attribute_table: vec![KeyValueAndUnit::default()],
            stack_table: vec![Stack::default()],
            ..Dictionary::default()
        };
        Self { request: Request { resource_profiles: vec![], dictionary: Some(dictionary) } }
    }

    pub fn dictionary(&mut self) -> &mut Dictionary {
        self.request.dictionary.as_mut().unwrap()
    }

    fn string(&mut self, text: &str) -> i32 {
        let strings = &mut self.dictionary().string_table;
        let known = strings.iter().position(|known| known == text);
        let index = known.unwrap_or_else(|| {
            strings.push(text.to_owned());
            strings.len() - 1
        });
        i32::try_from(index).unwrap()
    }

    pub fn attribute(&mut self, key: &str, value: Any) -> i32 {
        let key_strindex = self.string(key);
        let value = Some(AnyValue { value: Some(value) });
        let table = &mut self.dictionary().attribute_table;
        table.push(KeyValueAndUnit { key_strindex, value, unit_strindex: 0 });
        i32::try_from(table.len() - 1).unwrap()
    }

    /// Adds a resource with these attributes and a scope without profiles.
    pub fn resource(&mut self, attributes: &[(&str, &str)]) -> &mut Self {
        let attributes = attributes.iter().map(|(key, value)| inline(key, Any::Text((*value).to_owned()))).collect();
        self.request.resource_profiles.push(ResourceProfiles {
            resource: Some(Resource { attributes }),
            scope_profiles: vec![ScopeProfiles { scope: Some(Scope::default()), profiles: vec![] }],
        });
        self
    }

    /// Adds a profile to the last scope, of one sample with the empty stack.
    pub fn profile(
        &mut self,
        (name, unit, values, times): Column<'_>,
        period: (&str, i64),
        seconds: u64,
    ) -> &mut Profile {
        let kind = |draft: &mut Self, name: &str, unit: &str| {
            Some(ValueType { type_strindex: draft.string(name), unit_strindex: draft.string(unit) })
        };
        let profile = Profile {
            sample_type: kind(self, name, unit),
            samples: vec![Sample {
                values: values.to_vec(),
                timestamps_unix_nano: times.to_vec(),
                ..Sample::default()
            }],
            time_unix_nano: START.unsigned_abs(),
            duration_nano: seconds * SECONDS,
            period_type: kind(self, period.0, "nanoseconds"),
            period: period.1,
            attribute_indices: vec![],
        };
        let scope = self.scope();
        scope.profiles.push(profile);
        scope.profiles.last_mut().unwrap()
    }

    pub fn scope(&mut self) -> &mut ScopeProfiles {
        &mut self.request.resource_profiles.last_mut().unwrap().scope_profiles[0]
    }

    pub fn read(&self) -> Vec<Result<profile::Profile, Rejection>> {
        Decoder::new(&Options::default()).profiles(&self.request.encode_to_vec())
    }
}

pub fn inline(key: &str, value: Any) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }), key_strindex: 0 }
}

/// What makes a pod.
pub const POD: [(&str, &str); 3] = [("service.name", "shop"), ("service.version", "2.1"), ("k8s.pod.uid", "pod-1")];

/// What came of a message, part by part.
type Outcome = Result<(ProfileType, Temporality, u64), Reason>;

fn outcome(columns: &[Column<'_>], period: (&str, i64), seconds: u64, resource: &[(&str, &str)]) -> Vec<Outcome> {
    let mut draft = Draft::new();
    draft.resource(&[&POD, resource].concat());
    for column in columns {
        draft.profile(*column, period, seconds);
    }
    let parts = draft.read().into_iter();
    parts
        .map(|part| {
            part.map(|profile| (profile.profile_type, profile.temporality, profile.total()))
                .map_err(|fault| fault.reason)
        })
        .collect()
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases, one a message")]
fn each_type_counts_raw_samples() {
    use ProfileType::{Block, Cpu, Heap, LiveHeap, Mutex, OffCpu, Wall};
    use Temporality::{Cumulative, Delta, Gauge};
    let (samples, cpu) = (("samples", "count", &[3][..], &[][..]), ("cpu", "nanoseconds", &[50_000_000][..], &[][..]));
    let events = ("off_cpu", "nanoseconds", &[9, 7][..], &[1, 2][..]);
    let (objects, space) =
        (("alloc_objects", "count", &[2][..], &[][..]), ("alloc_space", "bytes", &[1 << 20][..], &[][..]));
    let (live, live_space) =
        (("inuse_objects", "count", &[2][..], &[][..]), ("inuse_space", "bytes", &[1 << 20][..], &[][..]));
    let (waits, delay) = (("contentions", "count", &[5][..], &[][..]), ("delay", "nanoseconds", &[9][..], &[][..]));
    let none = ("", 0);
    let attribute = |name, value| vec![(name, value)];
    type Case<'a> = (Vec<Column<'a>>, (&'a str, i64), u64, Vec<(&'a str, &'a str)>, Vec<Outcome>);
    let cases: Vec<Case<'_>> = vec![
        (vec![samples, cpu], ("cpu", 10_000_000), 10, vec![], vec![Ok((Cpu, Delta, 3))]),
        (vec![cpu, samples], none, 0, vec![], vec![Ok((Cpu, Delta, 3))]),
        (vec![cpu], ("cpu", 10_000_000), 10, vec![], vec![Ok((Cpu, Delta, 5))]),
        (vec![cpu], none, 10, vec![], vec![Err(Reason::UnknownPeriod)]),
        (vec![samples], ("wall", 10), 10, vec![], vec![Ok((Wall, Delta, 3))]),
        (vec![samples, ("time", "nanoseconds", &[9], &[])], none, 10, vec![], vec![Ok((Wall, Delta, 3))]),
        (vec![samples], ("cpu", 10), 10, attribute("fleetdiff.profile_type", "off_cpu"), vec![Ok((OffCpu, Delta, 3))]),
        (vec![samples], ("cpu", 10), 10, attribute("fleetdiff.profile_type", "heap"), vec![Ok((Cpu, Delta, 3))]),
        (
            vec![samples],
            ("cpu", 10),
            10,
            attribute("fleetdiff.profile_type", "gpu"),
            vec![Err(Reason::UnsupportedType)],
        ),
        // A timestamp each: values of a count are added up, without values each is one, times are events.
        (vec![("samples", "count", &[2, 2, 3, 3], &[1, 2, 3, 4])], ("cpu", 1), 10, vec![], vec![Ok((Cpu, Delta, 10))]),
        (vec![("samples", "count", &[], &[1, 2, 3])], ("cpu", 1), 10, vec![], vec![Ok((Cpu, Delta, 3))]),
        (vec![("cpu", "nanoseconds", &[], &[1, 2])], ("cpu", 10_000_000), 10, vec![], vec![Ok((Cpu, Delta, 2))]),
        (vec![events], none, 10, vec![], vec![Ok((OffCpu, Delta, 2))]),
        (vec![("events", "nanoseconds", &[4], &[1])], none, 10, vec![], vec![Ok((OffCpu, Delta, 1))]),
        (vec![("off_cpu", "nanoseconds", &[4], &[])], none, 10, vec![], vec![Err(Reason::UnknownPeriod)]),
        (vec![samples, events], ("cpu", 1), 10, vec![], vec![Ok((Cpu, Delta, 3)), Ok((OffCpu, Delta, 2))]),
        // Two objects of 512 KiB at a period of 512 KiB: 2 x (1 - 1/e) were drawn.
        (
            vec![objects, space, live, live_space],
            ("space", 524_288),
            0,
            vec![],
            vec![Ok((Heap, Cumulative, 1)), Ok((LiveHeap, Gauge, 1))],
        ),
        (vec![objects, space], ("space", 1), 10, vec![], vec![Ok((Heap, Delta, 2))]),
        (
            vec![objects, space],
            ("space", 1),
            0,
            attribute("fleetdiff.temporality", "delta"),
            vec![Ok((Heap, Delta, 2))],
        ),
        (
            vec![objects, space],
            ("space", 1),
            0,
            attribute("fleetdiff.temporality", "sum"),
            vec![Err(Reason::UnsupportedType)],
        ),
        (vec![live, live_space], ("space", 1), 0, vec![], vec![Ok((LiveHeap, Gauge, 2))]),
        (
            vec![live, live_space],
            ("space", 1),
            0,
            attribute("fleetdiff.temporality", "delta"),
            vec![Ok((LiveHeap, Gauge, 2))],
        ),
        (vec![objects], ("space", 1), 0, vec![], vec![Err(Reason::UnitMismatch)]),
        (
            vec![("allocated_objects", "count", &[2], &[]), ("allocated_space", "bytes", &[9], &[])],
            ("space", 1),
            10,
            vec![],
            vec![Ok((Heap, Delta, 2))],
        ),
        (vec![waits, delay], ("contentions", 1), 0, vec![], vec![Ok((Mutex, Cumulative, 5))]),
        (
            vec![waits, delay],
            ("contentions", 1),
            0,
            attribute("fleetdiff.profile_type", "block"),
            vec![Ok((Block, Cumulative, 5))],
        ),
        (vec![waits], ("contentions", 1), 10, vec![], vec![Ok((Mutex, Delta, 5))]),
        (
            vec![("goroutine", "count", &[5], &[]), samples],
            none,
            10,
            vec![],
            vec![Err(Reason::UnsupportedType), Ok((Cpu, Delta, 3))],
        ),
        // The same sample type again is another profile.
        (vec![samples, cpu, samples, cpu], none, 10, vec![], vec![Ok((Cpu, Delta, 3)), Ok((Cpu, Delta, 3))]),
        (vec![("samples", "count", &[-3], &[])], none, 10, vec![], vec![Err(Reason::NegativeValue)]),
        (vec![("samples", "count", &[0], &[])], none, 10, vec![], vec![Err(Reason::Empty)]),
        (vec![("samples", "count", &[1, 2], &[1, 2, 3])], none, 10, vec![], vec![Err(Reason::Malformed)]),
        (vec![("samples", "count", &[], &[])], none, 10, vec![], vec![Err(Reason::Malformed)]),
        (
            vec![("samples", "count", &[i64::MAX, i64::MAX, i64::MAX], &[])],
            none,
            10,
            vec![],
            vec![Err(Reason::TooLarge)],
        ),
    ];
    for (place, (columns, period, seconds, resource, expected)) in cases.into_iter().enumerate() {
        assert_eq!(outcome(&columns, period, seconds, &resource), expected, "case {place}: {columns:?}");
    }
}

/// Where both of Go's profiles of contention are, an operator says which is meant, or each says it itself.
#[test]
fn contention_is_what_is_said_of_it() {
    let mut draft = Draft::new();
    draft.resource(&POD);
    let block = draft.attribute("fleetdiff.profile_type", Any::Text("block".to_owned()));
    draft.profile(("contentions", "count", &[5], &[]), ("contentions", 1), 10);
    draft.profile(("contentions", "count", &[6], &[]), ("contentions", 1), 10).attribute_indices = vec![block];
    let types = |options: &Options| {
        let parts = Decoder::new(options).profiles(&draft.request.encode_to_vec());
        parts.into_iter().map(|part| part.map(|profile| (profile.profile_type, profile.total()))).collect::<Vec<_>>()
    };
    let (mutex, block) = (ProfileType::Mutex, ProfileType::Block);
    assert_eq!(types(&Options::default()), [Ok((mutex, 5)), Ok((block, 6))]);
    assert_eq!(types(&Options { contention: block, ..Options::default() }), [Ok((block, 5)), Ok((block, 6))]);
}

#[test]
fn requests_are_said_by_a_profile_or_its_resource() {
    let mut draft = Draft::new();
    draft.resource(&[&POD[..], &[("fleetdiff.requests", "7")]].concat());
    let attributes = [
        draft.attribute("fleetdiff.requests", Any::Int(40)),
        draft.attribute("fleetdiff.requests_start_unix_nano", Any::Int(START)),
        draft.attribute("fleetdiff.requests_end_unix_nano", Any::Text((START + 5).to_string())),
    ];
    draft.profile(("samples", "count", &[1], &[]), ("cpu", 1), 10);
    draft.profile(("samples", "count", &[1], &[]), ("cpu", 1), 20).attribute_indices = attributes.to_vec();
    let requests: Vec<_> = draft.read().into_iter().map(|part| part.unwrap().requests.unwrap()).collect();
    let window = |length| TimeRange { start: Nanos(START), end: Nanos(START + length) };
    let expected = [Requests { count: 7, window: window(10_000_000_000) }, Requests { count: 40, window: window(5) }];
    assert_eq!(requests, expected);
    let attribute = draft.attribute("fleetdiff.requests", Any::Int(-1));
    draft.scope().profiles[0].attribute_indices = vec![attribute];
    let reasons: Vec<_> = draft.read().into_iter().map(|part| part.map(|_| ()).map_err(|fault| fault.reason)).collect();
    assert_eq!(reasons, [Err(Reason::NegativeValue), Ok(())]);
}

#[test]
fn an_identity_is_of_the_resource_then_of_the_scope() {
    let mut draft = Draft::new();
    draft.resource(&[("service.name", "unknown_service:go"), ("k8s.deployment.name", "shop"), ("k8s.pod.uid", " ")]);
    let tags =
        Array { values: ["v7", "latest"].map(|tag| AnyValue { value: Some(Any::Text(tag.to_owned())) }).to_vec() };
    draft.request.resource_profiles[0].resource.as_mut().unwrap().attributes.extend([
        inline("container.image.tags", Any::Array(tags)),
        inline("host.name", Any::Text("node-1".to_owned())),
        inline("process.pid", Any::Int(4711)),
    ]);
    draft.profile(("samples", "count", &[1], &[]), ("cpu", 1), 10);
    let profile = draft.read().remove(0).unwrap();
    let identity = &profile.identity;
    assert_eq!((identity.service.as_str(), identity.build.as_str()), ("shop", "v7"));
    assert_eq!(identity.pod.as_str(), "node-1/4711", "a blank name is none");
    assert_eq!(identity.cohort.as_str(), "unknown");

    let scope = draft.scope().scope.as_mut().unwrap();
    scope.attributes =
        vec![inline("cohort", Any::Text("tv".to_owned())), inline("host.name", Any::Text("other".to_owned()))];
    let profile = draft.read().remove(0).unwrap();
    let identity = &profile.identity;
    assert_eq!((identity.cohort.as_str(), identity.pod.as_str()), ("tv", "node-1/4711"));
}

#[test]
fn a_profile_without_a_time_is_malformed() {
    let mut draft = Draft::new();
    draft.resource(&POD);
    draft.profile(("samples", "count", &[1], &[]), ("cpu", 1), 10).time_unix_nano = 0;
    let fault = draft.read().remove(0).unwrap_err();
    assert_eq!((fault.reason, fault.profile_type, fault.at), (Reason::Malformed, Some(ProfileType::Cpu), None));
}
