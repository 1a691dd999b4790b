//! Classes of memory: four cells with the same truth, decided by the rules of the table `heap`.

use fleetdiff_pipeline::evidence::heap::HeapEvidence;
use fleetdiff_pipeline::rules::heap::decide;
use fleetdiff_schemas::comparison::ComparisonId;
use fleetdiff_schemas::rows::CellKey;
use fleetdiff_schemas::time::{Hop, HopClock, Nanos};
use fleetdiff_schemas::verdict::HeapClass;
use fleetdiff_statistics::pod_levels::{LevelChange, PodLevel};
use fleetdiff_statistics::{Arms, Side};

use super::super::chance::Multipliers;
use super::super::figure::{Figure, Observed, Seen};
use super::super::row::{Chance, Q, Row};
use super::ratio;

const CELLS: [&str; 4] = ["a", "b", "c", "d"];

/// What is true of all cells, and what is asked of them.
struct Truth {
    pods: Arms<usize>,
    cv: f64,
    /// Head over base of what a request allocates, and of what a pod has in use.
    allocated: f64,
    in_use: f64,
    /// By how much more the logarithm of what is in use grows in an hour.
    growth: f64,
    asks: Asks,
    figure: Figure,
}

/// What is asked of the cells.
enum Asks {
    /// How many have this class.
    Of(HeapClass),
    /// How many have a class that is neither this nor `unknown`.
    OtherThan(HeapClass),
    /// Whether any has this class.
    AnyOf(&'static [HeapClass]),
}

pub(super) fn row() -> Row {
    let truths = truths();
    let simulates =
        "classes of memory in 4 cells; pods log-normal, growth of a pod of sd .1 an hour; each figure is of other pods";
    let figures = truths.iter().map(|truth| truth.figure).collect();
    let observe = move |chance: &mut Chance| truths.iter().map(|truth| truth.observed(chance)).collect();
    Row { repeats: 4, ..Row::new("memory classes", simulates, figures, observe) }
}

fn truths() -> Vec<Truth> {
    use HeapClass::{Churn, HiddenLeak, Leak, RetentionStep, Unchanged, Win};
    const CHANGES: &[HeapClass] = &[HiddenLeak, Leak, RetentionStep, Churn, Win];
    const LEAKS: &[HeapClass] = &[HiddenLeak, Leak];
    let (many, few) = (Arms { head: 60, base: 240 }, Arms { head: 3, base: 16 });
    let of = |pods, cv, (allocated, in_use, growth), asks, figure| Truth {
        pods,
        cv,
        allocated,
        in_use,
        growth,
        asks,
        figure,
    };
    let (none, trade) = ((1.0, 1.0, 0.0), (0.7, 1.5, 0.0));
    let (hidden, leak, step) = ((0.8, 1.3, 0.3), (1.3, 1.3, 0.3), (1.0, 1.3, 0.0));
    let (churn, win) = ((1.3, 1.0, 0.0), (0.8, 1.0, 0.0));
    let found = |name| Figure::rate(name).at_least(0.8);
    let wrong = |name| Figure::rate(name).at_most(0.05);
    vec![
        of(many, 0.1, none, Asks::AnyOf(CHANGES), wrong("unchanged, 60 v 240 pods: P(any cell has a class of change)")),
        of(
            few,
            0.3,
            none,
            Asks::AnyOf(CHANGES),
            wrong("unchanged, 3 v 16 pods, CV 30 %: P(any cell has a class of change)"),
        ),
        of(
            few,
            0.1,
            trade,
            Asks::AnyOf(LEAKS),
            wrong("x .7 allocated, x 1.5 in use, 3 v 16 pods: P(any cell is a leak)"),
        ),
        of(many, 0.1, none, Asks::Of(Unchanged), found("unchanged, 60 v 240 pods: cells found unchanged")),
        of(
            many,
            0.1,
            hidden,
            Asks::Of(HiddenLeak),
            found("x .8 allocated, x 1.3 in use, +.3 an hour: cells found to be a hidden leak"),
        ),
        of(many, 0.1, hidden, Asks::OtherThan(HiddenLeak), wrong("the same: cells with another class")),
        of(
            many,
            0.1,
            leak,
            Asks::Of(Leak),
            found("x 1.3 allocated, x 1.3 in use, +.3 an hour: cells found to be a leak"),
        ),
        of(many, 0.1, leak, Asks::OtherThan(Leak), wrong("the same, of other pods: cells with another class")),
        of(many, 0.1, step, Asks::Of(RetentionStep), found("x 1.3 in use: cells found to be a step")),
        of(many, 0.1, step, Asks::OtherThan(RetentionStep), wrong("x 1.3 in use: cells with another class")),
        of(many, 0.1, churn, Asks::Of(Churn), found("x 1.3 allocated: cells found to be churn")),
        of(many, 0.1, churn, Asks::OtherThan(Churn), wrong("x 1.3 allocated: cells with another class")),
        of(many, 0.1, win, Asks::Of(Win), found("x .8 allocated: cells found to be a win")),
        of(many, 0.1, win, Asks::OtherThan(Win), wrong("x .8 allocated: cells with another class")),
    ]
}

impl Truth {
    fn observed(&self, chance: &mut Chance) -> Observed {
        let evidence: Option<Vec<_>> = CELLS.iter().map(|name| Some((cell(name), self.evidence(chance)?))).collect();
        let id = ComparisonId { service: "api".into(), base: vec!["v1".into()], head: "v2".into() };
        let clock = HopClock::new(Nanos::from_seconds(10));
        let rows = decide(&id, evidence.unwrap_or_default(), Hop(180), (clock, 180), Q);
        let number = |is_meant: &dyn Fn(HeapClass) -> bool| {
            u32::try_from(rows.iter().filter(|row| is_meant(row.class)).count()).unwrap_or(u32::MAX)
        };
        let of = u32::try_from(CELLS.len()).unwrap_or(u32::MAX);
        Observed::only(match self.asks {
            Asks::Of(class) => Seen::Hits { hits: number(&|found| found == class), of },
            Asks::OtherThan(class) => {
                Seen::Hits { hits: number(&|found| found != class && found != HeapClass::Unknown), of }
            }
            Asks::AnyOf(classes) => Seen::whether(number(&|found| classes.contains(&found)) > 0),
        })
    }

    fn evidence(&self, chance: &mut Chance) -> Option<HeapEvidence> {
        let cv = Arms { head: self.cv, base: self.cv };
        let allocated = ratio(self.pods, cv, self.allocated, chance)?;
        let in_use = ratio(self.pods, cv, self.in_use, chance)?;
        let spread = Multipliers::with_sd(0.1);
        let growth = Arms::of(|side| {
            let more = if side == Side::Head { self.growth } else { 0.0 };
            let mut next = || libm::log(spread.next(&mut chance.rng)) + more;
            (0..self.pods[side]).map(|_| PodLevel { value: next(), counting: 0.0 }).collect()
        });
        Some(HeapEvidence::of_changes(allocated, in_use, LevelChange::difference(&[growth])?))
    }
}

fn cell(name: &str) -> CellKey {
    CellKey { region: name.into(), cohort: "tv".into() }
}
