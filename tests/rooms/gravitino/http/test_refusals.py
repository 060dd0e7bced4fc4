# SPDX-License-Identifier: Apache-2.0
"""Access over Gravitino REST: a node answers each request as the cell of refusals.md states."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.http import refusal_tables
from tests.http.driver import DriverAnswer
from tests.http.iceberg import wire
from tests.http.refusal_tables import CALLERS, Pair, Row
from tests.rooms.gravitino.http import leaf_refusals, refusals

WRITTEN = dict(refusal_tables.written(refusals.TABLE))


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Row, dict[str, DriverAnswer]]]:
    """Return the answers to every row for every caller."""
    with wire.node_over(tmp_path_factory.mktemp("refusals")) as node:
        refusal_tables.prepare(node)
        yield refusal_tables.answers(node, refusals.cases)


def test_table_covers_every_route(answers: dict[Row, dict[str, DriverAnswer]]) -> None:
    """The table contains every route whose answer depends on the caller, and each of its rows is requested."""
    others = {route for (route, _), _ in refusal_tables.written(leaf_refusals.TABLE, leaf_refusals.CALLERS)}
    assert {route for route, _ in WRITTEN} | others == refusals.routes()
    assert set(WRITTEN) == set(answers)


@pytest.mark.parametrize("row", WRITTEN, ids=str)
def test_each_caller_gets_the_status_of_the_table(answers: dict[Row, dict[str, DriverAnswer]], row: Row) -> None:
    """Every caller gets the status that the table states."""
    assert refusal_tables.row_cells(answers, row, CALLERS) == WRITTEN[row]


@pytest.mark.parametrize("pair", refusal_tables.pairs(WRITTEN), ids=str)
def test_refusal_does_not_reveal_existence(answers: dict[Row, dict[str, DriverAnswer]], pair: Pair) -> None:
    """A caller who may load neither the existing nor the missing object gets the same answer for both."""
    thing = pair[1]
    for who, first, second in refusal_tables.refused_both(answers, pair, CALLERS):
        if thing == "metalake" and who not in ("nobody", "stranger"):
            continue  # users of the metalake know that it exists
        may_load = answers["GET /metalakes/{m}/catalogs/{c}", "catalog"][who].status == 200
        if "catalog" in thing and (may_load or who == "keyless"):
            continue  # so do callers who may load a catalog, or have other rights on it
        if (
            thing == "job template"
            and answers["GET /metalakes/{m}/jobs/templates/{template}", thing][who].status == 200
        ):
            continue  # and callers who may load a template
        assert refusals.same_words(first, who) == refusals.same_words(second, who), who
