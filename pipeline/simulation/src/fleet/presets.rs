//! The fleets on which fleetdiff is evaluated.

use fleetdiff_schemas::time::Nanos;

use super::{Calls, Cells, Fleet, FleetBuilder, Ring, builder};

const MINUTE: Nanos = Nanos::from_seconds(60);
const HALF_HOUR: Nanos = Nanos::from_seconds(1800);

impl Fleet {
    /// Regions of the method's article.
    pub const REGIONS: [&str; 3] = builder::REGIONS;
    /// Cohorts of the method's article.
    pub const COHORTS: [&str; 3] = builder::COHORTS;
    /// When fleets start by default: 2026-03-03 09:05:00 UTC, 55 minutes before a new hour.
    pub const STARTS_AT: Nanos = builder::STARTS_AT;
    /// The function that regresses in [`Fleet::demo`].
    pub const DEMO_FUNCTION: &str = "serialize_video_chunk";
    /// Where it does, as [`Cells`] reads it.
    pub const DEMO_CELLS: &str = "ap-south-1:Android-TV,ap-southeast-1:Android-TV";
    /// By how much.
    pub const DEMO_FACTOR: f64 = 1.10;

    /// The function that costs the same at any load in [`Fleet::demo_under_load`].
    pub const FIXED_COST: &str = "gc::mark_object";
    /// To which power of load the cost of a request in [`Fleet::DEMO_FUNCTION`] grows there.
    pub const DEMO_ELASTICITY: f64 = 0.3;

    /// The demonstration: 3 x 3 cells of 20 head and 180 base pods, but 3 and 20 in eu-west-1 x iOS-iPad; pods differ by
    /// CV 3 %; the head is deployed after a minute and watched for 30 more. `serialize_video_chunk` costs 10 % more in
    /// Android-TV in both regions of Asia; another change takes [`FleetBuilder::unchanged`] and
    /// [`FleetBuilder::regress`].
    pub fn demo(seed: u64) -> FleetBuilder {
        let hit = Cells::one("ap-south-1", "Android-TV").and(Cells::one("ap-southeast-1", "Android-TV"));
        Self::seeded(seed)
            .pods_per_cell(20, 180)
            .cell("eu-west-1", "iOS-iPad", 3, 20)
            .deploy_after(MINUTE)
            .lasts(HALF_HOUR.plus(MINUTE))
            .regress(Self::DEMO_FUNCTION, hit, Self::DEMO_FACTOR)
            .folded()
    }

    /// The same under load that doubles (or rises to `peak` times what it was) and falls back within 20 minutes, twice: nothing else
    /// changed but what [`FleetBuilder::regress`] and [`FleetBuilder::scales_worse`] say, and one function, [`Fleet::FIXED_COST`], costs the
    /// same at any load, so that shares of all others rise and fall with load.
    pub fn demo_under_load(seed: u64, peak: f64) -> FleetBuilder {
        Self::demo(seed)
            .unchanged()
            .lasts(Nanos::from_seconds(2400).plus(MINUTE))
            .load(peak, Nanos::from_seconds(1200))
            .elasticity(Self::FIXED_COST, -1.0)
    }

    /// Nothing changed, 2 cells of 20 head and 20 base pods under load that doubles and falls back within 30 minutes, twice; one function,
    /// [`Fleet::FIXED_COST`], costs the same at any load. Pods differ by CV 10 %, and what a function costs sways in each build by itself,
    /// by CV 2 % and over 2 minutes. The head is deployed after a minute; profiles are of 20 s.
    pub fn under_load(seed: u64) -> FleetBuilder {
        Self::seeded(seed)
            .regions(["ap-south-1"])
            .cohorts(["Android-TV", "iOS-iPad"])
            .pods_per_cell(20, 20)
            .pod_cv(0.1)
            .swaying(0.02, Nanos::from_seconds(120))
            .requests_per_second(20.0)
            .load(2.0, HALF_HOUR)
            .elasticity(Self::FIXED_COST, -1.0)
            .deploy_after(MINUTE)
            .period(Nanos::from_seconds(20))
            .lasts(Nanos::from_seconds(3600).plus(MINUTE))
            .folded()
    }

