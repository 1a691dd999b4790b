//! Groups of a cell, from rows and stacks that are written down.

use std::collections::BTreeMap;

use fleetdiff_schemas::identity::stable_hash;
use fleetdiff_schemas::number::float;

use super::*;
use crate::evidence::callers::{CallerCount, Callers};

fn hash(name: &str) -> u64 {
    stable_hash(name.as_bytes())
}

/// A cell of 100,000 samples of each build.
#[derive(Default)]
struct Cell<'t> {
    parts: Vec<Part<'t>>,
    callers: CallerCounts,
}

impl<'t> Cell<'t> {
    /// A function with so many samples of its own in head and base, of these in parts under some callers.
    fn with(mut self, name: &'t str, own: [u64; 2], callers: &[(&str, u64)]) -> Self {
        let [head, base] = own.map(|samples| float(samples) / 1e5);
        for kind in CountKind::ALL {
            let function = hash(name);
            let se = ((head + base) / 1e5).sqrt();
            self.parts.push(Part {
                kind,
                function,
                name,
                head,
                base,
                counts: own.map(float),
                se,
                ln_normalization: 0.0,
                normalization_variance: 0.0,
            });
        }
        let above: BTreeMap<u64, u64> = callers.iter().map(|(caller, samples)| (hash(caller), *samples)).collect();
        let name_of_most = callers.first().map(|(caller, _)| (*caller).to_owned());
        self.callers.callers.insert(hash(name), Callers { first: above.clone(), leaf: above, name: name_of_most });
        self.callers.blocks = vec![[100_000; 2]];
        self.callers.stacks.push(CallerCount { functions: vec![hash(name)], own: true, samples: vec![own] });
        self
    }

    /// What became of functions, by name; of groups of each kind of count that of self counts.
    fn groups(&self) -> Vec<(How, Vec<&str>)> {
        let mut groups = groups(&self.parts, &self.callers, &[]);
        groups.retain(|group| group.members[0].kinds.contains(&CountKind::SelfCount));
        let name =
            |function: u64| self.parts.iter().find(|part| part.function == function).map_or("", |part| part.name);
        groups.iter().map(|group| (group.how, group.functions().map(name).collect())).collect()
    }
}

#[test]
fn a_renamed_function_is_known_by_its_callers_and_cost() {
    let cell = |callers: &[(&str, u64)], base: u64| {
        Cell::default().with("new", [2000, 0], &[("serve", 9), ("load", 1)]).with("old", [0, base], callers)
    };
    let pair = vec![(How::Renamed, vec!["old", "new"])];
    assert_eq!(cell(&[("serve", 7), ("load", 3)], 2100).groups(), pair);
    assert_eq!(cell(&[("serve", 7), ("load", 3)], 3900).groups(), pair, "less than twice as much");
    assert_eq!(cell(&[("serve", 7), ("load", 3)], 5000).groups(), [], "more than twice as much");
    assert_eq!(cell(&[("load", 7), ("serve", 3)], 2100).groups(), [], "other callers");
}

#[test]
fn functions_of_a_renamed_module_are_known_one_after_the_other() {
    let cell = Cell::default()
        .with("old::page", [0, 3000], &[("serve", 1)])
        .with("old::row", [0, 2000], &[("old::page", 1)])
        .with("old::cell", [0, 1900], &[("old::page", 1)])
        .with("new::page", [3000, 0], &[("serve", 1)])
        .with("new::row", [1900, 0], &[("new::page", 1)])
        .with("new::cell", [2000, 0], &[("new::page", 1)]);
    let mut pairs = cell.groups();
    pairs.sort_by_key(|(_, names)| names[0]);
    let expected = [["old::cell", "new::cell"], ["old::page", "new::page"], ["old::row", "new::row"]];
    let expected = expected.map(|names| (How::Renamed, names.to_vec()));
    assert_eq!(pairs, expected, "by the names that are most alike, not the costs");
}

#[test]
fn an_inlined_function_is_what_its_callers_do_more() {
    let cell = |caller: [u64; 2], other: [u64; 2]| {
        let cell = Cell::default().with("inlined", [0, 1000], &[("parse", 8), ("load", 2)]);
        cell.with("parse", caller, &[("serve", 1)]).with("load", other, &[("serve", 1)])
    };
    let both = [(How::Inlined, vec!["inlined", "parse", "load"])].map(|(how, mut names)| {
        names[1..].sort_by_key(|name| hash(name));
        (how, names)
    });
    assert_eq!(cell([1800, 1000], [700, 500]).groups(), both);
    assert_eq!(cell([1300, 1000], [510, 500]).groups(), [], "less than half of it is found");
    assert_eq!(cell([800, 1000], [700, 500]).groups(), [], "the caller that has most of it does not do more");
}

#[test]
fn a_function_is_found_in_a_caller_that_has_another_name() {
    let cell = Cell::default()
        .with("inlined", [0, 1000], &[("old::parse", 1)])
        .with("old::parse", [0, 1500], &[("serve", 1)])
        .with("new::parse", [2500, 0], &[("serve", 1)]);
    assert_eq!(cell.groups(), [(How::Inlined, vec!["inlined", "new::parse", "old::parse"])]);
}

#[test]
fn closures_that_were_renumbered_are_one() {
    let closures = |costs: [[u64; 2]; 3]| {
        let named = ["serve.func1", "serve.func2", "serve.func3"].into_iter().zip(costs);
        named.fold(Cell::default(), |cell, (name, own)| cell.with(name, own, &[("serve", 1)]))
    };
    let cell = closures([[10, 3000], [3000, 500], [500, 0]]);
    let shifted = cell.groups();
    assert_eq!(shifted.iter().map(|(how, names)| (*how, names.len())).collect::<Vec<_>>(), [(How::Renumbered, 3)]);
    assert_eq!(closures([[1000, 3000], [3000, 500], [500, 10]]).groups(), [], "each build has all of them");
    assert_eq!(closures([[3000, 2000], [3000, 500], [500, 0]]).groups(), [], "all cost more");
}

#[test]
fn the_function_that_changed_most_that_way_stands_for_a_group() {
    let cell = Cell::default().with("new", [3000, 0], &[("serve", 1)]).with("old", [0, 2000], &[("serve", 1)]);
    let mut group = groups(&cell.parts, &cell.callers, &[]).remove(1);
    assert!((group.theta - 1.5_f64.ln()).abs() < 1e-12);
    let rows = |group: &Group| {
        [("old", 0), ("new", 1)].map(|(name, _)| {
            group
                .place(CountKind::Total, hash(name))
                .and_then(|place| group.instead_of(place))
                .map(|instead| instead.name.clone())
        })
    };
    assert_eq!(rows(&group), [Some("new".to_owned()), Some("old".to_owned())]);
    group.stand();
    assert_eq!(rows(&group), [Some("new".to_owned()), None]);
    assert_eq!(group.sentence(1).split(';').next(), Some("moved or renamed: it was old in the base"));
    let joined = cell.callers.joined(&[group]);
    assert!(joined.stacks.iter().all(|stack| stack.functions == [hash("new")]));
}
