//! A small fleet to publish, and the form in which what was read is compared with it.

use std::collections::BTreeMap;
use std::sync::Arc;

use fleetdiff_schemas::fold::fold_stacks;
use fleetdiff_schemas::identity::{Cohort, Identity, PodId};
use fleetdiff_schemas::profile::{Folded, Profile, ProfileType, Requests, Samples, Stack, Temporality, content_hash};
use fleetdiff_schemas::time::{Nanos, TimeRange};

const SECOND: i64 = 1_000_000_000;
/// 2025-06-30 in UTC, and not on a whole millisecond.
const START: i64 = 1_751_241_600_000_000_123;

/// `pods` pods over `hops` hops of 10 s, in order of time. Pods differ in what their identity says, profiles in stacks,
/// counts, cohorts of samples and requests.
pub fn fleet(pods: u32, hops: u32) -> Vec<Profile> {
    (0..hops).flat_map(|hop| (0..pods).map(move |pod| profile(pod, hop))).collect()
}

/// The same profiles, of which no sample names a cohort of its own.
pub fn without_cohorts(mut profiles: Vec<Profile>) -> Vec<Profile> {
    for profile in &mut profiles {
        if let Samples::Stacks(stacks) = &mut profile.samples {
            stacks.iter_mut().for_each(|stack| stack.cohort = None);
        }
    }
    profiles
}

fn profile(pod: u32, hop: u32) -> Profile {
    let start = Nanos(START + i64::from(hop) * 10 * SECOND);
    let window = TimeRange { start, end: start.plus(Nanos(10 * SECOND - 1)) };
    let names: Arc<[Arc<str>]> = ["main", "serve", "encode <T>", "größe", &format!("pod_{pod}")].map(Arc::from).into();
    let stack = |frames: &[u32], count: u32, cohort: Option<&str>| Stack {
        frames: frames.to_vec(),
        count: u64::from(count),
        cohort: cohort.map(Cohort::from),
        value: 0,
    };
    let stacks = vec![
        stack(&[0, 1], 1 + hop, None),
        stack(&[0, 1, 2, 1, 2], 2 + pod, pod.is_multiple_of(2).then_some("tv")),
        stack(&[0, 3, 4], 40 + 7 * hop + pod, Some("web")),
    ];
    let requests = (!pod.is_multiple_of(3)).then(|| Requests {
        count: u64::from(1_000 * hop + pod),
        window: if pod % 3 == 1 { window } else { TimeRange { start: window.start, end: window.start } },
    });
    Profile {
        identity: Arc::new(identity(pod)),
        profile_type: ProfileType::Cpu,
        temporality: Temporality::Delta,
        window,
        requests,
        names,
        samples: Samples::Stacks(stacks),
    }
}

fn identity(pod: u32) -> Identity {
    Identity {
        service: "checkout".into(),
        build: if pod.is_multiple_of(2) { "v41" } else { "v42" }.into(),
        region: "eu-west-1".into(),
        cohort: "Größe L".into(),
        hardware: "m7g.large".into(),
        node: (pod % 2 == 1).then(|| format!("node-{}", pod / 2).as_str().into()),
        pod: PodId::from(format!("pod-{pod}").as_str()),
        process_start: (pod % 4 < 2).then_some(Nanos(START - 5 * SECOND - i64::from(pod))),
    }
}

/// What must survive a round trip: everything except the order in which names and stacks are listed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Comparable {
    identity: Arc<Identity>,
    window: (Nanos, Nanos),
    profile_type: ProfileType,
    temporality: Temporality,
    requests: Option<(u64, Nanos, Nanos)>,
    content: u128,
    functions: BTreeMap<(Cohort, Arc<str>), OwnAndTotal>,
    samples: BTreeMap<Cohort, u64>,
}

type OwnAndTotal = (u64, u64);

/// The comparable form of a profile, whole or folded.
pub fn comparable(profile: &Profile) -> Comparable {
    let (content, cohorts) = match &profile.samples {
        Samples::Stacks(stacks) => {
            (content_hash(&profile.names, stacks), fold_stacks(&profile.names, stacks, &profile.identity.cohort))
        }
        Samples::Folded { content, cohorts } => (*content, cohorts.clone()),
    };
    let functions = cohorts.iter().flat_map(|part| functions(part, &profile.names)).collect();
    Comparable {
        identity: profile.identity.clone(),
        window: (profile.window.start, profile.window.end),
        profile_type: profile.profile_type,
        temporality: profile.temporality,
        requests: profile.requests.map(|requests| (requests.count, requests.window.start, requests.window.end)),
        content,
        functions,
        samples: cohorts.iter().map(|part| (part.cohort.clone(), part.samples)).collect(),
    }
}

fn functions(part: &Folded, names: &[Arc<str>]) -> BTreeMap<(Cohort, Arc<str>), OwnAndTotal> {
    let name = |index: u32| names[usize::try_from(index).unwrap()].clone();
    part.functions.iter().map(|entry| ((part.cohort.clone(), name(entry.name)), (entry.own, entry.total))).collect()
}
