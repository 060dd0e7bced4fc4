# SPDX-License-Identifier: Apache-2.0
"""Access to objects of an external system: a node over a real PostgreSQL answers each request as the cell of
source_refusals.md states.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.backends import PostgresServer
from tests.http import refusal_tables
from tests.http.driver import DriverAnswer
from tests.http.refusal_tables import Pair, Row
from tests.rooms.gravitino.http import source_refusals
from tests.rooms.gravitino.http.source_refusals import CALLERS

pytestmark = [pytest.mark.integration, pytest.mark.room("connectors")]
WRITTEN = dict(refusal_tables.written(source_refusals.TABLE, CALLERS))


@pytest.fixture(scope="module")
def answers(
    postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[Row, dict[str, DriverAnswer]]]:
    """Return the answers to every row for every caller."""
    with source_refusals.node_over(tmp_path_factory.mktemp("source_refusals"), postgres_server) as node:
        source_refusals.prepare(node)
        yield refusal_tables.answers(node, source_refusals.cases, CALLERS)


def test_table_has_exactly_the_requested_rows(answers: dict[Row, dict[str, DriverAnswer]]) -> None:
    """The table has exactly the requested rows."""
    assert set(WRITTEN) == set(answers)


@pytest.mark.parametrize("row", WRITTEN, ids=str)
def test_each_caller_gets_the_status_of_the_table(answers: dict[Row, dict[str, DriverAnswer]], row: Row) -> None:
    """Every caller gets the status that the table states."""
    assert refusal_tables.row_cells(answers, row, CALLERS) == WRITTEN[row]


@pytest.mark.parametrize("pair", refusal_tables.pairs(WRITTEN), ids=str)
def test_refusal_does_not_reveal_existence(answers: dict[Row, dict[str, DriverAnswer]], pair: Pair) -> None:
    """A caller who is refused an existing and a missing object of the source gets the same message for both, except for
    the name.
    """
    for who, first, second in refusal_tables.refused_both(answers, pair, CALLERS):
        assert first["type"] == second["type"], who
