//! What a command names, the fleet must have.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use fleetdiff_connectors::files::RecordedFleet;
use fleetdiff_schemas::config::Comparing;
use fleetdiff_schemas::identity::{Build, Service};

use crate::failure::Failure;

/// Up to this many names are listed; the others are counted.
const LISTED: usize = 20;

/// The builds of each service that were found.
type Found = BTreeMap<Service, BTreeSet<Build>>;

/// What a command names.
struct Named<'a> {
    service: Option<&'a Service>,
    /// Builds, and what each group of them is.
    builds: Vec<(&'a [Build], &'static str)>,
}

/// Checks that the fleet has the service, and the builds of that service (of any service if none is named). The fleet is read only
/// as far as it takes to find them.
///
/// # Errors
/// A failure of usage: what the fleet does not have, with what it has as advice.
pub(super) fn check(fleet: &RecordedFleet, service: Option<&Service>, comparing: &Comparing) -> Result<(), Failure> {
    let named = match comparing {
        Comparing::Deploys => Vec::new(),
        Comparing::Named { base, head } => vec![(&base[..], "base"), (std::slice::from_ref(head), "head")],
        Comparing::Rings(rings) => vec![(&rings[..], "ring")],
    };
    let named = Named { service, builds: named };
    let (mut found, mut builds) = (Found::new(), fleet.builds());
    while !named.is_in(&found) {
        let Some((service, build)) = builds.next() else { return Err(named.missing_in(&found)) };
        found.entry(service).or_default().insert(build);
    }
    Ok(())
}

/// Why no comparison was open at the end, and what to do about it.
pub(super) fn nothing_compared(comparing: &Comparing) -> String {
    match comparing {
        Comparing::Deploys => {
            "no comparison was open at the end: name one with --base and --head, or several with --rings, or record a fleet in which a \
             build appears later"
                .to_owned()
        }
        Comparing::Named { base, head } => format!(
            "no comparison of {head} with {} was open at the end: the last window does not have counted samples of both; the tables \
             ledger and rejected say which samples were not counted, and why",
            first_of(base, ",")
        ),
        Comparing::Rings(rings) => format!(
            "no two of the rings {} were compared at the end: the last window has counted samples of at most one; the tables ledger \
             and rejected say which samples were not counted, and why",
            first_of(rings, ",")
        ),
    }
}

impl Named<'_> {
    fn is_in(&self, found: &Found) -> bool {
        self.service.is_none_or(|service| found.contains_key(service))
            && self.builds.iter().flat_map(|(builds, _)| *builds).all(|build| self.has(found, build))
    }

    fn has(&self, found: &Found, build: &Build) -> bool {
        self.services(found).any(|(_, builds)| builds.contains(build))
    }

    /// The services among which builds are looked for.
    fn services<'f>(&self, found: &'f Found) -> impl Iterator<Item = (&'f Service, &'f BTreeSet<Build>)> {
        found.iter().filter(|(service, _)| self.service.is_none_or(|wanted| wanted == *service))
    }

    /// What is missing, and what there is instead.
    fn missing_in(&self, found: &Found) -> Failure {
        if let Some(service) = self.service.filter(|service| !found.contains_key(*service)) {
            let problem = format!("the fleet has no profile of service {service}");
            return Failure::usage(problem, format!("it has services: {}", first_of(found.keys(), ", ")));
        }
        let is_missing = |build: &&Build| !self.has(found, build);
        let missing = self
            .builds
            .iter()
            .flat_map(|(builds, is)| builds.iter().filter(is_missing).map(move |build| format!("{build} ({is})")));
        let problem = format!("the fleet has no profile of build {}", first_of(missing, ", "));
        let there = self.services(found).map(|(service, builds)| format!("{} of {service}", first_of(builds, ", ")));
        Failure::usage(problem, format!("it has builds: {}", first_of(there, "; ")))
    }
}

/// The first names, and how many more there are.
fn first_of<N: Display>(names: impl IntoIterator<Item = N>, separator: &str) -> String {
    let names: Vec<String> = names.into_iter().map(|name| name.to_string()).collect();
    let more = match names.len().saturating_sub(LISTED) {
        0 if names.is_empty() => "none".to_owned(),
        0 => String::new(),
        more => format!("{separator}and {more} more"),
    };
    format!("{}{more}", names[..names.len().min(LISTED)].join(separator))
}
