//! Every hop in turn, including empty ones, unless nothing happens in them.

use std::collections::BTreeMap;

use timely::dataflow::operators::Capability;

/// Items by hop, given for every hop in turn, including empty ones, from the first to the last hop with an item.
pub(super) struct Hops<D> {
    capability: Option<Capability<u64>>,
    waiting: BTreeMap<u64, Vec<D>>,
    next: Option<u64>,
}

impl<D> Hops<D> {
    pub fn new(capability: Capability<u64>) -> Self {
        Self { capability: Some(capability), waiting: BTreeMap::new(), next: None }
    }

    /// What is given begins with this hop, as if something had been given before.
    pub fn begin_with(&mut self, hop: u64) {
        self.next = Some(hop);
    }

    /// The right to give something at a hop that is not closed yet.
    pub fn capability_at(&self, hop: u64) -> Option<Capability<u64>> {
        self.capability.as_ref().map(|capability| capability.delayed(&hop))
    }

    pub fn put(&mut self, hop: u64, item: D) {
        self.waiting.entry(hop).or_default().push(item);
    }

    /// Calls `act` for every hop before `open_from` (for all hops if there is none), and says whether the hop is the
    /// last. If `act` returns a number of hops, empty hops that are further than this before the next item or the end are
    /// skipped: a silence of years costs nothing.
    pub fn advance(
        &mut self,
        open_from: Option<u64>,
        mut act: impl FnMut(u64, &Capability<u64>, Vec<D>, bool) -> Option<u64>,
    ) {
        let Some(capability) = &mut self.capability else { return };
        let next = self.next.or_else(|| self.waiting.keys().next().copied());
        let last = self.waiting.keys().next_back().copied();
        let end = open_from.or_else(|| last.map(|last| last + 1)).or(next);
        if let (Some(next), Some(end)) = (next, end) {
            let mut hop = next;
            while hop < end {
                capability.downgrade(&hop);
                let items = self.waiting.remove(&hop).unwrap_or_default();
                let stepped_before_next = act(hop, capability, items, open_from.is_none() && Some(hop) == last);
                hop += 1;
                if let Some(before) = stepped_before_next {
                    let busy = self.waiting.keys().next().copied().unwrap_or(end).min(end);
                    hop = hop.max(busy.saturating_sub(before));
                }
            }
            if end > next {
                self.next = Some(end);
            }
        }
        match open_from {
            Some(open_from) if open_from > *capability.time() => capability.downgrade(&open_from),
            Some(_) => {}
            None => self.capability = None,
        }
    }
}
