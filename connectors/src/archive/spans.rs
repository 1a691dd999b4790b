//! Which hops a file sums up.

/// The highest level: some 23 hours of hops of 10 s.
pub(super) const MOST_LEVEL: u32 = 13;

/// The hops of one file; ordered by their beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Piece {
    /// The first of them, a multiple of their number.
    pub(super) first: u64,
    /// They are two to the power of this.
    pub(super) level: u32,
}

impl Piece {
    /// The one of a level in which a hop lies.
    fn of(hop: u64, level: u32) -> Self {
        Self { level, first: hop >> level << level }
    }

    /// The last of its hops.
    pub(super) fn last(self) -> u64 {
        self.first + (1 << self.level) - 1
    }

    /// The two of the level below.
    pub(super) fn halves(self) -> [Self; 2] {
        let level = self.level.saturating_sub(1);
        [self.first, self.first + (1 << level)].map(|first| Self { level, first })
    }
}

/// What is complete now that `hop` is there and was not when `before` was the last one, ascending by level: it holds one of them, since
/// what lies between has nothing.
pub(super) fn due(before: Option<u64>, hop: u64) -> Vec<Piece> {
    let mut due = Vec::new();
    for level in 1..=MOST_LEVEL {
        let of_before = before.map(|before| (before, Piece::of(before, level)));
        let of_before = of_before.filter(|(before, piece)| piece.last() > *before && piece.last() < hop);
        due.extend(of_before.map(|(_, piece)| piece));
        due.extend(Some(Piece::of(hop, level)).filter(|piece| piece.last() == hop));
    }
    due
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_a_hop_completes() {
        let pieces =
            |before, hop| due(before, hop).into_iter().map(|piece| (piece.level, piece.first)).collect::<Vec<_>>();
        assert_eq!(pieces(None, 8), []);
        assert_eq!(pieces(Some(8), 9), [(1, 8)]);
        assert_eq!(pieces(Some(10), 11), [(1, 10), (2, 8)]);
        assert_eq!(pieces(Some(8), 12), [(1, 8), (2, 8)], "what ends between them");
        assert_eq!(pieces(Some(9), 12), [(2, 8)]);
    }

    proptest! {
        /// The law: whichever hops there are, each piece that holds one and is over is due once.
        #[test]
        fn each_piece_is_due_once(gaps in prop::collection::vec(1u64..20, 1..60)) {
            let hops: Vec<u64> = gaps.iter().scan(1000, |at, gap| { *at += gap; Some(*at) }).collect();
            let before = std::iter::once(None).chain(hops.iter().copied().map(Some));
            let found: Vec<Piece> = before.zip(&hops).flat_map(|(before, hop)| due(before, *hop)).collect();
            let last = hops[hops.len() - 1];
            let all = hops.iter().flat_map(|hop| (1..=MOST_LEVEL).map(|level| Piece::of(*hop, level)));
            let mut expected: Vec<Piece> = all.filter(|piece| piece.last() <= last).collect();
            expected.sort_unstable();
            expected.dedup();
            // One that ends at a hop without anything is due with the next.
            let mut sorted = found.clone();
            sorted.sort_unstable();
            prop_assert_eq!(sorted, expected);
        }
    }
}
