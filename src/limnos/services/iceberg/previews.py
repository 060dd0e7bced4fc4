"""Previews of Iceberg tables: their first rows, as the caller may see them.

May import the rooms below and the part of `formats.scans` that needs no library. Must not know any wire format. The
decision is that of a scan, so restrictions apply as they do there. Worker processes read the files, with limits for
rows, bytes and time. Each preview is audited, because rows leave the lake.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Iterator
from contextlib import aclosing, contextmanager
from secrets import token_hex
from typing import Final, NamedTuple, TypeVar

import msgspec

from limnos.formats.iceberg.field_ids import field_ids_of, schema_of
from limnos.formats.iceberg.json_types import Json
from limnos.formats.iceberg.read_restrictions import BoundRestrictions
from limnos.formats.scans.request import ScanRequest
from limnos.model.audit import AuditedDecision, AuditRecord, RequestOrigin, rights_text
from limnos.model.errors import BadRequest, ServiceUnavailable
from limnos.model.kinds import ROOT_ID
from limnos.names import display
from limnos.names.path import Levels
from limnos.services.iceberg.policy_enforcement import hide_file_names, narrow_request, read_shape
from limnos.services.iceberg.scan_queue import SCAN_OFFLOADER
from limnos.services.iceberg.scans import ScanTarget, TableScan, scan_look, scan_of
from limnos.services.request.context import Context
from limnos.services.request.node_services import ComponentKey
from limnos.services.request.request_scope import RequestScope

T = TypeVar("T")
ROWS_MAX: Final = 200
COLUMNS_MAX: Final = 60
ANSWER_BYTES_MAX: Final = 1 << 20
READ_BYTES_MAX: Final = 64 << 20
"""The maximum number of bytes of data and delete files that one preview reads."""
FILES_MAX: Final = 20
DEADLINE_S: Final = 10.0
CALLER_MAX: Final = 2
"""The maximum number of concurrent previews of one caller on a node."""
_NOTHING: Final = BoundRestrictions(None, {})
_ENDED: Final = "The rows were not read: the worker process has ended, or too many previews are running. Try again, request fewer columns or rows, or read the table with a client"


class PreviewRequest(NamedTuple):
    """The requested number of rows and columns, of a given snapshot or the current one.

    If no columns are named, the first `COLUMNS_MAX` are returned.
    """

    rows: int = 100
    columns: tuple[str, ...] = ()
    snapshot_id: int | None = None

    def check(self) -> None:
        """Check the limits. Raises BadRequest."""
        if not 1 <= self.rows <= ROWS_MAX:
            raise BadRequest(f"A preview must have 1 to {ROWS_MAX} rows, not {self.rows}")
        if len(self.columns) > COLUMNS_MAX:
            raise BadRequest(f"A preview may have at most {COLUMNS_MAX} columns: name fewer")


class PreviewColumn(NamedTuple):
    """A column of a preview. `type` is as in the table's schema."""

    name: str
    type: object
    is_masked: bool


class TablePreview(NamedTuple):
    """The first rows of a table. `is_complete` is true if these are all rows that the caller may see.

    `columns_left_out` is the number of columns that were not requested or exceed the limit.
    """

    columns: tuple[PreviewColumn, ...]
    rows: list[list[object]]
    snapshot_id: int | None
    is_complete: bool
    is_restricted: bool
    columns_left_out: int


class RunningPreviews:
    """Counts the previews that run on a node, by caller."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    @contextmanager
    def turn(self, caller: str) -> Iterator[None]:
        """Count a preview while it runs. Raises ServiceUnavailable if the caller has too many."""
        if self._counts.get(caller, 0) >= CALLER_MAX:
            raise ServiceUnavailable(
                f"{CALLER_MAX} previews of your user are running: try again when one is complete", retry_after_s=2
            )
        self._counts[caller] = self._counts.get(caller, 0) + 1
        try:
            yield
        finally:
            self._counts[caller] -= 1
            if not self._counts[caller]:
                del self._counts[caller]


RUNNING_PREVIEWS: ComponentKey[RunningPreviews] = ComponentKey("previews", lambda _: RunningPreviews())


async def table_preview(
    ctx: Context, scope: RequestScope, *, path: Levels, preview_request: PreviewRequest
) -> TablePreview:
    """Return the first rows of a table that the caller may read, after deletes, row filters and masks.

    Raises NotFound, PermissionDenied, BadRequest (limits, unknown columns or snapshots, another format),
    UnsupportedOperation (files that are not read here), StorageFailed, ServiceUnavailable (deadline, dead process).
    """
    scan_request = ScanRequest(snapshot_id=preview_request.snapshot_id, min_rows_requested=preview_request.rows + 1)
    scanned = await ctx.read(scope, lambda view: scan_look(view, path, scan_request=scan_request))
    preview_request.check()
    with RUNNING_PREVIEWS.of(ctx.services).turn(scanned.asker.name):
        preview = await _before_deadline(_read_preview(ctx, scanned, preview_request=preview_request))
    _audit(ctx, scanned, preview=preview, path=(scope.catalog or "", *path))
    return preview


async def _before_deadline(work: Coroutine[object, object, T]) -> T:
    """Await work up to the deadline, then cancel it, which kills its process. Raises ServiceUnavailable."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait((task,), timeout=DEADLINE_S)
        if task.done():
            return task.result()
        raise ServiceUnavailable(
            f"Reading the first rows took longer than {DEADLINE_S:.0f} s: request fewer columns, or read the table with a client"
        )
    finally:
        task.cancel()


