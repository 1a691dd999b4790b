//! OTLP metrics: how many requests each pod served, from `ExportMetricsServiceRequest` of opentelemetry-proto 1.x.
//!
//! A data point of a histogram of durations counts requests, and so does one of a monotonic sum. [`Decoder`] gives each such
//! point as it stands and keeps nothing from record to record: a difference between two points needs both, and which reader
//! sees them, and when, must not matter.
//!
//! A point is for the cohort that its own attribute names, else for that of its resource.

mod data_points;

use std::borrow::Cow;
use std::sync::Arc;

use fleetdiff_schemas::identity::{Identity, stable_hash};
use fleetdiff_schemas::profile::{RequestPoint, Temporality};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::time::TimeRange;

use self::data_points::{Kind, Raw, instant};
use super::dictionary::Dictionary;
use super::record::{placed, size};
use super::values::Attributes;
use crate::budget::Budget;
use crate::compression::decompress;
use crate::decode::Options;
use crate::parts::Parts;
use crate::wire::fields;

/// Metrics whose data points count requests, by OpenTelemetry's semantic conventions: those of HTTP since they are stable, those of
/// RPC before and since. Who writes old and new names for the same requests must name one of them, for all that are named are
/// added up.
pub const REQUEST_METRICS: [&str; 3] =
    ["http.server.request.duration", "rpc.server.duration", "rpc.server.call.duration"];

/// What a point is counted as.
const POINT: usize = 256;

/// A flag of a data point that holds no value.
const NO_RECORDED_VALUE: u64 = 1;

/// Decodes metrics of requests.
#[derive(Clone, Debug)]
pub struct Decoder {
    options: Options,
    names: Vec<String>,
}

impl Decoder {
    /// A decoder that takes metrics of these names, and their pods from [`Options::identity`].
    pub fn new(options: &Options, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { options: options.clone(), names: names.into_iter().map(Into::into).collect() }
    }

    /// The points of a record; none if it holds no metric of these names. A bad one spoils no other.
    pub fn points(&self, bytes: &[u8]) -> Vec<Result<RequestPoint, Rejection>> {
        let message = decompress(bytes, self.options.max_bytes);
        let points = message.and_then(|message| {
            let budget = Budget::of(message.len(), self.options.max_built_bytes);
            let mut reading = Reading { decoder: self, budget, points: Parts::default() };
            reading.record(&message)?;
            Ok(reading.points.into_list())
        });
        points.unwrap_or_else(|fault| vec![Err(fault)])
    }
}

/// A record on its way to points.
struct Reading<'d> {
    decoder: &'d Decoder,
    budget: Budget,
    points: Parts<RequestPoint>,
}

/// What the points of a metric have in common.
struct Series<'a> {
    identity: &'a Result<Arc<Identity>, Rejection>,
    scope: &'a [u8],
    name: &'a str,
    temporality: Temporality,
    kind: Kind,
}

