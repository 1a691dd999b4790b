//! Which attributes of a record say whose profile it is: OpenTelemetry's names, in order of trust, first hit wins.

pub mod instant;

use std::borrow::Cow;

use fleetdiff_schemas::identity::{Identity, NodeId};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::time::Nanos;
use serde::Deserialize;

/// The value of a region, cohort or hardware that no attribute names: such pods are compared among themselves.
pub(crate) const UNKNOWN: &str = "unknown";

/// Names of the attributes that make up an identity, each list in order of trust: the first one that a record carries
/// with a value that is not blank is taken.
///
/// A name may be several joined by `+`: all of them are needed, and their values are joined by `/`. An attribute whose
/// value is a JSON array of texts (`container.image.tags`) stands for the first of them. A service that begins with
/// `unknown_service` is what OpenTelemetry's SDKs write where nobody has named one, and as good as none: the services of a
/// fleet that forgot their names would else be compared as one.
///
/// ```
/// use fleetdiff_formats::identity::IdentityMapping;
/// let mapping = IdentityMapping::default();
/// let identity = mapping.resolve(&|name| match name {
///     "service.name" => Some("checkout".into()),
///     "service.version" => Some("v42".into()),
///     "host.name" => Some("node-7".into()),
///     "process.pid" => Some("4711".into()),
///     _ => None,
/// });
/// let identity = identity.expect("service, build and pod are all there");
/// assert_eq!((identity.pod.as_str(), identity.region.as_str()), ("node-7/4711", "unknown"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IdentityMapping {
    /// What is deployed. Required.
    pub service: Vec<String>,
    /// Its version. Required.
    pub build: Vec<String>,
    /// Where it runs; `unknown` if no name hits.
    pub region: Vec<String>,
    /// The kind of machine; `unknown` if no name hits.
    pub hardware: Vec<String>,
    /// The machine.
    pub node: Vec<String>,
    /// The replicate. Required.
    pub pod: Vec<String>,
    /// The cohort of samples that name none themselves; `unknown` if no name hits.
    pub cohort: Vec<String>,
    /// When the process began: RFC 3339 or nanoseconds since the Unix epoch.
    pub process_start: Vec<String>,
}

impl Default for IdentityMapping {
    fn default() -> Self {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Self {
            service: names(&["service.name", "k8s.deployment.name", "k8s.statefulset.name", "k8s.daemonset.name"]),
            build: names(&["service.version", "container.image.tags", "vcs.ref.head.revision"]),
            region: names(&["cloud.region"]),
            hardware: names(&["host.type", "host.cpu.model.name", "host.arch"]),
            node: names(&["k8s.node.name", "host.name"]),
            pod: names(&["k8s.pod.uid", "service.instance.id", "container.id", "host.name+process.pid"]),
            cohort: names(&["cohort"]),
            process_start: names(&["process.creation.time", "k8s.pod.start_time"]),
        }
    }
}

/// How a service begins that nobody has named, by OpenTelemetry's semantic conventions for resources.
const UNNAMED_SERVICE: &str = "unknown_service";

/// Looks an attribute of a record up by its name.
pub type Lookup<'a> = dyn Fn(&str) -> Option<Cow<'a, str>> + 'a;

impl IdentityMapping {
    /// The identity that a record's attributes describe.
    ///
    /// # Errors
    /// [`Reason::MissingIdentity`], naming what was tried, without service, build or pod; [`Reason::Malformed`] if the
    /// process start is no instant.
    pub fn resolve(&self, attribute: &Lookup<'_>) -> Result<Identity, Rejection> {
        let required = |what: &str, names: &[String]| {
            first(names, attribute).map(|(_, value)| value).ok_or_else(|| missing(what, names))
        };
        let service = self.service(attribute);
        let or_unknown =
            |names: &[String]| first(names, attribute).map_or_else(|| UNKNOWN.to_owned(), |(_, value)| value);
        Ok(Identity {
            service: service.ok_or_else(|| missing("service", &self.service))?.as_str().into(),
            build: required("build", &self.build)?.as_str().into(),
            region: or_unknown(&self.region).as_str().into(),
            cohort: or_unknown(&self.cohort).as_str().into(),
            hardware: or_unknown(&self.hardware).as_str().into(),
            node: first(&self.node, attribute).map(|(_, value)| value.as_str().into()),
            pod: required("pod", &self.pod)?.as_str().into(),
            process_start: self.process_start_by(attribute)?,
        })
    }

    /// The service that a record's attributes name.
    pub(crate) fn service(&self, attribute: &Lookup<'_>) -> Option<String> {
        let named: &Lookup<'_> = &|name| attribute(name).filter(|value| !value.starts_with(UNNAMED_SERVICE));
        first(&self.service, named).map(|(_, value)| value)
    }

    /// The attributes by which [`Self::resolve`] finds this identity again: of each list the first name that stands alone,
    /// for a joined one cannot be written from one value.
    pub fn attributes(&self, identity: &Identity) -> Vec<(String, String)> {
        let start = identity.process_start.map(|at| at.0.to_string());
        let single = |names: &[String]| names.iter().find(|name| !name.contains('+')).cloned();
        [
            (&self.service, Some(identity.service.as_str())),
            (&self.build, Some(identity.build.as_str())),
            (&self.region, Some(identity.region.as_str())),
            (&self.cohort, Some(identity.cohort.as_str())),
            (&self.hardware, Some(identity.hardware.as_str())),
            (&self.node, identity.node.as_ref().map(NodeId::as_str)),
            (&self.pod, Some(identity.pod.as_str())),
            (&self.process_start, start.as_deref()),
        ]
        .into_iter()
        .filter_map(|(names, value)| Some((single(names)?, value?.to_owned())))
        .collect()
    }

