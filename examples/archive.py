"""Adds up what the archive of an output folder holds of a range of time, from as few files as there can be.

Prints the functions with the most samples at the leaf, by build. The range is that of whole hops within it. A file of level k has the
sums of 2^k hops, so a day of hops of 10 s is read from at most 26 files. docs/tables.md explains the columns; pyarrow reads.

    python examples/archive.py OUTPUT
    python examples/archive.py OUTPUT --from 2026-03-03T10:00:00Z --until 2026-03-03T16:00:00Z --top 20
"""

import argparse
import sys
from collections import defaultdict
from datetime import datetime
from pathlib import Path

import pyarrow.parquet as pq

TABLES = ("counts", "functions", "call_trees")


def files_of(output, table):
    """The files of a table by level and by the second at which they start."""
    found = defaultdict(dict)
    for path in (output / "archive" / table).glob("level=*/date=*/*.parquet"):
        found[int(path.parts[-3].removeprefix("level="))][int(path.stem)] = path
    return found


def rows_of(path):
    # A file, not a folder: its path is no column.
    return pq.ParquetFile(path).read().to_pylist()


def cover(files, hop, start, until):
    """The fewest files whose hops are those from start to until that have anything."""
    at, chosen = start, []
    while at < until:
        fits = [level for level in sorted(files, reverse=True) if at % (hop << level) == 0 and at + (hop << level) <= until]
        level = next((level for level in fits if at in files[level]), None)
        if level is None:
            # Nothing was counted at this hop.
            at += hop
        else:
            chosen.append((level, at))
            at += hop << level
    return chosen


def seconds(text):
    return int(datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path)
    parser.add_argument("--from", dest="start", type=seconds, help="the first instant, as 2026-03-03T10:00:00Z")
    parser.add_argument("--until", type=seconds, help="the first instant after the range")
    parser.add_argument("--top", type=int, default=10, help="functions of each build")
    args = parser.parse_args()

    files = {table: files_of(args.output, table) for table in TABLES}
    hops = files["counts"].get(0)
    if not hops:
        sys.exit(f"{args.output} has no archive: run with --archive-keep")
    first = rows_of(hops[min(hops)])[0]
    hop = int((first["span_end_at"] - first["span_start_at"]).total_seconds())
    start = max(min(hops), -(-(args.start or 0) // hop) * hop)
    until = min(max(hops) + hop, (args.until or 1 << 62) // hop * hop)
    chosen = cover(files["counts"], hop, start, until)

    samples, own, total, names, ends = defaultdict(int), defaultdict(int), defaultdict(int), {}, 0
    for level, at in chosen:
        names.update((row["function"], row["name"]) for row in rows_of(files["functions"][level][at]))
        for row in rows_of(files["counts"][level][at]):
            build = (row["service"], row["profile_type"], row["build"])
            samples[build] += row["samples"]
            for function, of_leaf, anywhere in zip(row["functions"], row["self"], row["total"], strict=True):
                own[build, function] += of_leaf
                total[build, function] += anywhere
        if at in files["call_trees"].get(level, {}):
            ends += sum(sum(row["samples"]) for row in rows_of(files["call_trees"][level][at]))

    print(f"{sum(samples.values())} samples of {(until - start) // hop} hops in {len(chosen)} files; {ends} in call trees")
    for build in sorted(samples):
        print(f"{' '.join(build)}: {samples[build]} samples")
        largest = sorted((key for key in own if key[0] == build), key=lambda key: (-own[key], names[key[1]]))
        for key in largest[: args.top]:
            print(f"  {own[key] / samples[build]:7.2%} self  {total[key] / samples[build]:7.2%} total  {names[key[1]]}")


if __name__ == "__main__":
    main()
