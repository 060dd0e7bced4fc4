# SPDX-License-Identifier: Apache-2.0
"""Rights on objects of a statement that change while it runs: it reads nothing from after the change."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import msgspec
import pytest

from limnos.rooms.sqlpp.engine.loading import read_files
from limnos.rooms.sqlpp.language.jobs import EngineJob, form_of
from limnos.rooms.sqlpp.services.execution import data_statements, metadata, queries
from limnos.rooms.sqlpp.services.execution.engine import ENGINE
from limnos.services.request.context import Context
from tests.http.driver import API, DriverNode, grant
from tests.rooms.sqlpp.http.wire import SERVICE, refusal, rows

EXTERNAL = "external dataset shared.files(T) using localfs (('path'='localhost://{}/in'), ('format'='json'))"
INSERT = "insert into mine.d (select value f from shared.files f)"
DEFINITIONS = (
    "use shared; create or replace function f() {{ '{0}' }};"
    "create or replace view v as select value '{0}'; create index i{0} on t(x: string)"
)
"""Statements that create or replace objects whose texts contain a word."""
Act = Callable[[], Awaitable[None]]


class FileEngine:
    """A fake engine that reads external datasets as the real one does; `act` is executed before a job."""

    def __init__(self) -> None:
        self.jobs: list[EngineJob] = []
        self.act: Act | None = None

    async def run(self, job: EngineJob, **_more: object) -> AsyncIterator[bytes]:
        """Yield the objects of all files."""
        self.jobs.append(job)
        if self.act is not None:
            await self.act()
        for ref in job.reads:
            if ref.files is not None:
                for value in read_files(ref.files, form_of(ref)):
                    yield msgspec.json.encode(value)

    async def cancel(self, _job_id: str) -> None:
        """No-op: no job runs."""

    def close(self) -> None:
        """No-op: the fake holds no resources."""


class SharedObjects:
    """A node with a dataset that alice may change, and a table and external files that she may read."""

    def __init__(self, node: DriverNode, folder: Path) -> None:
        self.node, self.folder, self.engine = node, folder, FileEngine()
        (folder / "in").mkdir()
        self.write("a", 1)
        services = node.built.services
        services.defaults = services.defaults._replace(file_roots=(f"file://{folder}",))
        rows(
            node,
            "create dataverse mine; create dataverse shared; create type mine.T as { id: bigint };"
            "create type shared.T as { id: bigint }; create dataset mine.d(T) primary key id;"
            f"use shared; create {EXTERNAL.format(folder)}; create dataset shared.t(T) primary key id",
        )
        ENGINE.put(services, self.engine)  # type: ignore[arg-type]
        grant(node, "alice", "use_catalog use_schema", kind="CATALOG", on="main")
        grant(node, "alice", "select_table modify_table", kind="TABLE", on="main.mine.d")
        self.role = grant(node, "alice", "select_table select_view execute_function", kind="SCHEMA", on="main.shared")

    def write(self, name: str, number: int) -> None:
        """Write a file of the external dataset."""
        (self.folder / "in" / f"{name}.json").write_text(f'{{"id": {number}}}\n', encoding="utf-8")

    async def revoke(self) -> None:
        """Take alice's right on the dataverse `shared`, then add a file and an index."""
        path = f"{API}/lake/permissions/users/alice/revoke"
        answer = await self.node.answer("PUT", path, {"roleNames": [self.role]}, user="admin")
        assert answer.status == 200, answer
        await self.execute("create index later on shared.t(x: string)")
        self.write("b", 2)

    async def execute(self, statement: str) -> None:
        """Execute a statement as the administrator."""
        answer = await self.node.answer("POST", SERVICE, {"statement": statement}, user="admin")
        assert answer.status == 200, answer


@pytest.fixture
def shared_objects(node: DriverNode, tmp_path_factory: pytest.TempPathFactory) -> SharedObjects:
    """The objects of a test."""
    return SharedObjects(node, tmp_path_factory.mktemp("files"))


