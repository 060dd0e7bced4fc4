# SPDX-License-Identifier: Apache-2.0
"""Random queries with the same meaning in SQL have the results of DuckDB. `conformance/run sqlpp_random` compares
more.
"""

from __future__ import annotations

from conformance.sqlpp_random.comparison import DuckDBComparison

COUNT = 150


def test_random_queries_have_the_results_of_duckdb() -> None:
    """No result differs, and nearly all queries can be compared."""
    comparison = DuckDBComparison(seed=1)

    outcomes = [comparison.next() for _ in range(COUNT)]

    assert [each for each in outcomes if each.outcome == "different"] == []
    assert sum(each.outcome == "same" for each in outcomes) > COUNT * 0.9
