"""DuckDB: the window as a table of counts by cell and function; each hop is added to it, and what expires subtracted, by one grouping."""

import duckdb
import pyarrow as pa

from job import MIN_COUNT, flagged, serve

COUNTS = """
    SELECT cell::UINTEGER * {functions} + function AS key,
           CASE WHEN head = 1 THEN {sign}count::INTEGER ELSE 0 END AS head,
           CASE WHEN head = 0 THEN {sign}count::INTEGER ELSE 0 END AS base
    FROM records WHERE hop {hops}
"""
GROUPED = """
    CREATE OR REPLACE TEMP TABLE {table} AS
    SELECT key, sum(head)::INTEGER AS head, sum(base)::INTEGER AS base FROM ({rows}) GROUP BY key
"""
TESTED = """
    WITH rows AS (SELECT key, key // {functions} AS cell, head::DOUBLE AS head, base::DOUBLE AS base FROM {table}),
    cells AS (SELECT cell, sum(head) AS of_head, sum(base) AS of_base FROM rows GROUP BY cell HAVING of_head > 0 AND of_base > 0),
    tested AS (
        SELECT *, (head + base) / (of_head + of_base) AS share
        FROM rows JOIN cells USING (cell) WHERE head + base >= {min_count}
    )
    SELECT key, 2 * (
        CASE WHEN head > 0 THEN head * ln(head / (of_head * share)) ELSE 0 END
        + CASE WHEN base > 0 THEN base * ln(base / (of_base * share)) ELSE 0 END
        + CASE WHEN of_head > head THEN (of_head - head) * ln((of_head - head) / (of_head * (1 - share))) ELSE 0 END
        + CASE WHEN of_base > base THEN (of_base - base) * ln((of_base - base) / (of_base * (1 - share))) ELSE 0 END
    ) AS g FROM tested
"""


class Duckdb:
    def __init__(self, fleet):
        self.fleet = fleet
        self.database = duckdb.connect()
        # No result depends on the order of rows.
        self.database.execute("SET preserve_insertion_order = false")
        records = pa.table({name: getattr(fleet, name) for name in ("hop", "cell", "head", "function", "count")})
        self.database.register("loaded", records)
        # In the order of hops, so that a hop is found by the ranges of row groups.
        self.database.execute("CREATE TABLE records AS SELECT * FROM loaded ORDER BY hop")
        self.database.unregister("loaded")
        self.group("filled", self.counts(f"< {fleet.window}"))

    def counts(self, hops, sign=""):
        return COUNTS.format(functions=self.fleet.functions, sign=sign, hops=hops)

    def group(self, table, rows):
        self.database.execute(GROUPED.format(table=table, rows=rows))

    def rewind(self):
        self.now = "filled"

    def hop(self, number):
        rows = [f"FROM {self.now}", self.counts(f"= {number}"), self.counts(f"= {number - self.fleet.window}", "-")]
        self.now = f"window_{number % 2}"
        self.group(self.now, " UNION ALL ".join(rows))
        tested = TESTED.format(functions=self.fleet.functions, table=self.now, min_count=MIN_COUNT)
        columns = self.database.execute(tested).fetchnumpy()
        return columns["key"][flagged(columns["g"])], len(columns["g"])


if __name__ == "__main__":
    serve(Duckdb)
