"""Reads an output folder of fleetdiff with DuckDB, polars, pandas and pyarrow, each without options.

Every tool must see the same tables: the same rows, columns (date and hour of the path among them), nulls, sums, instants
in UTC, and no NaN. The files one by one, as pyarrow's lowest layer shows them, are what the tools are held against.
With --expect, a JSON file of {table: {"rows": n, "sums": {column: n}, "nulls": {column: n}}}, the files themselves are
held against what the writer says it wrote.

    python -m venv readers && readers/bin/pip install -r tests/readers/requirements.txt
    readers/bin/python tests/readers/read_output.py OUTPUT
"""

import argparse
import json
import math
import sys
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

FILED_BY = {
    "cells": "window_end_at",
    "evidence": "window_end_at",
    "flags": "window_end_at",
    "comparisons": "window_end_at",
    "incidents": "changed_at",
    "scaling": "window_end_at",
    "rings": "window_end_at",
    "heap": "window_end_at",
    "waiting": "window_end_at",
    "stacks": "window_end_at",
    "load_curves": "window_end_at",
    "ledger": "hop_at",
    "rejected": "hop_at",
    "clocks": "hop_at",
    "limits": "hop_at",
}
PARTITIONS = {"date", "hour"}
CLOSE = 1e-9


class Checks:
    """Counts what was checked and keeps what failed."""

    def __init__(self):
        self.passed, self.failed = 0, []

    def equal(self, what, found, expected):
        if found == expected:
            self.passed += 1
        else:
            self.failed.append(f"{what}: found {found!r}, expected {expected!r}")


def kind_of(arrow_type):
    if pa.types.is_timestamp(arrow_type):
        return "instant"
    if pa.types.is_floating(arrow_type):
        return "number"
    if pa.types.is_integer(arrow_type):
        return "count"
    if pa.types.is_list(arrow_type):
        return "list"
    return "text"


class Number:
    """The sum of finite numbers, how many are infinite, and how many are NaN; sums are equal to rounding."""

    def __init__(self, finite, infinite, nan):
        self.finite, self.infinite, self.nan = float(finite or 0), infinite, nan

    def __eq__(self, other):
        close = math.isclose(self.finite, other.finite, rel_tol=CLOSE, abs_tol=1e-6)
        return close and (self.infinite, self.nan) == (other.infinite, other.nan)

    def __repr__(self):
        return f"sum {self.finite}, {self.infinite} infinite, {self.nan} NaN"


def summary_by_pyarrow(table, kinds):
    """{column: (nulls, figure)}; the figure is a sum, a range, or a number of distinct values or of list items."""
    return {name: (table[name].null_count, arrow_figure(table[name], kind)) for name, kind in kinds.items()}


def arrow_figure(column, kind):
    if kind == "count":
        return pc.sum(column).as_py() or 0
    if kind == "number":
        finite = column.filter(pc.fill_null(pc.is_finite(column), False))
        infinite, nan = pc.sum(pc.is_inf(column)).as_py(), pc.sum(pc.is_nan(column)).as_py()
        return Number(pc.sum(finite).as_py(), infinite or 0, nan or 0)
    if kind == "instant":
        ends = pc.min_max(column.cast(pa.int64())).as_py()
        return (ends["min"], ends["max"])
    if kind == "list":
        return pc.sum(pc.list_value_length(column)).as_py() or 0
    return pc.count_distinct(column, mode="only_valid").as_py()


def summary_by_duckdb(relation, kinds):
    def figures(name, kind):
        column = f'"{name}"'
        if kind == "count":
            return [f"coalesce(sum({column}), 0)"]
        if kind == "number":
            finite = f"sum({column}) FILTER (isfinite({column}))"
            return [finite, f"count(*) FILTER (isinf({column}))", f"count(*) FILTER (isnan({column}))"]
        if kind == "instant":
            return [f"epoch_us(min({column}))", f"epoch_us(max({column}))"]
        if kind == "list":
            return [f"coalesce(sum(len({column})), 0)"]
        return [f"count(DISTINCT {column})"]

    summary = {}
    for name, kind in kinds.items():
        select = ", ".join([f'count(*) - count("{name}")', *figures(name, kind)])
        nulls, *found = duckdb.sql(f"SELECT {select} FROM {relation}").fetchall()[0]
        if kind == "number":
            figure = Number(*found)
        else:
            figure = tuple(found) if kind == "instant" else int(found[0])
        summary[name] = (nulls, figure)
    return summary


def summary_by_polars(frame, kinds):
    def figure(column, kind):
        if kind == "count":
            return column.sum()
        if kind == "number":
            finite = column.filter(column.is_finite().fill_null(False))
            return Number(finite.sum(), column.is_infinite().sum(), column.is_nan().sum())
        if kind == "instant":
            return (column.dt.epoch("us").min(), column.dt.epoch("us").max())
        if kind == "list":
            return column.list.len().sum()
        return column.drop_nulls().n_unique()

    return {name: (frame[name].null_count(), figure(frame[name], kind)) for name, kind in kinds.items()}


def summary_by_pandas(frame, kinds):
    """NB: pandas shows null numbers as NaN, so that NaN is found out here by the number of nulls."""

    def figure(column, kind):
        known = column.dropna()
        if kind == "count":
            return int(known.astype("int64").sum())
        if kind == "number":
            infinite = known.abs() == math.inf
            return Number(known[~infinite].sum(), int(infinite.sum()), 0)
        if kind == "instant":
            moments = known.astype("int64")
            return (int(moments.min()), int(moments.max())) if len(moments) else (None, None)
        if kind == "list":
            return sum(len(items) for items in known)
        return known.nunique()

    return {name: (int(frame[name].isna().sum()), figure(frame[name], kind)) for name, kind in kinds.items()}


