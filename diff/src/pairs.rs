//! Functions that have another name on each side, or none on one: renamed, moved, renumbered or inlined.
//!
//! A function is its name, so one that was renamed between two builds would be two findings, one that is new and one that is gone, although
//! nothing costs more. What is the same function is seen from what surrounds it: by which functions it is called, what it calls, and what it costs.
//! - **Renamed**: a function that only the base has and one that only the head has, with the same callers and callees and at most twice the
//!   samples (`pairs/renamed.rs`).
//! - **Renumbered**: closures that a compiler numbers in the order of the source, if their costs fit much better after their numbers moved
//!   (`pairs/renumbered.rs`).
//! - **Inlined**: a function that one side lacks, and whose samples and callees its callers have there instead (`pairs/inlined.rs`).
//!
//! Pairs are found before anything is tested. Each is then one function, with the name of the head, in tables and pictures alike, and is tested as
//! any other: if it costs more, it is a finding. Since pairs are chosen by similar cost, the ratio of a pair is nearer to 1 than it would be by
//! name, by as much as samples vary.

mod around;
mod inlined;
mod rename;
mod renamed;
mod renumbered;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::compare::{Compared, Overlap, Recording};
use crate::sides::{Side, Sides};

use self::around::Around;

/// The pairs of two sides.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairs {
    /// The name of the head, by that of the base.
    renamed: BTreeMap<Arc<str>, Arc<str>>,
    /// Functions that the other side has inlined, by the side that has them.
    inlined: Sides<Vec<Inlined>>,
}

/// A function that one side has, and whose work its callers do on the other.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Inlined {
    function: Arc<str>,
    /// Its most frequent caller, by its name on the head if it has two.
    into: Arc<str>,
}

impl Pairs {
    /// The pairs of functions with at least half of `fewest` samples on their side: fewer cannot become a finding. Different programs have none.
    pub fn of(sides: &Sides<Vec<Recording>>, fewest: u64) -> Self {
        let around = Sides { base: Around::of(&sides.base), head: Around::of(&sides.head) };
        let least = fewest.div_ceil(2).max(1);
        let mut renamed = renumbered::found(&around);
        loop {
            let more = renamed::found(&around, &renamed, least);
            if more.is_empty() {
                break;
            }
            renamed.extend(more);
        }
        let inlined = inlined::found(&around, &renamed, least);
        let pairs = Self { renamed, inlined };
        if pairs.is_empty() || Overlap::of(sides).is_too_small() { Self::default() } else { pairs }
    }

    /// How many functions have a pair.
    pub fn len(&self) -> usize {
        self.renamed.len() + self.inlined.base.len() + self.inlined.head.len()
    }

    /// Whether every function has one name.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A sentence for each pair.
    pub fn sentences(&self) -> impl Iterator<Item = String> {
        let renamed = self.renamed.iter().map(|(base, head)| format!("{head} was {base} in the base"));
        let sides = [(&self.inlined.base, "head"), (&self.inlined.head, "base")];
        let inlined = sides.into_iter().flat_map(|(inlined, where_)| {
            inlined.iter().map(move |one| format!("{} is part of {} in the {where_}, inlined", one.function, one.into))
        });
        renamed.chain(inlined)
    }

    /// The same runs, each pair under one name.
    #[must_use]
    pub fn joined(&self, mut sides: Sides<Vec<Recording>>) -> Sides<Vec<Recording>> {
        if self.is_empty() {
            return sides;
        }
        let nothing = BTreeMap::new();
        for (side, names) in [(Side::Base, &self.renamed), (Side::Head, &nothing)] {
            let inlined: BTreeSet<&str> = self.inlined_of(side).iter().map(|one| &*one.function).collect();
            for run in sides.of(side) {
                rename::rename(&mut run.profile, names, &inlined);
                if let Some(weights) = &mut run.weights {
                    rename::rename(&mut weights.profile, names, &inlined);
                }
            }
        }
        sides
    }

    /// Says in the findings what they were called in the base, and what is inlined in them.
    pub fn label(&self, compared: &mut Compared) {
        let was: BTreeMap<&str, &Arc<str>> = self.renamed.iter().map(|(base, head)| (&**head, base)).collect();
        for finding in &mut compared.findings {
            finding.base_function = was.get(&*finding.function).map(|base| Arc::clone(base));
            let of_side = |side, place: &str| {
                let here = self.inlined_of(side).iter().filter(|one| one.into == finding.function);
                let names: Vec<&str> = here.map(|one| &*one.function).collect();
                (!names.is_empty()).then(|| format!("with {}, inlined in the {place}", names.join(", ")))
            };
            let words: Vec<String> =
                [of_side(Side::Base, "head"), of_side(Side::Head, "base")].into_iter().flatten().collect();
            if finding.detail.is_none() && !words.is_empty() {
                finding.detail = Some(words.join("; "));
            }
        }
    }

    fn inlined_of(&self, side: Side) -> &[Inlined] {
        match side {
            Side::Base => &self.inlined.base,
            Side::Head => &self.inlined.head,
        }
    }
}
