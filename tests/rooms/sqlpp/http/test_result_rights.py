# SPDX-License-Identifier: Apache-2.0
"""Stored results end when their user may no longer read the rows from which they were made."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from limnos.rooms.sqlpp.language.jobs import EngineJob
from limnos.rooms.sqlpp.services.execution.engine import ENGINE
from limnos.rooms.sqlpp.services.requests import results as stored_results
from limnos.rooms.sqlpp.services.requests import running_requests
from limnos.services.request.context import Context
from tests.http.driver import API, DriverAnswer, DriverNode, grant
from tests.http.iceberg.test_restrictions import restrict
from tests.http.iceberg.wire import ROOT
from tests.http.refusal_tables import own
from tests.rooms.sqlpp.http.test_result_handles import handle_of
from tests.rooms.sqlpp.http.test_statement_rights import _act_once
from tests.rooms.sqlpp.http.wire import ask, rows

pytestmark = pytest.mark.slow

CARDS = [{"id": number, "card": "4111" * 20} for number in range(40)]


class CardEngine:
    """A fake engine that returns the same rows for every job."""

    is_starting = False

    async def run(self, _job: EngineJob, **_more: object) -> AsyncIterator[bytes]:
        """Yield the rows."""
        for card in CARDS:
            yield json.dumps(card).encode()

    async def cancel(self, _job_id: str) -> None:
        """No-op: no job runs."""

    def close(self) -> None:
        """No-op: the fake holds no resources."""


class ResultReader:
    """A node with datasets of cards, and bob, who reads them by a role and has stored results."""

    def __init__(self, node: DriverNode, folder: Path) -> None:
        self.node = node
        services = node.built.services
        services.defaults = services.defaults._replace(file_roots=(f"file://{folder}",))
        ENGINE.put(services, CardEngine())  # type: ignore[arg-type]
        rows(
            node,
            "create dataverse a; create dataverse b; use a; create type T as { id: bigint };create dataset t(T)"
            " primary key id; create dataset u(T) primary key id; create view v as select value t from t;create"
            f" external dataset files(T) using localfs (('path'='localhost://{folder}/in'), ('format'='json'))",
        )
        grant(node, "bob", "use_catalog use_schema select_view", kind="CATALOG", on="main")
        grant(node, "bob", "select_table", kind="TABLE", on="main.a.u")
        self.role = grant(node, "bob", "select_table", kind="TABLE", on="main.a.t")

    def stored(self, statement: str = "select value t from a.t", *, mode: str = "deferred") -> str:
        """Store a result of bob, and return its URL."""
        answer = ask(self.node, statement, user="bob", mode=mode)
        if mode == "async":
            while (answer := self.node.get(handle_of(answer), user="bob")).json()["status"] == "running":
                pass
        assert self.node.get(handle_of(answer), user="bob").json()["results"] == CARDS
        return handle_of(answer)

    def fetch(self, url: str) -> DriverAnswer:
        """Fetch a result of bob."""
        return self.node.get(url, user="bob")

    def revoke(self) -> None:
        """Take bob's role on `a.t`."""
        path = f"{API}/lake/permissions/users/bob/revoke"
        self.node.done("PUT", path, {"roleNames": [self.role]})


def _ended(answer: DriverAnswer) -> bool:
    """Return whether an answer says that the result has ended, and shows none of it."""
    return answer.status == 403 and b"has ended" in answer.body and b"4111" not in answer.body


@pytest.fixture
def reader(node: DriverNode, tmp_path_factory: pytest.TempPathFactory) -> ResultReader:
    """The node and the reader of a test."""
    return ResultReader(node, tmp_path_factory.mktemp("files"))


def _drop(reader: ResultReader) -> None:
    rows(reader.node, "drop dataset a.u; drop view a.v; drop dataset a.t")


def _remake(reader: ResultReader) -> None:
    _drop(reader)
    rows(reader.node, "use a; create dataset t(T) primary key id")
    grant(reader.node, "bob", "select_table", kind="TABLE", on="main.a.t")


def _move(reader: ResultReader) -> None:
    for kind in ("view", "table"):
        names = {"namespace": ["a"], "name": "v" if kind == "view" else "t"}
        body = {"source": names, "destination": {**names, "namespace": ["b"]}}
        assert reader.node.post(f"{ROOT}/{kind}s/rename", body).status == 204
    reader.revoke()