def instants(kinds):
    return [name for name, kind in kinds.items() if kind == "instant"]


def check_duckdb(checks, folder, truth, kinds):
    relation = f"read_parquet('{folder}/**/*.parquet')"
    types = {row[0]: row[1] for row in duckdb.sql(f"DESCRIBE SELECT * FROM {relation}").fetchall()}
    checks.equal(f"{folder.name} columns by DuckDB", set(types), set(kinds) | PARTITIONS)
    rows = duckdb.sql(f"SELECT count(*) FROM {relation}").fetchall()[0][0]
    checks.equal(f"{folder.name} rows by DuckDB", rows, truth.num_rows)
    for name in instants(kinds):
        checks.equal(f"{folder.name}.{name} type by DuckDB", types[name], "TIMESTAMP WITH TIME ZONE")
    return summary_by_duckdb(relation, kinds)


def check_polars(checks, folder, truth, kinds):
    frame = pl.read_parquet(folder)
    checks.equal(f"{folder.name} columns by polars", set(frame.columns), set(kinds) | PARTITIONS)
    checks.equal(f"{folder.name} rows by polars", frame.height, truth.num_rows)
    for name in instants(kinds):
        checks.equal(f"{folder.name}.{name} type by polars", frame.schema[name], pl.Datetime("us", "UTC"))
    filed = pl.col(FILED_BY[folder.name]).fill_null(pl.lit(0).cast(pl.Datetime("us", "UTC")))
    other_date = filed.dt.strftime("%Y-%m-%d") != pl.col("date").cast(pl.String)
    other_hour = filed.dt.hour() != pl.col("hour").cast(pl.Int64)
    checks.equal(f"{folder.name} rows filed elsewhere", frame.filter(other_date | other_hour).height, 0)
    return summary_by_polars(frame, kinds)


def check_pandas(checks, folder, truth, kinds):
    frame = pd.read_parquet(folder)
    checks.equal(f"{folder.name} columns by pandas", set(frame.columns), set(kinds) | PARTITIONS)
    checks.equal(f"{folder.name} rows by pandas", len(frame), truth.num_rows)
    for name in instants(kinds):
        checks.equal(f"{folder.name}.{name} type by pandas", str(frame[name].dtype), "datetime64[us, UTC]")
    return summary_by_pandas(frame, kinds)


def check_pyarrow(checks, folder, truth, kinds):
    table = pq.read_table(folder)
    checks.equal(f"{folder.name} columns by pyarrow", set(table.column_names), set(kinds) | PARTITIONS)
    checks.equal(f"{folder.name} rows by pyarrow", table.num_rows, truth.num_rows)
    for name in instants(kinds):
        checks.equal(f"{folder.name}.{name} type by pyarrow", table.schema.field(name).type, pa.timestamp("us", "UTC"))
    return summary_by_pyarrow(table, kinds)


READERS = {"DuckDB": check_duckdb, "polars": check_polars, "pandas": check_pandas, "pyarrow": check_pyarrow}


def check_table(checks, folder, expected):
    files = sorted(folder.glob("date=*/hour=*/*.parquet"))
    checks.equal(f"{folder.name} files are all filed by date and hour", len(files), len(list(folder.rglob("*.parquet"))))
    if not files:
        checks.failed.append(f"{folder} has no file")
        return 0
    truth = pa.concat_tables([pq.ParquetFile(file).read() for file in files])
    kinds = {field.name: kind_of(field.type) for field in truth.schema}
    summary = summary_by_pyarrow(truth, kinds)
    for name, (nulls, figure) in summary.items():
        if kinds[name] == "number":
            checks.equal(f"{folder.name}.{name} NaN", figure.nan, 0)
        if not truth.schema.field(name).nullable:
            checks.equal(f"{folder.name}.{name} nulls", nulls, 0)
    undescribed = [field.name for field in truth.schema if not (field.metadata or {}).get(b"description")]
    checks.equal(f"{folder.name} columns without a description", undescribed, [])
    check_expected(checks, folder.name, truth, summary, expected)
    for tool, check in READERS.items():
        found = check(checks, folder, truth, kinds)
        for name in kinds:
            checks.equal(f"{folder.name}.{name} by {tool}", found[name], summary[name])
    return truth.num_rows


def check_expected(checks, table, truth, summary, expected):
    if expected is None:
        return
    checks.equal(f"{table} rows as written", truth.num_rows, expected["rows"])
    for name, total in expected["sums"].items():
        checks.equal(f"{table}.{name} sum as written", summary[name][1], total)
    for name, nulls in expected["nulls"].items():
        checks.equal(f"{table}.{name} nulls as written", summary[name][0], nulls)


def main():
    parser = argparse.ArgumentParser(description="Reads an output folder of fleetdiff with four tools.")
    parser.add_argument("output", type=Path, help="the folder that fleetdiff wrote")
    parser.add_argument("--expect", type=Path, help="what the writer says it wrote, as JSON")
    arguments = parser.parse_args()
    expected = json.loads(arguments.expect.read_text()) if arguments.expect else {}
    checks, rows = Checks(), {}
    for table in FILED_BY:
        rows[table] = check_table(checks, arguments.output / table, expected.get(table))
    print(", ".join(f"{table} {count} rows" for table, count in rows.items()))
    for failure in checks.failed:
        print(f"FAILED {failure}", file=sys.stderr)
    print(f"{checks.passed} checks passed" + (f", {len(checks.failed)} failed" if checks.failed else ""))
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
