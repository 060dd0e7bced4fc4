# SPDX-License-Identifier: Apache-2.0
"""The query service as AsterixDB's JDBC driver uses it: connection test, result metadata, bound parameters."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import urlsplit

import pytest

from limnos.rooms.sqlpp.services.execution.engine import ENGINE
from tests.http.driver import DriverAnswer, DriverNode
from tests.rooms.sqlpp.http.wire import SERVICE, ask, refusal, rows

LOSSLESS = "application/json; lossless-adm=true"


def jdbc(node: DriverNode, statement: str, **more: object) -> DriverAnswer:
    """Send a statement as the driver does."""
    body = {
        "client-type": "jdbc",
        "mode": "deferred",
        "statement": statement,
        "signature": True,
        "plan-format": "string",
    }
    more = {name.replace("_", "-"): value for name, value in more.items()}
    return node.ask("POST", SERVICE, body | more, accept=LOSSLESS)


def fetch(node: DriverNode, answer: DriverAnswer) -> DriverAnswer:
    """Fetch a deferred result by its handle."""
    return node.get(urlsplit(answer.json()["handle"]).path)


def test_options_returns_product_and_version_to_users(shared: DriverNode) -> None:
    """OPTIONS returns product and version in a header, to users of the metalake only."""
    answer = shared.ask("OPTIONS", SERVICE)

    assert answer.status == 200
    product, _, version = answer.headers["server"].partition("/")
    assert (product, version[0].isdigit()) == ("Limnos", True)
    assert shared.ask("OPTIONS", SERVICE, user="stranger").status == 403
    assert shared.ask("OPTIONS", SERVICE, user=None).status == 401


def test_result_is_deleted_after_a_read_by_the_driver(shared: DriverNode) -> None:
    """The handle is returned with names and types. Reading the result deletes it, because the driver does not discard
    results.
    """
    answer = jdbc(shared, "select x a, 'x' || string(x) b from [1, 2] x order by x")
    body = answer.json()

    assert (body["status"], body["plans"]) == ("success", {"statementCategory": "query"})
    assert body["signature"] == {"name": ["a", "b"], "type": ["any", "string?"]}
    assert fetch(shared, answer).json()["results"] == [{"a": 1, "b": ":x1"}, {"a": 2, "b": ":x2"}]
    assert fetch(shared, answer).status == 404


def test_result_can_be_read_repeatedly_by_other_clients(shared: DriverNode) -> None:
    """For other clients a result can be read repeatedly, unless they request a single read."""
    often = ask(shared, "select value 1", mode="deferred")
    once = shared.ask("POST", SERVICE, {"statement": "select value 1", "mode": "deferred", "max-result-reads": 1})

    assert [fetch(shared, often).status for _ in range(2)] == [200, 200]
    assert [fetch(shared, once).status for _ in range(2)] == [200, 404]


def test_driver_header_selects_lossless_adm(shared: DriverNode) -> None:
    """The driver's header alone selects lossless ADM, also for immediate results."""
    answer = jdbc(shared, "select value {'d': date('1970-01-02'), 'f': 1.5, 'm': missing, 'n': null}", mode="immediate")

    assert answer.json()["results"] == [{"d": "11:1", "f": "0C:4609434218613702656", "n": None}]


def test_parameters_are_decoded_as_lossless_adm(shared: DriverNode) -> None:
    """Parameters are lossless ADM, too; malformed ones are refused by name."""
    answer = jdbc(shared, "select value [?, ?, ?]", args=["11:1", ":11:1", 7], mode="immediate")

    assert answer.json()["results"] == [["11:1", ":11:1", 7]]
    bad = jdbc(shared, "select value ?", args=["zz:1"])
    assert (bad.status, bad.json()["errors"][0]["msg"][:8]) == (400, "ASX0047:")


def test_prepare_returns_parameter_count_and_columns(shared: DriverNode) -> None:
    """Preparing returns the number of parameters and the columns; nothing is executed or stored."""
    answer = jdbc(shared, "select ? a, $2 b, $name c from [1] x where x = ?", compile_only=True)
    body = answer.json()

    assert body["plans"] == {"statementCategory": "query", "statementParameters": [1, 2, "name"]}
    assert body["signature"]["name"] == ["a", "b", "c"]
    assert "handle" not in body
    assert jdbc(shared, "select value ?").json()["errors"][0]["msg"].startswith("ASX1086:")


