//! Last pass: the samples of a group as stacks of raw counts.

use std::collections::BTreeMap;

use fleetdiff_schemas::identity::Cohort;
use fleetdiff_schemas::profile::Stack;
use fleetdiff_schemas::rejected::{Reason, Rejection};

use super::details::PartDetails;
use super::groups::Group;
use super::heads::{Family, ProfileHead};
use super::rows::{Rule, SampleRow};
use super::symbols::Symbols;
use crate::budget::Budget;
use crate::counts::{Columns, Counts, Weight, sampled_allocations, weight_column};
use crate::labels::Measure;
use crate::period::Period;
use crate::ticks::{Clock, FoundPeriod, Ticks};
use crate::values::Values;

/// What a row of allocations is counted as until it is joined.
const ROW: usize = 128;

/// Makes the stacks of groups.
pub(super) struct Walk<'s, 'd, 'a> {
    pub(super) symbols: &'s mut Symbols<'d, 'a>,
    pub(super) budget: &'s Budget,
    /// What stands beside the stacks, if that is asked for.
    pub(super) details: Option<&'s mut PartDetails>,
    /// Whether the tick of times must be known.
    pub(super) values: Values,
    /// Whether functions are those of one thread.
    pub(super) by_thread: bool,
}

impl<'a> Walk<'_, '_, 'a> {
    /// The stacks of a group, those without a raw sample left out.
    pub(super) fn stacks(&mut self, group: &Group<'a>, period: Option<Period>) -> Result<Vec<Stack>, Rejection> {
        let measure = Measure { period, values: self.values, ..Measure::of(group.profile_type) };
        let weight = Weight::of(&columns_of(group), measure);
        match Counts::choose(columns_of(group), measure) {
            Ok(Counts::Column(column)) => self.of_column(group, column, Rule::Count, weight),
            Ok(Counts::Time { column, clock }) => {
                let ticks = ticks(group, column, clock, self.budget)?;
                match (self.details.as_deref_mut(), ticks.found) {
                    (Some(details), found) => details.found = found,
                    (None, found) => found.into_iter().for_each(FoundPeriod::log),
                }
                self.of_column(group, column, Rule::Time(ticks), weight)
            }
            Ok(Counts::Allocations { objects, bytes, period }) => {
                let [Some(objects), Some(bytes)] = [objects, bytes].map(|column| group.columns.get(column)) else {
                    return Ok(Vec::new());
                };
                self.of_allocations(objects, bytes, period)
            }
            // A clock by another name: where each observation has a timestamp they can still be counted.
            Err(fault) => match group.columns.iter().position(|column| matches!(column.family, Family::Sampled(_))) {
                Some(column) => {
                    self.of_column(group, column, Rule::Events, weight).map_err(|found| match found.reason {
                        Reason::UnitMismatch => fault,
                        _ => found,
                    })
                }
                None => Err(fault),
            },
        }
    }

    fn of_column(
        &mut self,
        group: &Group<'a>,
        column: usize,
        mut rule: Rule,
        weight: Weight,
    ) -> Result<Vec<Stack>, Rejection> {
        let Some(column) = group.columns.get(column) else { return Ok(Vec::new()) };
        let weighed = self.details.is_some().then(|| weights_of(group, column)).flatten();
        self.begin(weighed);
        let mut stacks = self.budget.list(column.samples.len())?;
        let (mut other, mut beside) = (SampleRow::new(self.budget), SampleRow::new(self.budget));
        let mut row = SampleRow::keeping(self.details.is_some(), self.budget);
        for (place, sample) in column.samples.iter().enumerate() {
            row.read(sample)?;
            let count = row.count(&mut rule)?;
            let value = match weight {
                Weight::Unknown => 0,
                Weight::Each(nanoseconds) => count.saturating_mul(nanoseconds),
                Weight::Column(place_of, scale) => {
                    let weights = group.columns.get(place_of);
                    let found = weights.and_then(|weights| weight_at(weights, place, &row, &mut beside));
                    found.unwrap_or(0).saturating_mul(scale)
                }
            };
            let stack = self.stack(&row, count, value)?;
            if let Some(details) = self.details.as_deref_mut().filter(|_| stack.is_some()) {
                details.add(&row, &rule, weighed.and_then(|weights| weight_at(weights, place, &row, &mut other)));
            }
            stacks.extend(stack);
        }
        Ok(stacks)
    }

    fn begin(&mut self, weights: Option<&ProfileHead<'a>>) {
        if let Some(details) = self.details.as_deref_mut() {
            details.begin(weights);
        }
    }

