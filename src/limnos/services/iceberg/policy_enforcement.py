# SPDX-License-Identifier: Apache-2.0
"""Policy enforcement: plans scans for restricted users, with data files rewritten to contain only the visible rows and
values.

Must not know any wire format. Rewritten files are stored in a reserved directory of the catalog's warehouse, by table
and restrictions. Users with the same restrictions share them while a plan needs them. The reader's own filter is never
applied to the stored files, since the set of matching files would reveal masked values. Decision record 0093.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from secrets import token_hex
from time import monotonic
from typing import Final, NamedTuple

import msgspec

from limnos.formats.iceberg import metadata as iceberg_metadata
from limnos.formats.iceberg.field_ids import field_ids_of
from limnos.formats.iceberg.json_types import Json, as_object
from limnos.formats.iceberg.read_restrictions import BoundRestrictions, reading_shape
from limnos.formats.restricting.spans import span_count
from limnos.formats.scans.manifest_batches import RESPONSE_BYTES_MAX, RESPONSE_TOO_LARGE
from limnos.formats.scans.request import ScanRequest, ScanScope
from limnos.model.entities import MetadataDocument
from limnos.model.errors import (
    BadRequest,
    InvalidTable,
    LimnosError,
    MissingFile,
    ServiceUnavailable,
    StorageFailed,
    UnsupportedOperation,
)
from limnos.services.iceberg.continued_rewrites import CONTINUED_REWRITES
from limnos.services.iceberg.restricted_reads import QuotaMeter, binding_location, directory_hold, directory_leave
from limnos.services.iceberg.scan_queue import SCAN_OFFLOADER
from limnos.services.iceberg.scans import ScanTarget, ScanTasks, TableScan, scan_of
from limnos.services.iceberg.spans.executors import FOUND_AT_ONCE, SpanRecipe, write_with_executors
from limnos.services.iceberg.spans.names import SpanNamer, SpanTask
from limnos.services.request.catalog_storage import CatalogStorage
from limnos.services.request.concurrency.coalescing import RequestCoalescer
from limnos.services.request.concurrency.parallel import map_concurrently
from limnos.services.request.context import Context
from limnos.services.request.node_services import ComponentKey
from limnos.services.request.offloaded_work import is_heavy
from limnos.services.vending.credentials import VENDOR, VendedCredentials, credential_request_of, is_vending
from limnos.sources.credentials import FileRights
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.restricting")
AT_ONCE: Final = 4
UNFINISHED_S: Final = 30
"""The `Retry-After` of a plan whose files are not all written, in seconds."""
_TASK_BYTES: Final = 500
"""The approximate size of a task in a response, in bytes."""
READS: Final = FileRights(reads=True, writes=False)
_UNREADABLE: Final = "The server cannot read a restricted table's manifests"
_WHAT_TO_DO: Final = (
    "one is missing, damaged, too large or elsewhere. The table's owner should check the server's log and rewrite the"
    " manifests"
)
_STATISTICS: Final = ("value-counts", "null-value-counts", "nan-value-counts", "lower-bounds", "upper-bounds")


class ReadyFiles(NamedTuple):
    """The number and the total size in bytes of the rewritten files that a plan has so far."""

    number: int
    size: int


class RestrictedPlan(NamedTuple):
    """A plan for a restricted user, and the directory of its rewritten files; None if it has no files."""

    scan_tasks: ScanTasks
    into: str | None
    plan: str


def narrow_request(request: ScanRequest, bound: BoundRestrictions) -> ScanRequest:
    """Return the request to plan for a restricted user: the same snapshots, with the restrictions' row filter instead
    of the user's.
    """
    narrowed_request = ScanRequest(
        snapshot_id=request.snapshot_id,
        start_snapshot_id=request.start_snapshot_id,
        end_snapshot_id=request.end_snapshot_id,
    )
    if bound.row_filter is None:
        return narrowed_request
    return msgspec.structs.replace(narrowed_request, filter=msgspec.Raw(msgspec.json.encode(bound.row_filter)))


async def scan_restricted(ctx: Context, scanned: ScanTarget, *, bound: BoundRestrictions) -> RestrictedPlan:
    """Plan a scan for a restricted user, in batches of manifests.

    Raises BadRequest (unknown snapshots, columns or values), UnsupportedOperation, OutsideRoots, StorageFailed,
    ServiceUnavailable. Error messages contain no file names.
    """
    require_warehouse(scanned)
    with hide_file_names(scanned):
        scanned.place.check(scanned.document.location)
    narrowed_request = narrow_request(scanned.request, bound)
    scan = await scan_of(ctx, scanned._replace(request=narrowed_request, bound=None))
    residual = await _residual(ctx, scanned, aim=scan.aim)
    plan = token_hex(16)
    if residual == b"false":
        return RestrictedPlan(ScanTasks(b"", b"", 0), None, plan)
    specification = await rewrite_specification(ctx, scanned, bound=bound, query=token_hex(16))
    directory = await directory_hold(ctx, scanned, bound=bound, plan=plan)
    quota_meter = QuotaMeter(ctx, scanned, location=directory.location)
    restricted_rewrite = _RestrictedRewrite(
        ctx,
        scanned,
        scan=scan,
        specification=specification,
        into=directory.location,
        residual=residual,
        quota_meter=quota_meter,
        recipe=None if bound.is_local else SpanRecipe(scanned.requester, narrowed_request, bound, directory.location),
    )

    began_at = monotonic()

    async def work() -> list[bytes]:
        try:
            tasks = await _rewrite_plan(scanned, scan=scan, restricted_rewrite=restricted_rewrite)
        except BaseException:
            await asyncio.shield(_abandon_plan(ctx, scanned, bound=bound, plan=plan, quota_meter=quota_meter))
            raise
        await quota_meter.settle()
        if wait_s is not None and monotonic() - began_at > wait_s:  # the reader comes back for the files
            await directory_hold(ctx, scanned, bound=bound, plan=plan)
        return tasks

    into, wait_s = directory.location, None if bound.is_local else ctx.services.defaults.scan_wait_s
    rewrites = CONTINUED_REWRITES.of(ctx.services)
    tasks = await rewrites.outcome(into, work(), caller=scanned.requester.name, wait_s=wait_s)
    if tasks is None:
        raise restricted_rewrite.unfinished_error()
    return RestrictedPlan(ScanTasks(b",".join(filter(None, tasks)), b"", 0), into, plan)


async def _rewrite_plan(scanned: ScanTarget, *, scan: TableScan, restricted_rewrite: _RestrictedRewrite) -> list[bytes]:
    """Rewrite the files of a plan, in batches of manifests, and return the scan tasks as JSON."""
    results: list[bytes] = []
    with hide_file_names(scanned):
        scan_manifests = await scan.needed_manifests()
    for part in scan.parts(scan_manifests):
        with hide_file_names(scanned):
            tasks = await scan.tasks(part)
        results.append(await restricted_rewrite.files(tasks))
    return results


async def _abandon_plan(
    ctx: Context, scanned: ScanTarget, *, bound: BoundRestrictions, plan: str, quota_meter: QuotaMeter
) -> None:
    """End a plan that failed or whose client has disconnected, and count the bytes of its files for the quota.

    The files are kept for a while if other plans may share them.
    """
    try:
        await quota_meter.settle()
        await directory_leave(ctx, scanned, bound=bound, plan=plan)
    except LimnosError as error:
        log.warning("an abandoned restricted plan counts until it expires", error=error.message)


async def rewrite_specification(
    ctx: Context, scanned: ScanTarget, *, bound: BoundRestrictions | None, query: str
) -> Json:
    """Return what worker processes need to read the table's files, as JSON: metadata, row filter, masks and salt.

    For restricted users the metadata has no name mapping, so files without field ids are not read: who may commit could
    map a masked column's name in such files to another column.

    Args:
        ctx: The request.
        scanned: The table.
        bound: The restrictions of the user; None for an unrestricted one.
        query: The salt of masks that differ for each query.
    """
    document = scanned.document
    if is_heavy(document):
        (data,) = await ctx.services.offloader.do("iceberg-reading-shape", document.body)
        metadata: Json = msgspec.json.decode(data)
    else:
        metadata = reading_shape(iceberg_metadata.decode(document.body))
    if bound is None:
        return {"metadata": metadata, "row_filter": None, "masks": {}, "salt": ""}
    salt, metadata = query if bound.is_local else "", metadata | {"properties": {}}
    return {"metadata": metadata, "row_filter": bound.row_filter, "masks": bound.masks, "salt": salt}


async def _residual(ctx: Context, scanned: ScanTarget, *, aim: ScanScope) -> bytes:
    """Return the reader's own filter as a residual, over the current columns that are visible to the reader.

    Raises BadRequest if the filter names an unknown column.
    """
    if not scanned.request.names_fields:
        return b"true"
    today = aim.today or aim.schema
    present_aim = msgspec.structs.replace(aim, schema=today, schemas=[today], specs=[], today=None)
    parts = (msgspec.json.encode(present_aim), msgspec.json.encode(scanned.request))
    (residual,) = await SCAN_OFFLOADER.of(ctx.services).do("scan-residual", *parts, caller=scanned.requester.name)
    return residual


@contextmanager
def hide_file_names(scanned: ScanTarget) -> Iterator[None]:
    """Within the block, replace errors by errors without file names, which reveal values and the table's location.

    The details are logged.
    """
    try:
        yield
    except (BadRequest, InvalidTable, MissingFile, StorageFailed, UnsupportedOperation) as error:
        log.warning(_UNREADABLE, node_id=scanned.document.node_id, caller=scanned.requester.name, error=error.message)
        error_type = UnsupportedOperation if isinstance(error, (BadRequest, UnsupportedOperation)) else StorageFailed
        raise error_type(f"{_UNREADABLE}: {_WHAT_TO_DO}") from None


class _RestrictedRewrite:
    """Rewrites the files of one scan.

    `specification` is the result of `rewrite_specification`; `residual` is the reader's own filter.
    """

    def __init__(
        self,
        ctx: Context,
        scanned: ScanTarget,
        *,
        scan: TableScan,
        specification: Json,
        into: str,
        residual: bytes,
        quota_meter: QuotaMeter,
        recipe: SpanRecipe | None,
    ) -> None:
        self._scan = scan
        self._ctx, self._scanned, self._specification = ctx, scanned, specification
        self._into, self._residual, self._spending = into, msgspec.Raw(residual), quota_meter
        ids = field_ids_of(scanned.document.body)
        self._wanted = {ids[each] for each in scanned.request.stats_fields or () if each in ids}
        self._told_bytes = 0
        self._ready = ReadyFiles(0, 0)
        self._namer, self._recipe = SpanNamer(specification), recipe

    def unfinished_error(self) -> ServiceUnavailable:
        """Return the error for a plan whose files are not all written yet, with the number of those that are."""
        return ServiceUnavailable(
            "The server is still writing the files of this table for your restrictions, and continues: repeat the"
            f" request. {self._ready.number} files with {self._ready.size >> 20} MiB are ready",
            retry_after_s=UNFINISHED_S,
        )

    async def files(self, scan_tasks: ScanTasks) -> bytes:
        """Rewrite every file of a part of a plan, and return their tasks as JSON.

        Raises UnsupportedOperation (a file that cannot be rewritten, or a too large response), StorageFailed,
        ServiceUnavailable (an exhausted quota).
        """
        tasks: list[Json] = msgspec.json.decode(b"[" + scan_tasks.files + b"]")
        deletes: list[Json] = msgspec.json.decode(b"[" + scan_tasks.deletes + b"]")
        sizes = [int(str(as_object(each["data-file"], "data-file")["file-size-in-bytes"])) for each in tasks]
        self._add_response_size(sum(map(span_count, sizes)) * (len(bytes(self._residual)) + _TASK_BYTES))
        spans: list[SpanTask] = []
        for task, size in zip(tasks, sizes, strict=True):
            spans += self._namer.spans(task, deletes=deletes, size=size)
            await asyncio.sleep(0)  # a plan of many files must not hold up other requests
        results = await self._find([each.name for each in spans])
        results = await self._delegate(spans, results)

        async def write(number: int) -> list[Json]:
            files = await self._write(spans[number])
            self._add_ready(files)
            return files

        missing = [number for number, files in enumerate(results) if files is None]
        written_files = await map_concurrently(missing, write, at_once=AT_ONCE)
        for number, files in zip(missing, written_files, strict=True):
            results[number] = files
        return b",".join([self._task(file) for files in results for file in files or ()])

    async def _delegate(
        self, spans: Sequence[SpanTask], results: Sequence[list[Json] | None]
    ) -> list[list[Json] | None]:
        """Let executors write the missing spans if they are many, or if executors are writing them already. Returns the
        files of each span; None for each that the server must write.
        """
        missing = [each.name for each, files in zip(spans, results, strict=True) if files is None]
        spans_min = self._ctx.services.defaults.restricted_executor_spans
        if self._recipe is None or not spans_min or not missing:
            return [*results]
        written_files = await write_with_executors(
            self._ctx,
            self._scanned,
            recipe=self._recipe,
            names=missing,
            find=self._look_up,
            is_large=len(missing) > spans_min,
        )
        return [
            written_files.get(each.name) if files is None else files for each, files in zip(spans, results, strict=True)
        ]

    async def _find(self, names: Sequence[str]) -> list[list[Json] | None]:
        """Return the files of earlier rewrites by the names of their spans; None for each span that is missing.

        A few spans for the server are not looked up: their rewrites look, too.
        """
        if len(names) <= AT_ONCE and not 0 < self._ctx.services.defaults.restricted_executor_spans < len(names):
            return [None] * len(names)
        results: list[list[Json] | None] = []
        for at in range(0, len(names), FOUND_AT_ONCE):
            results += await self._look_up(names[at : at + FOUND_AT_ONCE])
        return results

    async def _look_up(self, names: Sequence[str]) -> list[list[Json] | None]:
        """Return the files of at most `FOUND_AT_ONCE` spans by their names; None for each span that is missing."""
        results = await find_spans(self._ctx, self._scanned.place, into=self._into, names=names)
        for files in results:
            self._add_ready(files or ())
        return results

    def _add_ready(self, files: Sequence[Json]) -> None:
        added_bytes = sum(int(str(each["file-size-in-bytes"])) for each in files)
        self._ready = ReadyFiles(self._ready.number + len(files), self._ready.size + added_bytes)

    def _add_response_size(self, size: int) -> None:
        """Add `size` bytes to the size of the response. Raises UnsupportedOperation above the limit."""
        self._told_bytes += size
        if self._told_bytes > RESPONSE_BYTES_MAX:
            raise UnsupportedOperation(RESPONSE_TOO_LARGE)

    async def _write(self, each: SpanTask) -> list[Json]:
        """Return the restricted files of a span of a data file, and write them unless another plan has."""
        question = span_question(self._specification, each, scan=self._scan, place=self._scanned.place)
        question |= {"into": self._into, "properties": self._scanned.place.catalog.properties}

        async def rewrite() -> bytes:
            answer, size = await SCAN_OFFLOADER.of(self._ctx.services).do(
                "restrict-file", msgspec.json.encode(question), caller=rewriting_caller(self._scanned.requester.name)
            )
            await self._spending.add(int(size))
            return answer

        key = (self._into.encode(), each.name.encode())  # plans that need the same files share one rewrite
        description: Json = msgspec.json.decode(await REWRITES.of(self._ctx.services).call(key, rewrite))
        files = description["files"]
        assert isinstance(files, list)  # noqa: S101 - the worker writes a list
        return files

    def _task(self, fields: Json) -> bytes:
        """Encode a rewritten file as a scan task, with the reader's filter and the requested statistics."""
        file: Json = {
            "spec-id": 0,
            "content": "data",
            "file-path": fields["file-path"],
            "file-format": "parquet",
            "partition": [],
            "file-size-in-bytes": fields["file-size-in-bytes"],
            "record-count": fields["record-count"],
        }
        for name in _STATISTICS:
            values = fields.get(name)
            entries = (
                [each for each in zip(values["keys"], values["values"], strict=True) if each[0] in self._wanted]
                if isinstance(values, dict)
                else []
            )
            if entries:
                keys, spelled = zip(*entries, strict=True)
                file[name] = {"keys": keys, "values": spelled}
        return msgspec.json.encode({"data-file": file, "residual-filter": self._residual})


