//! Rows of levels of pods, memory and waiting, and of stacks and minutes.

use fleetdiff_schemas::comparison::Side;
use fleetdiff_schemas::profile::CountKind;
use fleetdiff_schemas::rows::{HeapFindingRow, HeapRow, LevelFace, LoadCurveRow, StackRow, WaitingRow};
use fleetdiff_schemas::time::Hop;
use fleetdiff_schemas::verdict::*;

use super::Generator;

impl Generator {
    pub fn heap(&mut self) -> HeapRow {
        let comparison = self.comparison();
        HeapRow {
            service: comparison.service,
            base_build: comparison.base_build,
            head_build: comparison.head_build,
            count_kind: self.one_of(&CountKind::ALL),
            cell: self.cell_key(),
            function: self.function().into(),
            window_start_at: self.end(),
            window_end_at: self.end(),
            alloc: self.face(),
            live: self.face(),
            slope: self.face(),
            support: self.one_of(&[Support::Firm, Support::Tentative]),
            class: self.one_of(&[HeapClass::HiddenLeak, HeapClass::Win, HeapClass::Unknown]),
            reason: self.known(|g| g.one_of(&[LevelReason::NeedsTime, LevelReason::NoClass])),
        }
    }

    pub fn waiting(&mut self) -> WaitingRow {
        let comparison = self.comparison();
        WaitingRow {
            service: comparison.service,
            base_build: comparison.base_build,
            head_build: comparison.head_build,
            measure: self.one_of(&[TimeMeasure::CpuAndOffCpu, TimeMeasure::Mutex]),
            count_kind: self.one_of(&CountKind::ALL),
            cell: self.cell_key(),
            function: self.function().into(),
            thread: self.known(|g| g.function().into()),
            window_start_at: self.end(),
            window_end_at: self.end(),
            per: self.one_of(&[TimePer::Request, TimePer::Profile]),
            time: self.face(),
            cpu_head: self.known(Self::number),
            cpu_base: self.known(Self::number),
            off_cpu_head: self.known(Self::number),
            off_cpu_base: self.known(Self::number),
            samples_head: 17,
            samples_base: 0,
            support: self.one_of(&[Support::Firm, Support::Tentative]),
        }
    }

    pub fn load_curve(&mut self) -> LoadCurveRow {
        LoadCurveRow {
            comparison: self.comparison(),
            cell: self.cell_key(),
            function: self.function().into(),
            arm: self.one_of(&Side::BOTH),
            minute_at: self.end(),
            window_end_at: self.end(),
            pods: 3,
            requests: 600,
            count: 0,
            load: self.number(),
            per_request: self.number(),
        }
    }

    pub fn stack(&mut self) -> StackRow {
        StackRow {
            comparison: self.comparison(),
            cell: self.cell_key(),
            window_start_at: self.end(),
            window_end_at: self.end(),
            stack: (0..3).map(|_| self.function()).collect(),
            head_samples: 40,
            base_samples: 0,
        }
    }

    fn face(&mut self) -> LevelFace {
        LevelFace {
            head: self.known(Self::number),
            base: self.known(Self::number),
            change: self.interval(),
            ln_p: self.known(Self::number),
            q_value: self.known(Self::number),
            tests: self.known(Self::count),
            direction: self.one_of(&[LevelDirection::Up, LevelDirection::Unknown]),
            reason: self.known(|g| g.one_of(&[LevelReason::FewPods, LevelReason::Imprecise])),
        }
    }

    pub fn heap_finding(&mut self) -> HeapFindingRow {
        let comparison = self.comparison();
        let state = self.one_of(&[FlagState::Raised, FlagState::Updated, FlagState::Cleared]);
        HeapFindingRow {
            service: comparison.service,
            base_build: comparison.base_build,
            head_build: comparison.head_build,
            class: HeapClass::HiddenLeak,
            state,
            severity: Severity::Ticket,
            raised_at: self.end(),
            changed_at: self.end(),
            sequence: Hop(self.below(1_000)),
            leaks_in: self.names(),
            carried_by: self.names(),
            alloc_ratio: self.interval(),
            live_ratio: self.interval(),
            slope_difference: self.interval(),
            rings: self.in_rings(),
            cleared_because: (state == FlagState::Cleared).then(|| "no_longer_found".to_owned()),
            summary: "v2 keeps more memory.".to_owned(),
            action: "Look at what f keeps.".to_owned(),
        }
    }
}
