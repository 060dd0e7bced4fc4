# SPDX-License-Identifier: Apache-2.0
"""Checked files of tables: before a reader opens a table, the server resolves its files and refuses foreign ones.

Must not know any wire format. The reader may be a process with wider rights to files than the caller, such as the SQL++
engine. So the manifest list, the manifests, the data and delete files and the statistics of the snapshot that it reads
must lie below the table's own locations. Error messages name no file, and no file elsewhere is looked up: the caller
must not learn which files exist.

Whoever may write a table's files can replace a manifest after its check. So the versions of manifest lists and
manifests are compared before a result is used again, and once more when the reader has read the table.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Final, NamedTuple

import msgspec

from limnos.files import FileVersion
from limnos.formats.iceberg.class_properties import find_class_property
from limnos.formats.iceberg.current_files import DocumentFiles, NamedSnapshot, document_files
from limnos.formats.iceberg.file_lists import ListedManifest
from limnos.model.entities import MetadataDocument
from limnos.model.errors import BadRequest, InvalidTable, MissingFile, TooLarge
from limnos.services.request.catalog_storage import CatalogStorage
from limnos.services.request.concurrency.last_used import LastUsed
from limnos.services.request.concurrency.parallel import map_concurrently
from limnos.services.request.context import Context
from limnos.services.request.files import AT_ONCE
from limnos.services.request.node_services import ComponentKey
from limnos.services.request.offloaded_work import is_heavy
from limnos.services.storage.table_files import (
    STATEMENT_FILES,
    CheckedSnapshot,
    are_unchanged,
    table_files,
    versions_of,
)

UNREADABLE: Final = (
    "a manifest list or manifest of the table is missing, malformed or too large: 'limnos table check' names it to"
    " those who may write the table"
)
BATCH_BYTES: Final = 16 << 20
"""The number of bytes of manifests, by the lengths in their list, that are checked at once."""
BATCH_FILES_MAX: Final = 256
DOCUMENTS_MAX: Final = 4096
SNAPSHOTS_MAX: Final = 16_384
MANIFESTS_MAX: Final = 65_536


class CheckedTable(NamedTuple):
    """The files that a table's document names, and the snapshots that were checked."""

    files: DocumentFiles
    snapshots: tuple[CheckedSnapshot, ...]


class CheckedSnapshots(NamedTuple):
    """The checked snapshots that a job of another process reads."""

    snapshots: tuple[CheckedSnapshot, ...] = ()

    def reading(self, ctx: Context, *, lock: int | None) -> AbstractContextManager[None]:
        """Refuse commits with the token of a lock after one of their manifests was replaced, while the block runs."""
        return STATEMENT_FILES.of(ctx.services).of_lock(lock, self.snapshots)

    async def are_unchanged(self, ctx: Context) -> bool:
        """Return whether no manifest list or manifest was replaced after its check. Raises StorageFailed,
        ServiceUnavailable.
        """
        return await are_unchanged(ctx, self.snapshots)


class CheckedFiles:
    """The snapshots and manifests whose files this node has found below the locations of their table.

    A result stays valid for the same table, the same set of locations, and the same version of the same files.
    """

    def __init__(self) -> None:
        self.documents: LastUsed[int, tuple[str, DocumentFiles]] = LastUsed(DOCUMENTS_MAX)
        """By table: the location of the newest metadata file, and the files that it names for the current snapshot."""
        self.registered: LastUsed[int, bool] = LastUsed(DOCUMENTS_MAX)
        """The tables that have files in locations other than their own."""
        self.snapshots: LastUsed[Hashable, CheckedSnapshot] = LastUsed(SNAPSHOTS_MAX)
        """By table, locations and name: `CheckedSnapshot`."""
        self.manifests: LastUsed[Hashable, FileVersion] = LastUsed(MANIFESTS_MAX)
        """By table, locations and name: the version of a checked manifest."""


CHECKED_FILES: ComponentKey[CheckedFiles] = ComponentKey("checked files", lambda _: CheckedFiles())


async def check_table_files(
    ctx: Context, document: MetadataDocument, *, place: CatalogStorage, every_snapshot: bool = False
) -> CheckedTable:
    """Check that all files which a reader of a table opens lie below the table's own locations, and that none of its
    properties names a class or a setting of the reader's runtime.

    Args:
        ctx: The request.
        document: The document of the table.
        place: The storage of the table's catalog.
        every_snapshot: Whether to check all snapshots, as for work that deletes the files of old ones, instead of the
            current one.

    Returns:
        The files that the document names, for the current snapshot only, unless `every_snapshot`; and the checked
        snapshots, for a second look when the reader has read them.

    Raises:
        OutsideRoots: A file lies elsewhere.
        BadRequest: A property names a class.
        InvalidTable: A manifest list or manifest is missing, malformed or too large.
        PermissionDenied: The location of the table conflicts with that of another object.
        StorageFailed: The storage refuses or fails.
        ServiceUnavailable: The storage does not answer.
    """
    ctx.services.defaults.location_conflicts.refuse(document.node_id, what="table")
    files = await named_files(ctx, document, every_snapshot=every_snapshot)
    class_property = find_class_property(files.properties or {})
    if class_property is not None:
        raise BadRequest(
            f"the table has the property '{class_property[:200]}', which names a class or a setting of the engine:"
            " remove the property from the table"
        )
    paths = files.paths
    if not paths:
        return CheckedTable(files, ())
    check = _FilesCheck(ctx, document, place=place)
    await check.begin(paths)
    return CheckedTable(files, tuple([await check.snapshot(each) for each in files.snapshots or ()]))