def rewriting_caller(user: str) -> str:
    """Return the name under which a user's rewrites wait for a process: the user's scans do not wait behind them."""
    return f"{user} (restricted files)"


def span_question(specification: Json, each: SpanTask, *, scan: TableScan, place: CatalogStorage) -> Json:
    """Return the request to write a span, as JSON, without the directory and the properties of file stores."""
    return {
        "shape": specification,
        "task": each.task,
        "deletes": each.deletes,
        "span": each.span,
        "roots": scan.roots,
        "name": each.name,
        "kept": place.allowed.own_directories,
        "open_within": place.allowed.open_within,
    }


async def find_spans(
    ctx: Context, place: CatalogStorage, *, into: str, names: Sequence[str]
) -> list[list[Json] | None]:
    """Return the files of at most `FOUND_AT_ONCE` spans in a directory by their names; None for each span without."""
    question = {"into": into, "names": names, "properties": place.catalog.properties}
    (answer,) = await SCAN_OFFLOADER.of(ctx.services).do("restrict-find", msgspec.json.encode(question))
    return msgspec.json.decode(answer, type=list[list[Json] | None])


def require_warehouse(scanned: ScanTarget) -> None:
    """Raise UnsupportedOperation if the server may not use the catalog's warehouse."""
    if scanned.place.home is None:
        raise UnsupportedOperation(
            "This server may not use the catalog's warehouse, so restricted users cannot read its tables"
        )


async def restricted_credentials(ctx: Context, place: CatalogStorage, *, into: str) -> VendedCredentials | None:
    """Return credentials that can only read the rewritten files in `into`; None if the catalog vends no credentials."""
    request = credential_request_of(place, into, rights=READS)
    if request is None:
        return None
    result = await VENDOR.of(ctx.services).issue_credentials(request)
    return VendedCredentials(result, into, READS, place.catalog.properties)


async def binding_credentials(
    ctx: Context, document: MetadataDocument, *, place: CatalogStorage, bound: BoundRestrictions
) -> VendedCredentials | None:
    """Return credentials that can only read the files that plans write for the caller's restrictions of a table.

    They are for clients that ignore the credentials of a plan (decision record 0233). None if the catalog vends none,
    or if the server may not use its warehouse.
    """
    if place.home is None or not is_vending(place.catalog.properties):
        return None
    location = binding_location(place.home, bound, table_id=document.node_id)
    return await restricted_credentials(ctx, place, into=location)


REWRITES: ComponentKey[RequestCoalescer] = ComponentKey("rewrites", lambda _: RequestCoalescer())