    /// Allocations: the two columns list the same rows, and in the same order where they come from pprof.
    fn of_allocations(
        &mut self,
        objects: &ProfileHead<'a>,
        bytes: &ProfileHead<'a>,
        period: i64,
    ) -> Result<Vec<Stack>, Rejection> {
        self.begin(Some(bytes));
        if objects.samples.len() == bytes.samples.len() {
            let mut stacks = self.budget.list(objects.samples.len())?;
            let (mut row, mut other) = (SampleRow::new(self.budget), SampleRow::new(self.budget));
            let mut pairs = objects.samples.iter().zip(&bytes.samples);
            let side_by_side = pairs.try_for_each(|(objects, bytes)| {
                row.read(objects)?;
                other.read(bytes)?;
                if row.key() != other.key() {
                    return Err(None);
                }
                let count = sampled_allocations(row.total(), other.total(), period);
                stacks.extend(self.weighed(&row, count, other.total())?);
                Ok::<(), Option<Rejection>>(())
            });
            match side_by_side {
                Ok(()) => return Ok(stacks),
                Err(Some(fault)) => return Err(fault),
                Err(None) => {}
            }
        }
        self.joined(objects, bytes, period)
    }

    /// Allocations listed in any order: joined by stack and attributes, rows of the same added up.
    fn joined(
        &mut self,
        objects: &ProfileHead<'a>,
        bytes: &ProfileHead<'a>,
        period: i64,
    ) -> Result<Vec<Stack>, Rejection> {
        self.begin(Some(bytes));
        let mut rows: BTreeMap<(u64, Vec<u64>), [u64; 2]> = BTreeMap::new();
        let mut row = SampleRow::new(self.budget);
        for (side, column) in [objects, bytes].into_iter().enumerate() {
            for sample in &column.samples {
                row.read(sample)?;
                self.budget.take(ROW + size_of::<u64>() * row.attributes.len())?;
                let value = row.total();
                let sums = rows.entry((row.stack, row.attributes.clone())).or_default();
                if let Some(sum) = sums.get_mut(side) {
                    *sum = sum.saturating_add(value);
                }
            }
        }
        let mut stacks = self.budget.list(rows.len())?;
        for ((stack, attributes), [objects, bytes]) in rows {
            (row.stack, row.attributes) = (stack, attributes);
            stacks.extend(self.weighed(&row, sampled_allocations(objects, bytes, period), bytes)?);
        }
        Ok(stacks)
    }

    /// The stack of a row of allocations, its weight put beside it.
    fn weighed(&mut self, row: &SampleRow, count: u64, weight: u64) -> Result<Option<Stack>, Rejection> {
        let stack = self.stack(row, count, weight)?;
        if let Some(details) = self.details.as_deref_mut().filter(|_| stack.is_some()) {
            details.add(row, &Rule::Count, Some(weight));
        }
        Ok(stack)
    }

    /// The stack of a row, whose samples stand for so much; nothing if it holds no raw sample.
    fn stack(&mut self, row: &SampleRow, count: u64, value: u64) -> Result<Option<Stack>, Rejection> {
        let cohort = self.cohort(row)?;
        let mut frames = self.symbols.unfold(row.stack, self.budget)?;
        if self.by_thread && count > 0 {
            self.symbols.of_thread(&mut frames, &row.attributes, self.budget)?;
        }
        Ok((count > 0).then_some(Stack { frames, count, cohort, value }))
    }

    fn cohort(&mut self, row: &SampleRow) -> Result<Option<Cohort>, Rejection> {
        for attribute in &row.attributes {
            let cohort = self.symbols.cohort(*attribute, self.budget)?;
            if cohort.is_some() {
                return Ok(cohort);
            }
        }
        Ok(None)
    }
}

/// The column that says what the samples of another weigh: itself, if it is of time.
fn weights_of<'g, 'a>(group: &'g Group<'a>, counted: &ProfileHead<'a>) -> Option<&'g ProfileHead<'a>> {
    let (column, _) = weight_column(&columns_of(group), group.profile_type)?;
    group.columns.get(column).filter(|column| column.samples.len() == counted.samples.len())
}

/// The weight that stands in another column at the place of a row, if it is one of the same.
fn weight_at(weights: &ProfileHead<'_>, place: usize, row: &SampleRow, other: &mut SampleRow) -> Option<u64> {
    other.read(weights.samples.get(place)?).ok()?;
    (other.key() == row.key() && other.has_values()).then(|| other.total())
}

/// The tick of a column of time, in the rows that do not say when each of their samples was taken.
fn ticks(group: &Group<'_>, column: usize, clock: Clock, budget: &Budget) -> Result<Ticks, Rejection> {
    let samples = group.columns.get(column).map_or(&[][..], |column| &column.samples);
    let mut row = SampleRow::new(budget);
    clock.ticks(samples.iter().map(|sample| row.read(sample).map(|()| row.untimed())))
}

fn columns_of<'a>(group: &Group<'a>) -> Columns<'a> {
    let first = group.columns.first();
    Columns {
        kinds: group.columns.iter().map(|column| column.kind).collect(),
        period_type: first.map(|column| column.period_type),
        period: first.map_or(0, |column| column.period),
    }
}