def test_external_dataset_revoked_while_statement_waits_for_lock_is_refused(
    shared_objects: SharedObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A statement that waited for a lock is refused if the caller lost the right on an external dataset meanwhile."""
    rows(shared_objects.node, INSERT, user="alice")
    _act_once(monkeypatch, data_statements, "_hold_lock", act=shared_objects.revoke)

    status, _ = refusal(shared_objects.node, INSERT, user="alice")

    assert status == 403
    assert len(shared_objects.engine.jobs) == 1, "only the first statement has a job"


def test_external_dataset_created_again_while_statement_waits_for_lock_is_refused(
    shared_objects: SharedObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A statement that waited for a lock is refused if another external dataset has the bound name by now, on which the
    caller has no right.
    """

    async def create_again() -> None:
        await shared_objects.revoke()
        await shared_objects.execute(
            f"drop dataset shared.files; use shared; create {EXTERNAL.format(shared_objects.folder)}"
        )

    _act_once(monkeypatch, data_statements, "_hold_lock", act=create_again)

    assert refusal(shared_objects.node, INSERT, user="alice")[0] == 403
    assert shared_objects.engine.jobs == []


@pytest.mark.parametrize(
    "statement",
    [
        "select value r from dataset_resources('shared', 't') r",
        "select value c from storage_components('shared', 't') c",
        "explain select value t from shared.t t where t.x = 'a'",
        "select value f from shared.files f",
    ],
    ids=["resources", "components", "explain", "select"],
)
def test_description_of_dataset_revoked_after_binding_is_refused(
    shared_objects: SharedObjects, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    """Location, snapshots, columns, indexes and files of a dataset are refused if the caller loses the right on it
    after the name was bound.
    """
    assert len(rows(shared_objects.node, statement, user="alice")) > 0

    _act_once(monkeypatch, queries, "_bind", act=shared_objects.revoke, is_after=True)

    assert refusal(shared_objects.node, statement, user="alice")[0] == 403


@pytest.mark.parametrize(
    "query, read",
    [
        ("select d.`Definition` from Metadata.`Function` d where d.DataverseName = 'shared'", 1),
        ("select value i.IndexName from Metadata.`Index` i where i.DataverseName = 'shared'", 1),
        ("select d.ViewDetails from Metadata.`Dataset` d where d.DataverseName >= 'shared'", 3),
        ("select value d.ViewDetails from Metadata.`Dataset` d where d.DataverseName = 'shared'", 2),
        (
            (
                "select value d.ViewDetails from Metadata.`Dataset` d where d.DataverseName = 'shared' and"
                " d.DatasetName = 'v'"
            ),
            1,
        ),
    ],
    ids=["functions", "indexes", "all-dataverses", "documents", "document-by-name"],
)
def test_metadata_query_shows_no_definition_from_after_revoke(
    shared_objects: SharedObjects, monkeypatch: pytest.MonkeyPatch, query: str, read: int
) -> None:
    """A metadata query shows no text and no name that was written after the caller lost the right on the dataverse.

    `read` is the uncached read before which that happens: of nodes or of documents.
    """
    rows(shared_objects.node, DEFINITIONS.format("before"))
    assert "before" in str(rows(shared_objects.node, query, user="alice"))

    async def replace() -> None:
        await shared_objects.revoke()
        await shared_objects.execute(DEFINITIONS.format("later"))

    _act_once(monkeypatch, Context, "look_up", act=replace, call=read)

    results = rows(shared_objects.node, query, user="alice")

    assert "later" in str(rows(shared_objects.node, query))
    assert "later" not in str(results)
    assert "before" not in str(results)


@pytest.mark.parametrize(
    "statement, names",
    [
        ("create dataset shared.ab(T) primary key id", ["a", "b", "c", "d", "files", "t"]),
        ("drop dataset shared.b", ["a", "c", "d", "files", "t"]),
        ("drop dataset shared.d", ["a", "b", "c", "files", "t"]),
    ],
    ids=["create", "drop", "drop-later"],
)
def test_metadata_query_has_each_dataset_once_despite_concurrent_change(
    shared_objects: SharedObjects, monkeypatch: pytest.MonkeyPatch, statement: str, names: list[str]
) -> None:
    """A change between the listing of a slice and the read of its nodes loses and repeats no other dataset."""
    rows(shared_objects.node, "use shared; " + ";".join(f"create dataset {name}(T) primary key id" for name in "abcd"))
    monkeypatch.setattr(metadata, "SLICE", 2)
    _act_once(monkeypatch, Context, "look_up", act=lambda: shared_objects.execute(f"use shared; {statement}"))

    results = rows(
        shared_objects.node, "select value d.DatasetName from Metadata.`Dataset` d where d.DataverseName = 'shared'"
    )

    assert sorted(set(results) - {"ab"}) == names
    assert len(results) == len(set(results))


def _act_once(
    patch: pytest.MonkeyPatch, owner: object, function: str, *, act: Act, call: int = 1, is_after: bool = False
) -> None:
    """Execute `act` at the n-th call of a function of a module or class: before it, or after it."""
    real, calls = getattr(owner, function), []

    async def call_with_act(*args: object, **named: object) -> object:
        calls.append(function)
        is_due = len(calls) == call
        if is_due and not is_after:
            await act()
        result = await real(*args, **named)
        if is_due and is_after:
            await act()
        return result

    patch.setattr(owner, function, call_with_act)
