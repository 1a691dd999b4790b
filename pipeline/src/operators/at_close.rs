//! Runs logic once a hop is closed.
//!
//! The law: `logic` sees each hop once, with all its items, in ascending order of hops, and never a hop without items.
//! Its output belongs to that hop.
//!
//! What an operator keeps from hop to hop is a [`State`], which checkpoints save. Logic that keeps nothing is a function.

use std::collections::BTreeMap;

use fleetdiff_schemas::time::Hop;
use timely::ExchangeData;
use timely::container::CapacityContainerBuilder;
use timely::dataflow::StreamVec;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::generic::Operator;

use crate::checkpoint::{Keeper, Loading, Saving, State, Unreadable};
use crate::operators::common::Common;

/// Items of one hop, which is closed, so that none can follow.
#[derive(Debug)]
pub struct Closed<D> {
    /// The hop.
    pub hop: u64,
    /// Its items, in no particular order.
    pub items: Vec<D>,
}

/// What is kept from hop to hop, and what it does when one closes.
pub trait AtHop<D>: State {
    /// What follows from a hop.
    type Output;

    /// Takes the items of a hop.
    fn close(&mut self, closed: Closed<D>) -> Vec<Self::Output>;

    /// What must be said once more, at the hop before the first one, if the state is that of a checkpoint: what comes after this
    /// operator and has no state of its own.
    fn say_again(&self) -> Vec<Self::Output> {
        Vec::new()
    }
}

/// See [`AtClose::at_close`].
pub trait AtClose<'scope, D> {
    /// Sends items to the worker that `route` names and calls `logic` once a hop is closed, with all its items.
    ///
    /// ```
    /// use fleetdiff_pipeline::operators::at_close::AtClose;
    /// use timely::dataflow::operators::{Capture, ToStream, capture::Extract};
    ///
    /// let sums = timely::example(|scope| {
    ///     let numbers = [1u64, 2, 3].to_stream(scope).container::<Vec<_>>();
    ///     numbers.at_close("sum", |_| 0, |closed| vec![closed.items.iter().sum::<u64>()]).capture()
    /// });
    /// assert_eq!(sums.extract(), [(0, vec![6])]);
    /// ```
    fn at_close<O: 'static>(
        self,
        name: &str,
        route: impl Fn(&D) -> u64 + 'static,
        logic: impl Fn(Closed<D>) -> Vec<O> + 'static,
    ) -> StreamVec<'scope, u64, O>;

    /// The same with a state, which is saved in checkpoints and is that of the checkpoint with which the run begins.
    fn keep_at_close<S: AtHop<D, Output: 'static> + 'static>(
        self,
        state: S,
        route: impl Fn(&D) -> u64 + 'static,
        common: &Common,
    ) -> StreamVec<'scope, u64, S::Output>;
}

impl<'scope, D: ExchangeData> AtClose<'scope, D> for StreamVec<'scope, u64, D> {
    fn at_close<O: 'static>(
        self,
        name: &str,
        route: impl Fn(&D) -> u64 + 'static,
        logic: impl Fn(Closed<D>) -> Vec<O> + 'static,
    ) -> StreamVec<'scope, u64, O> {
        closing(self, name, route, Nothing(logic), None)
    }

    fn keep_at_close<S: AtHop<D, Output: 'static> + 'static>(
        self,
        mut state: S,
        route: impl Fn(&D) -> u64 + 'static,
        common: &Common,
    ) -> StreamVec<'scope, u64, S::Output> {
        let keeper = common.keeper((self.scope().index(), self.scope().peers()), &mut state);
        closing(self, S::NAME, route, state, keeper)
    }
}

/// Logic that keeps nothing.
struct Nothing<F>(F);

impl<F> State for Nothing<F> {
    const NAME: &'static str = "";

    fn save(&self, _: &mut Saving) {}

    fn load(&mut self, _: &Loading<'_>) -> Result<(), Unreadable> {
        Ok(())
    }
}

impl<D, O, F: Fn(Closed<D>) -> Vec<O>> AtHop<D> for Nothing<F> {
    type Output = O;

    fn close(&mut self, closed: Closed<D>) -> Vec<O> {
        (self.0)(closed)
    }
}

fn closing<'scope, D: ExchangeData, S: AtHop<D, Output: 'static> + 'static>(
    items: StreamVec<'scope, u64, D>,
    name: &str,
    route: impl Fn(&D) -> u64 + 'static,
    mut state: S,
    mut keeper: Option<Keeper>,
) -> StreamVec<'scope, u64, S::Output> {
    items.unary_frontier::<CapacityContainerBuilder<Vec<S::Output>>, _, _, _>(
        Exchange::new(route),
        name,
        move |capability, _| {
            let mut open = BTreeMap::new();
            let mut again = Again::new(capability, keeper.as_ref(), &state);
            move |(input, frontier), output| {
                if let Some((capability, said)) = again.take() {
                    output.session(&capability).give_iterator(said.into_iter());
                }
                input.for_each_time(|time, data| {
                    let hop = *time.time();
                    let (_, items) = open.entry(hop).or_insert_with(|| (time.retain(0), Vec::new()));
                    data.for_each(|batch| items.append(batch));
                });
                while let Some(entry) = open.first_entry()
                    && !frontier.less_equal(entry.key())
                {
                    let (hop, (capability, items)) = entry.remove_entry();
                    if let Some(keeper) = &mut keeper {
                        keeper.reach(Hop(hop), &state);
                    }
                    output.session(&capability).give_iterator(state.close(Closed { hop, items }).into_iter());
                }
                if let (Some(keeper), Some(hop)) = (&mut keeper, frontier.frontier().first()) {
                    keeper.reach(Hop(*hop), &state);
                }
            }
        },
    )
}

/// What an operator says again when a run goes on, and the right to say it at that hop.
struct Again<O>(Option<(Capability<u64>, Vec<O>)>);

impl<O> Again<O> {
    fn new<D, S: AtHop<D, Output = O>>(capability: Capability<u64>, keeper: Option<&Keeper>, state: &S) -> Self {
        let from = keeper.map(Keeper::begun_from).filter(|from| *from > Hop(0));
        Self(from.map(|from| (capability.delayed(&from.minus(1).0), state.say_again())))
    }

    fn take(&mut self) -> Option<(Capability<u64>, Vec<O>)> {
        self.0.take()
    }
}
