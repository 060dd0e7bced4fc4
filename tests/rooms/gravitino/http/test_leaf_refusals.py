# SPDX-License-Identifier: Apache-2.0
"""Access to objects in schemas over Gravitino REST: a node answers each request as the cell of leaf_refusals.md
states.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.http import refusal_tables
from tests.http.driver import DriverAnswer
from tests.http.iceberg import wire
from tests.http.refusal_tables import Pair, Row
from tests.rooms.gravitino.http import leaf_refusals
from tests.rooms.gravitino.http.leaf_refusals import CALLERS

WRITTEN = dict(refusal_tables.written(leaf_refusals.TABLE, CALLERS))


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Row, dict[str, DriverAnswer]]]:
    """Return the answers to every row for every caller."""
    with wire.node_over(tmp_path_factory.mktemp("leaf_refusals")) as node:
        leaf_refusals.prepare(node)
        yield refusal_tables.answers(node, leaf_refusals.cases, CALLERS)


def test_table_has_exactly_the_requested_rows(answers: dict[Row, dict[str, DriverAnswer]]) -> None:
    """The table has exactly the requested rows."""
    assert set(WRITTEN) == set(answers)


@pytest.mark.parametrize("row", WRITTEN, ids=str)
def test_each_caller_gets_the_status_of_the_table(answers: dict[Row, dict[str, DriverAnswer]], row: Row) -> None:
    """Every caller gets the status that the table states."""
    assert refusal_tables.row_cells(answers, row, CALLERS) == WRITTEN[row]


@pytest.mark.parametrize("pair", refusal_tables.pairs(WRITTEN), ids=str)
def test_refusal_does_not_reveal_existence(answers: dict[Row, dict[str, DriverAnswer]], pair: Pair) -> None:
    """A caller who may load neither the existing nor the missing object gets the same answer for both."""
    for who, *both in refusal_tables.refused_both(answers, pair, CALLERS):
        first, second = (leaf_refusals.same_words(str(each["message"]), who) for each in both)
        assert first == second, who
