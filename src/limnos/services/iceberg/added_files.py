"""Files that a commit adds: looked for before the commit is made, where the setting `iceberg.check_added_files` asks for it.

May import the rooms below and `formats.iceberg`. Knows no wire format. Only the files that new manifests add are looked for, up to a number and for a time; what is
beyond that is not looked for, and the commit goes on. Decision record 0136.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from limnos.files import place_key
from limnos.formats.iceberg.file_lists import AddedSnapshots, added_snapshots
from limnos.model.errors import BadRequest, InvalidTable, LimnosError, MissingFile, OutsideRoots, TooLarge
from limnos.model.storage_locations import ROOTS
from limnos.services.request.files import AT_ONCE
from limnos.services.request.node_services import ComponentKey
from limnos.services.request.operation_errors import name_object_in_error
from limnos.services.request.parallel import map_concurrently
from limnos.services.storage.table_files import TableFiles, own_locations
from limnos.store.storage_locations import rivals_read
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Counter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limnos.formats.iceberg.file_lists import ListedFile, SnapshotFiles
    from limnos.model.entities import MetadataDocument
    from limnos.names.path import Levels
    from limnos.services.request.catalog_storage import CatalogStorage
    from limnos.services.request.context import Context

log = get_logger("limnos.added_files")
MANIFEST_BYTES_MAX: Final = 16 << 20
"""Of a manifest list or manifest that a commit waits for; larger ones are not looked into."""
LOOKED_AT = Counter(
    "limnos_commit_files_total", "Files that commits added: found, missing, or not looked for.", ("outcome",)
)


class CommitFiles(NamedTuple):
    """A commit to one table, as far as its files matter; `raw` is the body of a large one, whose updates are empty then."""

    updates: Sequence[object]
    raw: bytes | None
    document: MetadataDocument | None
    """None when the commit makes the table."""
    place: CatalogStorage
    path: Levels = ()
    """In a transaction, whose refusals name the table."""
    location: str | None = None
    """Of a table that the same transaction makes there."""


async def check_added_files(ctx: Context, commits: Sequence[CommitFiles]) -> None:
    """Look for the files that commits add, if the setting asks for it. Raises BadRequest for one that is missing or lies elsewhere."""
    defaults = ctx.services.defaults
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


class _AddedFilesCheck:
    """A look for the files of one request."""

    def __init__(self, ctx: Context, *, files_max: int) -> None:
        self.ctx = ctx
        self.files_left = files_max

    async def commit(self, commit: CommitFiles) -> None:
        """Look for the files of one commit."""
        added = await _added_of(self.ctx, commit)
        if not added.snapshots:
            return
        places = await _places_of(self.ctx, commit, added=added)
        if places is None:
            self.left_out("the table has no place of its own alone", len(added.snapshots))
            return
        async with CHECK_SLOTS.of(self.ctx.services):
            files = TableFiles(self.ctx, commit.place, places=places, bytes_max=MANIFEST_BYTES_MAX)
            ids = {each.snapshot_id for each in added.snapshots}
            for snapshot in added.snapshots:
                await self._snapshot(files, snapshot=snapshot, ids=ids)

    def left_out(self, reason: str, count: int) -> None:
        """Tell the log and the metric what was not looked for."""
        LOOKED_AT["not looked for",] += count
        log.warning("files of a commit were not looked for", reason=reason, count=count)

    async def _snapshot(self, files: TableFiles, *, snapshot: SnapshotFiles, ids: set[int]) -> None:
        manifests = list(snapshot.manifests)
        if snapshot.manifest_list is not None:
            try:
                found, _ = await files.manifests(snapshot.manifest_list)
            except TooLarge as error:
                return self.left_out(error.message, 1)
            except LimnosError as error:
                raise _file_refusal(error, snapshot, what="manifest list", location=snapshot.manifest_list) from error
            manifests = [each.path for each in found if each.snapshot_id is None or each.snapshot_id in ids]
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
                    raise MissingFile("it is not there")
            except (MissingFile, OutsideRoots) as error:
                raise _file_refusal(error, snapshot, what="file", location=file.path) from error
            LOOKED_AT["found",] += 1

        await map_concurrently(listed, look, at_once=AT_ONCE)


async def _added_of(ctx: Context, commit: CommitFiles) -> AddedSnapshots:
    if commit.raw is None:
        return added_snapshots(commit.updates)
    (found,) = await ctx.services.chores.do("iceberg-added", commit.raw)
    return msgspec.json.decode(found, type=AddedSnapshots)


async def _places_of(ctx: Context, commit: CommitFiles, *, added: AddedSnapshots) -> tuple[str, ...] | None:
    """Return where a table may have files; None where other objects lie, too: then the commit itself is refused, or nobody gets files of it.

    What a commit brings counts as far as the catalog covers it.
    """
    document = commit.document
    found: list[str] = []
    if document is not None:
        if document.node_id in ctx.services.defaults.location_conflicts.ids:
            return None
        found += await own_locations(ctx, document)
    brought = added.new_places if commit.location is None else (*added.new_places, commit.location)
    if document is None and not brought:
        return None  # the server chooses a location, of which no writer knows yet
    for location in brought:
        try:
            commit.place.check(location)
            key = place_key(location)
        except (BadRequest, OutsideRoots):
            return None
        near = await ctx.look_up(partial(rivals_read, key, but=0 if document is None else document.node_id))
        if any(each.claim.kind not in ROOTS for each in near):
            return None
        found.append(location)
    return tuple(found)


def _file_refusal(error: LimnosError, snapshot: SnapshotFiles, *, what: str, location: str) -> LimnosError:
    """Say which file keeps a commit out; trouble of the storage stays what it is."""
    if isinstance(error, MissingFile):
        reason = "which is not there"
    elif isinstance(error, OutsideRoots):
        reason = "which lies outside of the table's location and data paths, where no file is looked for"
    elif isinstance(error, InvalidTable):
        reason = f"which cannot be read: {error.message}"
    else:
        return error
    LOOKED_AT["missing",] += 1
    return BadRequest(
        f"Snapshot {snapshot.snapshot_id} names {what} {location[:1000]}, {reason}. Nothing was committed: write the file again and commit anew "
        "(setting iceberg.check_added_files)"
    )


CHECK_SLOTS: ComponentKey[asyncio.Semaphore] = ComponentKey("turns", lambda _: asyncio.Semaphore(4))
