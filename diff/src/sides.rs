//! Values for each side of a comparison.

/// One value of each side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sides<T> {
    /// The value of the base.
    pub base: T,
    /// The value of the head.
    pub head: T,
}

/// One of the two sides.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Side {
    Base,
    Head,
}

impl<T> Sides<T> {
    pub(crate) fn of(&mut self, side: Side) -> &mut T {
        match side {
            Side::Base => &mut self.base,
            Side::Head => &mut self.head,
        }
    }
}

impl Sides<u64> {
    /// Adds to both; sums saturate at `u64::MAX`.
    pub(crate) fn add(&mut self, other: Self) {
        self.base = self.base.saturating_add(other.base);
        self.head = self.head.saturating_add(other.head);
    }
}
