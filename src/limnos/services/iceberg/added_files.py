# SPDX-License-Identifier: Apache-2.0
"""Added files: before a commit, checks the files that it adds, and the directories that it sets for files.

Must not know any wire format. Paths in the document itself (manifest lists, statistics) must always lie below the
table's locations; they are compared as strings (decision record 0158). If `iceberg.check_added_files` enables it, the
files must exist, too. Only files of new manifests are checked, within limits on count and time. Files beyond these
limits are not checked, and the commit continues (decision record 0136).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple, TypeAlias, cast

import msgspec

from limnos.files import place_key
from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.formats.iceberg.file_lists import AddedSnapshots, ListedFile, SnapshotFiles, added_snapshots
from limnos.formats.iceberg.json_types import Json
from limnos.formats.iceberg.named_paths import NAMING, NamedPath, added_paths
from limnos.model.entities import MetadataDocument
from limnos.model.errors import BadRequest, InvalidTable, LimnosError, MissingFile, OutsideRoots, TooLarge
from limnos.model.object_errors import name_object_in_error
from limnos.model.storage_locations import ROOTS
from limnos.names.path import Levels
from limnos.services.request.catalog_storage import CatalogStorage
from limnos.services.request.concurrency.parallel import map_concurrently
from limnos.services.request.context import Context
from limnos.services.request.files import AT_ONCE
from limnos.services.request.location_rules import relation_of
from limnos.services.request.node_services import ComponentKey
from limnos.services.storage.table_files import (
    STATEMENT_FILES,
    TableFiles,
    are_plainly_own,
    own_locations,
    refuse_foreign_paths,
    table_files,
)
from limnos.store.objects.storage_locations import rivals_read
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Counter

log = get_logger("limnos.added_files")
MANIFEST_BYTES_MAX: Final = 16 << 20
"""The largest manifest or manifest list that a commit reads; larger ones are not checked."""
_NAMING_WORDS: Final = (b"add-snapshot", b"set-statistics", b"set-partition-statistics", b"\\")
"""The bytes without which a commit's body adds no path; a backslash may escape any of the words."""
LOOKED_AT = Counter(
    "limnos_commit_files_total", "Files that commits added: found, missing, or not checked.", ("outcome",)
)


class CommitFiles(NamedTuple):
    """The parts of a commit to one table that are needed to check its files.

    `raw` is the body of a large commit; `updates` is then empty.
    """

    updates: Sequence[object]
    raw: bytes | None
    document: MetadataDocument | None
    """The table's document before the commit; None if the commit creates the table."""
    place: CatalogStorage
    path: Levels = ()
    """The table's levels, for errors; set only for a commit within a transaction of several operations."""
    location: str | None = None
    """The location of a table that the same transaction creates."""


OwnFiles: TypeAlias = TableFiles
"""A reader of the files in all locations of one table; `own_files` makes it."""


def own_files(
    ctx: Context, document: MetadataDocument, *, place: CatalogStorage, bytes_max: int = MANIFEST_BYTES_MAX
) -> OwnFiles:
    """Return a reader of the files in all locations of a table: its own, and those that the register gives it."""
    return table_files(ctx.services, document, place=place, bytes_max=bytes_max)


async def check_added_files(ctx: Context, commits: Sequence[CommitFiles]) -> None:
    """Check that the paths which commits add to a document lie below its table's locations and, if
    `iceberg.check_added_files` enables it, that the added files exist. The latter stops at a time limit.

    Raises BadRequest for a path elsewhere, for a file that is missing, unreadable or outside of the table's locations,
    and the errors of the storage.
    """
    defaults = ctx.services.defaults
    for each in commits:
        if not _adds_paths(each):
            continue
        try:
            await _check_paths(ctx, each)
        except BadRequest as error:
            raise (name_object_in_error(error, each.path) if each.path else error) from error
    if not defaults.check_added_files:
        return
    look = _AddedFilesCheck(ctx, files_max=defaults.check_added_files_max)
    try:
        async with asyncio.timeout(defaults.check_added_files_s):
            for each in commits:
                try:
                    await look.commit(each)
                except BadRequest as error:
                    raise (name_object_in_error(error, each.path) if each.path else error) from error
    except TimeoutError:
        look.left_out("it took too long", 1)


async def check_statement_files(ctx: Context, lock: int) -> None:
    """Check that the files which a SQL++ statement has read are still the checked ones, before it commits with the
    token of its lock.

    Raises BadRequest if one was replaced, StorageFailed, ServiceUnavailable.
    """
    await STATEMENT_FILES.of(ctx.services).require_unchanged(ctx, lock)