def test_executing_after_compile_only_returns_results(shared: DriverNode) -> None:
    """A statement that was first compiled only returns its results when it is executed later, with and without SQL
    compatibility.
    """
    text = "select value (select y from [4] y)"

    assert jdbc(shared, text, compile_only=True).status == 200
    assert rows(shared, text) == [[{"y": 4}]]
    assert jdbc(shared, text, sql_compat=True, mode="immediate").json()["results"] == [4]
    assert rows(shared, text) == [[{"y": 4}]]


def test_ddl_and_plans_are_answered_without_a_handle(node: DriverNode) -> None:
    """DDL and plans are answered immediately, without a handle, because the driver would never read such a result."""
    created = jdbc(node, "create dataverse shop.floor")
    plan = jdbc(node, "explain select value 1")

    assert (created.json()["status"], created.json()["plans"]) == ("success", {"statementCategory": "ddl"})
    assert plan.json()["plans"] == {"statementCategory": "query", "explainOnly": True}
    (text,) = plan.json()["results"]
    assert isinstance(text, str)
    assert all("handle" not in answer.json() for answer in (created, plan))


class NoEngine:
    """A fake engine that writes nothing and returns no rows."""

    async def run(self, _job: object, **_more: object) -> AsyncIterator[bytes]:
        """Return no rows."""
        return
        yield b""

    async def cancel(self, _job_id: str) -> None:
        """No-op: no job runs."""

    def close(self) -> None:
        """No-op: the fake holds no resources."""


def test_update_has_category_update_and_is_refused_read_only(node: DriverNode) -> None:
    """The answer to a change states the category `update`. In a read-only request, as the driver's `executeQuery` sends
    it, a change is refused.
    """
    rows(node, "create dataset things(id bigint) open type primary key id")
    ENGINE.put(node.built.services, NoEngine())

    assert jdbc(node, "insert into things ({'id': 1})").json()["plans"] == {"statementCategory": "update"}
    assert jdbc(node, "insert into things ({'id': 1})", readonly=True).json()["errors"][0]["msg"].startswith("ASX0044:")


def test_dotted_dataverse_has_two_parts_for_the_driver(node: DriverNode) -> None:
    """In requests of the driver, `a.b` names the dataverse of two parts, as in the metadata. In other requests it names
    one part with a dot.
    """
    rows(node, "create dataverse a.b; create synonym a.b.s for Default.x")

    query = "select value s.SynonymName from Metadata.`Synonym` s where s.DataverseName = 'a.b'"
    assert jdbc(node, f"use a.b; {query}", mode="immediate").json()["results"] == [":s"]
    assert jdbc(node, "create synonym t for x", dataverse="a.b").status == 200
    assert jdbc(node, f"{query} order by s.SynonymName", mode="immediate").json()["results"] == [":s", ":t"]
    assert refusal(node, "create synonym t for x", dataverse="a.b")[0] == 400


def test_answer_with_handle_contains_the_warnings(shared: DriverNode) -> None:
    """The answer with the handle contains the warnings, such as one for a text that is not a number."""
    warnings = jdbc(shared, "select double('x') a, bigint('y') b", max_warnings=9).json()["warnings"]

    assert [each["msg"].partition(" (in")[0] for each in warnings] == [
        "ASX0006: Invalid format for double in x",
        "ASX0006: Invalid format for bigint in y",
    ]
    assert "warnings" not in jdbc(shared, "select double('x') a", max_warnings=0).json()


@pytest.mark.parametrize("word", ["oracle", "jdbc "])
def test_another_client_type_is_refused(shared: DriverNode, word: str) -> None:
    """An unknown client type is refused by name."""
    answer = shared.ask("POST", SERVICE, {"statement": "select 1", "client-type": word})

    assert answer.status == 400
    assert "client-type" in answer.json()["errors"][0]["msg"]
