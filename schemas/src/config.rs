//! The configuration of a run. Rows are a function of (records by partition, decisions, configuration).

mod limits;
mod shard;

pub use self::limits::{Limits, LimitsByHop};
pub use self::shard::{NoShard, Shard};

use std::sync::Arc;

use crate::identity::Build;
use crate::profile::CountKind;
use crate::time::{HopClock, Nanos};

/// Which dimensions make a cell; the other is merged and written `*`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CellBy {
    /// Region and cohort.
    #[default]
    RegionCohort,
    /// Cohort alone.
    Cohort,
    /// Region alone.
    Region,
    /// One cell.
    All,
}

/// Which comparisons are made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Comparing {
    /// Comparisons that follow from the order in which builds appear.
    #[default]
    Deploys,
    /// One, between named builds.
    Named {
        /// Builds that together are the base, as given.
        base: Vec<Build>,
        /// The build in question.
        head: Build,
    },
    /// Between named builds, each against the one before it and against the first, where they run side by side.
    Rings(Vec<Build>),
}

/// The method that decides which rows are significant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// Pods as replicates, strata, a robust normalization factor, two-level families and the live rule. The only
    /// calibrated method.
    #[default]
    Honest,
    /// G on merged counts, chi-square tail, one Benjamini-Hochberg family over all cells: for comparison, not calibrated.
    Article,
    /// Diff, then merge: G of each head pod against all base pods, combined by Fisher, the same family: not calibrated.
    ArticleB,
    /// The same, combined by Stouffer: not calibrated.
    ArticleBStouffer,
    /// Shares subtracted, no test: for comparison, not calibrated.
    Naive,
}

impl Method {
    /// Every method.
    pub const ALL: [Self; 5] = [Self::Honest, Self::Article, Self::ArticleB, Self::ArticleBStouffer, Self::Naive];

    /// Its name in configurations and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Honest => "honest",
            Self::Article => "article",
            Self::ArticleB => "article-b",
            Self::ArticleBStouffer => "article-b-stouffer",
            Self::Naive => "naive",
        }
    }

    /// Whether its false-positive rate was measured and is bounded; if not, it sends no alert.
    #[must_use]
    pub fn is_calibrated(self) -> bool {
        self == Self::Honest
    }

    /// Whether it decides rows of the window at every look, and not only at reports, without pods and strata.
    #[must_use]
    pub fn decides_windows_at_looks(self) -> bool {
        self == Self::Article
    }

    /// Whether each head pod is tested by itself and the tests are merged.
    #[must_use]
    pub fn tests_pods_one_by_one(self) -> bool {
        matches!(self, Self::ArticleB | Self::ArticleBStouffer)
    }
}

