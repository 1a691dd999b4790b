//! What can be said about a row, a cell or a comparison, and why.

use serde::{Deserialize, Serialize};

macro_rules! named_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $text)] $variant),+
        }

        impl $name {
            /// Its name in tables and alerts.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// The value of this name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($text => Some(Self::$variant),)+ _ => None }
            }

            /// Every value's name.
            pub const NAMES: &'static [&'static str] = &[$($text),+];
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

named_enum! {
    /// The verdict of a row.
    Verdict {
        /// The arms cannot be compared with each other.
        NotComparable = "not_comparable",
        /// Too few replicates, or a row that holds all samples.
        Untestable = "untestable",
        /// Too few samples.
        TooRare = "too_rare",
        /// The function costs more.
        Regressed = "regressed",
        /// The function costs less.
        Improved = "improved",
        /// With one run a side, where the variation between runs is unknown: it differs by more than most functions do.
        StandsOut = "stands_out",
        /// A minority of the head's pods differ, named in the row; the head as a whole does not.
        SomePodsOutlying = "some_pods_outlying",
        /// The share moved only because another function's did.
        Compositional = "compositional",
        /// Moved, renamed or inlined: in the other build another function has its cost, named in the row.
        Moved = "moved",
        /// Equivalent: the change is shown to be within five percent.
        Equivalent = "equivalent",
        /// Neither significant nor equivalent.
        Inconclusive = "inconclusive",
    }
}

impl Verdict {
    /// Whether the row is significant.
    pub fn is_significant(self) -> bool {
        matches!(self, Self::Regressed | Self::Improved)
    }
}

named_enum! {
    /// How well the number of replicates supports a test.
    Support {
        /// At least 5 pods in each arm.
        Firm = "firm",
        /// 2 to 4 pods in the smaller arm.
        Tentative = "tentative",
        /// Fewer: the figures are shown and not tested.
        Untestable = "untestable",
    }
}

named_enum! {
    /// What a limit is for.
    Limited {
        /// Distinct functions.
        Functions = "functions",
        /// Distinct call paths.
        Paths = "paths",
        /// Cells.
        Cells = "cells",
        /// Builds.
        Builds = "builds",
        /// Pods.
        Pods = "pods",
        /// Counts within the window.
        Bytes = "bytes",
    }
}

named_enum! {
    /// Why a row has its verdict.
    RowReason {
        /// No time block and hardware has both arms.
        NoCommonStratum = "no_common_stratum",
        /// There is nothing to compare with.
        NoBase = "no_base",
        /// Frames without symbols.
        Unsymbolised = "unsymbolised",
        /// Functions that exceed the limits of the service, counted together.
        Overflow = "overflow",
        /// Fewer than one in a hundred samples of both arms are outside of this function.
        WholeProfile = "whole_profile",
        /// An arm has fewer than 2 pods, or the buckets leave fewer than 2 degrees of freedom.
        FewPods = "few_pods",
        /// The number of samples missing to 30.
        CountNeeded = "count_needed",
        /// Fewer than 30 samples; both their number and the number of pods that have them differ significantly.
        Rare = "rare",
        /// The change after normalization and the change of the plain share have opposite signs.
        ContradictsShare = "contradicts_share",
        /// The pods of the arms serve different numbers of requests, and load alone may have made the change.
        LoadDiffers = "load_differs",
        /// Processes of one arm have run longer, and memory in use may differ for that alone.
        AgeDiffers = "age_differs",
        /// One pod, named in the row, makes the change; without it the change is gone.
        OnePod = "one_pod",
        /// Two groups of functions moved apart, and the data cannot say which one stood still.
        AmbiguousScale = "ambiguous_scale",
        /// The base does not have the function.
        OnlyInHead = "only_in_head",
        /// The head does not have the function.
        OnlyInBase = "only_in_base",
        /// More time would decide it.
        NeedsTime = "needs_time",
        /// More pods would decide it; more time would not.
        NeedsPods = "needs_pods",
        /// The function is rarely sampled at this load.
        LowLoad = "low_load",
    }
}

named_enum! {
    /// The verdict of a comparison, in a cell or over all cells.
    ComparisonVerdict {
        /// No row could be compared.
        NotComparable = "not_comparable",
        /// At least one function costs more, or all functions together cost more per request.
        Regressed = "regressed",
        /// All functions together cost less per request, and none costs more.
        Improved = "improved",
        /// No function costs more, and most of the base's samples are in equivalent functions.
        Clean = "clean",
        /// Neither significant nor shown to be unchanged.
        Inconclusive = "inconclusive",
    }
}

named_enum! {
    /// The period over which a row was computed.
    Scope {
        /// The last 30 minutes.
        Window = "window",
        /// Since the comparison's epoch began.
        Epoch = "epoch",
    }
}

named_enum! {
    /// What a head is compared with.
    BaseKind {
        /// Builds that run at the same time.
        Concurrent = "concurrent",
        /// Samples of builds that no longer run, from the same hours of the day.
        History = "history",
    }
}

named_enum! {
    /// What is known about a flagged function in one cell of its comparison.
    FanOutState {
        /// Flagged: it costs more.
        Regressed = "regressed",
        /// Flagged: it costs less.
        Improved = "improved",
        /// Not flagged, and most of the base's samples in the cell are in equivalent functions.
        Clean = "clean",
        /// Not flagged, but no change is not shown either.
        Unknown = "unknown",
    }
}

named_enum! {
    /// What happened to a flag.
    FlagState {
        /// The live rule flags the row.
        Raised = "raised",
        /// The effect or its support moved.
        Updated = "updated",
        /// The row is no longer flagged.
        Cleared = "cleared",
    }
}

