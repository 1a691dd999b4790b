"""DuckDB: the window as a table of counts by cell and function; what comes and what expires is grouped, and updates it."""

import duckdb
import pyarrow as pa

from job import MIN_COUNT, flagged, serve

COUNTS = """
    SELECT cell::UINTEGER * {functions} + function AS key,
           CASE WHEN head = 1 THEN {sign}count::INTEGER ELSE 0 END AS head,
           CASE WHEN head = 0 THEN {sign}count::INTEGER ELSE 0 END AS base
    FROM records WHERE hop {hops}
"""
GROUPED = "SELECT key, sum(head)::INTEGER AS head, sum(base)::INTEGER AS base FROM ({rows}) GROUP BY key"
FILLED = """
    CREATE TABLE filled AS
    SELECT row::UINTEGER AS key, coalesce(head, 0) AS head, coalesce(base, 0) AS base
    FROM range({rows}) AS every(row) LEFT JOIN ({grouped}) ON key = row ORDER BY row
"""
CHANGED = """
    UPDATE moving SET head = moving.head + changes.head, base = moving.base + changes.base
    FROM ({grouped}) AS changes WHERE moving.key = changes.key
"""
TESTED = """
    WITH rows AS (SELECT key, key // {functions} AS cell, head::DOUBLE AS head, base::DOUBLE AS base FROM moving),
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
        filled = FILLED.format(rows=fleet.cells * fleet.functions, grouped=self.grouped(self.counts(f"< {fleet.window}")))
        self.database.execute(filled)
        self.tested = TESTED.format(functions=fleet.functions, min_count=MIN_COUNT)

    def counts(self, hops, sign=""):
        return COUNTS.format(functions=self.fleet.functions, sign=sign, hops=hops)

    def grouped(self, *rows):
        return GROUPED.format(rows=" UNION ALL ".join(rows))

    def rewind(self):
        self.database.execute("CREATE OR REPLACE TEMP TABLE moving AS FROM filled")

    def hop(self, number):
        changes = self.grouped(self.counts(f"= {number}"), self.counts(f"= {number - self.fleet.window}", "-"))
        self.database.execute(CHANGED.format(grouped=changes))
        columns = self.database.execute(self.tested).fetchnumpy()
        return columns["key"][flagged(columns["g"])], len(columns["g"])


if __name__ == "__main__":
    serve(Duckdb)
