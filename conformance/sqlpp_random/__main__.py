# SPDX-License-Identifier: Apache-2.0
"""`conformance/run sqlpp_random [--duckdb 2000] [--spark 0] [--seed 1] [--interpreted]`: random SQL++ queries, whose
results by DuckDB and by Spark must equal the evaluator's.

The queries for DuckDB have the same meaning in SQL, and must have the same results. Those for Spark are these and
others, with MISSING, arrays and undeclared fields; a server and Spark are started for them. Prints each query that
differs, and the counts. The exit code is 0 if none differs. The same seed gives the same queries. 2,000 queries take
half a minute in DuckDB, and a quarter of an hour of a core on Spark.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.sqlpp_random.comparison import Comparison, DuckDBComparison, difference_of, engine_queries
from limnos.rooms.sqlpp.language import SqlppError

if TYPE_CHECKING:
    from conformance.sqlpp_random.comparison import EngineQuery
    from conformance.sqlpp_random.spark_side import SparkTables

PROGRESS = 200


def main(arguments: list[str]) -> int:
    """Compare, and print the counts."""
    parser = argparse.ArgumentParser(prog="conformance/run sqlpp_random", description=__doc__)
    parser.add_argument("--duckdb", type=int, default=2000, help="queries that DuckDB executes")
    parser.add_argument("--spark", type=int, default=0, help="queries that Spark executes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--memory", default="2g", help="of Spark")
    parser.add_argument("--interpreted", action="store_true", help="Spark compiles no expressions: less time a query")
    options = parser.parse_args(arguments)
    differences = 0
    if options.duckdb:
        comparison = DuckDBComparison(options.seed)
        outcomes = Counter(_report_outcome(comparison.next()) for _ in range(options.duckdb))
        differences += outcomes["different"]
        print(f"DuckDB, seed {options.seed}, {options.duckdb} queries: {_counts(outcomes)}", flush=True)
    if options.spark:
        from conformance.sqlpp_random.spark_side import spark_with_tables

        with (
            tempfile.TemporaryDirectory(prefix="limnos-random-") as directory,
            spark_with_tables(
                Path(directory).resolve(), memory=options.memory, is_interpreted=options.interpreted
            ) as tables,
        ):
            differences += _compare_spark(tables, options.spark, seed=options.seed)
    return 1 if differences else 0


def _compare_spark(tables: SparkTables, count: int, *, seed: int) -> int:
    """Compare queries on Spark. Returns the number of differences."""
    outcomes: Counter[str] = Counter()
    relations, began = 0, time.process_time()
    for number, query in enumerate(islice(engine_queries(seed), count), 1):
        outcomes[_report_outcome(_on_spark(query, tables))] += 1
        relations += not isinstance(query.results, SqlppError) and tables.is_relation(query.text)
        if number % PROGRESS == 0 or number == count:
            print(
                f"Spark, seed {seed}, {number} queries: {_counts(outcomes)}; {relations} executed by Spark alone; "
                f"{time.process_time() - began:.0f} s of CPU in Python",
                flush=True,
            )
    return outcomes["different"]


def _on_spark(query: EngineQuery, tables: SparkTables) -> Comparison:
    try:
        results = tables.results(query.text)
    except SqlppError as error:
        both = isinstance(query.results, SqlppError)
        return Comparison("refused by both" if both else "different", query.text, f"refused: {error}")
    except Exception as error:  # Spark's own errors are differences
        return Comparison("different", query.text, f"{type(error).__name__}: {str(error)[:300]}")
    if isinstance(query.results, SqlppError):
        # An error of a row may be absent: another condition may remove the row first.
        return Comparison("left out", query.text)
    difference = difference_of(results, query.results, is_ordered=query.is_ordered)
    return Comparison("different" if difference else "same", query.text, difference)


def _report_outcome(comparison: Comparison) -> str:
    """Print a difference. Returns the outcome."""
    if comparison.outcome == "different":
        print(f"DIFFERENT: {comparison.text}\n    {comparison.difference}", flush=True)
    return comparison.outcome


def _counts(outcomes: Counter[str]) -> str:
    return ", ".join(f"{outcomes[name]} {name}" for name in ("same", "different", "refused by both", "left out"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
