//! Which pods series are of.

use std::collections::{BTreeMap, BTreeSet};

use fleetdiff_schemas::identity::Identity;

use super::super::Pull;
use super::columns::chosen;
use super::query::Query;

/// The label that names the type of a series.
const TYPE: &str = "__profile_type__";

/// Names of the labels that make up an identity, each list in order of trust: the first that a series has is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodLabels {
    /// By part of an identity.
    names: BTreeMap<&'static str, Vec<String>>,
    /// What holds where a series has none of a part's labels; its pod is not heeded.
    pub otherwise: Identity,
}

/// A pod of which something is stored.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StoredPod {
    /// Whose its profiles are.
    pub identity: Identity,
    /// What selects its series.
    pub selector: String,
    /// The types that it has stored.
    pub types: BTreeSet<String>,
}

/// Series of which a required part of the identity is not known.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("no label says which {what} series are of (looked for: {}); their labels are {}", tried.join(", "), labels.join(", "))]
pub struct Unlabelled {
    /// Which part.
    pub what: &'static str,
    /// The labels that were looked for.
    pub tried: Vec<String>,
    /// The labels that they have.
    pub labels: Vec<String>,
}

impl PodLabels {
    /// The parts of an identity that labels may name, with the labels that are looked for unless others are named.
    pub const PARTS: [(&'static str, &'static [&'static str]); 7] = [
        ("service", &["service_name"]),
        ("build", &["service_version", "version", "service_git_ref"]),
        ("region", &["region", "cloud_region"]),
        ("cohort", &["cohort"]),
        ("hardware", &["hardware", "host_type", "instance_type"]),
        ("node", &["node", "k8s_node_name"]),
        ("pod", &["pod", "k8s_pod_name", "service_instance_id", "hostname", "instance"]),
    ];

    /// The labels that are looked for unless others are named.
    pub fn new(otherwise: Identity) -> Self {
        let owned = |labels: &[&str]| labels.iter().map(|label| (*label).to_owned()).collect();
        Self { names: Self::PARTS.iter().map(|(part, labels)| (*part, owned(labels))).collect(), otherwise }
    }

    /// Has a part named by this label alone; false if there is no such part.
    pub fn set(&mut self, part: &str, label: &str) -> bool {
        let names = self.names.get_mut(part);
        names.map(|names| *names = vec![label.to_owned()]).is_some()
    }

    fn names(&self, part: &str) -> &[String] {
        self.names.get(part).map_or(&[], Vec::as_slice)
    }
}

/// A series' labels.
struct Series<'a> {
    labels: BTreeMap<&'a str, &'a str>,
    names: &'a PodLabels,
}

impl<'a> Series<'a> {
    /// The value of a part: of its first label that is there.
    fn value(&self, part: &str) -> Option<&'a str> {
        self.names.names(part).iter().find_map(|name| self.labels.get(name.as_str()).copied())
    }

    fn required(&self, what: &'static str, otherwise: &'a str) -> Result<&'a str, Unlabelled> {
        let found = self.value(what).or_else(|| Some(otherwise).filter(|otherwise| !otherwise.is_empty()));
        found.ok_or_else(|| Unlabelled {
            what,
            tried: self.names.names(what).to_vec(),
            labels: self.labels.keys().filter(|name| !name.starts_with("__")).map(|name| (*name).to_owned()).collect(),
        })
    }

    fn identity(&self) -> Result<Identity, Unlabelled> {
        let otherwise = &self.names.otherwise;
        let optional = |part: &str, otherwise: &'a str| self.value(part).unwrap_or(otherwise);
        Ok(Identity {
            service: self.required("service", otherwise.service.as_str())?.into(),
            build: self.required("build", otherwise.build.as_str())?.into(),
            region: optional("region", otherwise.region.as_str()).into(),
            cohort: optional("cohort", otherwise.cohort.as_str()).into(),
            hardware: optional("hardware", otherwise.hardware.as_str()).into(),
            node: self.value("node").map(Into::into).or_else(|| otherwise.node.clone()),
            pod: self.required("pod", "")?.into(),
            process_start: None,
        })
    }

    /// What selects the series of the same identity: each label that was looked for up to the one that is there, so that those of a pod
    /// with another label of more trust are not selected too.
    fn selected(&self) -> Vec<(&'a str, &'a str)> {
        let mut selected = Vec::new();
        for (part, _) in PodLabels::PARTS {
            for name in self.names.names(part) {
                let value = self.labels.get(name.as_str()).copied();
                selected.push((name.as_str(), value.unwrap_or_default()));
                if value.is_some() {
                    break;
                }
            }
        }
        selected.sort_unstable();
        selected.dedup();
        selected
    }
}

/// The pods that series are of, each once for each way to be selected, and what is of no pod.
pub(super) fn of_series(
    series: &[Vec<(String, String)>],
    query: &Query,
    names: &PodLabels,
) -> (Vec<StoredPod>, Vec<Unlabelled>) {
    let mut found: BTreeMap<(Identity, String), BTreeSet<String>> = BTreeMap::new();
    let mut unlabelled = BTreeSet::new();
    for pairs in series {
        let labels = pairs.iter().filter(|(_, value)| !value.is_empty());
        let one = Series { labels: labels.map(|(name, value)| (name.as_str(), value.as_str())).collect(), names };
        match one.identity() {
            Ok(identity) => {
                let types = found.entry((identity, query.with(&one.selected()))).or_default();
                types.extend(one.labels.get(TYPE).map(|id| (*id).to_owned()));
            }
            Err(fault) => {
                unlabelled.insert(fault);
            }
        }
    }
    let pod = |((identity, selector), types)| StoredPod { identity, selector, types };
    (found.into_iter().map(pod).collect(), unlabelled.into_iter().collect())
}

impl StoredPod {
    /// The types that make up a profile; none if what is stored does not suffice.
    pub(super) fn columns(&self, what: Pull) -> Vec<String> {
        chosen(what, &self.types)
    }

    /// Whether it has stored a profile of this.
    pub fn has(&self, what: Pull) -> bool {
        !self.columns(what).is_empty()
    }
}
