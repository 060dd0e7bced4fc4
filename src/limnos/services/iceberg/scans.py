# SPDX-License-Identifier: Apache-2.0
"""Scans of Iceberg tables that the server plans: the decision on a scan, and the reading of its manifests.

Must not know any wire format. A plan is a pure function of metadata, request and manifests, computed in a worker
process that can be ended (`formats/scans/offloaded.py`). Every access rule of scans belongs in `scan_look`, the only
function that decides on scans. Decision record 0092.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Final, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.formats.iceberg.read_restrictions import BoundRestrictions
from limnos.formats.scans.manifest_batches import manifest_batches
from limnos.formats.scans.request import ScanManifests, ScanRequest, ScanScope, scan_scope_of
from limnos.model.entities import MetadataDocument
from limnos.model.errors import OutsideRoots, PermissionDenied, UnsupportedOperation
from limnos.model.principals import Requester
from limnos.model.restrictions import CLOSED_TO
from limnos.names.path import Levels
from limnos.services.catalog.tables import table_find_through_views
from limnos.services.iceberg.added_files import own_files
from limnos.services.iceberg.restricted_tables import is_restricted, restricted_visibility
from limnos.services.iceberg.scan_queue import SCAN_OFFLOADER, SCAN_QUEUE
from limnos.services.lookup.definer_rights import ViewChain
from limnos.services.request.catalog_storage import CatalogStorage, catalog_storage_of
from limnos.services.request.concurrency.parallel import map_concurrently
from limnos.services.request.context import Context
from limnos.services.request.files import AT_ONCE
from limnos.services.request.offloaded_work import is_heavy
from limnos.services.request.request_view import RequestView

LIST_BYTES_MAX: Final = 64 << 20
"""The maximum size of a manifest or manifest list that is read, in bytes."""
DELETE_BYTES_MAX: Final = 64 << 20
"""The maximum total size of the delete manifests of one scan in bytes, by the lengths in their lists."""
READ_BYTES_MAX: Final = 192 << 20
"""The maximum number of bytes that one step holds in memory, regardless of the lengths in the manifest lists."""


class ScanTarget(NamedTuple):
    """An authorized scan of a table: its caller, its request, and the table's document and storage."""

    requester: Requester
    document: MetadataDocument
    place: CatalogStorage
    request: ScanRequest
    bound: BoundRestrictions | None = None
    """The restrictions that apply to the caller; None for an unrestricted caller."""
    restrictions: tuple[str, ...] = ()
    """The names of these restrictions."""


class ScanTasks(NamedTuple):
    """Planned tasks of a scan, as JSON without brackets: `file-scan-tasks`, and the `delete-files` that they refer to.
    `sure_rows` is the number of rows in files that match completely and have no deletes.
    """

    files: bytes
    deletes: bytes
    sure_rows: int


def scan_look(
    request_view: RequestView, path: Levels, *, scan_request: ScanRequest, through: ViewChain = ()
) -> ScanTarget:
    """Decide on a scan for a caller who may read the table's rows, directly or by the definer's rights of views.

    A restricted user gets a target with restrictions. Raises NotFound, PermissionDenied.
    """
    requester = Requester(request_view.user, request_view.subject.user_id or 0)
    try:
        node = table_find_through_views(request_view, path, action=Action.TABLE_READ, through=through)
    except PermissionDenied as refused:
        if not is_restricted(refused):
            raise
        visible = restricted_visibility(request_view, path)
        return ScanTarget(
            requester=requester,
            document=visible.document,
            place=catalog_storage_of(request_view),
            request=scan_request,
            bound=visible.bound,
            restrictions=visible.restrictions,
        )
    return ScanTarget(
        requester=requester,
        document=request_view.document(node.id),
        place=catalog_storage_of(request_view),
        request=scan_request,
    )


