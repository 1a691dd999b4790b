"""polars: the window as dense columns of counts; what comes and what expires is grouped by cell and function and added in its places."""

import polars as pl

from job import MIN_COUNT, flagged, serve


class Polars:
    def __init__(self, fleet):
        self.fleet = fleet
        self.records = pl.DataFrame(
            {"cell": fleet.cell, "head": fleet.head, "function": fleet.function, "count": fleet.count}
        )
        rows = fleet.cells * fleet.functions
        self.keys = pl.Series("key", range(rows), pl.UInt32)
        self.head, self.base = (pl.zeros(rows, pl.Int32, eager=True).alias(arm) for arm in ("head", "base"))
        self.change([self.counts(0, fleet.window, 1)])
        self.filled = self.head, self.base

    def rewind(self):
        self.head, self.base = (counts.clone() for counts in self.filled)

    def change(self, frames):
        changes = grouped(frames).collect()
        keys = changes["key"]
        self.head.scatter(keys, self.head.gather(keys) + changes["head"])
        self.base.scatter(keys, self.base.gather(keys) + changes["base"])

    def counts(self, start, end, sign):
        """The records of the hops from start to before end, with counts by arm."""
        at, to = self.fleet.start[start], self.fleet.start[end]
        count, head = pl.col("count").cast(pl.Int32) * sign, pl.col("head").cast(pl.Int32)
        return self.records.slice(at, to - at).lazy().select(
            key=pl.col("cell").cast(pl.UInt32) * self.fleet.functions + pl.col("function"),
            head=count * head,
            base=count * (1 - head),
        )

    def hop(self, number):
        come = self.counts(number, number + 1, 1)
        expire = self.counts(number - self.fleet.window, number - self.fleet.window + 1, -1)
        self.change([come, expire])
        window = pl.LazyFrame([self.keys, self.head, self.base])
        rows = tested(window, self.fleet.functions).collect()
        g = rows["g"].to_numpy()
        return rows["key"].to_numpy()[flagged(g)], len(g)


def grouped(frames):
    return pl.concat(frames).group_by("key").agg(pl.col("head").sum(), pl.col("base").sum())


def tested(window, functions):
    """Key and G of every row with enough samples in a cell that has both arms."""
    rows = window.with_columns(pl.col("head", "base").cast(pl.Float64), cell=pl.col("key") // functions)
    of_cells = rows.group_by("cell").agg(of_head=pl.col("head").sum(), of_base=pl.col("base").sum())
    head, base, of_head, of_base = (pl.col(name) for name in ("head", "base", "of_head", "of_base"))
    share = (head + base) / (of_head + of_base)

    def term(count, expected):
        return pl.when(count > 0).then(count * (count / expected).log()).otherwise(0.0)

    g = 2 * (
        term(head, of_head * share)
        + term(base, of_base * share)
        + term(of_head - head, of_head * (1 - share))
        + term(of_base - base, of_base * (1 - share))
    )
    return (
        rows.filter(head + base >= MIN_COUNT)
        .join(of_cells.filter((of_head > 0) & (of_base > 0)), on="cell")
        .select("key", g=g)
    )


if __name__ == "__main__":
    serve(Polars)
