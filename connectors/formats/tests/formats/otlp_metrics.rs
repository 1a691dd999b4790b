//! Requests from OTLP metrics: which points count, and whose they are.

use fleetdiff_formats::Options;
use fleetdiff_formats::otlp::metrics::{Decoder, REQUEST_METRICS};
use fleetdiff_formats::otlp::proto::{Any, KeyValue, Resource, Scope};
use fleetdiff_schemas::profile::{RequestPoint, Temporality};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::time::{Nanos, TimeRange};
use prost::Message;

use super::fixtures::START;
use super::metrics_proto::{
    Bucketed, Data, Exponential, Histogram, Metric, Number, Numbers, Request, ResourceMetrics, ScopeMetrics, Spread,
    Summary,
};
use super::otlp_rules::{POD, inline};

const DELTA: i32 = 1;
const CUMULATIVE: i32 = 2;

fn at(seconds: i64) -> u64 {
    (START + seconds * 1_000_000_000).unsigned_abs()
}

fn window(from: i64, to: i64) -> TimeRange {
    TimeRange { start: Nanos(START).plus(Nanos::from_seconds(from)), end: Nanos(START).plus(Nanos::from_seconds(to)) }
}

fn record(pod: &[(&str, &str)], metrics: Vec<(&str, Data)>) -> Vec<u8> {
    let attributes = pod.iter().map(|(key, value)| inline(key, Any::Text((*value).to_owned()))).collect();
    let metrics = metrics.into_iter().map(|(name, data)| Metric {
        name: name.to_owned(),
        unit: "s".to_owned(),
        data: Some(data),
    });
    let scope = ScopeMetrics { scope: Some(Scope::default()), metrics: metrics.collect() };
    let resource = ResourceMetrics { resource: Some(Resource { attributes }), scope_metrics: vec![scope] };
    Request { resource_metrics: vec![resource] }.encode_to_vec()
}

fn route(route: &str) -> Vec<KeyValue> {
    vec![inline("http.route", Any::Text(route.to_owned())), inline("http.response.status_code", Any::Int(200))]
}

fn bucketed(count: u64, attributes: Vec<KeyValue>) -> Bucketed {
    let buckets = vec![count / 2, count - count / 2];
    Bucketed { start: at(0), time: at(10), count, sum: Some(1.5), buckets, bounds: vec![0.1], attributes, flags: 0 }
}

fn histogram(temporality: i32, points: Vec<Bucketed>) -> Data {
    Data::Histogram(Histogram { points, temporality })
}

fn numbers(double: Option<f64>, int: Option<i64>, temporality: i32, monotonic: bool) -> Numbers {
    let point = Number { start: at(0), time: at(10), double, int, attributes: route("/"), flags: 0 };
    Numbers { points: vec![point], temporality, monotonic }
}

fn points(bytes: &[u8]) -> Vec<Result<RequestPoint, Rejection>> {
    Decoder::new(&Options::default(), REQUEST_METRICS).points(bytes)
}

/// Good records: one of every kind of metric, and one of several series of two metrics.
pub fn good_metrics() -> Vec<Vec<u8>> {
    let spread = Spread { attributes: route("/"), start: at(0), time: at(10), count: 9, scale: -2 };
    let kinds = vec![
        (REQUEST_METRICS[0], histogram(DELTA, vec![bucketed(7, route("/"))])),
        (REQUEST_METRICS[1], Data::Exponential(Exponential { points: vec![spread], temporality: CUMULATIVE })),
        (REQUEST_METRICS[2], Data::Sum(numbers(None, Some(4), DELTA, true))),
        (REQUEST_METRICS[0], Data::Sum(numbers(Some(4.0), None, CUMULATIVE, true))),
        (REQUEST_METRICS[0], Data::Summary(Summary { points: vec![bucketed(3, route("/"))] })),
        (REQUEST_METRICS[0], Data::Gauge(numbers(None, Some(4), DELTA, true))),
    ];
    let series =
        histogram(CUMULATIVE, vec![bucketed(7, vec![]), bucketed(8, route("/")), bucketed(300, route("/upload"))]);
    let several = vec![(REQUEST_METRICS[0], series.clone()), (REQUEST_METRICS[1], series)];
    let mut records: Vec<Vec<u8>> = kinds.into_iter().map(|kind| record(&POD, vec![kind])).collect();
    records.push(record(&POD, several));
    records
}

/// Temporality and count of the points of one metric, or why there is none.
fn outcome(data: Data) -> Vec<Result<(Temporality, u64), Reason>> {
    let points = points(&record(&POD, vec![(REQUEST_METRICS[0], data)]));
    points
        .into_iter()
        .map(|point| point.map(|point| (point.temporality, point.count)).map_err(|fault| fault.reason))
        .collect()
}

