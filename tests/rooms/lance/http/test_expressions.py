# SPDX-License-Identifier: Apache-2.0
"""SQL expressions that cannot be evaluated are refused on every route as a bad request, with the library's message, and
change nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from tests.arrow_rows import arrow
from tests.http.driver import DriverNode
from tests.http.iceberg.wire import node_over
from tests.rooms.lance.http.wire import Json, declare, failure_of, table

pytestmark = pytest.mark.slow

ENDLESS = "array_repeat(id, 100000000000000)[1] = 1"
"""An expression on which the library ends its process, because it needs more memory than any machine can address."""
WRONG = (
    "cast(text as int) = 1",
    "id / 0 = 1",
    "regexp_like(text, '(((a{100}){100}){100}){100}')",
    "date_part('x', now()) = 1",
    "to_date(text) = now()",
    "repeat(text, 1000000000) = 'x'",
    "$1 = id",
    "id = ?",
    "text = N'a'",
    "+".join(["id"] * 20_000) + " = 1",
    "id" + "::int" * 5000 + " = 1",
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DriverNode]:
    """A node with a table of three rows of each kind."""
    with node_over(tmp_path_factory.mktemp("expressions")) as node:
        for name, managed in (("plain", "false"), ("kept", "true")):
            declare(node, "lance", name, properties={"managed_versioning": managed})
            node.done("POST", f"{table('lance', name)}/insert", arrow())
        yield node


def doors(expression: str) -> list[tuple[str, Json | bytes]]:
    """Return each request that takes an expression."""
    merging = f"merge_insert?on=id&when_matched_update_all=true&when_matched_update_all_filt={quote(expression.replace('id', 'source.id'))}"
    return [
        *([] if "text" in expression else [(merging, arrow())]),
        ("count_rows", {"predicate": expression}),
        ("query", {"vector": [], "filter": expression}),
        ("query", {"vector": [], "columns": {"column_aliases": {"x": expression}}}),
        ("delete", {"predicate": expression}),
        ("update", {"updates": [["text", "'x'"]], "predicate": expression}),
        ("update", {"updates": [["text", f"cast({expression} as text)"]]}),
        ("add_columns", {"new_columns": [{"name": "x", "expression": expression}]}),
    ]


def versions(node: DriverNode, t: str) -> list[int]:
    """Return the versions of a table."""
    return [each["version"] for each in node.done("POST", f"{t}/version/list", {})["versions"]]


@pytest.mark.parametrize("name", ["plain", "kept"])
@pytest.mark.parametrize("expression", WRONG, ids=range(len(WRONG)))
def test_expression_that_cannot_be_evaluated_returns_400(home: DriverNode, name: str, expression: str) -> None:
    """An expression that cannot be evaluated is 400 with code 13, and the table is not reported as damaged."""
    t = table("lance", name)
    answers = [(action, failure_of(home.post(f"{t}/{action}", body))) for action, body in doors(expression)]

    assert {action: answer for action, answer in answers if answer != (400, 13)} == {}
    assert versions(home, t) == [1]


def test_expression_that_crashes_the_process_returns_400(home: DriverNode) -> None:
    """If an expression crashes the process, a read, or a change of a managed table, is 400, so that clients do not
    retry.
    """
    for name, action, body in (
        ("plain", "count_rows", {"predicate": ENDLESS}),
        ("kept", "delete", {"predicate": ENDLESS}),
    ):
        answer = home.post(f"{table('lance', name)}/{action}", body)
        assert failure_of(answer) == (400, 13), name
        assert "nothing was changed" in str(answer["error"])
    assert failure_of(home.post(f"{table('lance', 'plain')}/delete", {"predicate": ENDLESS})) == (500, 18)

    assert [versions(home, table("lance", name)) for name in ("plain", "kept")] == [[1], [1]]
    assert home.done("POST", f"{table('lance', 'kept')}/count_rows", {"predicate": "id > 1"}) == 2
