//! A service over a day: pods that are replaced by new builds every hour, and functions that come and go.

use std::sync::Arc;

use fleetdiff_schemas::identity::Identity;
use fleetdiff_schemas::profile::{Profile, ProfileType, Samples, Stack, Temporality};
use fleetdiff_schemas::time::{Nanos, TimeRange};
use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};

/// Pods at any time.
const PODS: u32 = 80;
/// Functions of a build.
const FUNCTIONS: u32 = 500;
/// New functions of each build, each in the place of an old one.
const NEW: u32 = FUNCTIONS / 100;
/// Functions that call others.
const CALLERS: u32 = 20;
/// Stacks of a profile, of one to three samples each.
const STACKS: u32 = 150;
const HOURS: u32 = 24;
const MINUTE: Nanos = Nanos::from_seconds(60);
/// 1 November 2026 at midnight: brokers refuse records whose time is ahead of their clock.
const START: Nanos = Nanos::from_seconds(1_793_491_200);

/// The profiles of some pods of a service that is deployed every hour: one of each pod a minute, over a day.
///
/// Each deploy gives its pods new names and replaces 1 % of the functions by new ones.
#[derive(Debug)]
pub struct Day {
    of: u32,
    minute: u32,
    pod: u32,
    names: (u32, Arc<[Arc<str>]>),
}

impl Day {
    /// The pods whose number leaves this remainder when divided by `of`: the share of one of so many partitions.
    pub fn share(remainder: u32, of: u32) -> Self {
        Self { of: of.max(1), minute: 0, pod: remainder, names: (0, names_of(0)) }
    }

    fn profile(&mut self) -> Profile {
        let (build, since) = build_of(self.pod, self.minute);
        if self.names.0 != build {
            self.names = (build, names_of(build));
        }
        let mut random = Xoshiro256PlusPlus::seed_from_u64(u64::from(self.minute * PODS + self.pod));
        let stacks = (0..STACKS).map(|_| {
            // Most samples are of a few functions, as in real programs.
            let most = random.random_range(0..FUNCTIONS);
            let function = random.random_range(0..=most);
            Stack {
                frames: vec![function % CALLERS, function],
                count: random.random_range(1..4),
                cohort: None,
                value: 0,
            }
        });
        let identity = Identity {
            service: "checkout".into(),
            build: format!("b{build:02}").as_str().into(),
            region: "eu".into(),
            cohort: if self.pod.is_multiple_of(4) { "tv" } else { "web" }.into(),
            hardware: "x86".into(),
            node: None,
            pod: format!("pod-{}-{build}", self.pod).as_str().into(),
            process_start: Some(at(since)),
        };
        let start = at(self.minute);
        Profile {
            identity: Arc::new(identity),
            profile_type: ProfileType::Cpu,
            temporality: Temporality::Delta,
            window: TimeRange { start, end: start.plus(MINUTE) },
            requests: None,
            names: Arc::clone(&self.names.1),
            samples: Samples::Stacks(stacks.collect()),
        }
    }
}

impl Iterator for Day {
    type Item = Profile;

    fn next(&mut self) -> Option<Profile> {
        if self.minute == HOURS * 60 {
            return None;
        }
        let profile = self.profile();
        self.pod += self.of;
        if self.pod >= PODS {
            self.pod %= self.of;
            self.minute += 1;
        }
        Some(profile)
    }
}

fn at(minute: u32) -> Nanos {
    START.plus(Nanos(MINUTE.0 * i64::from(minute)))
}

/// Which build a pod runs, and since which minute: a tenth of the pods five minutes into each hour, the others from twenty minutes on.
fn build_of(pod: u32, minute: u32) -> (u32, u32) {
    let into = if pod.is_multiple_of(10) { 5 } else { 20 + pod / 8 };
    match (minute / 60, minute % 60) {
        (hour, now) if now >= into => (hour, hour * 60 + into),
        (0, _) => (0, 0),
        (hour, _) => (hour - 1, (hour - 1) * 60 + into),
    }
}

/// The names of a build's functions: a few of each build are new, in the place of old ones.
fn names_of(build: u32) -> Arc<[Arc<str>]> {
    let since = |function: u32| (1..=build).rev().find(|born| born % (FUNCTIONS / NEW) == function / NEW).unwrap_or(0);
    (0..FUNCTIONS).map(|function| Arc::from(format!("module::function_{function}_of_{}", since(function)))).collect()
}
