# SPDX-License-Identifier: Apache-2.0
"""Previews of Iceberg tables: the first rows that are visible to the caller.

Must not know any wire format. Access is decided as for a scan, so read restrictions apply. Worker processes read the
files, with limits for rows, bytes and time. Each preview is audited, because rows leave the lake.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from functools import partial
from secrets import token_hex
from typing import Final

import msgspec

from limnos.access.actions import Action
from limnos.formats.iceberg.field_ids import field_ids_of, schema_of
from limnos.formats.iceberg.json_types import Json
from limnos.formats.scans.request import ScanRequest
from limnos.model.errors import BadRequest, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.previews import ANSWER_BYTES_MAX, COLUMNS_MAX, PreviewColumn, PreviewRequest, TablePreview
from limnos.model.privileges import escape_percent
from limnos.names import display
from limnos.names.path import Levels
from limnos.services.iceberg.policy_enforcement import hide_file_names, narrow_request, rewrite_specification
from limnos.services.iceberg.reports import catalog_require
from limnos.services.iceberg.restricted_tables import bound_for, restrictable_chain, restriction_names
from limnos.services.iceberg.scans import ScanTarget, TableScan, scan_look, scan_of
from limnos.services.request.concurrency.previews import PREVIEW_OFFLOADER, RUNNING_PREVIEWS, ended_process_explained
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import LANCE, format_of

READ_BYTES_MAX: Final = 64 << 20
"""The maximum number of bytes of data and delete files that one preview reads."""
FILES_MAX: Final = 20
_NAMED_MAX: Final = 5
"""The number of restrictions that the record of a preview names."""


async def named_table_preview(
    ctx: Context, scope: RequestScope, *, path: Levels, preview_request: PreviewRequest
) -> TablePreview | None:
    """Return the first rows of a table by its path below the catalog; None if the catalog has Lance tables.

    Raises as `table_preview`, and BadRequest for a path that names no table.
    """

    def look(view: RequestView) -> ScanTarget | None:
        if format_of(view) == LANCE and path:
            return None
        if len(path) < 2:
            catalog_require(view)
            raise BadRequest("Name the table by its path below the catalog, as ?table=raw.trips")
        return _authorize_preview(view, path, preview_request=preview_request)

    scan_target = await ctx.read(scope, look)
    if scan_target is None:
        return None
    return await _scanned_preview(ctx, scope, path=path, scanned=scan_target, preview_request=preview_request)


async def table_preview(
    ctx: Context, scope: RequestScope, *, path: Levels, preview_request: PreviewRequest
) -> TablePreview:
    """Return the first rows of a table that the caller may read, after deletes, row filters and masks.

    Raises NotFound, PermissionDenied, BadRequest (limits, unknown columns or snapshots, another format),
    UnsupportedOperation (an unsupported file format), StorageFailed, ServiceUnavailable (deadline, dead process).
    """
    scan_target = await ctx.read(scope, lambda view: _authorize_preview(view, path, preview_request=preview_request))
    return await _scanned_preview(ctx, scope, path=path, scanned=scan_target, preview_request=preview_request)


async def table_preview_as(
    ctx: Context, scope: RequestScope, *, path: Levels, user: str, preview_request: PreviewRequest
) -> TablePreview:
    """Return the first rows of a table as another user sees them, for a caller who may restrict the table.

    Raises as `table_preview`; PermissionDenied also for a caller who is restricted on the table, and BadRequest for a
    user who may not read it.
    """

    def look(view: RequestView) -> ScanTarget:
        own_preview = _authorize_preview(view, path, preview_request=preview_request)
        chain = restrictable_chain(view, path)
        if own_preview.bound is not None:
            raise PermissionDenied("A read restriction applies to you on this table, so you see it only as yourself")
        decision = view.decide_for(user, Action.TABLE_READ, chain)
        if decision.allowed:
            return own_preview
        if not any(factor.kind == "restricted" for factor in decision.factors):
            raise BadRequest(f"{escape_percent(user)} may not read this table: its access page says why")
        return own_preview._replace(
            bound=bound_for(view, user, chain=chain, document=own_preview.document),
            restrictions=restriction_names(view, user, chain=chain),
        )

    scan_target = await ctx.read(scope, look)
    return await _scanned_preview(
        ctx, scope, path=path, scanned=scan_target, preview_request=preview_request, as_user=user
    )


def _authorize_preview(view: RequestView, path: Levels, *, preview_request: PreviewRequest) -> ScanTarget:
    """Find the table of a preview for a caller who may read it. Raises as `scan_look`."""
    scan_request = ScanRequest(snapshot_id=preview_request.snapshot_id, min_rows_requested=preview_request.rows + 1)
    return scan_look(view, path, scan_request=scan_request)


async def _scanned_preview(
    ctx: Context,
    scope: RequestScope,
    *,
    path: Levels,
    scanned: ScanTarget,
    preview_request: PreviewRequest,
    as_user: str = "",
) -> TablePreview:
    """Return the first rows of the table of an authorized preview (`_authorize_preview`). `as_user` is the user whose
    restrictions it has, for the audit. Raises as `table_preview`.
    """
    preview_request.check()
    reading = partial(_read_preview, ctx, scanned, preview_request=preview_request)
    running, offloader = RUNNING_PREVIEWS.of(ctx.services), PREVIEW_OFFLOADER.of(ctx.services)
    preview = await running.run(scanned.requester.name, reading, offloader=offloader)
    snapshot = "no snapshot" if preview.snapshot_id is None else f"snapshot {preview.snapshot_id}"
    detail = f"preview of {len(preview.rows)} rows of {len(preview.columns)} columns, {snapshot}"
    if scanned.restrictions:
        names = ", ".join(map(display.render_part, scanned.restrictions[:_NAMED_MAX]))
        more = len(scanned.restrictions) - _NAMED_MAX
        detail += f", restricted by {names}" + (f" and {more} more" if more > 0 else "")
    detail += f", as user {as_user}" if as_user else ""
    ctx.audit_rows(
        scanned.document.node_id,
        (scope.catalog or "", *path),
        kind=Kind.TABLE.word,
        action=Action.TABLE_READ,
        user=scanned.requester.name,
        detail=detail,
    )
    return preview


async def _read_preview(ctx: Context, scanned: ScanTarget, *, preview_request: PreviewRequest) -> TablePreview:
    scanned.place.check(scanned.document.location)
    restriction = scanned.bound
    columns, left_out = _columns(scanned, preview_request)
    narrowed_scan = (
        scanned
        if restriction is None
        else scanned._replace(request=narrow_request(scanned.request, restriction), bound=None)
    )
    scan = await scan_of(ctx, narrowed_scan)
    specification = await rewrite_specification(ctx, scanned, bound=restriction, query=token_hex(16))
    reading = _PreviewReading(
        ctx, scanned, scan=scan, specification=specification, columns=columns, rows_max=preview_request.rows
    )
    async with aclosing(_tasks_of(scanned, scan)) as tasks:
        async for task, deletes in tasks:
            if not await reading.has_room_after(task, deletes):
                break
    masks = {} if restriction is None else restriction.masks
    fields = {each["id"]: each for each in _fields(scanned)}
    result_columns = tuple(
        PreviewColumn(str(fields[each]["name"]), fields[each]["type"], each in masks) for each in columns
    )
    return TablePreview(
        columns=result_columns,
        rows=reading.rows,
        snapshot_id=scan.aim.snapshot_id,
        is_complete=reading.is_complete,
        is_restricted=restriction is not None,
        columns_left_out=left_out,
    )


def _fields(scanned: ScanTarget) -> list[Json]:
    fields = schema_of(scanned.document.body).get("fields")
    return fields if isinstance(fields, list) else []


def _columns(scanned: ScanTarget, preview_request: PreviewRequest) -> tuple[list[int], int]:
    """Return the field ids of the columns to show, and the count of omitted columns. Raises BadRequest for an unknown
    column.
    """
    ids = field_ids_of(scanned.document.body)
    unknown = [name for name in preview_request.columns if name not in ids]
    if unknown:
        raise BadRequest(f"The table has no column '{unknown[0][:100]}'")
    names = dict.fromkeys(preview_request.columns or list(ids)[:COLUMNS_MAX])
    if not names:
        raise BadRequest("The table has no columns")
    return [ids[name] for name in names], len(ids) - len(names)


async def _tasks_of(scanned: ScanTarget, scan: TableScan) -> AsyncGenerator[tuple[Json, list[Json]]]:
    """Yield the scan tasks of a table with their delete files, in batches of manifests.

    For restricted users, error messages contain no file names.
    """
    with _names_hidden(scanned):
        scan_manifests = await scan.needed_manifests()
    for part in scan.parts(scan_manifests):
        with _names_hidden(scanned):
            scan_tasks = await scan.tasks(part)
        tasks: list[Json] = msgspec.json.decode(b"[" + scan_tasks.files + b"]")
        deletes: list[Json] = msgspec.json.decode(b"[" + scan_tasks.deletes + b"]")
        for task in tasks:
            numbers = task.get("delete-file-references", [])
            yield task, [deletes[each] for each in numbers] if isinstance(numbers, list) else []


@contextmanager
def _names_hidden(scanned: ScanTarget) -> Iterator[None]:
    if scanned.bound is None:
        yield
    else:
        with hide_file_names(scanned):
            yield


class _PreviewReading:
    """Collects the rows of a preview, file by file, within limits on files, rows and bytes."""

    def __init__(
        self,
        ctx: Context,
        scanned: ScanTarget,
        *,
        scan: TableScan,
        specification: Json,
        columns: list[int],
        rows_max: int,
    ) -> None:
        self._ctx, self._scanned, self._specification, self._columns = ctx, scanned, specification, columns
        self._scan = scan
        self._rows_max, self._files, self._bytes_left = rows_max, 0, READ_BYTES_MAX
        self._answer_left = ANSWER_BYTES_MAX
        self.rows: list[list[object]] = []
        self.is_complete = True

    async def has_room_after(self, task: Json, deletes: list[Json]) -> bool:
        """Read the first rows of a file, unless a limit is reached already. Returns whether another file may be read.

        Raises UnsupportedOperation for a file of an unsupported format, StorageFailed, ServiceUnavailable.
        """
        if self._files >= FILES_MAX or len(self.rows) >= self._rows_max or self._bytes_left <= 0:
            self.is_complete = False
            return False
        self._files += 1
        catalog_storage = self._scanned.place
        head = {
            "shape": self._specification,
            "task": task,
            "deletes": deletes,
            "columns": self._columns,
            "rows_max": self._rows_max - len(self.rows),
            "bytes_max": self._answer_left,
        }
        question = {
            "head": head,
            "roots": self._scan.roots,
            "properties": catalog_storage.catalog.properties,
            "kept": catalog_storage.allowed.own_directories,
            "open_within": catalog_storage.allowed.open_within,
            "read_bytes_max": self._bytes_left,
            "names_files": self._scanned.bound is None,
        }
        (answer,) = await self._offload(msgspec.json.encode(question))
        rows, is_whole, read = msgspec.json.decode(answer, type=tuple[list[list[object]], bool, int])
        self.rows += rows
        self._bytes_left -= read
        self._answer_left -= len(answer)
        self.is_complete = self.is_complete and is_whole
        return self._answer_left > 0

    async def _offload(self, question: bytes) -> list[bytes]:
        offloader = PREVIEW_OFFLOADER.of(self._ctx.services)
        with ended_process_explained():
            return await offloader.do("preview-file", question, caller=self._scanned.requester.name)
