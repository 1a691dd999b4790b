//! Where programs serve profiles: addresses, names that stand for many, and files in Prometheus's `file_sd` form.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::net::ToSocketAddrs;
use std::path::PathBuf;

use fleetdiff_schemas::identity::Identity;
use serde::Deserialize;

use super::{Endpoint, PATH};

/// Where pods are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// `HOST:PORT`, or a URL with the path of the profiles.
    Address(String),
    /// `dns:HOST:PORT`: every address of a name, each a pod.
    Name(String),
    /// Groups of addresses with labels.
    File(PathBuf),
}

/// All targets, with what holds for those that say nothing else.
#[derive(Clone, Debug)]
pub struct Targets {
    /// Where.
    pub targets: Vec<Target>,
    /// Whose profiles they are where a target does not say it; its pod is not heeded.
    pub identity: Identity,
}

/// Why it is not known where pods are.
#[derive(Debug, thiserror::Error)]
pub enum TargetsError {
    /// A name that cannot be resolved.
    #[error("cannot resolve {name}")]
    Name {
        /// The name with its port.
        name: String,
        /// The system's message.
        source: io::Error,
    },
    /// A file that cannot be read.
    #[error("cannot read {}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's message.
        source: io::Error,
    },
    /// A file of another form.
    #[error("{} is no list of targets", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        source: serde_json::Error,
    },
}

/// A group of a `file_sd` file.
#[derive(Deserialize)]
struct Group {
    targets: Vec<String>,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

impl Target {
    /// A target as it is written on a command line.
    pub fn of(text: &str) -> Self {
        match text.strip_prefix("dns:") {
            Some(name) => Self::Name(name.to_owned()),
            None => Self::Address(text.to_owned()),
        }
    }
}

impl Targets {
    /// The endpoints as they are now, and what could not be found out.
    pub fn resolve(&self) -> (BTreeSet<Endpoint>, Vec<TargetsError>) {
        let (mut found, mut faults) = (BTreeSet::new(), Vec::new());
        for target in &self.targets {
            match self.of(target) {
                Ok(endpoints) => found.extend(endpoints),
                Err(fault) => faults.push(fault),
            }
        }
        (found, faults)
    }

    fn of(&self, target: &Target) -> Result<Vec<Endpoint>, TargetsError> {
        match target {
            Target::Address(address) => Ok(vec![endpoint(address, &self.identity, &BTreeMap::new())]),
            Target::Name(name) => {
                let unknown = |source| TargetsError::Name { name: name.clone(), source };
                let addresses = name.to_socket_addrs().map_err(unknown)?;
                Ok(addresses.map(|address| endpoint(&address.to_string(), &self.identity, &BTreeMap::new())).collect())
            }
            Target::File(path) => {
                let text = fs::read(path).map_err(|source| TargetsError::File { path: path.clone(), source })?;
                let groups: Vec<Group> = serde_json::from_slice(&text)
                    .map_err(|source| TargetsError::Form { path: path.clone(), source })?;
                let of_group = |group: &Group| {
                    let one = |address: &String| endpoint(address, &self.identity, &group.labels);
                    group.targets.iter().map(one).collect::<Vec<_>>()
                };
                Ok(groups.iter().flat_map(of_group).collect())
            }
        }
    }
}

/// An address with what is known of it; labels of its own come first. Its pod is the address without scheme and path, unless a label
/// names it.
fn endpoint(address: &str, all: &Identity, own: &BTreeMap<String, String>) -> Endpoint {
    let label = |key: &str| own.get(key).map(String::as_str);
    let (scheme, rest) = address.split_once("://").unwrap_or_else(|| (label("__scheme__").unwrap_or("http"), address));
    let (host, path) = rest.split_once('/').map_or((rest, None), |(host, path)| (host, Some(path)));
    let path = match path {
        Some(path) => format!("/{}", path.trim_end_matches('/')),
        None => label("__metrics_path__").unwrap_or(PATH).trim_end_matches('/').to_owned(),
    };
    let path = if path == "/" { String::new() } else { path };
    let identity = Identity {
        service: label("service").map_or_else(|| all.service.clone(), Into::into),
        build: label("build").map_or_else(|| all.build.clone(), Into::into),
        region: label("region").map_or_else(|| all.region.clone(), Into::into),
        cohort: label("cohort").map_or_else(|| all.cohort.clone(), Into::into),
        hardware: label("hardware").map_or_else(|| all.hardware.clone(), Into::into),
        node: label("node").map_or_else(|| all.node.clone(), |node| Some(node.into())),
        pod: label("pod").unwrap_or(host).into(),
        process_start: None,
    };
    Endpoint { url: format!("{scheme}://{host}{path}"), identity }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shop() -> Identity {
        Identity {
            service: "shop".into(),
            build: "v1".into(),
            region: "unknown".into(),
            cohort: "unknown".into(),
            hardware: "unknown".into(),
            node: None,
            pod: "".into(),
            process_start: None,
        }
    }

    #[test]
    fn addresses_are_urls_and_pods() {
        let of = |address: &str| {
            let found = endpoint(address, &shop(), &BTreeMap::new());
            (found.url, found.identity.pod.to_string())
        };
        let cases = [
            ("10.0.0.7:6060", "http://10.0.0.7:6060/debug/pprof", "10.0.0.7:6060"),
            ("[::1]:6060", "http://[::1]:6060/debug/pprof", "[::1]:6060"),
            ("https://shop-7.eu:443/internal/pprof/", "https://shop-7.eu:443/internal/pprof", "shop-7.eu:443"),
            ("http://shop-7:80/", "http://shop-7:80", "shop-7:80"),
        ];
        for (address, url, pod) in cases {
            assert_eq!(of(address), (url.to_owned(), pod.to_owned()), "{address}");
        }
    }

    #[test]
    fn names_stand_for_all_their_addresses_and_files_for_groups() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pods.json");
        let groups = r#"[{"targets": ["10.0.0.1:6060", "10.0.0.2:6060"], "labels": {"build": "v2", "node": "n1", "__meta_x": "y"}},
            {"targets": ["10.0.0.3:6060"], "labels": {"pod": "shop-3", "__scheme__": "https", "__metrics_path__": "/pprof"}}]"#;
        fs::write(&path, groups).unwrap();
        let targets =
            Targets { targets: vec![Target::of("dns:localhost:6060"), Target::File(path.clone())], identity: shop() };
        let (found, faults) = targets.resolve();
        assert!(faults.is_empty(), "{faults:?}");
        let seen: Vec<(&str, &str, &str)> = found
            .iter()
            .map(|one| (one.url.as_str(), one.identity.build.as_str(), one.identity.pod.as_str()))
            .collect();
        for expected in [
            ("http://127.0.0.1:6060/debug/pprof", "v1", "127.0.0.1:6060"),
            ("http://10.0.0.1:6060/debug/pprof", "v2", "10.0.0.1:6060"),
            ("https://10.0.0.3:6060/pprof", "v1", "shop-3"),
        ] {
            assert!(seen.contains(&expected), "{seen:?}");
        }
        fs::write(&path, "[{\"targets\": 7}]").unwrap();
        let targets = Targets {
            targets: vec![Target::File(path), Target::of("dns:no.such.host.invalid:1"), Target::of("10.0.0.9:1")],
            identity: shop(),
        };
        let (found, faults) = targets.resolve();
        assert_eq!((found.len(), faults.len()), (1, 2), "{faults:?}");
    }
}