class TableScan:
    """A running scan. It reads only files in the table's locations, and plans no files elsewhere.

    Creating one for a target with restrictions raises PermissionDenied: this class does not enforce them.
    """

    def __init__(self, ctx: Context, scanned: ScanTarget, *, aim: ScanScope) -> None:
        if scanned.bound is not None:
            raise PermissionDenied(
                f"{scanned.requester.name} is restricted on this table ({CLOSED_TO}), and this way of planning does not"
                " enforce restrictions"
            )
        self._table_files = own_files(ctx, scanned.document, place=scanned.place, bytes_max=LIST_BYTES_MAX)
        self._offloader = SCAN_OFFLOADER.of(ctx.services)
        self._turns = SCAN_QUEUE.of(ctx.services)
        self._scanned = scanned
        self.requester = scanned.requester
        self._filter_bytes = len(bytes(scanned.request.filter))
        self._files_max = ctx.services.defaults.scan_files_max
        self._aim = msgspec.json.encode(aim)
        self._asked = msgspec.json.encode(scanned.request)
        self.aim = aim

    @property
    def roots(self) -> tuple[str, ...]:
        """The locations below which the files of the tasks so far lie."""
        return self._table_files.locations.roots

    async def needed_manifests(self) -> ScanManifests:
        """Return the manifests that the scan has to read, after pruning by the manifest list.

        Raises BadRequest (an invalid filter), MissingFile, InvalidTable, UnsupportedOperation (also for a file outside
        of the table's locations).
        """
        async with self._turn():
            lists = await self._read(self.aim.lists)
            return msgspec.json.decode((await self._do("scan-manifests", *lists))[0], type=ScanManifests)

    def parts(self, needed: ScanManifests) -> list[ScanManifests]:
        """Split the manifests into tasks: each has some data manifests and all delete manifests."""
        portions = manifest_batches(needed.data, files_max=self._files_max, filter_bytes=self._filter_bytes)
        return [ScanManifests(needed.data[first:after], needed.deletes) for first, after in portions]

    async def tasks(self, needed: ScanManifests) -> ScanTasks:
        """Plan the files of some manifests. Raises as `needed`, UnsupportedOperation also for too many delete
        manifests.
        """
        if sum(each.length for each in needed.deletes) > DELETE_BYTES_MAX:
            raise UnsupportedOperation(
                f"The delete manifests of this scan exceed {DELETE_BYTES_MAX} bytes: compact the table, or plan this"
                " scan in the client"
            )
        if not needed.data:
            return ScanTasks(b"", b"", 0)
        async with self._turn():
            files = await self._read([each.path for each in (*needed.data, *needed.deletes)])
            prefixes = msgspec.json.encode(self._table_files.locations.prefixes)
            results = await self._do("scan-tasks", prefixes, msgspec.json.encode(needed), *files)
        with _outside_files_refused():
            await self._table_files.require(msgspec.json.decode(results[3], type=list[str]))
        return ScanTasks(results[0], results[1], int(results[2]))

    async def _do(self, name: str, *parts: bytes) -> list[bytes]:
        return await self._offloader.do(name, self._aim, self._asked, *parts, caller=self.requester.name)

    def _turn(self) -> AbstractAsyncContextManager[None]:
        return self._turns.turn((("caller", self.requester.name),))

    async def _read(self, locations: Sequence[str]) -> list[bytes]:
        current = 0

        async def read(location: str) -> bytes:
            nonlocal current
            data = await self._table_files.read(location)
            current += len(data)
            if current > READ_BYTES_MAX:
                raise UnsupportedOperation(
                    f"One step of this scan reads more than {READ_BYTES_MAX} bytes of manifests or manifest lists:"
                    " request fewer snapshots, or plan it in the client"
                )
            return data

        with _outside_files_refused():
            await self._table_files.require(locations)
            return await map_concurrently(locations, read, at_once=AT_ONCE)


@contextmanager
def _outside_files_refused() -> Iterator[None]:
    """Within the block, raise UnsupportedOperation for a file outside of the table's locations, without its name."""
    try:
        yield
    except OutsideRoots as error:
        raise UnsupportedOperation(f"The scan is not planned: {error.message}, or plan it in the client") from error


async def scan_of(ctx: Context, scanned: ScanTarget) -> TableScan:
    """Return the scan of an authorized target. Raises BadRequest (an unknown snapshot or column), UnsupportedOperation,
    OutsideRoots, PermissionDenied for a restricted user.
    """
    document = scanned.document
    scanned.place.check(document.location)
    if is_heavy(document):
        parts = await SCAN_OFFLOADER.of(ctx.services).do(
            "scan-aim", document.body, msgspec.json.encode(scanned.request), caller=scanned.requester.name
        )
        return TableScan(ctx, scanned, aim=msgspec.json.decode(parts[0], type=ScanScope))
    return TableScan(ctx, scanned, aim=scan_scope_of(iceberg_metadata.decode(document.body), scanned.request))