    fn process_start_by(&self, attribute: &Lookup<'_>) -> Result<Option<Nanos>, Rejection> {
        let Some((name, value)) = first(&self.process_start, attribute) else { return Ok(None) };
        instant::parse(&value).map(Some).ok_or_else(|| {
            let detail = format!("{name} is {value:?}, expected RFC 3339 or nanoseconds since the Unix epoch");
            Rejection::new(Reason::Malformed, detail)
        })
    }
}

/// The first of the names that has a value, with that value.
fn first<'n>(names: &'n [String], attribute: &Lookup<'_>) -> Option<(&'n str, String)> {
    names.iter().find_map(|name| joined(name, attribute).map(|value| (name.as_str(), value)))
}

fn joined(name: &str, attribute: &Lookup<'_>) -> Option<String> {
    let values: Option<Vec<String>> = name.split('+').map(|part| one(part.trim(), attribute)).collect();
    values.map(|values| values.join("/"))
}

fn one(name: &str, attribute: &Lookup<'_>) -> Option<String> {
    let value = attribute(name)?;
    let value = match value.starts_with('[').then(|| serde_json::from_str::<Vec<String>>(&value)) {
        Some(Ok(list)) => list.into_iter().next().unwrap_or_default(),
        _ => value.into_owned(),
    };
    (!value.trim().is_empty()).then_some(value)
}

fn missing(what: &str, names: &[String]) -> Rejection {
    Rejection::new(Reason::MissingIdentity, format!("no {what}: none of {} is given", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(attributes: &[(&str, &str)]) -> Result<Identity, Rejection> {
        let lookup = |name: &str| {
            attributes.iter().find(|(key, _)| *key == name).map(|(_, value)| Cow::Owned((*value).to_owned()))
        };
        IdentityMapping::default().resolve(&lookup)
    }

    const REQUIRED: [(&str, &str); 3] = [("service.name", "s"), ("service.version", "b"), ("k8s.pod.uid", "p")];

    fn with(more: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
        more.iter().copied().chain(REQUIRED).collect()
    }

    #[test]
    fn the_first_name_with_a_value_wins_and_a_blank_one_is_none() {
        let attributes = with(&[("service.version", "  "), ("vcs.ref.head.revision", "abc"), ("host.arch", "arm64")]);
        let identity = resolve(&attributes).expect("identity");
        assert_eq!(identity.build.as_str(), "abc");
        assert_eq!(identity.hardware.as_str(), "arm64");
        assert_eq!((identity.region.as_str(), identity.cohort.as_str()), (UNKNOWN, UNKNOWN));
        assert_eq!((identity.node, identity.process_start), (None, None));
    }

    #[test]
    fn a_service_that_nobody_named_is_none() {
        let unnamed = ["unknown_service", "unknown_service:java"];
        for name in unnamed {
            let attributes = [("service.name", name), ("service.version", "b"), ("k8s.pod.uid", "p")];
            let fault = resolve(&attributes).expect_err("nothing names the service");
            assert_eq!(fault.reason, Reason::MissingIdentity);
            let deployed = [&attributes[..], &[("k8s.deployment.name", "shop")]].concat();
            assert_eq!(resolve(&deployed).expect("identity").service.as_str(), "shop");
        }
    }

    #[test]
    fn image_tags_may_be_a_list() {
        let attributes = [("service.name", "s"), ("container.image.tags", r#"["v7","latest"]"#), ("container.id", "c")];
        assert_eq!(resolve(&attributes).expect("identity").build.as_str(), "v7");
    }

    #[test]
    fn half_of_a_joined_name_is_no_pod() {
        let fault = resolve(&[("service.name", "s"), ("service.version", "b"), ("host.name", "h")])
            .expect_err("host.name alone names a machine, not a process");
        assert_eq!(fault.reason, Reason::MissingIdentity);
        assert!(fault.detail.contains("host.name+process.pid"), "{}", fault.detail);
    }

    #[test]
    fn each_missing_required_part_is_named() {
        for (absent, word) in [(0, "service.name"), (1, "service.version"), (2, "k8s.pod.uid")] {
            let mut attributes = REQUIRED.to_vec();
            attributes.remove(absent);
            let fault = resolve(&attributes).expect_err("a required attribute is absent");
            assert_eq!(fault.reason, Reason::MissingIdentity);
            assert!(fault.detail.contains(word), "{}", fault.detail);
        }
    }

    #[test]
    fn a_process_start_is_an_instant_or_a_fault() {
        let good = resolve(&with(&[("k8s.pod.start_time", "2025-01-01T00:00:00Z")])).expect("identity");
        assert_eq!(good.process_start, Some(Nanos(1_735_689_600_000_000_000)));
        let fault = resolve(&with(&[("process.creation.time", "soon")])).expect_err("soon is no instant");
        assert_eq!(fault.reason, Reason::Malformed);
        assert!(fault.detail.contains("process.creation.time"), "{}", fault.detail);
    }
}
