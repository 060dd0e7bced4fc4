# SPDX-License-Identifier: Apache-2.0
"""Access over the admin API: a node answers each request as the cell of refusals.md states."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.http import refusal_tables
from tests.http.admin import refusals
from tests.http.driver import DriverAnswer, DriverNode
from tests.http.iceberg import wire
from tests.http.refusal_tables import CALLERS, Pair, RefusalCase, Row
from tests.installed import absent_routes, has_room

ABSENT = absent_routes("admin")
OF_RUNS = frozenset() if has_room("pipelines") else frozenset({"run published", "no run published"})
"""Rows of routes of the kernel that need a run."""
WRITTEN = {
    row: cells
    for row, cells in refusal_tables.written(refusals.TABLE)
    if row[0] not in ABSENT and row[1] not in OF_RUNS
}


def served_cases(node: DriverNode, who: str) -> Iterator[RefusalCase]:
    """Return the rows of the table for one caller, without routes of rooms that are not installed."""
    return (each for each in refusals.cases(node, who) if each.route not in ABSENT)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Row, dict[str, DriverAnswer]]]:
    """Return the answers to every row for every caller."""
    with wire.node_over(tmp_path_factory.mktemp("refusals")) as node:
        refusal_tables.prepare(node)
        yield refusal_tables.answers(node, served_cases)


def test_every_route_is_in_the_table_and_requested(answers: dict[Row, dict[str, DriverAnswer]]) -> None:
    """The table contains every route whose answer depends on the caller, and each of its rows is requested."""
    assert {route for route, _ in WRITTEN} == refusals.routes()
    assert set(WRITTEN) == set(answers)


@pytest.mark.parametrize("row", WRITTEN, ids=str)
def test_every_caller_gets_the_status_in_the_table(answers: dict[Row, dict[str, DriverAnswer]], row: Row) -> None:
    """Every caller gets the status that the table states."""
    assert refusal_tables.row_cells(answers, row, CALLERS) == WRITTEN[row]


@pytest.mark.parametrize("pair", refusal_tables.pairs(WRITTEN), ids=str)
def test_refusals_for_existing_and_missing_objects_are_equal(
    answers: dict[Row, dict[str, DriverAnswer]], pair: Pair
) -> None:
    """A caller who may load neither the existing nor the missing object gets the same refusal for both."""
    route, existing, _ = pair
    for who, first, second in refusal_tables.refused_both(answers, pair, CALLERS):
        if not refusals.may_know(answers, (route, existing), who):
            assert refusals.same_words(first, who) == refusals.same_words(second, who), who
