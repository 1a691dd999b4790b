//! One sample of the message: its stack, its attributes, and how many raw samples it is.
//!
//! A sample has values, or timestamps, or both, as many of the one as of the other. What has neither is of an older version, which
//! had other numbers for the same fields.

use fleetdiff_schemas::rejected::{Reason, Rejection};

use super::dictionary::of_other_version;
use crate::budget::Budget;
use crate::ticks::Ticks;
use crate::wire::{Value, WireFault, fields};

/// How the raw samples of a row are found.
#[derive(Clone, Debug)]
pub(super) enum Rule {
    /// The values are counts.
    Count,
    /// The values are of time, each with a timestamp one sample, all others a sample a tick.
    Time(Ticks),
    /// The same where no column is of the clock.
    Events,
}

/// One `Sample`; its buffers are kept from sample to sample.
pub(super) struct SampleRow {
    pub(super) stack: u64,
    pub(super) attributes: Vec<u64>,
    /// Values, and their sum.
    values: usize,
    sum: u64,
    timestamps: usize,
    /// Whether values and timestamps are kept one by one.
    keeps: bool,
    /// Whether a value stands by itself, and whether attributes are packed.
    lone: bool,
    packed: bool,
    each: Vec<u64>,
    times: Vec<u64>,
    budget: Budget,
}

impl SampleRow {
    /// None yet.
    pub(super) fn new(budget: &Budget) -> Self {
        Self {
            stack: 0,
            attributes: Vec::new(),
            values: 0,
            sum: 0,
            timestamps: 0,
            keeps: false,
            lone: false,
            packed: false,
            each: Vec::new(),
            times: Vec::new(),
            budget: budget.clone(),
        }
    }

    /// None yet; whether the values and timestamps of each are to be kept one by one.
    pub(super) fn keeping(keeps: bool, budget: &Budget) -> Self {
        Self { keeps, ..Self::new(budget) }
    }

    /// Reads the next sample.
    pub(super) fn read(&mut self, sample: &[u8]) -> Result<(), Rejection> {
        self.attributes.clear();
        self.each.clear();
        self.times.clear();
        (self.stack, self.values, self.sum, self.timestamps) = (0, 0, 0, 0);
        (self.lone, self.packed) = (false, false);
        let mut parts = fields(sample);
        while let Some((tag, value)) = parts.next()? {
            match tag {
                2 => {
                    self.packed |= matches!(value, Value::Bytes(_));
                    value.each(|index| self.budget.push(&mut self.attributes, index))?;
                }
                4 => self.take_values(value)?,
                5 => self.take_times(value)?,
                _ => self.take(tag, value).map_err(of_other_version)?,
            }
        }
        self.check()
    }

    fn take(&mut self, tag: u32, value: Value<'_>) -> Result<(), WireFault> {
        match tag {
            1 => self.stack = value.number()?,
            // A link; read only since older versions have something else here.
            3 => drop(value.number()?),
            _ => {}
        }
        Ok(())
    }

    fn take_times(&mut self, value: Value<'_>) -> Result<(), Rejection> {
        let (mut fault, timestamps, times) = (None, &mut self.timestamps, &mut self.times);
        let each = value.each_fixed(|at| {
            *timestamps += 1;
            if self.keeps && fault.is_none() {
                fault = self.budget.push(times, at).err();
            }
        });
        each.map_err(of_other_version)?;
        fault.map_or(Ok(()), Err)
    }

    fn take_values(&mut self, value: Value<'_>) -> Result<(), Rejection> {
        self.lone |= matches!(value, Value::Number(_));
        let (values, sum, each, keeps) = (&mut self.values, &mut self.sum, &mut self.each, self.keeps);
        let budget = &self.budget;
        value.each(|number| {
            let value = number.cast_signed();
            *values += 1;
            let value = u64::try_from(value)
                .map_err(|_| Rejection::new(Reason::NegativeValue, format!("a sample with the value {value}")))?;
            *sum = sum.saturating_add(value);
            if keeps {
                budget.push(each, value)?;
            }
            Ok(())
        })
    }

    /// NB: all writers of this version pack values, but async-profiler, which packs nothing and writes no timestamps. Otherwise a lone number is
    /// the link of an older version.
    fn check(&self) -> Result<(), Rejection> {
        if self.lone && (self.packed || self.timestamps > 0) {
            return Err(of_other_version(WireFault::OtherKind("a sample whose values are not packed")));
        }
        match (self.values, self.timestamps) {
            (0, 0) if self.attributes.is_empty() => {
                Err(Rejection::new(Reason::Malformed, "a sample with neither values nor timestamps"))
            }
            (0, 0) => Err(Rejection::new(
                Reason::UnsupportedVersion,
                "a sample with neither values nor timestamps where opentelemetry-proto 1.10 has them; until 1.9 values stood \
                 where attributes stand now",
            )),
            (values, timestamps) if values > 0 && timestamps > 0 && values != timestamps => Err(Rejection::new(
                Reason::Malformed,
                format!("a sample with {values} values for {timestamps} timestamps"),
            )),
            _ => Ok(()),
        }
    }

    /// Whether it has values, not timestamps alone.
    pub(super) fn has_values(&self) -> bool {
        self.values > 0
    }

    /// Its values, if they are kept.
    pub(super) fn each_value(&self) -> &[u64] {
        &self.each
    }

    /// Its timestamps, if they are kept.
    pub(super) fn times(&self) -> &[u64] {
        &self.times
    }

    /// What says that two rows are of the same.
    pub(super) fn key(&self) -> (u64, &[u64]) {
        (self.stack, &self.attributes)
    }

    /// The sum of its values; of timestamps alone, each counts 1.
    pub(super) fn total(&self) -> u64 {
        if self.values == 0 { events(self.timestamps) } else { self.sum }
    }

    /// Its value of time, if there is no better way to count it.
    pub(super) fn untimed(&self) -> u64 {
        if self.timestamps > 0 { 0 } else { self.sum }
    }

    /// Its raw samples.
    pub(super) fn count(&self, rule: &mut Rule) -> Result<u64, Rejection> {
        match rule {
            _ if self.values == 0 => Ok(events(self.timestamps)),
            Rule::Count => Ok(self.sum),
            Rule::Time { .. } | Rule::Events if self.timestamps > 0 => Ok(events(self.timestamps)),
            Rule::Time(ticks) => Ok(ticks.count(self.sum)),
            Rule::Events => Err(Rejection::new(Reason::UnitMismatch, "values of time without timestamps")),
        }
    }
}

fn events(timestamps: usize) -> u64 {
    u64::try_from(timestamps).unwrap_or(u64::MAX)
}