named_enum! {
    /// What happened to an incident.
    IncidentState {
        /// A cause has its first flag.
        Raised = "raised",
        /// One of its flags was raised, updated or cleared, and some still stand.
        Updated = "updated",
        /// Another cause explains it: that incident goes on.
        Superseded = "superseded",
        /// None of its flags stands any more.
        Cleared = "cleared",
    }
}

named_enum! {
    /// Who should look at a flag or an incident, and how soon.
    Severity {
        /// A regression on firm support.
        Page = "page",
        /// A regression on tentative support.
        Ticket = "ticket",
        /// An improvement.
        Info = "info",
    }
}

named_enum! {
    /// The verdict of a row of `scaling`.
    ScalingVerdict {
        /// A request costs more at higher load.
        MoreExpensive = "more_expensive_under_load",
        /// A request costs less at higher load: part of the cost does not depend on requests.
        Cheaper = "cheaper_under_load",
        /// A request costs the same: the elasticity is shown to be within .05 of 0.
        Linear = "linear",
        /// The head's elasticity is larger than the base's.
        ScalesWorse = "scales_worse",
        /// The head's elasticity is smaller than the base's.
        ScalesBetter = "scales_better",
        /// The two elasticities are shown to be within .05 of each other.
        ScalesEqually = "scales_equally",
        /// Neither significant nor shown to be unchanged.
        Inconclusive = "inconclusive",
        /// This load can say nothing; the reason says why.
        Withheld = "withheld",
    }
}

named_enum! {
    /// Why a row of `scaling` has its verdict.
    ScalingReason {
        /// Fewer than three pods served.
        FewPods = "few_pods",
        /// Fewer than twelve minutes with requests.
        FewMinutes = "few_minutes",
        /// Load did not move enough.
        LoadSpanTooSmall = "load_span_too_small",
        /// Load only rose, or only fell: whatever else changed with time looks like load.
        LoadIsTime = "load_is_time",
        /// Costs drift for so long that the minutes hold too little of it.
        DriftOutlastsWindow = "drift_outlasts_window",
        /// The number of samples missing to the floor.
        CountNeeded = "count_needed",
        /// All samples are at one end of the load.
        AtOneEnd = "at_one_end",
    }
}

named_enum! {
    /// Which way a level of pods moved from base to head.
    LevelDirection {
        /// It is significantly higher, by more than the margin.
        Up = "up",
        /// It is significantly lower, by more than the margin.
        Down = "down",
        /// It is shown to be within the margin.
        Flat = "flat",
        /// Neither.
        Unknown = "unknown",
    }
}

named_enum! {
    /// What allocation, memory in use and its growth say together.
    HeapClass {
        /// More is in use, it grows, and no more is allocated: what was freed before is kept.
        HiddenLeak = "hidden_leak",
        /// More is in use, it grows, and more is allocated.
        Leak = "leak",
        /// More is in use, and it does not grow.
        RetentionStep = "retention_step",
        /// More is allocated, and no more is in use.
        Churn = "churn",
        /// Less is allocated, and no more is in use.
        Win = "win",
        /// Neither changed.
        Unchanged = "unchanged",
        /// A figure is not known, or they fit no class.
        Unknown = "unknown",
    }
}

impl HeapClass {
    /// Whether ever more memory is kept.
    #[must_use]
    pub fn is_leak(self) -> bool {
        matches!(self, Self::HiddenLeak | Self::Leak)
    }
}

named_enum! {
    /// Why a level of pods, or a class of memory, is unknown.
    LevelReason {
        /// No profile of allocations was counted in both arms at the same time.
        NoAllocations = "no_allocations",
        /// No snapshot of the memory in use was counted in both arms at the same time.
        NoSnapshots = "no_snapshots",
        /// Profiles do not say how many bytes, or how much time, their samples stand for.
        NoValues = "no_values",
        /// Requests are not known.
        NoRequests = "no_requests",
        /// Fewer than two buckets of pods in an arm, on hardware and of an age that both arms have.
        FewPods = "few_pods",
        /// Fewer than two buckets of pods in an arm have three snapshots over five minutes.
        NeedsTime = "needs_time",
        /// Too few samples of the function.
        CountNeeded = "count_needed",
        /// Pods of one arm serve more requests, and load alone may have made the change.
        LoadDiffers = "load_differs",
        /// Processes of one arm have run longer, and that alone may have made the change of memory in use.
        AgeDiffers = "age_differs",
        /// Neither significant nor shown to be within the margin.
        Imprecise = "imprecise",
        /// All figures are known, and no class has them.
        NoClass = "no_class",
    }
}

impl LevelReason {
    /// Whether something else than the build may have made the change: then it has no direction, however significant it is.
    pub fn is_other_cause(self) -> bool {
        matches!(self, Self::LoadDiffers | Self::AgeDiffers)
    }
}

named_enum! {
    /// Which time a row of `waiting` is about.
    TimeMeasure {
        /// On a processor and off it, together.
        CpuAndOffCpu = "cpu_and_off_cpu",
        /// Off a processor.
        OffCpu = "off_cpu",
        /// By the clock on the wall.
        Wall = "wall",
        /// Delay of those that wait for a lock, attributed to its holder.
        Mutex = "mutex",
        /// Delay of those that wait.
        Block = "block",
    }
}

named_enum! {
    /// What a time is divided by.
    TimePer {
        /// Requests served.
        Request = "request",
        /// Profiles taken.
        Profile = "profile",
    }
}