async def check_operation_files(ctx: Context, token_id: int) -> None:
    """Check that the files which an operation of maintenance has loaded from this node are still the checked ones.

    Raises BadRequest if one was replaced, StorageFailed, ServiceUnavailable.
    """
    await STATEMENT_FILES.of(ctx.services).require_unchanged_for_operation(ctx, token_id)


def _adds_paths(commit: CommitFiles) -> bool:
    """Return whether a commit may add paths to the document."""
    if commit.raw is not None:
        return any(word in commit.raw for word in _NAMING_WORDS)
    for update in commit.updates:
        action = update.get("action") if isinstance(update, dict) else None
        if str(action) in NAMING:
            return True
    return False


async def _check_paths(ctx: Context, commit: CommitFiles) -> None:
    """Check the paths that one commit adds to the document. Raises BadRequest."""
    if (
        commit.raw is None
        and commit.document is not None
        and are_plainly_own(added_paths(commit.updates), document=commit.document, place=commit.place)
    ):
        return  # the usual case, for which nothing else is read
    added_files = await _added_of(ctx, commit)
    if not added_files.paths:
        return
    locations = (*added_files.new_places, *(() if commit.location is None else (commit.location,)))
    await refuse_foreign_paths(ctx, added_files.paths, document=commit.document, places=locations, place=commit.place)


async def check_registered_paths(
    ctx: Context,
    paths: Sequence[NamedPath],
    *,
    replaced: MetadataDocument | None,
    places: Sequence[str],
    place: CatalogStorage,
) -> None:
    """Check the paths in a document that is registered as a table, or in place of a table's document.

    Raises BadRequest for a path that is not below `places`, the locations in the document, nor below one of the table.
    """
    await refuse_foreign_paths(ctx, paths, document=replaced, places=places, place=place)


class _AddedFilesCheck:
    """The check of the files that one request adds, over all of its commits."""

    def __init__(self, ctx: Context, *, files_max: int) -> None:
        self.ctx = ctx
        self.files_left = files_max

    async def commit(self, commit: CommitFiles) -> None:
        """Check the files that one commit adds, within the limits of the request. Raises BadRequest."""
        added_files = await _added_of(self.ctx, commit)
        if not added_files.snapshots:
            return
        locations = await _places_of(self.ctx, commit, added=added_files)
        if locations is None:
            self.left_out("the table's location is not exclusive", len(added_files.snapshots))
            return
        async with CHECK_SLOTS.of(self.ctx.services):
            files = TableFiles(self.ctx.services, commit.place, places=locations, bytes_max=MANIFEST_BYTES_MAX)
            ids = {each.snapshot_id for each in added_files.snapshots}
            for snapshot in added_files.snapshots:
                await self._snapshot(files, snapshot=snapshot, ids=ids)

    def left_out(self, reason: str, count: int) -> None:
        """Log and count the files that were not checked."""
        LOOKED_AT["not looked for",] += count
        log.warning("files of a commit were not checked", reason=reason, count=count)

    async def _snapshot(self, files: TableFiles, *, snapshot: SnapshotFiles, ids: set[int]) -> None:
        manifests = list(snapshot.manifests)
        if snapshot.manifest_list is not None:
            try:
                result, _ = await files.manifests(snapshot.manifest_list)
            except TooLarge as error:
                return self.left_out(error.message, 1)
            except LimnosError as error:
                raise _file_refusal(error, snapshot, what="manifest list", location=snapshot.manifest_list) from error
            manifests = [each.path for each in result if each.snapshot_id is None or each.snapshot_id in ids]
        for number, manifest in enumerate(manifests):
            if self.files_left <= 0:
                return self.left_out("setting iceberg.check_added_files_max", len(manifests) - number)
            try:
                page, _ = await files.page(manifest, only_added=True, skip=0, limit=self.files_left)
            except TooLarge as error:
                self.left_out(error.message, 1)
                continue
            except LimnosError as error:
                raise _file_refusal(error, snapshot, what="manifest", location=manifest) from error
            self.files_left -= len(page.files)
            await self._files(files, snapshot=snapshot, listed=page.files)
            if page.has_more:
                self.left_out("setting iceberg.check_added_files_max", 1)
        return None

    async def _files(self, files: TableFiles, *, snapshot: SnapshotFiles, listed: Sequence[ListedFile]) -> None:
        async def look(file: ListedFile) -> None:
            try:
                if await files.size(file.path) is None:
                    raise MissingFile("it does not exist")
            except (MissingFile, OutsideRoots) as error:
                raise _file_refusal(error, snapshot, what="file", location=file.path) from error
            LOOKED_AT["found",] += 1

        await map_concurrently(listed, look, at_once=AT_ONCE)


