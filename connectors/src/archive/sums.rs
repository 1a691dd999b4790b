//! The sums of two files: row by row, in the order of their keys, so that memory holds a few rows of each.

use std::cmp::Ordering;

use fleetdiff_schemas::rows::{CallTreeRow, FunctionNameRow, PodCountsRow, Span};
use fleetdiff_schemas::tables::{TableRow, by_key};

use crate::output::OutputError;
use crate::parquet::reading::Rows;

/// A row that can be added to another one with the same key.
pub(super) trait Summed: TableRow {
    /// It is about these hops now.
    fn spanning(self, span: Span) -> Self;

    /// The sum.
    fn plus(self, other: Self) -> Self;
}

/// The rows of two files about these hops, of which either may be missing; rows with the same key are added.
pub(super) fn merged<R: Summed>(
    files: [Option<Rows<R>>; 2],
    span: Span,
) -> impl Iterator<Item = Result<R, OutputError>> {
    let spanning = move |row: Result<R, OutputError>| row.map(|row| row.spanning(span));
    let [mut one, mut other] = files.map(|rows| rows.into_iter().flatten().map(spanning).peekable());
    std::iter::from_fn(move || match (one.peek(), other.peek()) {
        (Some(Ok(first)), Some(Ok(second))) => match by_key(first, second) {
            Ordering::Less => one.next(),
            Ordering::Greater => other.next(),
            Ordering::Equal => match (one.next()?, other.next()?) {
                (Ok(first), Ok(second)) => Some(Ok(first.plus(second))),
                (Err(error), _) | (_, Err(error)) => Some(Err(error)),
            },
        },
        (Some(Err(_)), _) | (Some(_), None) => one.next(),
        (_, _) => other.next(),
    })
}

fn add(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    match (one, other) {
        (None, known) | (known, None) => known,
        (Some(one), Some(other)) => Some(one.saturating_add(other)),
    }
}

/// Adds columns of numbers that belong to ascending keys; one that is empty has zeros.
fn add_lists<const N: usize>(
    (keys, lists): (&[i64], [&[i64]; N]),
    (other_keys, other_lists): (&[i64], [&[i64]; N]),
) -> (Vec<i64>, [Vec<i64>; N]) {
    let (mut one, mut other) = (0, 0);
    let (mut sums, mut columns) = (Vec::with_capacity(keys.len()), [(); N].map(|()| Vec::with_capacity(keys.len())));
    while one < keys.len() || other < other_keys.len() {
        let next = keys.get(one).into_iter().chain(other_keys.get(other)).min().copied().unwrap_or_default();
        let (in_one, in_other) = (keys.get(one) == Some(&next), other_keys.get(other) == Some(&next));
        sums.push(next);
        for (place, column) in columns.iter_mut().enumerate() {
            let of = |list: &[i64], at: usize, is_there: bool| list.get(at).copied().filter(|_| is_there).unwrap_or(0);
            column.push(of(lists[place], one, in_one).saturating_add(of(other_lists[place], other, in_other)));
        }
        one += usize::from(in_one);
        other += usize::from(in_other);
    }
    (sums, columns)
}

impl Summed for PodCountsRow {
    fn spanning(self, span: Span) -> Self {
        Self { span, ..self }
    }

    fn plus(self, other: Self) -> Self {
        fn lists(row: &PodCountsRow) -> (&[i64], [&[i64]; 4]) {
            (&row.functions, [&row.own, &row.total, &row.own_value, &row.total_value])
        }
        let has_values = !self.own_value.is_empty() || !other.own_value.is_empty();
        let (functions, [own, total, own_value, total_value]) = add_lists(lists(&self), lists(&other));
        let values = |values| if has_values { values } else { Vec::new() };
        Self {
            samples: self.samples.saturating_add(other.samples),
            requests: add(self.requests, other.requests),
            value: add(self.value, other.value),
            functions,
            own,
            total,
            own_value: values(own_value),
            total_value: values(total_value),
            ..self
        }
    }
}

impl Summed for FunctionNameRow {
    fn spanning(self, span: Span) -> Self {
        Self { span, ..self }
    }

    fn plus(self, _: Self) -> Self {
        self
    }
}

impl Summed for CallTreeRow {
    fn spanning(self, span: Span) -> Self {
        Self { span, ..self }
    }

    fn plus(self, other: Self) -> Self {
        // What is known of a node is the same in both, so that the one which has it says it.
        let whole = |row: &Self| -> std::collections::BTreeMap<i64, (i64, i64, i64)> {
            let rest = row.parents.iter().zip(&row.functions).zip(&row.samples);
            let rest = rest.map(|((parent, function), samples)| (*parent, *function, *samples));
            row.nodes.iter().copied().zip(rest).collect()
        };
        let mut nodes = whole(&self);
        for (node, (parent, function, samples)) in whole(&other) {
            let known = nodes.entry(node).or_insert((parent, function, 0));
            known.2 = known.2.saturating_add(samples);
        }
        Self {
            nodes: nodes.keys().copied().collect(),
            parents: nodes.values().map(|(parent, ..)| *parent).collect(),
            functions: nodes.values().map(|(_, function, _)| *function).collect(),
            samples: nodes.values().map(|(.., samples)| *samples).collect(),
            ..self
        }
    }
}
