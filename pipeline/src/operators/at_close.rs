//! Runs logic once a hop is closed.
//!
//! The law: `logic` sees each hop once, with all its items, in ascending order of hops, and never a hop without items.
//! Its output belongs to that hop.

use std::collections::BTreeMap;

use timely::ExchangeData;
use timely::dataflow::StreamVec;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::Operator;

/// Items of one hop, and whether every hop is closed now (so that none can follow).
#[derive(Debug)]
pub struct Closed<D> {
    /// The hop.
    pub hop: u64,
    /// Its items, in no particular order.
    pub items: Vec<D>,
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
        logic: impl FnMut(Closed<D>) -> Vec<O> + 'static,
    ) -> StreamVec<'scope, u64, O>;
}

impl<'scope, D: ExchangeData> AtClose<'scope, D> for StreamVec<'scope, u64, D> {
    fn at_close<O: 'static>(
        self,
        name: &str,
        route: impl Fn(&D) -> u64 + 'static,
        mut logic: impl FnMut(Closed<D>) -> Vec<O> + 'static,
    ) -> StreamVec<'scope, u64, O> {
        self.unary_frontier::<timely::container::CapacityContainerBuilder<Vec<O>>, _, _, _>(
            Exchange::new(route),
            name,
            move |_, _| {
                let mut open = BTreeMap::new();
                move |(input, frontier), output| {
                    input.for_each_time(|time, data| {
                        let hop = *time.time();
                        let (_, items) = open.entry(hop).or_insert_with(|| (time.retain(0), Vec::new()));
                        data.for_each(|batch| items.append(batch));
                    });
                    while let Some(entry) = open.first_entry()
                        && !frontier.less_equal(entry.key())
                    {
                        let (hop, (capability, items)) = entry.remove_entry();
                        output.session(&capability).give_iterator(logic(Closed { hop, items }).into_iter());
                    }
                }
            },
        )
    }
}
