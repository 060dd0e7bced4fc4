# SPDX-License-Identifier: Apache-2.0
"""Rows of tables in a directory that is served without a store: requests to worker processes, references of versions,
and answers to callers.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from limnos.model.errors import (
    AlreadyExists,
    BadRequest,
    CommitConflict,
    InvalidTable,
    NotFound,
    ServiceUnavailable,
    StateUnknown,
)
from limnos.rooms.lance.formats.layouts import DirectoryLayout
from limnos.rooms.lance.services.directory_tables import FolderLimits, FolderTables
from limnos.rooms.lance.services.table_description import VersionReference
from limnos.rooms.lance.services.workers import WorkerTask
from limnos.rooms.lance.sources.directories import LanceDirectory
from limnos.rooms.lance.sources.questions import Count, Delete, LanceWriteResult, Merge, Query, Write
from tests.rooms.lance.services.workers import DONE, FakeLanceWorkers, lay


def folders(
    root: Path, workers: FakeLanceWorkers, *, seconds: float = 60.0, layout: DirectoryLayout = DirectoryLayout.V2
) -> FolderTables:
    """Return the tables of a directory."""
    return FolderTables(LanceDirectory(str(root), layout=layout), workers, limits=FolderLimits(1000, 0, seconds))


async def body(*pieces: bytes, cut: bool = False) -> AsyncGenerator[bytes, None]:
    """Yield the chunks of a request body. With `cut`, the client disconnects after them."""
    for piece in pieces:
        yield piece
    if cut:
        raise BadRequest("The client disconnected")


def test_worker_request_has_the_tables_location_and_version(tmp_path: Path) -> None:
    """A request to a worker has the table's location and the requested version. Missing versions, tables without data
    and invalid references are refused without a request to a worker.
    """
    place, workers = lay(tmp_path, "t.lance"), FakeLanceWorkers()
    tables = folders(tmp_path, workers, layout=DirectoryLayout.V1)
    rows = tables.table(("t",))

    row_count = asyncio.run(
        rows.answer(
            Count(location="", options={}, predicate="id > 1"),
            at=VersionReference(2, branch="dev"),
            shape=int,
            reads=True,
        )
    )

    assert row_count == 3
    assert workers.asked == [
        {
            "name": "Count",
            "location": str(place),
            "options": {},
            "version": 2,
            "tag": None,
            "branch": "dev",
            "kept": None,
            "predicate": "id > 1",
        }
    ]
    for at, kind in ((VersionReference(0), NotFound), (VersionReference(branch="../x"), BadRequest)):
        with pytest.raises(kind):
            asyncio.run(rows.answer(Count(location="", options={}), at=at, shape=int))
    with pytest.raises(NotFound):
        asyncio.run(
            tables.table(("none",)).change(
                Delete(location="", options={}, predicate="true"), at=VersionReference(), shape=LanceWriteResult
            )
        )
    tables.directory.declare(("new",))
    with pytest.raises(NotFound, match="has no data yet"):
        asyncio.run(tables.table(("new",)).answer(Count(location="", options={}), at=VersionReference(), shape=int))
    with pytest.raises(BadRequest, match="key columns"):
        asyncio.run(rows.feed(Merge(location="", options={}, on=[], batch_bytes_max=1), branch=None, body=body()))
    assert len(workers.asked) == 1


def test_query_inside_explain_has_the_same_location_and_version(tmp_path: Path) -> None:
    """The query inside EXPLAIN has the table's location and version."""
    place, workers = lay(tmp_path, "t.lance"), FakeLanceWorkers()
    rows = folders(tmp_path, workers, layout=DirectoryLayout.V1).table(("t",))
    with suppress(msgspec.ValidationError):  # the fake's answer is not a text
        asyncio.run(rows.explain(Query(location="", options={}, limit=1), at=VersionReference(7), runs=True))

    (request,) = workers.asked
    query = request["query"]
    assert isinstance(query, dict)
    assert (request["runs"], query["location"], query["version"]) == (True, str(place), 7)


def test_create_with_incomplete_body_releases_the_name(tmp_path: Path) -> None:
    """Creating a table first reserves its name, and releases the name if the body is incomplete. The modes `create`,
    `existok` and `overwrite` work as on a server with a store.
    """
    workers = FakeLanceWorkers()
    tables = folders(tmp_path, workers)

    async def make(mode: str, *, cut: bool = False) -> object:
        created = await tables.create(("t",), mode=mode, properties={"k": "v"}, body=body(b"rows", cut=cut))
        return created.written

    with pytest.raises(BadRequest):
        asyncio.run(make("create", cut=True))
    assert tables.directory.all_tables() == []
    assert asyncio.run(make("create")) == DONE
    assert tables.directory.find(("t",)).properties == {"k": "v"}
    with pytest.raises(AlreadyExists):
        asyncio.run(make("create"))
    assert asyncio.run(make("existok")) is None
    assert asyncio.run(make("overwrite")) == DONE
    assert [(each["name"], each["mode"]) for each in workers.asked] == [("Write", "create"), ("Write", "overwrite")]
    with pytest.raises(BadRequest):
        asyncio.run(make("overwrite", cut=True))
    assert tables.directory.find(("t",)).properties == {"k": "v"}


