# SPDX-License-Identifier: Apache-2.0
"""Orphan fence: refuses commits that refer to files which the server is deleting, or has deleted, as orphans.

Must not know the schedule of deletions. A writer may be slower than the age of orphan files, and its commit would then
leave an unreadable table. Each node caches the list of tables with such files for `LIST_REFRESH_S`, so that a commit to
any other table needs no query. A commit is refused if it ends more than `LIST_AGE_MAX_S` after its node last read that
list. The removal of orphan files waits longer than that between marking a file and deleting it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple, Protocol

import msgspec

from limnos.formats.iceberg.file_lists import AddedSnapshots, ListedFile, added_snapshots
from limnos.model.entities import MetadataDocument
from limnos.model.errors import CommitConflict, LimnosError, ServiceUnavailable
from limnos.services.iceberg.added_files import OwnFiles, own_files
from limnos.services.request.catalog_storage import CatalogStorage
from limnos.services.request.context import Context
from limnos.services.request.node_services import ComponentKey
from limnos.store.activity.orphan_files import DELETED, REMOVING, fenced_files_read, fenced_tables_read

LIST_REFRESH_S: Final = 30.0
LIST_AGE_MAX_S: Final = 90.0
FILES_PER_READ: Final = 10_000
_RETRY_S: Final = 60
_ADDS: Final = (b"add-snapshot", b"set-statistics", b"set-partition-statistics", b"\\u")
_STATISTICS: Final = ("set-statistics", "set-partition-statistics")


seconds_since_boot = partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))
"""Returns a time that no clock setting changes, and that advances while the machine or the process sleeps."""


class FencedTables(NamedTuple):
    """The tables with deleted orphan files, or with files that are being deleted. `asked_at` is the time at which this
    node last read them from the store, in seconds since boot.
    """

    tables: frozenset[int] = frozenset()
    asked_at: float = float("-inf")


class OrphanFence:
    """This node's cached list of the tables whose orphan files are being deleted."""

    def __init__(self) -> None:
        self.fenced = FencedTables()


ORPHAN_FENCE: ComponentKey[OrphanFence] = ComponentKey("orphan fence", lambda _: OrphanFence())


class AnyChange(Protocol):
    """A change of a table, from a commit or a create: its updates, or the body of a large request."""

    @property
    def updates(self) -> Sequence[object]:
        """The updates, as JSON values."""

    @property
    def raw(self) -> bytes | None:
        """The body of a large request; the updates are then empty."""


def fence_require(fence_until: float | None) -> None:
    """Refuse a commit after the time `fence_until`, when its node's list of tables is outdated. Raises
    ServiceUnavailable.

    The transaction calls it after the document was replaced.
    """
    if fence_until is not None and seconds_since_boot() > fence_until:
        raise ServiceUnavailable("This commit took too long on the server, and nothing was committed: try again")


async def fence_check(
    ctx: Context, changes: Sequence[AnyChange], *, document: MetadataDocument | None, place: CatalogStorage
) -> float | None:
    """Refuse changes of a table that refer to a file which the server is deleting, or has deleted, as an orphan.

    Args:
        ctx: The request.
        changes: The changes.
        document: The table's metadata before them; None for a new table.
        place: The storage of its catalog.

    Returns:
        The time by which the commit must end, for `fence_require`; None for a new table.

    Raises:
        CommitConflict: A file is being deleted, or was deleted.
        ServiceUnavailable: The files of the commit cannot be read while files of the table are being deleted.
    """
    if document is None:
        return None
    fence = ORPHAN_FENCE.of(ctx.services)
    if seconds_since_boot() - fence.fenced.asked_at > LIST_REFRESH_S:
        asked_at = seconds_since_boot()
        fence.fenced = FencedTables(await ctx.look_up(fenced_tables_read), asked_at)
    until = fence.fenced.asked_at + LIST_AGE_MAX_S
    if document.node_id in fence.fenced.tables:
        adding = [each for each in changes if _may_add(each)]
        if adding:
            await _FencedTable(ctx, document, place=place).check(adding)
    return until


