//! Two arms: the head, which is in question, and the base, which it is compared with.
//!
//! Almost everything in a test exists once for each arm (its spread between pods, its variance, its prior), and almost every
//! formula reads the other arm too. One type with two names says which is which.

use std::ops::{Index, IndexMut};

/// Which arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// The arm in question.
    Head,
    /// The arm that it is compared with.
    Base,
}

impl Side {
    /// Head, then base.
    pub const BOTH: [Self; 2] = [Self::Head, Self::Base];

    /// The arm that is not this one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Head => Self::Base,
            Self::Base => Self::Head,
        }
    }
}

/// One value for each arm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Arms<T> {
    /// Of the arm in question.
    pub head: T,
    /// Of the arm that it is compared with.
    pub base: T,
}

impl<T> Arms<T> {
    /// What `make` gives for each arm, the head first.
    pub fn of(mut make: impl FnMut(Side) -> T) -> Self {
        let head = make(Side::Head);
        Self { head, base: make(Side::Base) }
    }

    /// The same of references.
    pub fn as_ref(&self) -> Arms<&T> {
        Arms { head: &self.head, base: &self.base }
    }

    /// Both values, the head's first.
    pub fn both(&self) -> [&T; 2] {
        [&self.head, &self.base]
    }

    /// `f` of each arm's value, the head's first.
    pub fn map<U>(self, mut f: impl FnMut(T) -> U) -> Arms<U> {
        let head = f(self.head);
        Arms { head, base: f(self.base) }
    }
}

impl<T> Index<Side> for Arms<T> {
    type Output = T;

    fn index(&self, side: Side) -> &T {
        match side {
            Side::Head => &self.head,
            Side::Base => &self.base,
        }
    }
}

impl<T> IndexMut<Side> for Arms<T> {
    fn index_mut(&mut self, side: Side) -> &mut T {
        match side {
            Side::Head => &mut self.head,
            Side::Base => &mut self.base,
        }
    }
}
