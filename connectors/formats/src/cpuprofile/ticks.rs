//! The ticks of a file as samples.

use fleetdiff_schemas::profile::{ProfileType, Stack};
use fleetdiff_schemas::rejected::{Reason, Rejection};

use super::document::{Document, Node};
use super::tree::Tree;
use crate::budget::Budget;
use crate::json;
use crate::record::Record;
use crate::sink::{FrameDetails, SampleDetails, SampleSink};

/// Gives the ticks of a record as samples. Where times are not asked for, the ticks of a node are one entry.
pub(crate) fn read<S: SampleSink>(record: &Record<'_>, sink: &mut S) -> Result<(), Rejection> {
    check_type(record.measure.profile_type)?;
    let document: Document<'_> = json::read("cpuprofile", record.text, &record.budget)?;
    let nodes = document.nodes()?;
    let times = if S::KEEPS_DETAILS { document.times(&record.budget)? } else { None };
    let met = document.samples.as_deref();
    let ticked = Ticked { nodes, met, times: times.as_deref(), thread: SampleDetails::default() };
    ticked.give(record.measure.profile_type, &record.budget, sink)?;
    if times.is_some() {
        sink.weighed_in("time/nanoseconds");
    }
    Ok(())
}

/// The ticks of a thread.
pub(crate) struct Ticked<'t, 'a> {
    pub(crate) nodes: &'t [Node<'a>],
    /// The node that each tick met; of files that do not say it, nodes have counts.
    pub(crate) met: Option<&'t [u32]>,
    /// Of each tick, when it was and how long it was until the next, in nanoseconds, if that is known.
    pub(crate) times: Option<&'t [[i64; 2]]>,
    /// What is known of the thread.
    pub(crate) thread: SampleDetails,
}

impl Ticked<'_, '_> {
    /// Gives them as samples of a type. Where times are not asked for, the ticks of a node are one entry.
    pub(crate) fn give<S: SampleSink>(
        &self,
        kind: ProfileType,
        budget: &Budget,
        sink: &mut S,
    ) -> Result<(), Rejection> {
        let tree = Tree::new(self.nodes, budget)?;
        let counts = counts(self.met, &tree, budget)?;
        let frame = |node: &Node<'_>| {
            let symbol = Some(node.call_frame.name());
            sink.frame(&node.call_frame.full_name(), FrameDetails { symbol, ..FrameDetails::default() })
        };
        budget.take(tree.nodes.len() * 2 * size_of::<u32>())?;
        let frames = tree.nodes.iter().map(frame).collect::<Result<Vec<_>, _>>()?;
        let met = self.met.unwrap_or_default();
        let ticks = Ticks { met, tree: &tree, frames: &frames, kind, thread: self.thread, budget };
        match self.times.filter(|_| sink.wants_times()) {
            Some(times) => ticks.one_by_one(times, sink),
            None => ticks.by_node(counts, self.times, sink),
        }
    }
}

/// The ticks of a thread and the frames of its nodes.
struct Ticks<'t, 'a> {
    /// The node that each tick met.
    met: &'t [u32],
    tree: &'t Tree<'a>,
    frames: &'t [u32],
    kind: ProfileType,
    thread: SampleDetails,
    budget: &'t Budget,
}

impl Ticks<'_, '_> {
    /// Whether ticks at a node are samples of this type.
    fn is_counted(&self, place: usize) -> bool {
        self.kind != ProfileType::Cpu || !self.tree.nodes.get(place).is_some_and(|node| node.call_frame.is_idle())
    }

    fn stack(&self, place: usize, count: u64) -> Result<Stack, Rejection> {
        Ok(Stack { frames: self.tree.path(place, self.frames, self.budget)?, count, cohort: None, value: 0 })
    }

    /// Each tick by itself; `times` are those of each.
    fn one_by_one<S: SampleSink>(&self, times: &[[i64; 2]], sink: &mut S) -> Result<(), Rejection> {
        for (id, [at, weight]) in self.met.iter().zip(times) {
            let place = self.tree.place(*id)?;
            if self.is_counted(place) {
                let weight = u64::try_from(*weight).ok();
                let details = SampleDetails { at: Some(*at), weight, ..self.thread };
                sink.sample(self.stack(place, 1)?, details)?;
            }
        }
        Ok(())
    }

    /// All ticks of a node together; `times` are those of each tick, or none.
    fn by_node<S: SampleSink>(
        &self,
        counts: Vec<u64>,
        times: Option<&[[i64; 2]]>,
        sink: &mut S,
    ) -> Result<(), Rejection> {
        self.budget.take(self.tree.nodes.len() * size_of::<u64>())?;
        let mut weights = vec![0u64; self.tree.nodes.len()];
        for (id, [_, weight]) in self.met.iter().zip(times.unwrap_or_default()) {
            let sum = weights.get_mut(self.tree.place(*id)?);
            sum.into_iter().for_each(|sum| *sum = sum.saturating_add(u64::try_from(*weight).unwrap_or(0)));
        }
        for (place, (count, weight)) in counts.into_iter().zip(weights).enumerate() {
            if count > 0 && self.is_counted(place) {
                let weight = times.map(|_| weight);
                let details = SampleDetails { weight, ..self.thread };
                sink.sample(self.stack(place, count)?, details)?;
            }
        }
        Ok(())
    }
}

/// How often each node was met, by its place.
fn counts(met: Option<&[u32]>, tree: &Tree<'_>, budget: &Budget) -> Result<Vec<u64>, Rejection> {
    budget.take(tree.nodes.len() * size_of::<u64>())?;
    let Some(samples) = met else {
        return Ok(tree.nodes.iter().map(|node| node.hit_count).collect());
    };
    let mut ticks = vec![0; tree.nodes.len()];
    for (id, number) in samples.iter().zip(1u64..) {
        let place = tree
            .place(*id)
            .map_err(|fault| Rejection { detail: format!("sample {number}: {}", fault.detail), ..fault })?;
        ticks.get_mut(place).into_iter().for_each(|count| *count += 1);
    }
    Ok(ticks)
}

/// Whether ticks can be samples of a type.
pub(crate) fn check_type(kind: ProfileType) -> Result<(), Rejection> {
    match kind {
        ProfileType::Cpu | ProfileType::Wall => Ok(()),
        _ => {
            let detail = format!("ticks of V8 labelled {}, expected cpu or wall", kind.name());
            Err(Rejection::new(Reason::UnsupportedType, detail))
        }
    }
}
