//! The family of the live rule: which rows are rejected at a look, over all cells, types and kinds of one comparison.
//!
//! Every row that was tested at some look of the epoch is a member, and the row of all samples together of each cell in
//! which requests are known. These hold a tenth of the weight together, so that they are found soon however many
//! functions there are; functions share the rest by their part of their cell's cost. Current e-values decide (weighted
//! e-BH), so that frequent looks do not add false positives.

use fleetdiff_schemas::number::{float, signed_float};
use fleetdiff_statistics::evalue::{ALL_WEIGHT, e_bh, weighted};
use fleetdiff_statistics::families::importance;

use crate::evidence::look::KindLook;
use crate::evidence::row::RowEvidence;

/// The members of the family at a look.
#[derive(Clone, Copy, Debug, Default)]
pub struct LiveFamily {
    /// Rows of functions.
    functions: u64,
    /// What these weigh together.
    importance: f64,
    /// Rows of all samples together.
    all: u64,
}

impl LiveFamily {
    /// Adds the members of one kind of count of one cell.
    pub fn add(&mut self, look: &KindLook) {
        self.functions += look.joined;
        self.importance += look.weight;
        self.all += u64::from(look.all_joined);
    }

    /// Which rows weighted e-BH rejects at level `q`, by place, and which other hypotheses, given by ln of their e-values; each weighs 1.
    pub fn rejected<'a>(
        &self,
        rows: impl Iterator<Item = &'a RowEvidence>,
        others: &[f64],
        q: f64,
    ) -> (Vec<bool>, Vec<bool>) {
        let (mut ln_e, mut weights): (Vec<f64>, Vec<f64>) =
            rows.map(|row| (row.row.ln_e.unwrap_or(f64::NAN), self.weight(row))).unzip();
        let rows = ln_e.len();
        ln_e.extend(others);
        weights.resize(ln_e.len(), 1.0);
        let mut rejected = e_bh(&weighted(&ln_e, &weights), q, usize::try_from(self.members()).unwrap_or(usize::MAX));
        let others = rejected.split_off(rows);
        (rejected, others)
    }

    /// ln of the e-value that one more row of weight 1 needs, where `rejected` rows are rejected at level `q`.
    pub fn ln_e_needed(&self, rejected: usize, q: f64) -> f64 {
        let rejected = float(u64::try_from(rejected).unwrap_or(0).max(1));
        libm::log(float(self.members().max(1)) / (q * rejected))
    }

    fn members(&self) -> u64 {
        self.functions + self.all
    }

    fn weight(&self, row: &RowEvidence) -> f64 {
        if row.of_all {
            return ALL_WEIGHT * float(self.members()) / float(self.all.max(1));
        }
        let figures = &row.row;
        let part = signed_float(figures.head.count + figures.base.count)
            / signed_float(figures.head.total + figures.base.total);
        let of_functions = if self.all > 0 { 1.0 - ALL_WEIGHT } else { 1.0 };
        of_functions * importance(part) * float(self.functions) / self.importance
    }
}
