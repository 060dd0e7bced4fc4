# SPDX-License-Identifier: Apache-2.0
"""Access over Lance REST: a node answers each request as the cell of refusals.md states."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from tests.http import refusal_tables
from tests.http.driver import DriverAnswer
from tests.http.iceberg import wire
from tests.http.refusal_tables import CALLERS, Row
from tests.rooms.lance.http import refusals

WRITTEN = dict(refusal_tables.written(refusals.TABLE))


@pytest.fixture(scope="module")
def answer_table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[Row, dict[str, DriverAnswer]]]:
    """Return the answers to every row for every caller."""
    with wire.node_over(tmp_path_factory.mktemp("refusals")) as node:
        refusals.prepare(node)
        yield refusal_tables.answers(node, refusals.cases)


def test_refusal_table_covers_every_served_route(answer_table: dict[Row, dict[str, DriverAnswer]]) -> None:
    """The table contains each served route, and each of its rows is requested."""
    assert {route for route, _ in WRITTEN} == refusals.routes()
    assert set(WRITTEN) == set(answer_table)


@pytest.mark.parametrize("row", WRITTEN, ids=str)
def test_every_caller_gets_the_status_and_code_of_the_table(
    answer_table: dict[Row, dict[str, DriverAnswer]], row: Row
) -> None:
    """Every caller gets the status and code that the table states."""
    assert {who: refusals.cell(answer_table[row][who]) for who in CALLERS} == WRITTEN[row]


PAIRS = sorted(
    (route, thing, f"no {thing}")
    for route, thing in WRITTEN
    if (route, f"no {thing}") in WRITTEN and thing != "catalog"  # a refusal names the caller's rights on the object
)


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_refusals_do_not_reveal_whether_an_object_exists(
    answer_table: dict[Row, dict[str, DriverAnswer]], pair: tuple[str, str, str]
) -> None:
    """A caller who may load neither the existing nor the missing object gets the same message for both, except for the
    name.
    """
    route, existing, missing = pair
    for who in CALLERS:
        if answer_table[route, existing][who].status == answer_table[route, missing][who].status == 403:
            first, second = (json.loads(answer_table[route, thing][who].body or b"{}") for thing in (existing, missing))
            assert _unnamed(first, who) == _unnamed(second, who), who


def _unnamed(body: dict[str, object], who: str) -> str:
    """Return the message of a refusal with names replaced."""
    text = str(body["error"])
    for name in (
        f"drop_{who}",
        f"dereg_{who}",
        f"name_{who}",
        f"kept_{who}",
        "held",
        f"gone_{who}",
        f"side_{who}",
        "nowhere",
        "lance",
        "rows",
        "there",
        "gone",
    ):
        text = text.replace(name, "NAME")
    return re.sub(r"NAME(\.(NAME|t))*", "NAME", text)


def test_request_without_credentials_returns_401(answer_table: dict[Row, dict[str, DriverAnswer]]) -> None:
    """Every row without credentials is refused with 401."""
    assert {answers["nobody"].status for answers in answer_table.values()} == {401}
