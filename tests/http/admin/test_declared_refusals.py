# SPDX-License-Identifier: Apache-2.0
"""Access to objects of declared kinds: every kind has the answers of one table."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from limnos.model.declared_kinds import DECLARED, DeclaredKind
from tests.http import refusal_tables
from tests.http.admin import declared_refusals
from tests.http.driver import DriverAnswer
from tests.http.iceberg import wire
from tests.http.refusal_tables import CALLERS, Row

WRITTEN = dict(refusal_tables.written(declared_refusals.TABLE))
Answers = dict[Row, dict[str, DriverAnswer]]


def _row(declared: DeclaredKind, row: Row) -> Row:
    """Return the row of another kind: that of the first kind with its words replaced."""
    first, (route, thing) = DECLARED[0], row
    route = route.replace(f"/{first.plural}/", f"/{declared.plural}/")
    return route.replace(f"{{{first.kind.word}}}", f"{{{declared.kind.word}}}"), thing


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answers]:
    """Return the answers to every row of every kind for every caller."""
    with wire.node_over(tmp_path_factory.mktemp("declared")) as node:
        refusal_tables.prepare(node)
        yield refusal_tables.answers(node, declared_refusals.cases)


@pytest.mark.parametrize("declared", DECLARED, ids=lambda each: each.kind.word)
@pytest.mark.parametrize("row", WRITTEN, ids=str)
def test_every_caller_gets_the_status_in_the_table(answers: Answers, row: Row, declared: DeclaredKind) -> None:
    """Every caller gets the status that the table states, whatever the kind."""
    assert refusal_tables.row_cells(answers, _row(declared, row), CALLERS) == WRITTEN[row]


@pytest.mark.parametrize("declared", DECLARED, ids=lambda each: each.kind.word)
def test_refusals_for_existing_and_missing_objects_are_equal(answers: Answers, declared: DeclaredKind) -> None:
    """A caller who is refused an existing and a missing object gets the same words for both."""
    for route, existing, missing in refusal_tables.pairs([_row(declared, row) for row in WRITTEN]):
        for who, first, second in refusal_tables.refused_both(answers, (route, existing, missing), CALLERS):
            words, other = str(first["error"]["message"]), str(second["error"]["message"])  # type: ignore[index]
            assert _without_names(words, who) == _without_names(other, who)


def _without_names(message: str, who: str) -> str:
    """Return a refusal's message with each name of a row replaced by one."""
    return re.sub(rf"\b(gone|alter_{who}|drop_{who})\b", "there", message)
