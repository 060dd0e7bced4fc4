"""Scans of Iceberg tables planned here: who may have one planned, and the files of a table read as far as that takes.

May import the rooms below and the part of `formats.scans` that needs no library. Knows no wire format. What is planned is a function of
metadata, request and manifests, worked out in a process that is ended when nobody waits for it (`formats/scans/tasks.py`); whatever
keeps a caller from seeing all of a table belongs into `scan_look`, the one place where a scan is decided. Decision record 0092.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.files import is_within
from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.formats.scans.manifest_batches import manifest_batches
from limnos.formats.scans.request import ScanManifests, ScanRequest, ScanScope, scan_scope_of
from limnos.model.errors import PermissionDenied, UnsupportedOperation
from limnos.model.principals import Requester
from limnos.model.restrictions import CLOSED_TO
from limnos.services.catalog.tables import table_find_through_views
from limnos.services.iceberg.restricted_tables import is_restricted, restricted_visibility
from limnos.services.iceberg.scan_queue import SCAN_OFFLOADER, SCAN_QUEUE
from limnos.services.request.catalog_storage import catalog_storage_of
from limnos.services.request.files import AT_ONCE
from limnos.services.request.offloaded_work import is_heavy
from limnos.services.request.parallel import map_concurrently

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractAsyncContextManager

    from limnos.formats.iceberg.read_restrictions import BoundRestrictions
    from limnos.model.entities import MetadataDocument
    from limnos.names.path import Levels
    from limnos.services.lookup.definer_rights import ViewChain
    from limnos.services.request.catalog_storage import CatalogStorage
    from limnos.services.request.context import Context
    from limnos.services.request.request_view import RequestView

LIST_BYTES_MAX: Final = 64 << 20
"""Of one manifest list, or one manifest."""
DELETE_BYTES_MAX: Final = 64 << 20
"""Of all manifests of deletes that one scan has to read, as far as their lists tell."""
READ_BYTES_MAX: Final = 192 << 20
"""Of everything that one step holds at once: a portion of manifests, the largest one, and deletes; whatever lists tell of lengths."""


class ScanTarget(NamedTuple):
    """A table as far as a scan of it was decided: for whom, and what they ask for."""

    asker: Requester
    document: MetadataDocument
    place: CatalogStorage
    asked: ScanRequest
    bound: BoundRestrictions | None = None
    """What restricts what they may see."""


class ScanTasks(NamedTuple):
    """What was planned of a scan, as JSON without brackets: `file-scan-tasks`, and the `delete-files` that they refer to."""

    files: bytes
    deletes: bytes
    sure_rows: int


def scan_look(request_view: RequestView, path: Levels, *, asked: ScanRequest, through: ViewChain = ()) -> ScanTarget:
    """Decide on a scan of a table for who may read its rows, by a right of their own or one that views lend. Raises NotFound, Forbidden."""
    asker = Requester(request_view.user, request_view.subject.user_id or 0)
    try:
        node = table_find_through_views(request_view, path, action=Action.TABLE_READ, through=through)
    except PermissionDenied as refused:
        if not is_restricted(refused):
            raise
        document, bound = restricted_visibility(request_view, path)
        return ScanTarget(asker, document, catalog_storage_of(request_view), asked, bound)
    return ScanTarget(asker, request_view.document(node.id), catalog_storage_of(request_view), asked)


class TableScan:
    """One scan under way. Its files lie below the table's own location: nothing else is read, whatever metadata names.

    Raises Forbidden where restrictions bind who asks, and nobody has seen to that.
    """

    def __init__(self, ctx: Context, scanned: ScanTarget, *, aim: ScanScope) -> None:
        if scanned.bound is not None:
            raise PermissionDenied(
                f"Restrictions bind {scanned.asker.name} on this table ({CLOSED_TO}), and this way of planning does not keep them"
            )
        self._files = ctx.services.files
        self._chores = SCAN_OFFLOADER.of(ctx.services)
        self._turns = SCAN_QUEUE.of(ctx.services)
        self._scanned = scanned
        self.asker = scanned.asker
        self._filter_bytes = len(bytes(scanned.asked.filter))
        self._files_max = ctx.services.defaults.scan_files_max
        self._aim = msgspec.json.encode(aim)
        self._asked = msgspec.json.encode(scanned.asked)
        self.aim = aim

    async def needed(self) -> ScanManifests:
        """Say which manifests have to be read. Raises BadRequest, MissingFile, InvalidTable, Unsupported."""
        async with self._turn():
            lists = await self._read(self.aim.lists)
            return msgspec.json.decode((await self._do("scan-manifests", *lists))[0], type=ScanManifests)

    def parts(self, needed: ScanManifests) -> list[ScanManifests]:
        """Return what is planned at a time: some manifests of data, with all of deletes."""
        portions = manifest_batches(needed.data, files_max=self._files_max, filter_bytes=self._filter_bytes)
        return [ScanManifests(needed.data[first:after], needed.deletes) for first, after in portions]

    async def tasks(self, needed: ScanManifests) -> ScanTasks:
        """Plan the files of manifests. Raises as `needed` does."""
        if sum(each.length for each in needed.deletes) > DELETE_BYTES_MAX:
            raise UnsupportedOperation(
                f"The manifests of deletes of this scan come to over {DELETE_BYTES_MAX} bytes: compact the table, or plan this scan where it is read"
            )
        if not needed.data:
            return ScanTasks(b"", b"", 0)
        async with self._turn():
            files = await self._read([each.path for each in (*needed.data, *needed.deletes)])
            found = await self._do("scan-tasks", msgspec.json.encode(needed), *files)
        return ScanTasks(found[0], found[1], int(found[2]))

    async def _do(self, name: str, *parts: bytes) -> list[bytes]:
        return await self._chores.do(name, self._aim, self._asked, *parts, caller=self.asker.name)

    def _turn(self) -> AbstractAsyncContextManager[None]:
        return self._turns.turn((("caller", self.asker.name),))

    async def _read(self, locations: Sequence[str]) -> list[bytes]:
        held = 0

        async def read(location: str) -> bytes:
            nonlocal held
            data = await self._read_one(location)
            held += len(data)
            if held > READ_BYTES_MAX:
                raise UnsupportedOperation(
                    f"One step of this scan reads over {READ_BYTES_MAX} bytes of manifests or their lists: ask for fewer snapshots, or plan it where it is read"
                )
            return data

        return await map_concurrently(locations, read, at_once=AT_ONCE)

    async def _read_one(self, location: str) -> bytes:
        root = self.aim.location
        if not is_within(location, [root]):
            raise UnsupportedOperation(
                f"File {location} of the table lies outside of its location {root}, where nothing is read here: plan this scan where it is read"
            )
        properties = self._scanned.place.catalog.properties
        return await self._files.read_within(location, properties, [root], bytes_max=LIST_BYTES_MAX)


async def scan_of(ctx: Context, scanned: ScanTarget) -> TableScan:
    """Return a scan, with what it is about. Raises BadRequest, Unsupported, OutsideRoots."""
    document = scanned.document
    scanned.place.check(document.location)
    if is_heavy(document):
        parts = await SCAN_OFFLOADER.of(ctx.services).do(
            "scan-aim", document.body, msgspec.json.encode(scanned.asked), caller=scanned.asker.name
        )
        return TableScan(ctx, scanned, aim=msgspec.json.decode(parts[0], type=ScanScope))
    return TableScan(ctx, scanned, aim=scan_scope_of(iceberg_metadata.decode(document.body), scanned.asked))