CHANGES: dict[str, Callable[[ResultReader], object]] = {
    "revoke": ResultReader.revoke,
    "deny": lambda reader: grant(reader.node, "bob", "select_table", kind="SCHEMA", on="main.a", condition="deny"),
    "filter of the table": lambda reader: restrict(reader.node, filter="id = 1", to={"users": ["bob"]}),
    "filter of the namespace": lambda reader: restrict(
        reader.node, kind="SCHEMA", on="main.a", filter="id = 1", to={"users": ["bob"]}
    ),
    "drop": _drop,
    "drop and create": _remake,
    "move and revoke": _move,
}


@pytest.mark.parametrize("mode", ["deferred", "async"])
@pytest.mark.parametrize("change", CHANGES)
def test_result_ends_when_its_rows_may_not_be_read(reader: ResultReader, change: str, mode: str) -> None:
    """A stored result is refused after its user lost the right to a dataset, and is deleted: later grants do not bring
    it back. Results over other datasets, and of constants, stay.
    """
    statements = ("select value t from a.t", "select value v from a.v", "select value 1; select value t from a.t, a.u")
    ending = [reader.stored(statements[0], mode=mode)]
    ending += [handle_of(ask(reader.node, each, user="bob", mode="deferred")) for each in statements[1:]]
    constant = handle_of(ask(reader.node, "select value 7", user="bob", mode="deferred"))

    CHANGES[change](reader)

    for url in ending:
        assert _ended(reader.fetch(url)), reader.fetch(url)
        assert reader.fetch(url).status == 404
    own(reader.node, "bob", "CATALOG", "main")
    assert all(reader.fetch(url).status == 404 for url in ending)
    assert reader.fetch(constant).json()["results"] == [7]


def test_result_stays_while_its_rows_may_be_read(reader: ResultReader) -> None:
    """Changes that take no right leave a result as it is: renames, rights of others, and other restrictions."""
    url, other = reader.stored(), reader.stored("select value u from a.u")
    grant(reader.node, "eve", "select_table", kind="TABLE", on="main.a.t")
    assert restrict(reader.node, filter="id = 1", to={"users": ["eve"]}).status == 200
    names = {"namespace": ["a"], "name": "u"}
    body = {"source": names, "destination": {"namespace": ["b"], "name": "moved"}}
    assert reader.node.post(f"{ROOT}/tables/rename", body).status == 204

    assert [reader.fetch(each).json()["results"] for each in (url, other)] == [CARDS, CARDS]


def test_result_ends_in_the_middle_of_a_response(reader: ResultReader, monkeypatch: pytest.MonkeyPatch) -> None:
    """A result in several parts is decided before each part: after a revoke the body ends with the error."""
    monkeypatch.setattr(stored_results, "PART_BYTES", 1)
    monkeypatch.setattr(running_requests, "BATCH_BYTES", 1)
    url = handle_of(ask(reader.node, "select value t from a.t; select value t from a.t", user="bob", mode="deferred"))

    async def revoke() -> None:
        body = {"roleNames": [reader.role]}
        done = await reader.node.answer("PUT", f"{API}/lake/permissions/users/bob/revoke", body)
        assert done.status == 200, done

    _act_once(monkeypatch, Context, "find", act=revoke, call=3)
    body = reader.fetch(url).json()

    assert len(body["results"]) < 2 * len(CARDS)
    assert (body["status"], "has ended" in body["errors"][0]["msg"]) == ("fatal", True)
    assert reader.fetch(url).status == 404


@pytest.mark.parametrize("change", ["revoke", "restrict"])
def test_result_of_external_files_ends_with_the_right_to_them(reader: ResultReader, change: str) -> None:
    """A result made from files of an external dataset ends when its user may no longer read that dataset: by a revoke,
    or by a restriction of its namespace.
    """
    role = grant(reader.node, "bob", "select_table", kind="SCHEMA", on="main.a")
    url = reader.stored("select value f from a.files f")

    if change == "revoke":
        reader.node.done("PUT", f"{API}/lake/permissions/users/bob/revoke", {"roleNames": [role]})
    else:
        CHANGES["filter of the namespace"](reader)

    assert _ended(reader.fetch(url))