impl Reading<'_> {
    fn record(&mut self, message: &[u8]) -> Result<(), Rejection> {
        let mut number = 0;
        let mut parts = fields(message);
        while let Some((tag, value)) = parts.next()? {
            if tag == 1 {
                let resource = self.resource(value.bytes()?);
                let full = matches!(&resource, Err(fault) if fault.reason == Reason::TooLarge);
                self.keep(resource, &format!("resource_metrics[{number}]"));
                if full {
                    break;
                }
                number += 1;
            }
        }
        Ok(())
    }

    /// Turns a fault into a part.
    fn keep(&mut self, outcome: Result<(), Rejection>, place: &str) {
        self.points.extend(outcome.err().map(|fault| Err(placed(fault, place))));
    }

    fn resource(&mut self, message: &[u8]) -> Result<(), Rejection> {
        self.budget.take(POINT)?;
        let (mut attributes, mut scopes) = (Attributes::default(), Vec::new());
        let mut parts = fields(message);
        while let Some((tag, value)) = parts.next()? {
            match tag {
                1 => self.attributes(value.bytes()?, &mut attributes)?,
                2 => self.budget.push(&mut scopes, value.bytes()?)?,
                _ => {}
            }
        }
        let lookup = |name: &str| attributes.get(name).map(Cow::Borrowed);
        let identity = self.decoder.options.identity.resolve(&lookup);
        self.budget.take(identity.as_ref().map_or(0, size))?;
        let identity = identity.map(Arc::new);
        scopes.into_iter().try_for_each(|scope| self.scope(scope, &identity))
    }

    fn attributes<'a>(&mut self, resource: &'a [u8], into: &mut Attributes<'a>) -> Result<(), Rejection> {
        let none = Dictionary::default();
        let mut parts = fields(resource);
        while let Some((tag, value)) = parts.next()? {
            if tag == 1 {
                into.add(value.bytes()?, &none, &self.budget)?;
            }
        }
        Ok(())
    }

    fn scope(&mut self, message: &[u8], identity: &Result<Arc<Identity>, Rejection>) -> Result<(), Rejection> {
        let (mut scope, mut metrics) = (&[][..], Vec::new());
        let mut parts = fields(message);
        while let Some((tag, value)) = parts.next()? {
            match tag {
                1 => scope = value.bytes()?,
                2 => self.budget.push(&mut metrics, value.bytes()?)?,
                _ => {}
            }
        }
        for (number, metric) in metrics.into_iter().enumerate() {
            let outcome = self.metric(metric, scope, identity);
            self.keep(outcome, &format!("metrics[{number}]"));
        }
        Ok(())
    }

    fn metric(
        &mut self,
        message: &[u8],
        scope: &[u8],
        identity: &Result<Arc<Identity>, Rejection>,
    ) -> Result<(), Rejection> {
        self.budget.take(POINT)?;
        let (mut name, mut data) = (&[][..], None);
        let mut parts = fields(message);
        while let Some((tag, value)) = parts.next()? {
            match (tag, Kind::of(tag)) {
                (1, _) => name = value.bytes()?,
                (_, Some(kind)) => data = Some((kind, value.bytes()?)),
                _ => {}
            }
        }
        let wanted = self.decoder.names.iter().find(|wanted| wanted.as_bytes() == name);
        let (Some(name), Some((kind, data))) = (wanted, data) else { return Ok(()) };
        let (points, temporality) = kind.cut(data, &self.budget).map_err(|fault| about(name, fault))?;
        let series = Series { identity, scope, name, temporality, kind };
        for point in points {
            self.budget.take(POINT)?;
            let point = series.point(point, &self.decoder.options.cohort_label, &self.budget);
            let point = point.map_err(|fault| about(name, fault));
            self.points.extend(point.transpose());
        }
        Ok(())
    }
}

impl Series<'_> {
    /// One data point; nothing if it holds no value.
    fn point(&self, message: &[u8], cohort_label: &str, budget: &Budget) -> Result<Option<RequestPoint>, Rejection> {
        let raw = Raw::read(message, self.kind, budget)?;
        if raw.flags & NO_RECORDED_VALUE != 0 {
            return Ok(None);
        }
        let end = instant(raw.time).filter(|time| time.0 > 0);
        let end = end.ok_or_else(|| Rejection::new(Reason::Malformed, "a point without a time"))?;
        let start = instant(raw.start).unwrap_or(end);
        let timed = |fault: Rejection| Rejection { at: Some(end), ..fault };
        if start > end || (start.0 == 0 && self.temporality == Temporality::Delta) {
            return Err(timed(Rejection::new(Reason::Malformed, "a point that does not say since when it counts")));
        }
        let identity = self.identity.clone().map_err(timed)?;
        Ok(Some(RequestPoint {
            identity: for_cohort(identity, &raw.attributes, cohort_label, budget).map_err(timed)?,
            series: self.hash(raw.attributes),
            temporality: self.temporality,
            window: TimeRange { start, end },
            count: raw.count.map_err(timed)?,
        }))
    }

    /// The same for the same attributes in any order.
    fn hash(&self, mut attributes: Vec<&[u8]>) -> u64 {
        attributes.sort_unstable();
        let parts = [self.name.as_bytes(), self.scope].into_iter().chain(attributes);
        let hashes: Vec<u8> = parts.flat_map(|part| stable_hash(part).to_le_bytes()).collect();
        stable_hash(&hashes)
    }
}

/// The pod with the cohort that a point's own attributes name, if they name one.
fn for_cohort(
    identity: Arc<Identity>,
    attributes: &[&[u8]],
    cohort_label: &str,
    budget: &Budget,
) -> Result<Arc<Identity>, Rejection> {
    let (none, mut own) = (Dictionary::default(), Attributes::default());
    for attribute in attributes {
        own.add(attribute, &none, budget)?;
    }
    match own.get(cohort_label).map(str::trim).filter(|cohort| !cohort.is_empty()) {
        Some(cohort) if cohort != identity.cohort.as_str() => {
            budget.take(size(&identity))?;
            Ok(Arc::new(Identity { cohort: cohort.into(), ..(*identity).clone() }))
        }
        _ => Ok(identity),
    }
}

fn about(name: &str, fault: Rejection) -> Rejection {
    Rejection { detail: format!("{name}: {}", fault.detail), ..fault }
}
