//! One stream as two, by moving.
//!
//! A stream that is read twice copies each of its items, which for profiles is their bytes; a split gives each item to the one
//! reader that it is for.

use timely::dataflow::StreamVec;
use timely::dataflow::operators::core::OkErr;

/// See [`Split::split`].
pub trait Split<'scope, D> {
    /// Moves each item into the first stream (`Ok`) or the second (`Err`).
    ///
    /// ```
    /// use fleetdiff_pipeline::operators::split::Split;
    /// use timely::dataflow::operators::{Capture, ToStream, capture::Extract};
    ///
    /// let small = timely::example(|scope| {
    ///     let numbers = [1u64, 20, 3].to_stream(scope).container::<Vec<_>>();
    ///     numbers.split(|number| if number < 10 { Ok(number) } else { Err(number) }).0.capture()
    /// });
    /// assert_eq!(small.extract(), [(0, vec![1, 3])]);
    /// ```
    fn split<A: Clone + 'static, B: Clone + 'static>(
        self,
        which: impl FnMut(D) -> Result<A, B> + 'static,
    ) -> (StreamVec<'scope, u64, A>, StreamVec<'scope, u64, B>);
}

impl<'scope, D: Clone + 'static> Split<'scope, D> for StreamVec<'scope, u64, D> {
    fn split<A: Clone + 'static, B: Clone + 'static>(
        self,
        which: impl FnMut(D) -> Result<A, B> + 'static,
    ) -> (StreamVec<'scope, u64, A>, StreamVec<'scope, u64, B>) {
        self.ok_err(which)
    }
}
