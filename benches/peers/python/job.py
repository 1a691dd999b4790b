"""What the Python peers share: the recorded fleet, the last step of a hop, and the clock.

A peer is a class with `Peer(fleet)`, which loads the records in its own form, `rewind()`, which gives the state of the full window, and
`hop(number)`, which moves the window to that hop and returns the keys (cell * functions + function) that it flags, and how many it has tested.
"""

import os
import sys
import time

import numpy as np
from scipy.special import erfc

Q = 0.05
MIN_COUNT = 30
# Chi-square with 1 degree of freedom at p = .05, less a little: Benjamini-Hochberg flags no row below.
CANDIDATE = 3.84


class Fleet:
    """The columns of the file, as numpy arrays."""

    def __init__(self, path):
        with open(path, "rb") as file:
            magic, records, self.cells, self.functions, self.window, self.measured = np.fromfile(file, "<u8", 6).tolist()
            assert magic == int.from_bytes(b"fdpeers1", "little"), "not a recorded fleet"
            self.function = np.fromfile(file, "<u4", records)
            self.count = np.fromfile(file, "<u2", records)
            self.hop = np.fromfile(file, "<u2", records)
            file.seek(2 * records, os.SEEK_CUR)  # the pod, which the job does not need
            self.cell = np.fromfile(file, "<u2", records)
            self.head = np.fromfile(file, "<u1", records)
        # Records are in the order of hops.
        self.start = np.searchsorted(self.hop, np.arange(self.window + self.measured + 1)).tolist()

    def of(self, hop):
        """The records of a hop."""
        return slice(self.start[hop], self.start[hop + 1])


def flagged(g):
    """The rows with q <= .05 by Benjamini-Hochberg, from G of every row."""
    candidates = np.flatnonzero(g > CANDIDATE)
    p = erfc(np.sqrt(g[candidates] / 2))
    order = np.argsort(p)
    below = np.flatnonzero(p[order] * len(g) <= Q * np.arange(1, len(p) + 1))
    return candidates[order[: below[-1] + 1]] if len(below) else candidates[:0]


def digest(fleet, flags):
    """A sum over flags, so that their order does not matter."""
    whole = np.uint64(0)
    for hop, keys in flags:
        cell, function = np.divmod(keys.astype(np.uint64), np.uint64(fleet.functions))
        z = (np.uint64(hop) << np.uint64(48) | cell << np.uint64(32) | function) + np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        whole += np.sum(z ^ (z >> np.uint64(31)), dtype=np.uint64)
    return int(whole)


def serve(peer_of):
    """A pass for each line of stdin: nanoseconds, flags, tests and the hash of flags on stdout."""
    fleet = Fleet(sys.argv[1])
    peer = peer_of(fleet)
    np.seterr(over="ignore")
    for _ in sys.stdin:
        peer.rewind()
        flags, tests = [], 0
        start = time.perf_counter_ns()
        for hop in range(fleet.window, fleet.window + fleet.measured):
            keys, tested = peer.hop(hop)
            flags.append((hop, keys))
            tests += tested
        spent = time.perf_counter_ns() - start
        print(spent, sum(len(keys) for _, keys in flags), tests, f"{digest(fleet, flags):016x}", flush=True)