def test_failed_create_of_a_declared_table_can_be_retried(tmp_path: Path) -> None:
    """A failed create of a declared table leaves it declared, and a later create fills it. A folder that is no table is
    refused.
    """
    tables = folders(tmp_path, FakeLanceWorkers())
    tables.directory.declare(("t",))
    with pytest.raises(BadRequest):
        asyncio.run(tables.create(("t",), mode="create", properties={}, body=body(b"rows", cut=True)))
    assert asyncio.run(tables.find(("t",))).is_declared

    created = asyncio.run(tables.create(("t",), mode="create", properties={}, body=body(b"rows")))

    assert created.written == DONE
    (tmp_path / "foreign.lance").mkdir()
    with pytest.raises(InvalidTable):
        asyncio.run(tables.create(("foreign",), mode="create", properties={}, body=body(b"rows")))
    with pytest.raises(NotFound):
        asyncio.run(tables.create(("nowhere", "t"), mode="create", properties={}, body=body(b"rows")))


def test_exactly_one_of_concurrent_creates_succeeds(tmp_path: Path) -> None:
    """Of concurrent creates of one table exactly one succeeds and the others are refused. Creates with incomplete
    bodies do not affect the result.
    """
    tables = folders(tmp_path, FakeLanceWorkers())

    async def all_of_them() -> list[object]:
        make = [
            tables.create(("t",), mode="create", properties={}, body=body(b"rows", cut=number < 4))
            for number in range(8)
        ]
        return list(await asyncio.gather(*make, return_exceptions=True))

    outcomes = asyncio.run(all_of_them())

    assert [type(each).__name__ for each in outcomes] == [
        *["BadRequest"] * 4,
        "CreatedFolderTable",
        *["AlreadyExists"] * 3,
    ]
    assert not asyncio.run(tables.find(("t",))).is_declared


def test_change_of_table_replaced_meanwhile_is_refused(tmp_path: Path) -> None:
    """If a table is replaced while the body of a change is read, the change is refused and does not touch the new
    table.
    """
    tables = folders(tmp_path, FakeLanceWorkers())
    tables.directory.create_namespace(("a",), {})
    lay(tmp_path, tables.directory.declare(("a", "t")).folder)

    async def replaced() -> AsyncGenerator[bytes, None]:
        yield b"rows"
        await asyncio.to_thread(tables.directory.drop, ("a", "t"))
        await asyncio.to_thread(tables.directory.declare, ("a", "t"))

    question = Write(location="", options={}, mode="append", batch_bytes_max=1)
    with pytest.raises(CommitConflict):
        asyncio.run(tables.table(("a", "t")).feed(question, branch=None, body=replaced()))


async def late(_errand: WorkerTask) -> None:
    """Simulate that the deadline passes."""
    raise TimeoutError


def test_timeout_is_unavailable_for_reads_and_unknown_for_writes(tmp_path: Path) -> None:
    """After a timeout, a read is ServiceUnavailable, the outcome of a write is StateUnknown, and the name of a table
    that is being created stays reserved.
    """

    async def hang(_errand: WorkerTask) -> None:
        await asyncio.Event().wait()

    lay(tmp_path, "t.lance")
    short, late_tables = (
        folders(tmp_path, FakeLanceWorkers(hang), seconds=0.01),
        folders(tmp_path, FakeLanceWorkers(late)),
    )

    with pytest.raises(ServiceUnavailable, match="nothing was changed"):
        asyncio.run(short.table(("t",)).answer(Count(location="", options={}), at=VersionReference(), shape=int))
    with pytest.raises(StateUnknown, match="check before"):
        asyncio.run(
            late_tables.table(("t",)).change(
                Delete(location="", options={}, predicate="true"), at=VersionReference(), shape=LanceWriteResult
            )
        )
    with pytest.raises(StateUnknown):
        asyncio.run(late_tables.create(("u",), mode="create", properties={}, body=body(b"rows")))
    assert asyncio.run(late_tables.find(("u",))).is_declared


def test_late_piece_ends_the_stream_with_service_unavailable(tmp_path: Path) -> None:
    """If a piece of an answer comes too late, the stream ends with ServiceUnavailable after the earlier pieces have
    been sent.
    """
    lay(tmp_path, "t.lance")
    seen: list[bytes] = []

    async def read() -> None:
        pieces = (
            await folders(tmp_path, FakeLanceWorkers(late))
            .table(("t",))
            .query(Query(location="", options={}), at=VersionReference())
        )
        async for piece in pieces:
            seen.append(piece)  # noqa: PERF401 - what came before it failed is looked at

    with pytest.raises(ServiceUnavailable):
        asyncio.run(read())
    assert seen == [b"one", b"two"]