#[test]
fn each_kind_of_metric_counts_requests() {
    use Temporality::{Cumulative, Delta};
    let spread = Spread { attributes: route("/"), start: at(0), time: at(10), count: 9, scale: -2 };
    let exponential = |temporality| Data::Exponential(Exponential { points: vec![spread.clone()], temporality });
    let cases = [
        (histogram(DELTA, vec![bucketed(7, route("/"))]), vec![Ok((Delta, 7))]),
        (
            histogram(CUMULATIVE, vec![bucketed(7, vec![]), bucketed(8, route("/"))]),
            vec![Ok((Cumulative, 7)), Ok((Cumulative, 8))],
        ),
        (histogram(0, vec![bucketed(7, vec![])]), vec![Err(Reason::UnsupportedType)]),
        (exponential(DELTA), vec![Ok((Delta, 9))]),
        (exponential(CUMULATIVE), vec![Ok((Cumulative, 9))]),
        (
            Data::Summary(Summary { points: vec![Bucketed { bounds: Vec::new(), ..bucketed(4, vec![]) }] }),
            vec![Ok((Cumulative, 4))],
        ),
        (Data::Sum(numbers(None, Some(5), CUMULATIVE, true)), vec![Ok((Cumulative, 5))]),
        (Data::Sum(numbers(Some(5.0), None, DELTA, true)), vec![Ok((Delta, 5))]),
        (Data::Sum(numbers(None, Some(5), CUMULATIVE, false)), vec![Err(Reason::UnsupportedType)]),
        (Data::Sum(numbers(None, Some(-5), CUMULATIVE, true)), vec![Err(Reason::NegativeValue)]),
        (Data::Sum(numbers(Some(-0.5), None, CUMULATIVE, true)), vec![Err(Reason::NegativeValue)]),
        (Data::Sum(numbers(Some(f64::NAN), None, CUMULATIVE, true)), vec![Err(Reason::TooLarge)]),
        (Data::Gauge(numbers(None, Some(5), 0, false)), vec![Err(Reason::UnsupportedType)]),
        (histogram(DELTA, vec![Bucketed { time: 0, ..bucketed(7, vec![]) }]), vec![Err(Reason::Malformed)]),
        (histogram(DELTA, vec![Bucketed { start: 0, ..bucketed(7, vec![]) }]), vec![Err(Reason::Malformed)]),
        (histogram(CUMULATIVE, vec![Bucketed { start: 0, ..bucketed(7, vec![]) }]), vec![Ok((Cumulative, 7))]),
        (histogram(DELTA, vec![Bucketed { flags: 1, ..bucketed(7, vec![]) }]), vec![]),
    ];
    for (place, (data, expected)) in cases.into_iter().enumerate() {
        assert_eq!(outcome(data), expected, "case {place}");
    }
}

#[test]
fn only_named_metrics_of_known_pods_count() {
    let one = || histogram(DELTA, vec![bucketed(7, vec![])]);
    let bytes = record(&POD, vec![("http.client.request.duration", one()), ("rpc.server.duration", one())]);
    let found = points(&bytes);
    assert_eq!(found.len(), 1);
    let point = found[0].as_ref().unwrap();
    assert_eq!((point.identity.pod.as_str(), point.window), ("pod-1", window(0, 10)));
    let own = Decoder::new(&Options::default(), ["http.client.request.duration"]);
    assert_eq!(own.points(&bytes).len(), 1);
    let faults = points(&record(&POD[..2], vec![("rpc.server.duration", one())]));
    let fault = faults[0].as_ref().unwrap_err();
    assert_eq!((fault.reason, fault.at), (Reason::MissingIdentity, Some(window(0, 10).end)));
    assert!(fault.detail.contains("rpc.server.duration"), "{}", fault.detail);
}

/// The attribute of a point comes before that of its resource.
#[test]
fn a_point_is_for_the_cohort_that_it_names() {
    let tv = vec![inline("cohort", Any::Text("tv".to_owned()))];
    let bytes =
        record(&POD, vec![(REQUEST_METRICS[0], histogram(DELTA, vec![bucketed(1, tv), bucketed(2, route("/"))]))]);
    let cohorts: Vec<String> =
        points(&bytes).into_iter().map(|point| point.unwrap().identity.cohort.to_string()).collect();
    assert_eq!(cohorts[0], "tv");
    assert_ne!(cohorts[1], "tv");
}

/// Series are told apart by their attributes, whatever the order of these.
#[test]
fn a_series_is_its_metric_and_attributes() {
    let mut turned = route("/a");
    turned.reverse();
    let all = vec![bucketed(1, route("/a")), bucketed(2, turned), bucketed(3, route("/b"))];
    let other = histogram(DELTA, vec![bucketed(4, route("/a"))]);
    let bytes = record(&POD, vec![(REQUEST_METRICS[0], histogram(DELTA, all)), (REQUEST_METRICS[1], other)]);
    let series: Vec<u64> = points(&bytes).into_iter().map(|point| point.unwrap().series).collect();
    assert_eq!(series[0], series[1]);
    assert!(series[0] != series[2] && series[0] != series[3] && series[2] != series[3]);
}

#[test]
fn every_cut_is_points_or_a_fault() {
    let whole =
        record(&POD, vec![(REQUEST_METRICS[0], histogram(DELTA, vec![bucketed(7, route("/")), bucketed(8, vec![])]))]);
    for end in 1..whole.len() {
        let found = points(&whole[..end]);
        assert!(
            found.iter().all(|point| point.as_ref().is_err_and(|fault| fault.reason == Reason::Malformed)),
            "cut at {end}"
        );
        assert!(!found.is_empty());
    }
}
