# SPDX-License-Identifier: Apache-2.0
"""Cache of table descriptions: the conditions under which a directory counts as unchanged, and the size limit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import msgspec
import pytest

from limnos.files import FileIdentity
from limnos.formats.lance_contents import LanceDescription
from limnos.formats.lance_manifests import V1, V2, manifest_name
from limnos.model.lance import LanceVersion
from limnos.rooms.lance.services.description_cache import ENTRY_BYTES, SETTLED_NS, DescriptionCache

if TYPE_CHECKING:
    from limnos.services.lance.tables import LanceTable

NOW = 100 * SETTLED_NS
LONG_AGO = NOW - 2 * SETTLED_NS
FOUND = LanceDescription(
    version=1, fields=msgspec.Raw(b"[]"), logical_fields=msgspec.Raw(b"[]"), schema_metadata={}, metadata={}, stats={}
)


class Disk:
    """A fake disk with the calls that the cache makes."""

    def __init__(self) -> None:
        self.marks: dict[str, FileIdentity] = {}

    def lay(self, table: str, *, version: int = 1, scheme: int = V2, at_ns: int = LONG_AGO) -> None:
        """Write a version's manifest."""
        self.marks[f"/{table}/_versions"] = FileIdentity(
            device=1, inode=2, mode=0o040755, size=10, modified_ns=at_ns, changed_ns=at_ns
        )
        self.marks[f"/{table}/_versions/{manifest_name(version, scheme)}"] = FileIdentity(
            device=1, inode=3, mode=0o100644, size=10, modified_ns=at_ns, changed_ns=at_ns
        )


def table(name: str) -> LanceTable:
    """Return a table."""
    return cast("LanceTable", SimpleNamespace(location=f"/{name}", place=SimpleNamespace(roots=("/",))))


def top(version: int, staged: str = "s", *, settled: bool = False) -> LanceVersion:
    """Return a row of a managed table's newest version."""
    return LanceVersion(
        branch="",
        version=version,
        scheme=V2,
        staged=staged,
        size=1,
        e_tag=None,
        metadata="{}",
        created_at=0,
        settled=settled,
    )


@pytest.fixture
def disk() -> Disk:
    """An empty disk."""
    return Disk()


def filled_cache(
    disk: Disk, *tables: str, bytes_max: int = 1 << 20, newest: LanceVersion | None = None
) -> DescriptionCache:
    """Return a cache with descriptions of tables, whose clock stands at NOW."""
    cache = DescriptionCache(disk.marks.get, bytes_max=bytes_max, now_ns=lambda: NOW)
    for each in tables:
        directory_snapshot = cache.directory_snapshot(table(each))
        assert directory_snapshot is not None
        cache.keep(directory_snapshot, FOUND, top=newest)
    return cache


def is_cached(cache: DescriptionCache, name: str = "t", newest: LanceVersion | None = None) -> bool:
    """Return whether the cache answers a description."""
    directory_snapshot = cache.directory_snapshot(table(name))
    return directory_snapshot is not None and cache.find(directory_snapshot, top=newest) is FOUND


@pytest.mark.parametrize("scheme", [V1, V2])
def test_unchanged_table_is_answered_from_the_cache(disk: Disk, scheme: int) -> None:
    """The description of an unchanged table is answered from the cache, in both naming schemes of manifests."""
    disk.lay("t", scheme=scheme)

    assert is_cached(filled_cache(disk, "t"))


@pytest.mark.parametrize("at_ns", [NOW - SETTLED_NS, NOW, NOW + SETTLED_NS], ids=["just now", "now", "later than now"])
def test_recently_changed_table_is_not_cached(disk: Disk, at_ns: int) -> None:
    """A description is not cached if the directory changed just now, because the next change could have the same time,
    or if its time is in the future.
    """
    disk.lay("t", at_ns=at_ns)

    assert not is_cached(filled_cache(disk, "t"))


def test_changed_directory_or_manifest_is_read_again(disk: Disk) -> None:
    """If any attribute of the directory or of the manifest differs, the table is read again."""
    disk.lay("t")
    for name in tuple(disk.marks):
        cache, before = filled_cache(disk, "t"), disk.marks[name]
        for more in ({"inode": 9}, {"changed_ns": 9}, {"modified_ns": 9}, {"size": 9}, {"device": 9}):
            disk.marks[name] = before._replace(**more)
            assert not is_cached(cache)
            disk.marks[name] = before
            assert not is_cached(cache)
            cache = filled_cache(disk, "t")


def test_table_changed_during_the_read_is_not_cached(disk: Disk) -> None:
    """A description is not cached if the table changed while it was read."""
    disk.lay("t")
    cache = filled_cache(disk)
    directory_snapshot = cache.directory_snapshot(table("t"))
    assert directory_snapshot is not None
    disk.lay("t", version=2, at_ns=LONG_AGO + 1)

    cache.keep(directory_snapshot, FOUND, top=None)

    assert not is_cached(cache)


def test_tables_behind_links_or_in_object_stores_are_not_cached(disk: Disk) -> None:
    """Descriptions of tables behind symbolic links and in object stores are not cached."""
    disk.lay("t")
    at = "/t/_versions"
    for name, mode in ((at, 0o120777), (f"{at}/{manifest_name(1, V2)}", 0o120777)):
        before = disk.marks[name]
        disk.marks[name] = before._replace(mode=mode)
        cache = DescriptionCache(disk.marks.get, now_ns=lambda: NOW)
        directory_snapshot = cache.directory_snapshot(table("t"))
        if directory_snapshot is not None:
            cache.keep(directory_snapshot, FOUND, top=None)
        disk.marks[name] = before
        assert not is_cached(cache)
    remote = cast("LanceTable", SimpleNamespace(location="s3://b/t", place=SimpleNamespace(roots=("s3://b",))))
    assert cache.directory_snapshot(remote) is None


def test_managed_table_is_validated_by_its_newest_version_row(disk: Disk) -> None:
    """A managed table counts as changed if the row of its newest version differs in anything but the `settled` flag.
    Without a row, nothing is cached.
    """
    disk.lay("t")
    for newest, stands in (
        (top(1), True),
        (top(1, settled=True), True),
        (top(2), False),
        (top(1, "o"), False),
        (None, False),
    ):
        assert is_cached(filled_cache(disk, "t", newest=top(1)), newest=newest) is stands


def test_cache_is_limited_in_bytes(disk: Disk) -> None:
    """The cache is limited in bytes and evicts the least recently used entries."""
    for each in "abc":
        disk.lay(each)
    cache = filled_cache(disk, "a", "b", bytes_max=3 * ENTRY_BYTES)
    assert is_cached(cache, "a")

    directory_snapshot = cache.directory_snapshot(table("c"))
    assert directory_snapshot is not None
    cache.keep(directory_snapshot, FOUND, top=None)

    assert [is_cached(cache, each) for each in "abc"] == [True, False, True]
