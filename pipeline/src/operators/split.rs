//! Splits a stream in two by moving its items.
//!
//! A stream with two readers copies each item, including the bytes of profiles. A split gives each item to only one
//! reader.

use timely::dataflow::StreamVec;
use timely::dataflow::operators::core::OkErr;

/// For which of two readers an item is, and what that reader gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum To<First, Second> {
    /// The first.
    First(First),
    /// The second.
    Second(Second),
}

/// An item that is for one of two readers.
pub trait OneOfTwo {
    /// What the first reader gets.
    type First: Clone + 'static;
    /// What the second reader gets.
    type Second: Clone + 'static;

    /// For which reader it is, and what that reader gets.
    fn destination(self) -> To<Self::First, Self::Second>;
}

/// See [`Split::split`].
pub trait Split<'scope, D: OneOfTwo> {
    /// Moves each item to its reader.
    ///
    /// ```
    /// use fleetdiff_pipeline::operators::split::{OneOfTwo, To, Split};
    /// use timely::dataflow::operators::{Capture, ToStream, capture::Extract};
    ///
    /// #[derive(Clone)]
    /// enum Sized {
    ///     Small(u64),
    ///     Large(u64),
    /// }
    ///
    /// impl OneOfTwo for Sized {
    ///     type First = u64;
    ///     type Second = u64;
    ///
    ///     fn destination(self) -> To<u64, u64> {
    ///         match self {
    ///             Self::Small(number) => To::First(number),
    ///             Self::Large(number) => To::Second(number),
    ///         }
    ///     }
    /// }
    ///
    /// let small = timely::example(|scope| {
    ///     let numbers = [Sized::Small(1), Sized::Large(20), Sized::Small(3)].to_stream(scope).container::<Vec<_>>();
    ///     numbers.split().0.capture()
    /// });
    /// assert_eq!(small.extract(), [(0, vec![1, 3])]);
    /// ```
    fn split(self) -> (StreamVec<'scope, u64, D::First>, StreamVec<'scope, u64, D::Second>);
}

impl<'scope, D: OneOfTwo + Clone + 'static> Split<'scope, D> for StreamVec<'scope, u64, D> {
    fn split(self) -> (StreamVec<'scope, u64, D::First>, StreamVec<'scope, u64, D::Second>) {
        self.ok_err(|item| match item.destination() {
            To::First(first) => Ok(first),
            To::Second(second) => Err(second),
        })
    }
}
