//! The rows of a flame graph, each placed upon the one before it.

use fleetdiff_schemas::profile::Stack;
use fleetdiff_schemas::rejected::{Reason, Rejection};

use super::document::Flamebearer;
use crate::budget::Budget;
use crate::collected::Collected;
use crate::labels::Contents;
use crate::sink::{FrameDetails, SampleDetails, SampleSink};

/// The name of what a server did not draw.
const NOT_DRAWN: &str = "other";

/// A bar where it stands.
struct Bar {
    start: u64,
    end: u64,
    own: u64,
    name: usize,
    /// The bar below it, by its place in the list of all.
    below: Option<usize>,
}

/// All bars of a flame graph, row by row, the root first.
pub(super) struct Bars<'a> {
    graph: &'a Flamebearer<'a>,
    list: Vec<Bar>,
    budget: Budget,
}

impl<'a> Bars<'a> {
    /// Places all bars.
    ///
    /// # Errors
    /// `negative_value`, `index_out_of_range` (a name) or `malformed` with row and bar if they do not fit together.
    pub(super) fn new(graph: &'a Flamebearer<'a>, budget: &Budget) -> Result<Self, Rejection> {
        let mut bars = Self { graph, list: Vec::new(), budget: budget.clone() };
        let mut below = 0..0;
        for (row, number) in graph.levels.iter().zip(1u64..) {
            let start = bars.list.len();
            bars.row(row, below)
                .map_err(|fault| Rejection { detail: format!("row {number}: {}", fault.detail), ..fault })?;
            below = start..bars.list.len();
        }
        bars.check_sums()?;
        Ok(bars)
    }

    /// Places a row upon the bars of the row below.
    fn row(&mut self, row: &[i64], mut below: std::ops::Range<usize>) -> Result<(), Rejection> {
        let (quads, rest) = row.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(malformed(&format!("{} numbers, expected four a bar", row.len())));
        }
        let root = self.list.is_empty();
        let mut end = 0u64;
        for quad in quads {
            let [offset, total, own, name] = *quad;
            let start = sum(end, whole(offset)?)?;
            end = sum(start, whole(total)?)?;
            // Both rows go from left to right, so that what ends before this bar will hold no later one either.
            while below.start < below.end && self.list.get(below.start).is_some_and(|bar| bar.end < end) {
                below.start += 1;
            }
            let holds = |place: &usize| self.list.get(*place).is_some_and(|bar| bar.start <= start && end <= bar.end);
            let found = Some(below.start).filter(|_| !below.is_empty()).filter(holds);
            if found.is_none() && !root {
                return Err(malformed(&format!("the bar from {start} to {end} lies on none of the row before")));
            }
            let bar = Bar { start, end, own: whole(own)?, name: self.name(name)?, below: found };
            self.budget.push(&mut self.list, bar)?;
        }
        Ok(())
    }

    fn name(&self, index: i64) -> Result<usize, Rejection> {
        let names = self.graph.names.len();
        usize::try_from(index)
            .ok()
            .filter(|index| *index < names)
            .ok_or_else(|| Rejection::new(Reason::IndexOutOfRange, format!("name {index} in a table of {names}")))
    }

    /// A bar is as long as what lies on it and its self count together, and the root as long as the whole.
    fn check_sums(&self) -> Result<(), Rejection> {
        let ticks = whole(self.graph.num_ticks)?;
        let roots = self.list.iter().filter(|bar| bar.below.is_none());
        let roots = roots.fold(0u64, |length, bar| length.saturating_add(bar.end - bar.start));
        if roots != ticks {
            return Err(malformed(&format!("the first row is {roots} long, but numTicks is {ticks}")));
        }
        self.budget.take(self.list.len() * size_of::<u64>())?;
        let mut covered: Vec<u64> = self.list.iter().map(|bar| bar.own).collect();
        for bar in &self.list {
            if let Some(covered) = bar.below.and_then(|below| covered.get_mut(below)) {
                *covered = sum(*covered, bar.end - bar.start)?;
            }
        }
        match self.list.iter().zip(covered).find(|(bar, covered)| bar.end - bar.start != *covered) {
            Some((bar, covered)) => Err(malformed(&format!(
                "a bar of {} holds {covered} in itself and what lies on it",
                bar.end - bar.start
            ))),
            None => Ok(()),
        }
    }

    /// Each bar with a self count as a stack, without the root.
    pub(super) fn stacks(&self, mut collected: Collected<'_>) -> Result<Contents, Rejection> {
        let not_drawn = |name: &str| if name == NOT_DRAWN { String::new() } else { name.to_owned() };
        self.budget.take(self.graph.names.len() * 2 * size_of::<u32>())?;
        let names = self.graph.names.iter().map(|name| collected.frame(&not_drawn(&name.0), FrameDetails::default()));
        let names = names.collect::<Result<Vec<u32>, _>>()?;
        for bar in self.list.iter().filter(|bar| bar.own > 0) {
            collected.sample(
                Stack { frames: self.path(bar, &names)?, count: bar.own, cohort: None, value: 0 },
                SampleDetails::default(),
            )?;
        }
        collected.finish()
    }

    fn path(&self, bar: &Bar, names: &[u32]) -> Result<Vec<u32>, Rejection> {
        let mut path = Vec::new();
        let mut next = Some(bar);
        while let Some((bar, below)) = next.and_then(|bar| Some((bar, bar.below?))) {
            if let Some(name) = names.get(bar.name) {
                self.budget.push(&mut path, *name)?;
            }
            next = self.list.get(below);
        }
        path.reverse();
        Ok(path)
    }
}

fn whole(number: i64) -> Result<u64, Rejection> {
    u64::try_from(number).map_err(|_| Rejection::new(Reason::NegativeValue, format!("a value of {number}")))
}

fn sum(a: u64, b: u64) -> Result<u64, Rejection> {
    a.checked_add(b).ok_or_else(|| Rejection::new(Reason::TooLarge, "the lengths add up to more than 2^64"))
}

fn malformed(detail: &str) -> Rejection {
    Rejection::new(Reason::Malformed, detail)
}