    /// Nothing changed, 9 cells of 5 head and 84 base pods that differ by CV 10 %, 500 functions; both builds have been
    /// running for long, and each pod gives one profile of some 6,000 samples a minute for 30 minutes.
    pub fn null_cells(seed: u64) -> FleetBuilder {
        Self::null(seed).pods_per_cell(5, 84)
    }

    /// As [`Fleet::null_cells`], but the cohort is a label of requests: 3 regions of 13 head and 253 base pods, each of which
    /// serves all 3 cohorts, so that cells of a region share its pods.
    pub fn null_request_labels(seed: u64) -> FleetBuilder {
        Self::null(seed).cohorts_by_request().pods_per_cell(13, 253)
    }

    /// As [`Fleet::null_cells`], but 6 cells of 5 head and 30 base pods that differ by CV 50 %, and the UTC hour changes half
    /// way through.
    pub fn null_hour_edge(seed: u64) -> FleetBuilder {
        Self::null(seed)
            .cohorts(["Android-TV", "iOS-iPad"])
            .pods_per_cell(5, 30)
            .pod_cv(0.5)
            .starts_at(Self::STARTS_AT.plus(Nanos::from_seconds(2400)))
    }

    /// Nothing changed while 100 pods are rolled out one by one within 30 minutes and the costs of the whole fleet
    /// drift by 5 %: one cell, 500 functions, pods that differ by CV 10 %, profiles of 10 s. There are two minutes
    /// before the first replaced pod and two after the last.
    pub fn rollout(seed: u64) -> FleetBuilder {
        Self::null(seed)
            .regions(["ap-south-1"])
            .cohorts(["Android-TV"])
            .pods_per_cell(0, 100)
            .period(Nanos::from_seconds(10))
            .drift(0.05)
            .rollout(Nanos::from_seconds(120), HALF_HOUR)
            .lasts(HALF_HOUR.plus(Nanos::from_seconds(240)))
    }

    /// Nothing changed, four rings side by side: 24, 8, 8 and 4 pods in each of two cells, the second build deployed after one minute, the
    /// third after 6 and the fourth after 11; pods differ by CV 10 %, in what they serve by CV 15 %; watched for 40 minutes. What [`FleetBuilder::regress`] changes is
    /// in the second and third ring.
    pub fn rings(seed: u64) -> FleetBuilder {
        Self::rings_under(seed, 1.0)
    }

    /// The same, but the pods of the third and fourth ring serve twice the requests; [`Fleet::FIXED_COST`] costs the same at any load, and
    /// [`Fleet::DEMO_FUNCTION`] more per request under load.
    pub fn rings_at_twice_the_load(seed: u64) -> FleetBuilder {
        let unequal = Self::rings_under(seed, 2.0).elasticity(Self::FIXED_COST, -1.0);
        unequal.elasticity(Self::DEMO_FUNCTION, Self::DEMO_ELASTICITY)
    }

    fn rings_under(seed: u64, load: f64) -> FleetBuilder {
        let minutes = |minutes: i64| Nanos::from_seconds(60 * minutes);
        Self::seeded(seed)
            .regions(["ap-south-1"])
            .cohorts(["Android-TV", "iOS-iPad"])
            .pods_per_cell(8, 24)
            .ring(Ring::new("v43", 8).starts_after(minutes(6)).load(load).with_changes())
            .ring(Ring::new("v44", 4).starts_after(minutes(11)).load(load))
            .pod_cv(0.1)
            .size_cv(0.15)
            .requests_per_second(20.0)
            .deploy_after(MINUTE)
            .lasts(minutes(40))
            .folded()
    }

    fn null(seed: u64) -> FleetBuilder {
        Self::seeded(seed)
            .calls(Calls::Zipf(500))
            .pod_cv(0.1)
            .already_deployed()
            .period(MINUTE)
            .lasts(HALF_HOUR)
            .folded()
    }
}