async def check_table_for_engine(
    ctx: Context, document: MetadataDocument, *, place: CatalogStorage, token_id: int | None = None
) -> None:
    """Check a table that another process opens with wider rights to files than the table's writers.

    Commits with the operation's token `token_id` are refused if the checked files have been replaced. Raises as
    `check_table_files`.
    """
    _, snapshots = await check_table_files(ctx, document, place=place)
    if token_id is not None:
        STATEMENT_FILES.of(ctx.services).record_loaded(token_id, snapshots)


async def named_files(ctx: Context, document: MetadataDocument, *, every_snapshot: bool = False) -> DocumentFiles:
    """Return the files that a table's document names, for the current snapshot only unless `every_snapshot`. Raises
    InvalidTable.
    """
    cache = CHECKED_FILES.of(ctx.services).documents
    cached_files = None if every_snapshot else cache.get(document.node_id)
    if cached_files is not None and cached_files[0] == document.metadata_location:
        return cached_files[1]
    if is_heavy(document):
        (data,) = await ctx.services.offloader.do("iceberg-document-files", document.body, b"%d" % every_snapshot)
        files = msgspec.json.decode(data, type=DocumentFiles)
    else:
        files = document_files(document.body)
        files = files if every_snapshot else files.of_current_snapshot()
    if not every_snapshot:
        cache.put(document.node_id, (document.metadata_location, files))
    return files


class _FilesCheck:
    """The check of one table's files, below its own location first, then below all that the register gives it."""

    def __init__(self, ctx: Context, document: MetadataDocument, *, place: CatalogStorage) -> None:
        self._ctx, self._document, self._place = ctx, document, place
        self._known = CHECKED_FILES.of(ctx.services)
        self._files = table_files(ctx.services, document, place=place)

    async def begin(self, paths: Iterable[str]) -> None:
        """Require the files that the document names."""
        if self._known.registered.get(self._document.node_id) is not None:
            await self._files.widen()
        await self._require(paths)

    async def snapshot(self, snapshot: NamedSnapshot) -> CheckedSnapshot:
        """Require the manifests of a snapshot, and their data and delete files."""
        name = snapshot.manifest_list or tuple(snapshot.manifests or ())
        cached_snapshot = self._known.snapshots.get(self._key(name))
        if cached_snapshot is not None and await cached_snapshot.is_unchanged(self._ctx):
            return cached_snapshot
        roots = self._files.locations.roots
        lists = [] if snapshot.manifest_list is None else [snapshot.manifest_list]
        versions = await self._versions(lists)
        manifests = await self._manifests(snapshot)
        await self._require([each.path for each in manifests])
        current = await self._versions([each.path for each in manifests])
        changed_manifests = [
            each for each in manifests if self._known.manifests.get(self._key(each)) != current[each.path]
        ]
        for batch in _batches(changed_manifests):
            await self._manifest_files(batch)
            for each in batch:
                self._known.manifests.put(self._key(each), current[each.path])
        if self._files.locations.roots != roots:
            return await self.snapshot(snapshot)  # the register added locations, which are part of the versions
        result = CheckedSnapshot(roots, self._place, versions | current)
        self._known.snapshots.put(self._key(name), result)
        return result

    async def _versions(self, locations: Sequence[str]) -> dict[str, FileVersion]:
        """Return the versions of files. Take them before the files are read. Raises InvalidTable for a missing file."""
        current = await versions_of(self._ctx, locations, roots=self._files.locations.roots, place=self._place)
        versions = {location: version for location, version in current.items() if version is not None}
        if len(versions) < len(current):
            raise _unreadable_error()
        return versions

    async def _manifests(self, snapshot: NamedSnapshot) -> tuple[ListedManifest, ...]:
        if snapshot.manifest_list is None:
            return tuple([ListedManifest(path, None, None) for path in snapshot.manifests or ()])
        try:
            return (await self._files.manifests(snapshot.manifest_list))[0]
        except (MissingFile, TooLarge, InvalidTable) as error:
            raise _unreadable_error() from error

    async def _manifest_files(self, manifests: Sequence[ListedManifest]) -> None:
        prefixes = msgspec.json.encode(self._files.locations.prefixes)
        try:
            data = await map_concurrently([each.path for each in manifests], self._files.read, at_once=AT_ONCE)
            (outside,) = await self._ctx.services.offloader.do("iceberg-outside-paths", prefixes, *data)
        except (MissingFile, TooLarge, InvalidTable) as error:
            raise _unreadable_error() from error
        await self._require(msgspec.json.decode(outside, type=list[str]))

    async def _require(self, paths: Iterable[str]) -> None:
        await self._files.require(paths)
        if len(self._files.locations.roots) > 1:
            self._known.registered.put(self._document.node_id, True)

    def _key(self, name: Hashable) -> Hashable:
        return self._document.node_id, self._files.locations.roots, name


def _batches(manifests: Sequence[ListedManifest]) -> Iterator[list[ListedManifest]]:
    batch: list[ListedManifest] = []
    size = 0
    for each in manifests:
        if batch and (size + (each.size or 0) > BATCH_BYTES or len(batch) == BATCH_FILES_MAX):
            yield batch
            batch, size = [], 0
        batch.append(each)
        size += each.size or 0
    if batch:
        yield batch


def _unreadable_error() -> InvalidTable:
    return InvalidTable(UNREADABLE)