async def _added_of(ctx: Context, commit: CommitFiles) -> AddedSnapshots:
    if commit.raw is None:
        return added_snapshots(commit.updates)
    (data,) = await ctx.services.offloader.do("iceberg-added", commit.raw)
    return msgspec.json.decode(data, type=AddedSnapshots)


async def _places_of(ctx: Context, commit: CommitFiles, *, added: AddedSnapshots) -> tuple[str, ...] | None:
    """Return the locations where a table may have files; None if another object's location overlaps one of them.

    With overlapping locations the commit itself is refused, or no caller receives the table's files. Also None if a
    location that the commit sets is outside of the catalog's roots, or if the server will choose the location of a new
    table.
    """
    document = commit.document
    names: list[str] = []
    if document is not None:
        if document.node_id in ctx.services.defaults.location_conflicts.ids:
            return None
        names += await own_locations(ctx.services, document)
    new_locations = added.new_places if commit.location is None else (*added.new_places, commit.location)
    if document is None and not new_locations:
        return None  # the server will choose the location, so no file can be there yet
    for location in new_locations:
        try:
            commit.place.check(location)
            key = place_key(location)
        except (BadRequest, OutsideRoots):
            return None
        rival_locations = await ctx.look_up(partial(rivals_read, key, but=0 if document is None else document.node_id))
        if any(each.claim.kind not in ROOTS for each in rival_locations):
            return None
        names.append(location)
    return tuple(names)


def _file_refusal(error: LimnosError, snapshot: SnapshotFiles, *, what: str, location: str) -> LimnosError:
    """Convert the error of reading a file to the one that refuses the commit and names the file.

    Errors of the storage itself are returned unchanged.
    """
    if isinstance(error, MissingFile):
        reason = "which does not exist"
    elif isinstance(error, OutsideRoots):
        reason = "which is outside of the table's location and data paths, where files are not checked"
    elif isinstance(error, InvalidTable):
        reason = f"which cannot be read: {error.message}"
    else:
        return error
    LOOKED_AT["missing",] += 1
    return BadRequest(
        f"Snapshot {snapshot.snapshot_id} names {what} {location[:1000]}, {reason}. Nothing was committed: write the"
        " file again and commit again (setting iceberg.check_added_files)"
    )


CHECK_SLOTS: ComponentKey[asyncio.Semaphore] = ComponentKey("turns", lambda _: asyncio.Semaphore(4))


_DIRECTORY_PROPERTIES: Final = (iceberg_metadata.METADATA_PATH, *iceberg_metadata.DATA_PATHS)
"""The properties that set directories of a table."""


def check_directories(metadata: Json, *, before: Json | None) -> None:
    """Check that no directory of data files of a table is at, above or below its directory of metadata files.

    Clean-ups and policies of object stores tell metadata from rows by the directory (decision record 0156). A table
    that has such directories keeps them until a commit changes one of them. Raises BadRequest.

    Args:
        metadata: The new metadata, or an outline of it.
        before: The metadata that the commit was built on; None for a new table.
    """
    properties = metadata.get("properties")
    if isinstance(properties, dict) and properties.keys().isdisjoint(_DIRECTORY_PROPERTIES):
        return  # most tables set no directory
    stated_directories = _stated_directories(metadata)
    if len(stated_directories) == 1 or (before is not None and stated_directories == _stated_directories(before)):
        return
    directory = place_key(iceberg_metadata.metadata_directory(metadata))
    default = f"{iceberg_metadata.strip_slash(stated_directories['location'])}/data"
    if iceberg_metadata.METADATA_PATH in stated_directories and relation_of(place_key(default), directory) is not None:
        raise _mixed_error(iceberg_metadata.METADATA_PATH, stated_directories[iceberg_metadata.METADATA_PATH])
    for key in iceberg_metadata.DATA_PATHS:
        if key in stated_directories and relation_of(place_key(stated_directories[key]), directory) is not None:
            raise _mixed_error(key, stated_directories[key])


def _mixed_error(key: str, path: str) -> BadRequest:
    return BadRequest(
        f"Property '{key}' is {path}: files of data and metadata would lie in one directory, or in one below the other."
        " Choose another directory, or remove the property"
    )


def _stated_directories(metadata: Json) -> dict[str, str]:
    """Return the table's location, and its properties that set directories, by name."""
    paths = {key: iceberg_metadata.property_of(metadata, key) for key in _DIRECTORY_PROPERTIES}
    return {"location": cast("str", metadata["location"]), **{key: path for key, path in paths.items() if path}}