/// The whole configuration of the dataflow. Every length is rounded up to whole hops.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Width of a hop. 10 s: *published* (agents upload every 10 s).
    pub hop: Nanos,
    /// Length of the sliding window. 30 min: *published* (the window of the method's article).
    pub window: Nanos,
    /// How far the event times of one partition may be out of order. 30 s: *guess* (half a 30 s profile and its
    /// transport).
    pub lateness: Nanos,
    /// Pods of a partition that must have reached an event time before it is followed, where records are stamped by their
    /// senders; more than half if fewer send. 3: *guess* (two wrong clocks are outvoted).
    pub agreement: u64,
    /// What is cropped after a process start. 60 s: *guess* (caches and JIT of most services are warm by then).
    pub warm_up: Nanos,
    /// A process is young for this long: only pods of like age are compared, as soon as there are any. 0: ages do not
    /// matter. 10 min: *guess* (caches, JIT tiers and connection pools of most services have settled by then).
    pub young: Nanos,
    /// What is cropped before the end of a process. Each profile is held back for this long plus the length of one more
    /// profile. 0: *guess* (few programs have other costs at their end, and results would come later).
    pub drain: Nanos,
    /// Whether waiting that [`idle_defaults`](crate::idle::idle_defaults) lists is left out of `off_cpu` and `wall` profiles.
    /// True: *guess* (threads of services spend most time off the processor waiting for work).
    pub idle_defaults: bool,
    /// Further functions whose stacks are left out there, or with `!` before the name are kept; of one thread with ` @ ` and its name behind; `*` stands for any text.
    /// None: only the user knows them.
    pub idle: Vec<Arc<str>>,
    /// Whether requests arrive as separate metrics. If so, counted profiles are remembered through the window, to be
    /// joined with them.
    pub requests_from_metrics: bool,
    /// Evaluate at every hop whose end is a multiple of this. One hop: alerts come as early as possible.
    pub evaluate_every: Nanos,
    /// Write the table `cells` at every hop whose end is a multiple of this, and at the end. 10 min: *guess*.
    pub report_every: Nanos,
    /// An epoch rolls over after this. 6 h: *published* (STATISTICS: the family of a comparison's live rule).
    pub epoch: Nanos,
    /// How far history reaches back at least; it reaches at most twice as far. 0: no history is kept. 7 d: *guess* (a
    /// week holds each day of the week).
    pub history: Nanos,
    /// One hop is kept for history out of each period of this length. 1 min: *guess* (60 hops an hour and day).
    pub history_every: Nanos,
    /// False-discovery rate of each family. .05: *published* (Benjamini and Hochberg 1995).
    pub q: f64,
    /// Smallest change on the log scale that can be significant. .01: *measured* (simulated fleets, see docs).
    pub min_effect: f64,
    /// Smallest count of both arms together that is tested. 30: *published* (the floor of the method's article).
    pub min_count: u64,
    /// Head pods that open a comparison. 2: one pod is no replicate.
    pub min_head_pods: u64,
    /// What makes a cell.
    pub cell_by: CellBy,
    /// Which comparisons are made.
    pub comparing: Comparing,
    /// Which kinds are counted and tested, ascending.
    pub count_kinds: Vec<CountKind>,
    /// How much one service may bring.
    pub limits: Limits,
    /// The method that decides which rows are significant. `honest`: *measured* (the others are wrong more often than
    /// they say).
    pub method: Method,
    /// Of which services rows are made. Event time follows the records of all services, so that the rows of all shards together are
    /// those of one run over all services.
    pub shard: Shard,
    /// Whether rows of the archive are made: what was counted, pod by pod. No other row depends on it.
    pub archive: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            hop: Nanos::from_seconds(10),
            window: Nanos::from_seconds(1800),
            lateness: Nanos::from_seconds(30),
            agreement: 3,
            warm_up: Nanos::from_seconds(60),
            young: Nanos::from_seconds(600),
            drain: Nanos(0),
            idle_defaults: true,
            idle: Vec::new(),
            requests_from_metrics: false,
            evaluate_every: Nanos::from_seconds(10),
            report_every: Nanos::from_seconds(600),
            epoch: Nanos::from_seconds(21_600),
            history: Nanos::from_seconds(604_800),
            history_every: Nanos::from_seconds(60),
            q: 0.05,
            min_effect: 0.01,
            min_count: 30,
            min_head_pods: 2,
            cell_by: CellBy::default(),
            comparing: Comparing::default(),
            count_kinds: CountKind::ALL.to_vec(),
            limits: Limits::default(),
            method: Method::default(),
            shard: Shard::WHOLE,
            archive: false,
        }
    }
}

impl Config {
    /// The clock of this configuration.
    pub fn clock(&self) -> HopClock {
        HopClock::new(self.hop)
    }

    /// Hops in the window.
    pub fn window_hops(&self) -> u64 {
        self.clock().hops_in(self.window).max(1)
    }
    /// Hops after which what was not seen is forgotten: those of the retention, and at least two windows.
    pub fn retention_hops(&self) -> u64 {
        self.clock().hops_in(self.limits.retention).max(self.window_hops().saturating_mul(2))
    }
}
