# SPDX-License-Identifier: Apache-2.0
"""Files of COPY TO: local files of a cancelled statement, and concurrent exports into one directory of an object
store.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from limnos.files import AllowedStorage, allow_everything
from limnos.files.exported_directory import ExportedDirectory
from limnos.rooms.sqlpp.language import SqlppError
from limnos.rooms.sqlpp.services.execution.export_files import SUCCESS, ExportTarget, export_files_of
from limnos.services.request.files import FileOperations
from tests.objects import ObjectStoreServer, objects


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStoreServer]:
    """An object store."""
    with objects() as server:
        yield server


async def _background(files: FileOperations) -> None:
    """Wait for background calls of a discard."""
    while files._background:
        await asyncio.gather(*files._background)


def _names(store: ObjectStoreServer, prefix: str) -> list[str]:
    return sorted(name.removeprefix(prefix).partition("-")[0] for name in store.names(prefix))


def test_slower_of_two_exports_into_one_directory_is_refused(store: ObjectStoreServer) -> None:
    """Of two exports into an empty directory, the slower one is refused. A discarded export deletes only its own
    files.
    """

    async def play() -> None:
        files = FileOperations(AllowedStorage(("s3://",), endpoints=(store.uri,)))
        target = ExportTarget("s3://lake/shared", store.properties, ("s3://lake/shared",), "")
        exports = [export_files_of(files, target) for _ in range(3)]
        for each in exports:
            await each.begin()
        for number, each in enumerate(exports):
            await each.open(["city=Rome", "part-00000.json.gz"])
            await each.write(b"%d" % number)
            await each.close()
        assert len(store.names("shared/")) == 3
        exports[0].discard()
        await _background(files)
        assert len(store.names("shared/")) == 2
        await exports[1].publish()
        with pytest.raises(SqlppError, match="non-empty"):
            await exports[2].publish()
        exports[2].discard()
        await _background(files)

        assert _names(store, "shared/") == [SUCCESS, "city=Rome/part"]
        (name,) = [name for name in store.names("shared/") if "part" in name]
        assert name.endswith(".json.gz")
        assert await files.read(f"s3://lake/{name}", store.properties) == b"1"

    asyncio.run(play())


def test_export_into_a_directory_with_files_is_refused(store: ObjectStoreServer) -> None:
    """An export begins only in an empty directory of an object store; files beside it are no files in it."""

    async def play() -> list[bool]:
        files = FileOperations(AllowedStorage(("s3://",), endpoints=(store.uri,)))
        await files.write("s3://lake/full/old/part-0.json", b"{}", store.properties)
        refused = []
        for name in ("full", "full/old", "fu", "full2", "full/ol"):
            target = ExportTarget(f"s3://lake/{name}", store.properties, (f"s3://lake/{name}",), "")
            try:
                await export_files_of(files, target).begin()
                refused.append(False)
            except SqlppError as error:
                refused.append("non-empty" in str(error))
        return refused

    assert asyncio.run(play()) == [True, True, False, False, False]


def test_cancelled_export_does_not_wait_for_a_hanging_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cancelled statement does not wait for a hanging disk. The directory is deleted when the disk answers."""

    async def play() -> None:
        files = FileOperations(allow_everything())
        target = ExportTarget(f"file://{tmp_path}/out", {}, (f"file://{tmp_path}",), "")
        export = export_files_of(files, target)
        await export.begin()
        disk, reached = threading.Event(), threading.Event()
        open_now = ExportedDirectory.open

        def slow_open(directory: ExportedDirectory, names: list[str]) -> None:
            reached.set()
            disk.wait(60)
            open_now(directory, names)

        monkeypatch.setattr(ExportedDirectory, "open", slow_open)
        call = asyncio.create_task(export.open(["city=Rome", "part-00000.json"]))
        await asyncio.to_thread(reached.wait, 60)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        export.discard()
        assert list(tmp_path.iterdir())
        disk.set()
        await _background(files)

        assert list(tmp_path.iterdir()) == []

    asyncio.run(play())


def test_export_files_appear_only_after_completion(tmp_path: Path) -> None:
    """No file has the target's name before the export completes. A later export into the target is refused."""

    async def play() -> None:
        files = FileOperations(allow_everything())
        target = ExportTarget(f"file://{tmp_path}/out", {}, (f"file://{tmp_path}",), "")
        first, second, third = (export_files_of(files, target) for _ in range(3))
        for each in (first, second):
            await each.begin()
        for each in (first, second):
            await each.open(["part-00000.json"])
            await each.write(b"{}\n")
            await each.close()
        assert not (tmp_path / "out").exists()
        await first.publish()

        with pytest.raises(SqlppError, match="non-empty"):
            await second.publish()
        with pytest.raises(SqlppError, match="non-empty"):
            await third.begin()
        second.discard()
        await _background(files)
        assert [path.name for path in tmp_path.rglob("*")] == ["out", "part-00000.json"]

    asyncio.run(play())


def test_slower_of_two_simultaneously_ending_exports_is_refused(
    store: ObjectStoreServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If neither export sees the other's `_SUCCESS` before it writes its own, the slower one is refused and deletes
    only its own files.
    """

    async def play() -> None:
        files = FileOperations(AllowedStorage(("s3://",), endpoints=(store.uri,)))
        target = ExportTarget("s3://lake/race", store.properties, ("s3://lake/race",), "")
        first, second = (export_files_of(files, target) for _ in range(2))
        for each in (first, second):
            await each.begin()
        for each in (first, second):
            await each.open(["part-00000.json"])
            await each.write(b"x")
            await each.close()

        async def exists(*_: object) -> bool:
            return False

        monkeypatch.setattr(files, "exists", exists)
        await first.publish()
        with pytest.raises(SqlppError, match="non-empty"):
            await second.publish()
        second.discard()
        await _background(files)

        assert _names(store, "race/") == [SUCCESS, "part"]

    asyncio.run(play())


def test_hanging_disk_does_not_occupy_threads_of_other_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many exports that wait for a hanging disk do not occupy the threads of other parts of the server."""
    answers = threading.Event()
    monkeypatch.setattr(ExportedDirectory, "begin", lambda _: answers.wait(60))

    async def play() -> None:
        files = FileOperations(allow_everything())
        target = ExportTarget(f"file://{tmp_path}/x", {}, (f"file://{tmp_path}",), "")
        hanging = [asyncio.create_task(export_files_of(files, target).begin()) for _ in range(64)]
        try:
            async with asyncio.timeout(5):
                await asyncio.sleep(0)
                assert await asyncio.to_thread(lambda: "served") == "served"
        finally:
            answers.set()
        await asyncio.gather(*hanging)

    asyncio.run(play())