async def _read_preview(ctx: Context, scanned: ScanTarget, *, preview_request: PreviewRequest) -> TablePreview:
    scanned.place.check(scanned.document.location)
    bound = scanned.bound
    columns, left_out = _columns(scanned, preview_request)
    planned = scanned if bound is None else scanned._replace(request=narrow_request(scanned.request, bound), bound=None)
    scan = await scan_of(ctx, planned)
    shape = await read_shape(ctx, scanned, bound=bound or _NOTHING, query=token_hex(16))
    reading = _PreviewReading(ctx, scanned, shape=shape, columns=columns, rows_max=preview_request.rows)
    async with aclosing(_tasks_of(scanned, scan)) as tasks:
        async for task, deletes in tasks:
            if not await reading.has_room_after(task, deletes):
                break
    masks = {} if bound is None else bound.masks
    fields = {each["id"]: each for each in _fields(scanned)}
    result_columns = tuple(
        PreviewColumn(str(fields[each]["name"]), fields[each]["type"], each in masks) for each in columns
    )
    return TablePreview(
        result_columns, reading.rows, scan.aim.snapshot_id, reading.is_complete, bound is not None, left_out
    )


def _fields(scanned: ScanTarget) -> list[Json]:
    fields = schema_of(scanned.document.body).get("fields")
    return fields if isinstance(fields, list) else []


def _columns(scanned: ScanTarget, preview_request: PreviewRequest) -> tuple[list[int], int]:
    """Return the field ids of the columns to show, and how many others there are. Raises BadRequest."""
    ids = field_ids_of(scanned.document.body)
    unknown = [name for name in preview_request.columns if name not in ids]
    if unknown:
        raise BadRequest(f"The table has no column '{unknown[0][:100]}'")
    names = dict.fromkeys(preview_request.columns or list(ids)[:COLUMNS_MAX])
    if not names:
        raise BadRequest("The table has no columns")
    return [ids[name] for name in names], len(ids) - len(names)


async def _tasks_of(scanned: ScanTarget, scan: TableScan) -> AsyncGenerator[tuple[Json, list[Json]]]:
    """Yield the scan tasks of a table with their delete files, some manifests at a time.

    For restricted users errors name no file.
    """
    with _names_hidden(scanned):
        needed = await scan.needed()
    for part in scan.parts(needed):
        with _names_hidden(scanned):
            planned = await scan.tasks(part)
        tasks: list[Json] = msgspec.json.decode(b"[" + planned.files + b"]")
        deletes: list[Json] = msgspec.json.decode(b"[" + planned.deletes + b"]")
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
    """The rows of a preview while its files are read one by one."""

    def __init__(
        self, ctx: Context, scanned: ScanTarget, *, shape: Json, columns: list[int], rows_max: int
    ) -> None:  # fmt: skip
        self._ctx, self._scanned, self._shape, self._columns = ctx, scanned, shape, columns
        self._rows_max, self._files, self._bytes_left = rows_max, 0, READ_BYTES_MAX
        self._answer_left = ANSWER_BYTES_MAX
        self.rows: list[list[object]] = []
        self.is_complete = True

    async def has_room_after(self, task: Json, deletes: list[Json]) -> bool:
        """Read the first rows of a file. Returns whether another file may be read.

        Raises UnsupportedOperation, StorageFailed, ServiceUnavailable.
        """
        if self._files >= FILES_MAX or len(self.rows) >= self._rows_max or self._bytes_left <= 0:
            self.is_complete = False
            return False
        self._files += 1
        place = self._scanned.place
        head = {
            "shape": self._shape, "task": task, "deletes": deletes, "columns": self._columns,
            "rows_max": self._rows_max - len(self.rows), "bytes_max": self._answer_left,
        }  # fmt: skip
        question = {
            "head": head, "roots": (self._scanned.document.location,), "properties": place.catalog.properties, "kept": place.allowed.own_directories,
            "open_within": place.allowed.open_within, "read_bytes_max": self._bytes_left,
        }  # fmt: skip
        (answer,) = await self._offload(msgspec.json.encode(question))
        rows, is_whole, read = msgspec.json.decode(answer, type=tuple[list[list[object]], bool, int])
        self.rows += rows
        self._bytes_left -= read
        self._answer_left -= len(answer)
        self.is_complete = self.is_complete and is_whole
        return self._answer_left > 0

    async def _offload(self, question: bytes) -> list[bytes]:
        offloader = SCAN_OFFLOADER.of(self._ctx.services)
        try:
            return await offloader.do("preview-file", question, caller=self._scanned.asker.name)
        except ServiceUnavailable as error:
            raise ServiceUnavailable(_ENDED, retry_after_s=error.retry_after_s) from error


def _audit(ctx: Context, scanned: ScanTarget, *, preview: TablePreview, path: Levels) -> None:
    """Write an audit line about a preview, even if reads are not audited."""
    asker = ctx.asker
    origin = RequestOrigin() if asker is None else asker.origin()
    decided = [] if asker is None else asker.decided or []
    own = [AuditedDecision.of(each) for each in decided if each.target_id == scanned.document.node_id][-1:]
    metalake_id = next((each.revision[1][0] for each in decided if len(each.revision) > 1), ROOT_ID)
    detail = f"preview of {len(preview.rows)} rows of {len(preview.columns)} columns, snapshot {preview.snapshot_id}"
    ctx.services.audit.take([
        AuditRecord(
            0, metalake_id, ctx.services.store.time.now_ms(), scanned.asker.name, None if asker is None else asker.user_id,
            "done", "", own[0].action if own else "table_read", "table", scanned.document.node_id, display.render(path), "", detail,
            rights_text(own), origin.protocol, origin.operation, 200, ctx.request_id, origin.client, origin.peer, origin.credential,
        )
    ])  # fmt: skip
    if asker is not None:
        asker.has_changed = True  # the request has its line
