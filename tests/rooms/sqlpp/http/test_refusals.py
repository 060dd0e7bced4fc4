# SPDX-License-Identifier: Apache-2.0
"""Access over the query service: a node answers each request as the cell of refusals.md states."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from limnos.rooms.sqlpp.language import parse, tree
from limnos.rooms.sqlpp.services.statements import statement_kinds
from tests.http import refusal_tables
from tests.http.driver import DriverAnswer
from tests.http.iceberg import wire
from tests.http.refusal_tables import Row
from tests.rooms.sqlpp.http import refusals
from tests.rooms.sqlpp.http.refusals import CALLERS

WRITTEN = dict(refusal_tables.written(refusals.TABLE, callers=tuple(CALLERS)))


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Row, dict[str, DriverAnswer]]]:
    """Return the answers to every row for every caller."""
    with wire.node_over(tmp_path_factory.mktemp("refusals")) as node:
        refusals.prepare(node)
        yield refusal_tables.answers(node, refusals.cases, callers=CALLERS)


def test_every_route_is_in_the_table_and_requested(answers: dict[Row, dict[str, DriverAnswer]]) -> None:
    """The table contains each route, and each of its rows is requested."""
    assert {route for route, _ in WRITTEN} == refusals.routes()
    assert set(WRITTEN) == set(answers)


def test_every_statement_kind_has_a_row_for_each_caller() -> None:
    """Each kind of statement has a row for every caller."""
    parsed_statements = [each.statement for text in refusals.statements("who").values() for each in parse(text)]

    kinds = {
        type(each).__name__ if not isinstance(each, tree.Drop) else f"Drop {each.kind}" for each in parsed_statements
    }
    spelled = {"".join(f" {each}" if each.isupper() else each for each in name).strip().upper() for name in kinds}
    assert {word for word, _ in statement_kinds()} <= {" ".join(each.split()) for each in spelled}


@pytest.mark.parametrize("row", WRITTEN, ids=str)
def test_every_caller_gets_the_status_and_code_in_the_table(
    answers: dict[Row, dict[str, DriverAnswer]], row: Row
) -> None:
    """Every caller gets the status and code that the table states."""
    assert {who: refusals.cell(answers[row][who]) for who in CALLERS} == WRITTEN[row]


PAIRS = [
    ("dataset", "no dataset"),
    ("view", "no view"),
    ("drop dataset", "drop no dataset"),
    ("drop view", "drop no view"),
    ("drop type", "drop no type"),
    ("drop synonym", "drop no synonym"),
    ("insert", "insert into none"),
    ("use", "use none"),
]


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_refusals_for_existing_and_missing_objects_are_equal(
    answers: dict[Row, dict[str, DriverAnswer]], pair: tuple[str, str]
) -> None:
    """A caller who may load neither the existing nor the missing object gets the same refusal for both, except for the
    name.
    """
    for who in set(CALLERS) - {"admin"}:
        existing, missing = (answers[refusals.POST, thing][who] for thing in pair)
        if existing.status == missing.status == 403:
            first, second = (_unnamed(each, who) for each in (existing, missing))
            assert first == second, who


def _unnamed(answer: DriverAnswer, who: str) -> str:
    """Return the message of a refusal with names replaced."""
    text = answer.json()["errors"][0]["msg"]
    for name in (
        *(f"there.{each}_{who}" for each in "dvts"),
        "there.no_d",
        "there.no_v",
        "there.gone",
        "there.d",
        "there.v",
    ):
        text = text.replace(name, "NAME")
    return re.sub(r"\bmain\.(?:there|gone)\b", "main.NAME", text)
