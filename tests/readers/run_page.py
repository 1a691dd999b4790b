"""Runs every query of a page of the documentation, on an output folder that stands as `out` in the working directory.

Blocks of SQL run in DuckDB, blocks of Python one after the other as the cells of one notebook. Within a section (`##`) the first
block of SQL and the first block of Python whose last line is an expression ask the same question, and so on: both must give the
same columns and rows. An answer without rows is a failure, unless the SQL says `-- may be empty`.

    readers/bin/python tests/readers/run_page.py docs/notebook.md
"""

import ast
import datetime
import decimal
import math
import sys
from pathlib import Path

import duckdb
import polars as pl


def blocks(page):
    """(section, language, text, line) of each fenced block."""
    section, language, lines, start = "", None, [], 0
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if language is None and line.startswith("## "):
            section = line[3:]
        elif language is None and line.startswith("```"):
            language, lines, start = line[3:].strip(), [], number
        elif line == "```":
            yield section, language, "\n".join(lines), start
            language = None
        elif language is not None:
            lines.append(line)


def answer_of_python(text, names):
    """Runs a block; the value of its last line if that is an expression, as a notebook shows it."""
    tree = ast.parse(text)
    last = tree.body[-1]
    if not isinstance(last, ast.Expr):
        exec(compile(tree, "page", "exec"), names)
        return None
    exec(compile(ast.Module(tree.body[:-1], []), "page", "exec"), names)
    return eval(compile(ast.Expression(last.value), "page", "eval"), names)


def same(left, right):
    if isinstance(left, datetime.datetime) and isinstance(right, datetime.datetime):
        return left.timestamp() == right.timestamp() if (left.tzinfo is None) == (right.tzinfo is None) else False
    numbers = (int, float, decimal.Decimal)
    if isinstance(left, numbers) and isinstance(right, numbers):
        return math.isclose(left, right, rel_tol=1e-9, abs_tol=1e-12)
    return left == right


def difference(sql, python):
    """What is not the same in two answers, in words; None if nothing is."""
    if sql.columns != python.columns:
        return f"columns {sql.columns} by DuckDB, {python.columns} by polars"
    if sql.height != python.height:
        return f"{sql.height} rows by DuckDB, {python.height} by polars"
    for number, (left, right) in enumerate(zip(sql.rows(), python.rows()), 1):
        for column, a, b in zip(sql.columns, left, right):
            if not same(a, b):
                return f"row {number}, {column}: {a!r} by DuckDB, {b!r} by polars"
    return None


def main():
    page = Path(sys.argv[1])
    names, waiting, failures = {}, [], []
    run = {"sql": 0, "python": 0}
    compared = 0
    section_of_waiting = None
    for section, language, text, line in blocks(page):
        if section != section_of_waiting:
            failures += [f"{page}:{at}: nothing in polars asks the same" for at, _, _ in waiting]
            waiting, section_of_waiting = [], section
        try:
            if language == "sql":
                run["sql"] += 1
                waiting.append((line, duckdb.sql(text).pl(), "may be empty" in text))
            elif language == "python":
                run["python"] += 1
                answer = answer_of_python(text, names)
                if isinstance(answer, pl.DataFrame) and waiting:
                    at, asked, may_be_empty = waiting.pop(0)
                    compared += 1
                    found = difference(asked, answer)
                    if found is None and asked.height == 0 and not may_be_empty:
                        found = "no rows"
                    if found is not None:
                        failures.append(f"{page}:{at}: {section}: {found}")
        except Exception as error:
            failures.append(f"{page}:{line}: {section}: {type(error).__name__}: {error}")
    failures += [f"{page}:{at}: nothing in polars asks the same" for at, _, _ in waiting]
    for failure in failures:
        print(f"FAILED {failure}", file=sys.stderr)
    print(f"{run['sql']} queries in SQL, {run['python']} blocks of Python, {compared} compared")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
