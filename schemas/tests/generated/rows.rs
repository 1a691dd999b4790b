//! Rows of every table from a seed: unknown and infinite numbers, names in several scripts, several hours.
//!
//! Shared by the tests of rows, tables, alerts and Parquet files. Figures are arbitrary and do not fit together.

use fleetdiff_schemas::comparison::Side;
use fleetdiff_schemas::profile::{CountKind, Position, ProfileType};
use fleetdiff_schemas::rejected::{Reason, Rejection};
use fleetdiff_schemas::rows::*;
use fleetdiff_schemas::time::{Hop, Nanos};
use fleetdiff_schemas::verdict::*;

mod levels;

/// 2026-03-01T09:40:00Z: twenty minutes before the hour turns.
pub const START_SECONDS: i64 = 1_772_358_000;

/// The splitmix64 generator.
pub struct Generator(pub u64);

impl Generator {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn count(&mut self) -> i64 {
        i64::try_from(self.below(1_000_000)).unwrap()
    }

    fn number(&mut self) -> f64 {
        f64::from(u32::try_from(self.below(2_000_001)).unwrap()) / 7.0 - 100_000.0
    }

    fn known<T>(&mut self, value: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.below(4) > 0).then(|| value(self))
    }

    fn one_of<T: Clone>(&mut self, values: &[T]) -> T {
        let index = usize::try_from(self.next()).unwrap_or(usize::MAX) % values.len();
        values[index].clone()
    }

    fn interval(&mut self) -> Option<Interval> {
        self.known(|g| Interval { value: g.number(), low: g.number(), high: g.one_of(&[1.5, f64::INFINITY]) })
    }

    /// The end of one of 240 hops of 10 s.
    fn end(&mut self) -> Nanos {
        Nanos::from_seconds(START_SECONDS + 10 * i64::try_from(self.below(240)).unwrap())
    }

    fn comparison(&mut self) -> ComparisonKey {
        let profile_type = self.one_of(&ProfileType::ALL).0;
        ComparisonKey {
            service: self.one_of(&["media", "käse/kiosk", "キッチン"]).into(),
            profile_type,
            measure: profile_type.measure(),
            base_build: self.one_of(&["v1", "v1,v1-hotfix"]).into(),
            head_build: "v2".into(),
        }
    }

    fn cell_key(&mut self) -> CellKey {
        let region = self.one_of(&["eu-west-1", "ap-south-1", "*"]).into();
        CellKey { region, cohort: self.one_of(&["Android-TV", "iOS iPad", "*"]).into() }
    }

    fn function(&mut self) -> String {
        let name = self.one_of(&["serialize_video_chunk", "(*Server).\"handle\"", "operator<<\t\\", "関数"]);
        format!("{name}_{}", self.below(50))
    }

    fn names(&mut self) -> Vec<String> {
        (0..self.below(3)).map(|_| self.function()).collect()
    }

    fn arm(&mut self) -> ArmFigures {
        ArmFigures {
            count: self.count(),
            total: self.count(),
            share: self.known(Self::number),
            pods: self.count(),
            buckets: self.count(),
            requests: self.known(Self::count),
        }
    }

    pub fn cell(&mut self) -> CellRow {
        CellRow {
            scope: self.one_of(&[Scope::Window, Scope::Epoch]),
            comparison: self.comparison(),
            count_kind: self.one_of(&CountKind::ALL),
            cell: self.cell_key(),
            is_roll_up: self.below(2) == 0,
            provisional_until_at: self.known(Self::end),
            function: self.function(),
            functions: self.known(Self::count),
            window_start_at: self.end(),
            window_end_at: self.end(),
            head: self.arm(),
            base: self.arm(),
            share_delta: self.interval(),
            strata: self.count(),
            g: self.known(Self::number),
            ln_p_iid: self.known(Self::number),
            head_dispersion: self.known(Self::number),
            base_dispersion: self.known(Self::number),
            df: self.known(Self::number),
            statistic: self.known(Self::number),
            ln_p: self.known(Self::number),
            ln_p_min_effect: self.known(Self::number),
            young_ln_p: self.known(Self::number),
            ln_p_row: self.known(Self::number),
            weight: self.known(Self::number),
            function_ln_p: self.known(Self::number),
            q_value: self.known(Self::number),
            ratio: self.interval(),
            adjusted_ratio: self.interval(),
            adjusted_ln_p: self.known(Self::number),
            per_request_ratio: self.interval(),
            per_request_ln_p: self.known(Self::number),
            per_request_q_value: self.known(Self::number),
            ln_e: self.known(Self::number),
            always_valid_ln_p: self.known(Self::number),
            always_valid_ratio: self.interval(),
            rare_ln_p: self.known(Self::number),
            outlier_ln_p: self.known(Self::number),
            outlier_q_value: self.known(Self::number),
            outlying_pods: self.names(),
            minimum_detectable_ratio: self.known(Self::number),
            seconds_to_significance: self.known(|g| g.one_of(&[1.0, 86_400.5, f64::INFINITY])),
            pods_needed: self.known(Self::count),
            samples_needed_iid: self.known(Self::number),
            verdict: self.one_of(&[
                Verdict::Regressed,
                Verdict::Inconclusive,
                Verdict::TooRare,
                Verdict::SomePodsOutlying,
            ]),
            support: self.one_of(&[Support::Firm, Support::Tentative, Support::Untestable]),
            reason: self.known(|g| g.one_of(&[RowReason::NeedsPods, RowReason::NeedsTime])),
            cause: self.known(Self::function),
            detail: self.known(Self::function),
        }
    }

    pub fn evidence(&mut self) -> EvidenceRow {
        EvidenceRow {
            scope: self.one_of(&[Scope::Window, Scope::Epoch]),
            comparison: self.comparison(),
            count_kind: self.one_of(&CountKind::ALL),
            cell: self.cell_key(),
            is_roll_up: self.below(2) == 0,
            function: self.function().into(),
            window_end_at: self.end(),
            stratum: self.count(),
            arm: self.one_of(&Side::BOTH),
            bucket: self.count(),
            pods: self.count(),
            samples: self.count(),
            requests: self.count(),
            count: self.count(),
            pairs: self.count(),
            concentration: self.number(),
            shared: SharedFigures {
                pod_variance: self.number(),
                prior_df: self.number(),
                prior_dispersion: self.number(),
                calm: self.number(),
                normalization_factor: self.number(),
                smallest_factor: self.number(),
                largest_factor: self.number(),
            },
        }
    }

    pub fn flag(&mut self) -> FlagRow {
        let state = self.one_of(&[FlagState::Raised, FlagState::Updated, FlagState::Cleared]);
        FlagRow {
            row: self.cell(),
            flag_id: format!("{:016x}", self.next()),
            state,
            raised_at: self.end(),
            sequence: Hop(self.below(1_000)),
            severity: self.one_of(&[Severity::Page, Severity::Ticket, Severity::Info]),
            cleared_because: (state == FlagState::Cleared)
                .then(|| self.one_of(&["comparison_closed", "equivalent", "explained"]).into()),
            explains: self.names(),
        }
    }

    /// Without its flags, which are no column.
    pub fn incident(&mut self) -> IncidentRow {
        let state = self.one_of(&[
            IncidentState::Raised,
            IncidentState::Updated,
            IncidentState::Superseded,
            IncidentState::Cleared,
        ]);
        let comparison = self.comparison();
        let superseded = state == IncidentState::Superseded;
        IncidentRow {
            service: comparison.service,
            base_build: comparison.base_build,
            head_build: comparison.head_build,
            cause: self.function(),
            incident_id: format!("{:016x}", self.next()),
            state,
            severity: self.one_of(&[Severity::Page, Severity::Ticket, Severity::Info]),
            support: self.one_of(&[Support::Firm, Support::Tentative]),
            raised_at: self.end(),
            changed_at: self.end(),
            sequence: Hop(self.below(1_000)),
            regressed_in: self.names(),
            improved_in: self.names(),
            effect: self.interval(),
            share: self.known(Self::number),
            share_delta: self.interval(),
            always_valid_ln_p: self.known(Self::number),
            explains: self.names(),
            introduced_by: self.known(|g| g.comparison().head_build),
            found_in: self.names(),
            superseded_by: superseded.then(|| self.function()),
            superseded_by_id: superseded.then(|| format!("{:016x}", self.next())),
            provisional_until_at: self.known(Self::end),
            cleared_because: (state == IncidentState::Cleared).then(|| "equivalent".to_owned()),
            summary: "f costs 10 % more in \"eu\".".to_owned(),
            action: "Roll back v2.".to_owned(),
            confidence: "p = 1e-9.".to_owned(),
            impact: "+1.4 % of all samples.".to_owned(),
            flags: Vec::new(),
        }
    }

    pub fn verdict(&mut self) -> VerdictRow {
        let comparison = self.comparison();
        VerdictRow {
            service: comparison.service,
            base_build: comparison.base_build,
            head_build: comparison.head_build,
            verdict: self.one_of(&[ComparisonVerdict::Clean, ComparisonVerdict::Regressed]),
            changed_at: self.end(),
            sequence: Hop(self.below(1_000)),
            regressed_in: self.names(),
            improved_in: self.names(),
            causes: self.names(),
            summary: "2 of 9 cells cost more.".to_owned(),
            action: "Roll back v2.".to_owned(),
        }
    }

    pub fn comparison_row(&mut self) -> ComparisonRow {
        ComparisonRow {
            comparison: self.comparison(),
            count_kind: self.one_of(&CountKind::ALL),
            cell: self.cell_key(),
            is_roll_up: self.below(2) == 0,
            window_start_at: self.end(),
            window_end_at: self.end(),
            head_total: self.count(),
            base_total: self.count(),
            head_pods: self.count(),
            base_pods: self.count(),
            functions_tested: self.count(),
            normalization_factor: self.known(Self::number),
            admissible_factors: self.names(),
            head_pod_variance: self.known(Self::number),
            base_pod_variance: self.known(Self::number),
            flags: self.count(),
            time_blocks: self.count(),
            strata_dropped: self.count(),
            equivalent_share: self.known(Self::number),
            verdict: self.one_of(&[ComparisonVerdict::Clean, ComparisonVerdict::Regressed]),
            sentence: "3 functions cost more in \"ap-south-1\".".to_owned(),
            action: self.known(Self::function),
            aa_check_tests: self.known(Self::count),
            aa_check_flags: self.known(Self::count),
            warnings: self.names(),
            base_kind: self.one_of(&[BaseKind::Concurrent, BaseKind::History]),
        }
    }

    pub fn scaling(&mut self) -> ScalingRow {
        let comparison = self.comparison();
        let third = |g: &mut Self| AtLoad { share: g.known(Self::number), per_request: g.known(Self::number) };
        ScalingRow {
            service: comparison.service,
            profile_type: comparison.profile_type,
            measure: comparison.measure,
            count_kind: self.one_of(&CountKind::ALL),
            build: comparison.head_build,
            base_build: self.known(|_| comparison.base_build),
            cell: self.cell_key(),
            function: self.function().into(),
            functions: self.known(Self::count),
            window_start_at: self.end(),
            window_end_at: self.end(),
            basis: ScalingBasis {
                pods: self.count(),
                minutes: self.count(),
                requests: self.count(),
                total: self.count(),
                load_span: self.known(Self::number),
                persistence: self.known(Self::number),
                df: self.known(Self::number),
            },
            count: self.count(),
            elasticity: self.interval(),
            base_elasticity: self.interval(),
            elasticity_difference: self.interval(),
            ln_p: self.known(Self::number),
            q_value: self.known(Self::number),
            low: third(self),
            high: third(self),
            g: self.known(Self::number),
            ln_p_iid: self.known(Self::number),
            verdict: self.one_of(&[ScalingVerdict::Linear, ScalingVerdict::ScalesWorse]),
            reason: self.known(|g| g.one_of(&[ScalingReason::LoadIsTime, ScalingReason::CountNeeded])),
            needed: self.known(|_| "load must fall again".to_owned()),
        }
    }

    pub fn ring(&mut self) -> RingRow {
        let comparison = self.comparison();
        let step = |g: &mut Self| RingStep {
            build: g.known(|g| g.comparison().base_build),
            ratio: g.interval(),
            verdict: g.known(|g| g.one_of(&[Verdict::Regressed, Verdict::Equivalent])),
            reason: g.known(|g| g.one_of(&[RowReason::NeedsTime, RowReason::LoadDiffers])),
        };
        RingRow {
            service: comparison.service,
            profile_type: comparison.profile_type,
            measure: comparison.measure,
            count_kind: self.one_of(&CountKind::ALL),
            cell: self.cell_key(),
            function: self.function().into(),
            ring: self.count(),
            build: comparison.head_build,
            window_start_at: self.end(),
            window_end_at: self.end(),
            figures: self.arm(),
            previous: step(self),
            first: step(self),
        }
    }

    pub(super) fn in_rings(&mut self) -> InRings {
        InRings { introduced_by: self.known(|this| this.comparison().head_build), found_in: self.names() }
    }

    pub fn finding(&mut self) -> ScalingFindingRow {
        let comparison = self.comparison();
        let state = self.one_of(&[FlagState::Raised, FlagState::Updated, FlagState::Cleared]);
        ScalingFindingRow {
            service: comparison.service,
            profile_type: comparison.profile_type,
            base_build: comparison.base_build,
            head_build: comparison.head_build,
            cause: self.function().into(),
            state,
            severity: Severity::Ticket,
            raised_at: self.end(),
            changed_at: self.end(),
            sequence: Hop(self.below(1_000)),
            scales_worse_in: self.names(),
            elasticity: self.interval(),
            base_elasticity: self.interval(),
            elasticity_difference: self.interval(),
            share_high_load: self.known(Self::number),
            load_span: self.known(Self::number),
            rings: self.in_rings(),
            cleared_because: (state == FlagState::Cleared).then(|| "scales_equally".to_owned()),
            summary: "f scales worse in v2.".to_owned(),
            action: "Hold v2 back from peak.".to_owned(),
        }
    }

    pub fn ledger(&mut self) -> LedgerRow {
        LedgerRow {
            hop_at: self.end(),
            profile_type: self.one_of(&["cpu", "_unknown"]).into(),
            records_consumed: self.count(),
            records_decoded: self.count(),
            records_rejected: self.count(),
            samples_received: self.count(),
            samples_counted: self.count(),
            samples_late_counted: self.count(),
            samples_warm_up: self.count(),
            samples_late_dropped: self.count(),
            samples_duplicate: self.count(),
            samples_superseded: self.count(),
            samples_carried_over: self.count(),
            samples_drain: self.count(),
            samples_idle: self.count(),
            samples_rejected: self.count(),
        }
    }

    /// The partition distinguishes rows that were rejected at the same offset.
    pub fn rejected(&mut self) -> RejectedRow {
        let rejection = Rejection {
            reason: self.one_of(&Reason::ALL),
            detail: "the gzip stream ends after 17 of 4096 bytes".to_owned(),
            profile_type: self.known(|g| g.one_of(&ProfileType::ALL).0),
            samples: self.below(1_000),
            at: self.known(Self::end),
        };
        let position = Position {
            source: "profiles".into(),
            partition: i32::try_from(self.below(4)).unwrap(),
            offset: self.count(),
            file: self.known(|g| format!("pod-{}.pb.gz", g.below(9)).into()),
        };
        RejectedRow { hop_at: Some(self.end()), position, part: self.count(), rejection }
    }

    /// The partition distinguishes rows of the same pod at the same hop.
    pub fn clock(&mut self) -> ClockRow {
        ClockRow {
            hop_at: self.end(),
            source: "profiles".into(),
            partition: i32::try_from(self.below(4)).unwrap(),
            service: "video".into(),
            build: self.one_of(&["v40", "v41"]).into(),
            pod: format!("pod-{}", self.below(99)).as_str().into(),
            ahead: self.one_of(&[1, -1]) * self.count(),
            profiles: self.count(),
            samples: self.count(),
            samples_waited: self.count(),
            samples_rejected: self.count(),
            samples_late_dropped: self.count(),
        }
    }

    /// The service distinguishes rows about the same at one hop.
    pub fn limit(&mut self) -> LimitRow {
        LimitRow {
            hop_at: self.end(),
            service: format!("video {}", self.below(99)).as_str().into(),
            what: self.one_of(&[Limited::Functions, Limited::Pods, Limited::Bytes]),
            limit: self.count(),
            profiles: self.count(),
            samples: self.count(),
        }
    }

    /// Tables with `rows` rows each.
    pub fn tables(&mut self, rows: usize) -> Tables {
        Tables {
            cells: (0..rows).map(|_| self.cell()).collect(),
            evidence: (0..rows).map(|_| self.evidence()).collect(),
            flags: (0..rows).map(|_| self.flag()).collect(),
            comparisons: (0..rows).map(|_| self.comparison_row()).collect(),
            incidents: (0..rows).map(|_| self.incident()).collect(),
            verdicts: Vec::new(),
            scaling: (0..rows).map(|_| self.scaling()).collect(),
            rings: (0..rows).map(|_| self.ring()).collect(),
            scaling_findings: Vec::new(),
            heap: (0..rows).map(|_| self.heap()).collect(),
            waiting: (0..rows).map(|_| self.waiting()).collect(),
            stacks: (0..rows).map(|_| self.stack()).collect(),
            load_curves: (0..rows).map(|_| self.load_curve()).collect(),
            heap_findings: Vec::new(),
            ledger: (0..rows).map(|_| self.ledger()).collect(),
            rejected: (0..rows).map(|_| self.rejected()).collect(),
            clocks: (0..rows).map(|_| self.clock()).collect(),
            limits: (0..rows).map(|_| self.limit()).collect(),
            fan_out: Vec::new(),
            archived: Archived::default(),
        }
    }
}
