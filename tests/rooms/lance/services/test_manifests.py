# SPDX-License-Identifier: Apache-2.0
"""Manifests of a server-managed table while two nodes, and a writer that bypasses them, write a manifest of the same
name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import cast

from limnos.files import FileEntry
from limnos.formats.lance_manifests import V2, manifest_name
from limnos.formats.lance_orphans import BYPASSED
from limnos.model.errors import AlreadyExists, MissingFile
from limnos.model.lance import LanceVersion
from limnos.rooms.lance.services.manifests import BranchManifests
from limnos.services.request.catalog_storage import CatalogStorage
from limnos.services.request.files import FileOperations

AT = "file:///t/_versions"
FINAL, STAGED = f"{AT}/{manifest_name(5, V2)}", f"{AT}/staged"
RIGHT, ROGUE = b"right", b"rogue, and longer"
VERSION = LanceVersion(
    branch="",
    version=5,
    scheme=V2,
    staged="staged",
    size=len(RIGHT),
    e_tag=None,
    metadata="{}",
    created_at=0,
    settled=False,
)


class Shelf:
    """A fake directory: files by name. `meanwhile` is the action of another node just before a move."""

    def __init__(self, files: dict[str, bytes], meanwhile: Callable[[Shelf], None]) -> None:
        self.held = files
        self._meanwhile: Callable[[Shelf], None] | None = meanwhile

    async def link_new(self, source: str, target: str, **_: object) -> None:
        """Add a hard link."""
        if source not in self.held:
            raise MissingFile(source)
        if self.held.setdefault(target, self.held[source]) != self.held[source]:
            raise AlreadyExists(target, kind="file")

    async def move(self, source: str, target: str, **_: object) -> None:
        """Let the other node act, then move the file."""
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile is not None:
            meanwhile(self)
        if source in self.held:
            self.held[target] = self.held.pop(source)

    async def read(self, location: str, _properties: object) -> bytes:
        """Read a file."""
        if location not in self.held:
            raise MissingFile(location)
        return self.held[location]

    def exists_now(self, location: str) -> bool:
        """Return whether the file exists."""
        return location in self.held


class Catalog:
    """A fake catalog with the calls that manifests make."""

    properties: Mapping[str, str] = MappingProxyType({})


class Here:
    """A fake location with the calls that manifests make."""

    catalog = Catalog
    roots = ("file:///t", "s3://lake/t")


def manifests_on(shelf: Shelf, location: str = "file:///t") -> BranchManifests:
    """Return the manifests of a table on a fake directory."""
    return BranchManifests(cast("FileOperations", shelf), location, branch="", place=cast("CatalogStorage", Here))


def settled(shelf: Shelf) -> bool:
    """Settle the version as this node. Returns whether it succeeded."""
    return asyncio.run(manifests_on(shelf).settle(VERSION))


def test_right_manifest_moved_aside_is_moved_back() -> None:
    """If another node has settled the version meanwhile, the manifest that this node moves aside is the right one, and
    this node moves it back.
    """

    def other(shelf: Shelf) -> None:
        del shelf.held[STAGED]
        shelf.held[FINAL] = RIGHT

    shelf = Shelf({STAGED: RIGHT, FINAL: ROGUE}, other)

    assert settled(shelf)
    assert shelf.held[FINAL] == RIGHT


def test_version_without_staged_manifest_is_reported_as_lost() -> None:
    """If the staged manifest was deleted, the foreign manifest stays moved aside, and the version is reported as
    lost.
    """

    def deleted(shelf: Shelf) -> None:
        del shelf.held[STAGED]

    shelf = Shelf({STAGED: RIGHT, FINAL: ROGUE}, deleted)

    assert not settled(shelf)
    assert FINAL not in shelf.held
    assert [each for each in shelf.held if f"/{BYPASSED}/" in each]


def test_repeated_foreign_manifest_is_moved_aside_each_time() -> None:
    """A foreign manifest that takes the name repeatedly is moved aside each time, until the version's manifest has the
    name.
    """

    def again(shelf: Shelf) -> None:
        shelf.held[FINAL] = ROGUE + b"!"

    shelf = Shelf({STAGED: RIGHT, FINAL: ROGUE}, again)

    assert settled(shelf)
    assert shelf.held[FINAL] == RIGHT


class Bucket(Shelf):
    """A fake object store. A move consists of a read, a write, a check and a delete; the other node acts before the
    delete.
    """

    async def move(self, source: str, target: str, **_: object) -> None:
        """Copy the file aside, check again, let the other node act, and delete the file under the name."""
        self.held[target] = self.held[source]
        meanwhile, self._meanwhile = self._meanwhile, None
        if meanwhile is not None:
            meanwhile(self)
        self.held.pop(source, None)

    async def entries(self, location: str, *_: object, **__: object) -> list[FileEntry]:
        """List the files."""
        inside = [name.removeprefix(f"{location}/") for name in self.held if name.startswith(f"{location}/")]
        return [FileEntry(name, 1, 1) for name in inside]

    async def delete(self, location: str, _properties: object) -> None:
        """Delete a file."""
        self.held.pop(location, None)

    async def exists(self, location: str, _properties: object) -> bool:
        """Return whether the file exists."""
        return location in self.held


IN_BUCKET = "s3://lake/t/_versions"
FINAL_THERE, STAGED_THERE = f"{IN_BUCKET}/{manifest_name(5, V2)}", f"{IN_BUCKET}/staged"


def test_manifest_deleted_by_mistake_is_written_back() -> None:
    """If a late node deletes the version's manifest instead of the foreign one, it writes the version's manifest
    back.
    """

    def other(shelf: Shelf) -> None:
        del shelf.held[FINAL_THERE]
        other_manifests = manifests_on(shelf, "s3://lake/t")
        other_loop = asyncio.new_event_loop()
        with ThreadPoolExecutor(1) as threads:
            assert threads.submit(other_loop.run_until_complete, other_manifests.settle(VERSION)).result()
            threads.submit(other_loop.run_until_complete, other_manifests.drop_staged(VERSION)).result()
        other_loop.close()

    shelf = Bucket({STAGED_THERE: RIGHT, FINAL_THERE: b"wrong"}, other)

    async def late() -> bool:
        ours = manifests_on(shelf, "s3://lake/t")
        aside = await ours.move_aside(manifest_name(5, V2))
        assert FINAL_THERE not in shelf.held
        return await ours.settle(VERSION, aside=aside)

    assert asyncio.run(late())
    assert shelf.held[FINAL_THERE] == RIGHT


def test_object_store_file_moved_aside_is_not_used_as_version() -> None:
    """In an object store the file moved aside is not necessarily the one that was deleted, so the version is reported
    as lost.
    """
    shelf = Bucket({FINAL_THERE: b"wrong"}, lambda _: None)

    async def late() -> bool:
        ours = manifests_on(shelf, "s3://lake/t")
        return await ours.settle(VERSION, aside=await ours.move_aside(manifest_name(5, V2)))

    assert not asyncio.run(late())
    assert FINAL_THERE not in shelf.held


def test_staged_manifest_is_deleted_once_its_version_is_settled() -> None:
    """Once the version's manifest has its name, the staged manifest is deleted, also in an object store and also if a
    foreign manifest was moved aside.
    """
    shelf = Bucket({STAGED_THERE: RIGHT, f"s3://lake/t/{BYPASSED}/{manifest_name(4, V2)}-1a": ROGUE}, lambda _: None)

    async def done() -> None:
        ours = manifests_on(shelf, "s3://lake/t")
        assert await ours.settle(VERSION)
        await ours.drop_staged(VERSION)

    asyncio.run(done())

    assert shelf.held[FINAL_THERE] == RIGHT
    assert STAGED_THERE not in shelf.held
