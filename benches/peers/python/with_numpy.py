"""numpy: dense counts of the window, moved by what comes and what goes; tests over the rows that have enough samples."""

import numpy as np

from job import MIN_COUNT, flagged, serve


class Numpy:
    def __init__(self, fleet):
        self.fleet = fleet
        self.counts = np.zeros(fleet.cells * 2 * fleet.functions)
        for hop in range(fleet.window):
            self.counts += self.of(hop)
        self.filled = self.counts

    def rewind(self):
        self.counts = self.filled.copy()

    def of(self, hop):
        """The counts of a hop, by cell, arm and function."""
        fleet, of = self.fleet, self.fleet.of(hop)
        arm = fleet.cell[of].astype(np.int64) * 2 + fleet.head[of]
        return np.bincount(arm * fleet.functions + fleet.function[of], fleet.count[of], len(self.counts))

    def hop(self, number):
        fleet = self.fleet
        self.counts += self.of(number)
        self.counts -= self.of(number - fleet.window)
        counts = self.counts.reshape(fleet.cells, 2, fleet.functions)
        of_base, of_head = counts.sum(axis=2).T
        pooled = counts[:, 0] + counts[:, 1]
        tested = (pooled >= MIN_COUNT) & ((of_base > 0) & (of_head > 0))[:, None]
        keys = np.flatnonzero(tested)
        cells = keys // fleet.functions
        g = statistic(counts[:, 1][tested], of_head[cells], counts[:, 0][tested], of_base[cells])
        return keys[flagged(g)], len(g)


def statistic(head, of_head, base, of_base):
    """G of the tables [[head, of_head - head], [base, of_base - base]]."""
    share = (head + base) / (of_head + of_base)
    rest = 1 - share

    def term(count, expected):
        # A count of 0 adds nothing.
        return count * np.log(np.maximum(count, 1e-300) / expected)

    return 2 * (
        term(head, of_head * share)
        + term(base, of_base * share)
        + term(of_head - head, of_head * rest)
        + term(of_base - base, of_base * rest)
    )


if __name__ == "__main__":
    serve(Numpy)