def _may_add(change: AnyChange) -> bool:
    """Return whether a change may name new files. Strings in the body of a large request may be escaped, so the result
    may be a false positive.
    """
    if change.raw is not None:
        return any(each in change.raw for each in _ADDS)
    actions = [each.get("action") for each in change.updates if isinstance(each, dict)]
    return "add-snapshot" in actions or any(each in actions for each in _STATISTICS)


class _FencedTable:
    """The check of commits to a table with orphan files that are deleted or being deleted."""

    def __init__(self, ctx: Context, document: MetadataDocument, *, place: CatalogStorage) -> None:
        self.ctx = ctx
        self.document = document
        self.place = place
        self._removing: frozenset[str] = frozenset()
        self._deleted: frozenset[str] = frozenset()

    async def check(self, changes: Sequence[AnyChange]) -> None:
        """Check the files to which the changes refer. Raises CommitConflict, ServiceUnavailable as `fence_check`."""
        names = await self.ctx.look_up(lambda: fenced_files_read(self.document.node_id))
        if not names:
            return
        self._removing, self._deleted = (
            frozenset([name.rpartition("/")[2] for name, recorded_name in names.items() if recorded_name == state])
            for state in (REMOVING, DELETED)
        )
        try:
            files = own_files(self.ctx, self.document, place=self.place)
            for change in changes:
                await self._change(files, change)
        except CommitConflict:
            raise
        except LimnosError as error:
            if self._removing:
                raise ServiceUnavailable(
                    "Orphan files of the table are being deleted, and the files of this commit cannot be read:"
                    f" {error.message}",
                    retry_after_s=_RETRY_S,
                ) from error

    async def _change(self, files: OwnFiles, change: AnyChange) -> None:
        added_snapshots = await self._find_added_snapshots(change)
        ids = {each.snapshot_id for each in added_snapshots.snapshots}
        for path in _statistics_paths(change):
            await self._check_file(files, ListedFile(path, None))
        for snapshot in added_snapshots.snapshots:
            manifests = list(snapshot.manifests)
            if snapshot.manifest_list is not None:
                await self._check_file(files, ListedFile(snapshot.manifest_list, None))
                listed, _ = await files.manifests(snapshot.manifest_list)
                for each in listed:
                    await self._check_file(files, ListedFile(each.path, None))
                manifests = [each.path for each in listed if each.snapshot_id is None or each.snapshot_id in ids]
            for manifest in manifests:
                await self._manifest(files, manifest)

    async def _find_added_snapshots(self, change: AnyChange) -> AddedSnapshots:
        if change.raw is None:
            return added_snapshots(change.updates)
        (data,) = await self.ctx.services.offloader.do("iceberg-added", change.raw)
        return msgspec.json.decode(data, type=AddedSnapshots)

    async def _manifest(self, files: OwnFiles, manifest: str) -> None:
        skip, has_more = 0, True
        while has_more:
            page, _ = await files.page(manifest, only_added=False, skip=skip, limit=FILES_PER_READ)
            for file in page.files:
                await self._check_file(files, file)
            skip, has_more = skip + len(page.files), page.has_more

    async def _check_file(self, files: OwnFiles, file: ListedFile) -> None:
        """Raise CommitConflict for a file that is being deleted, or that was deleted and is missing.

        File names without directories are compared, since symbolic links may lead to the directory of the file.
        """
        name = file.path.rpartition("/")[2]
        if name in self._removing or (name in self._deleted and await files.size(file.path) is None):
            raise CommitConflict(
                f"File {file.path[:1000]} of this commit was written long ago, and the server removes it as an orphan:"
                " write it again and commit again (policy of type system_iceberg_orphan_file_removal)"
            )


def _statistics_paths(change: AnyChange) -> list[str]:
    """Return the paths of the statistics files that a change adds."""
    updates = change.updates
    if change.raw is not None:
        updates = msgspec.json.decode(change.raw).get("updates", [])
    paths: list[str] = []
    for each in updates:
        if isinstance(each, dict) and each.get("action") in _STATISTICS:
            statistics = each.get("statistics") or each.get("partition-statistics")
            path = statistics.get("statistics-path") if isinstance(statistics, dict) else None
            paths += [path] if isinstance(path, str) else []
    return paths
