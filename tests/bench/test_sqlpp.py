# SPDX-License-Identifier: Apache-2.0
"""The result lines of SQL++'s benchmark that judge measurements."""

from __future__ import annotations

import pytest

from bench.sqlpp import options
from bench.sqlpp_statements import Cost, Memory, divided, growth_line, mixed_statement


def test_a_cost_is_judged_by_cpu_and_time() -> None:
    """CPU and time are both compared with the target; for a lookup only CPU is."""
    cost = Cost(0.01, 0.5)

    assert cost.line("x", 0.4) == "x: CPU 0.010 s (met), median time 0.500 s (MISSED); aim 0.4 s"
    assert cost.line("x", 0.4, timed=False) == "x: CPU 0.010 s (met), median time 0.500 s; aim 0.4 s"


def test_memory_growth_is_reported_despite_noise() -> None:
    """Statements until the heap is full do not count; noise is allowed."""
    flat = [(number, Memory(500 if number < 2500 else 900, 100)) for number in range(500, 5001, 500)]
    growing = [(number, Memory(500 + number // 10, 100)) for number in range(500, 5001, 500)]

    assert "+0 MB on average (flat" in growth_line(flat)
    assert "GROWS" in growth_line(growing)
    assert "too few" in growth_line(flat[:3])


def test_division_query_has_some_but_not_all_results() -> None:
    """The division query has some buyers as results, neither all nor none."""
    assert 0 < len(divided()) < 150


def test_six_of_ten_statements_are_lookups() -> None:
    """Six of ten statements are lookups."""
    words = [mixed_statement(number, objects=100).split()[0] for number in range(10)]

    assert sorted(words) == ["DELETE", "INSERT", *["SELECT"] * 7, "UPSERT"]


def test_all_rows_run_without_a_selection() -> None:
    """Without `--only` all rows run, with it only the named ones; an unknown row ends the command."""
    assert "memory" in options([]).only
    assert options(["--only", "lookup", "warm"]).only == ["lookup", "warm"]
    with pytest.raises(SystemExit):
        options(["--only", "nothing"])
