# SPDX-License-Identifier: Apache-2.0
"""The spans of an operation that writes restricted files, for the executor that has leased it.

Must not know any wire format. Only the operation's token opens them, while its lease lasts. Each node computes the
spans from the stored recipe, and keeps them for a while. An executor gets no secret of the catalog. Decision record
0337.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from limnos.access.actions import Action
from limnos.files import is_local, parse
from limnos.formats.iceberg.json_types import Json, as_object
from limnos.model.entities import MetadataDocument
from limnos.model.errors import BadRequest, PermissionDenied, UnsupportedOperation
from limnos.rooms.maintenance.services.rewriting.kinds import RESTRICTED_FILES, RewriteOptions
from limnos.rooms.maintenance.services.table_access import catalog_require, maintained_table
from limnos.services.iceberg.policy_enforcement import READS, find_spans, rewrite_specification, span_question
from limnos.services.iceberg.scans import ScanTarget, TableScan, scan_of
from limnos.services.iceberg.spans.executors import FOUND_AT_ONCE, SpanRecipe
from limnos.services.iceberg.spans.names import SpanNamer, SpanTask
from limnos.services.request.catalog_storage import CatalogStorage, catalog_storage_of
from limnos.services.request.context import Context
from limnos.services.request.node_services import ComponentKey
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.vending.credentials import BOTH, VENDOR, credential_request_of
from limnos.sources.credentials import FileRights
from limnos.store.activity.maintenance import ancestors_read, operation_read
from limnos.store.activity.rewrites import LeaseRow, lease_by_token, options_read
from limnos.store.ancestry import path_of
from limnos.store.objects.restricted_reads import is_directory_needed

LIMIT_MAX: Final = 64
"""The maximum number of spans in one response."""
PLANS_MAX: Final = 4
"""The number of operations whose spans a node keeps."""
_NOT_THE_LEASE: Final = "Only the executor that has leased this operation may use its spans, with the operation's token"
_LEASE_OVER: Final = "The lease of this operation has expired: another executor may have it now"
_PASSED_ON: Final[Mapping[str, frozenset[str]]] = {
    "s3": frozenset(
        (
            *("s3.endpoint", "s3-endpoint", "s3.region", "client.region", "s3-region"),
            *("s3.path-style-access", "s3-path-style-access"),
            *("s3.access-key-id", "s3.secret-access-key", "s3.session-token"),
        )
    ),
    "gs": frozenset(("gcs.oauth2.token", "gcs.service.host", "gcs-endpoint", "gcs.project-id")),
    "abfs": frozenset(("adls.account-name", "azure-storage-account-name", "adls.account-host", "adls.sas-token")),
}
"""The properties that executors get, by scheme: the connection, and names under which credentials are vended."""


class LeasedPlan(NamedTuple):
    """A leased operation that writes restricted files: its lease, its recipe, and the table."""

    lease: LeaseRow
    recipe: SpanRecipe
    document: MetadataDocument
    place: CatalogStorage

    @property
    def scanned(self) -> ScanTarget:
        """The scan of the plan, without the restrictions: the rewritten files have them."""
        recipe = self.recipe
        return ScanTarget(
            requester=recipe.requester, document=self.document, place=self.place, request=recipe.request, bound=None
        )

    @property
    def directory(self) -> str:
        """The directory to which the executor writes."""
        return f"{self.recipe.directory}/x{self.lease.operation_id}"


class SpanPlan(NamedTuple):
    """The spans of an operation in their order, and the requests for them; `numbers` are by the spans' names."""

    spans: Sequence[SpanTask]
    numbers: Mapping[str, int]
    scan: TableScan
    specification: Json

    def question(self, number: int, *, place: CatalogStorage) -> Json:
        """Return the request for a span, without directory and properties."""
        return span_question(self.specification, self.spans[number], scan=self.scan, place=place)


class SpanEntry(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a request that differs from span to span."""

    number: int
    name: str
    task: Json
    deletes: list[Json]
    span: tuple[int, int]


class SpanBatch(msgspec.Struct, frozen=True):
    """Spans to write, and the part of their requests that is the same for all; no spans if none is left."""

    spans: tuple[SpanEntry, ...]
    common: Json


async def spans_load(ctx: Context, scope: RequestScope, *, operation: int, after: int, limit: int) -> SpanBatch:
    """Return the next spans of a leased operation whose files are not written yet.

    Args:
        ctx: The request, with the operation's token.
        scope: The catalog.
        operation: The operation.
        after: The number of the last span of the executor; -1 for none.
        limit: The maximum number of spans.

    Raises:
        NotFound: The catalog or the table is missing.
        PermissionDenied: The caller has another token, the lease has expired, or the operation's user may no longer
            read or modify the table.
        BadRequest: The operation writes no restricted files, or a number is not allowed.
        UnsupportedOperation: No credentials can be vended for the table's locations.
    """
    leased = await plan_require(ctx, scope, operation=operation)
    if after < -1 or not 0 < limit <= LIMIT_MAX:
        raise BadRequest(f"Give the number of the last span as after, -1 for none, and a limit from 1 to {LIMIT_MAX}")
    now_ms = ctx.services.store.time.now_ms()
    directory = leased.recipe.directory
    if not await ctx.look_up(lambda: is_directory_needed(directory, now_ms=now_ms)):
        return SpanBatch((), {})
    plan = await plan_of(ctx, leased)
    numbers = await _missing(ctx, leased, plan=plan, after=after, limit=limit)
    if not numbers:
        PLANS.of(ctx.services).pop(operation, None)
        return SpanBatch((), {})
    common = plan.question(numbers[0], place=leased.place)
    for name in ("task", "deletes", "span", "name"):
        del common[name]
    spans = [(number, plan.spans[number]) for number in numbers]
    entries = [
        SpanEntry(number=number, name=each.name, task=each.task, deletes=each.deletes, span=each.span)
        for number, each in spans
    ]
    credentials = await executor_credentials(ctx, leased.place, into=leased.directory, roots=plan.scan.roots)
    return SpanBatch(tuple(entries), common | {"into": leased.directory, "credentials": credentials})


async def plan_require(ctx: Context, scope: RequestScope, *, operation: int) -> LeasedPlan:
    """Return the operation that the caller's token opens, and its table. Raises as `spans_load`."""

    def look_at_token(request_view: RequestView) -> int:
        catalog_require(request_view)
        if request_view.operation_token is None:
            raise PermissionDenied(_NOT_THE_LEASE)
        return request_view.operation_token.id

    token_id = await ctx.read(scope, look_at_token)
    lease = await ctx.look_up(lambda: lease_by_token(token_id))
    if lease is None or lease.expires_at <= ctx.services.store.time.now_ms():
        raise PermissionDenied(_LEASE_OVER)
    if lease.operation_id != operation:
        raise PermissionDenied(_NOT_THE_LEASE)
    row = await ctx.look_up(lambda: operation_read(operation))
    options = await ctx.look_up(lambda: options_read(operation))
    recipe = None if options is None else msgspec.json.decode(options, type=RewriteOptions).spans
    if row is None or row.kind != RESTRICTED_FILES or recipe is None:
        raise BadRequest(f"Operation {operation} has no spans: it writes no files for restricted users")
    path = path_of(lease.node_id, await ctx.look_up(lambda: ancestors_read([lease.node_id])))

    def look(request_view: RequestView) -> LeasedPlan:
        table_path = () if path is None else path[1:]
        node, chain, _ = maintained_table(request_view, table_path, action=Action.TABLE_REWRITE)
        request_view.require(Action.TABLE_READ, chain)
        if node.id != lease.node_id:
            raise PermissionDenied(_NOT_THE_LEASE)
        return LeasedPlan(lease, recipe, request_view.document(node.id), catalog_storage_of(request_view))

    return await ctx.read(scope, look)


async def plan_of(ctx: Context, leased: LeasedPlan) -> SpanPlan:
    """Return the spans of an operation, computed once on each node.

    They are those of the table when they are computed. A reader who plans later for another snapshot gets the files
    that both have in common.
    """
    plans, operation = PLANS.of(ctx.services), leased.lease.operation_id
    plan = plans.get(operation)
    if plan is None:
        plan = await _compute(ctx, leased)
        while len(plans) >= PLANS_MAX:
            del plans[next(iter(plans))]
        plans[operation] = plan
    return plan


async def _compute(ctx: Context, leased: LeasedPlan) -> SpanPlan:
    scanned = leased.scanned
    scan = await scan_of(ctx, scanned)
    specification = await rewrite_specification(ctx, scanned, bound=leased.recipe.bound, query="")
    namer = SpanNamer(specification)
    spans: list[SpanTask] = []
    for part in scan.parts(await scan.needed_manifests()):
        scan_tasks = await scan.tasks(part)
        tasks: list[Json] = msgspec.json.decode(b"[" + scan_tasks.files + b"]")
        deletes: list[Json] = msgspec.json.decode(b"[" + scan_tasks.deletes + b"]")
        for task in tasks:
            size = int(str(as_object(task["data-file"], "data-file")["file-size-in-bytes"]))
            spans += namer.spans(task, deletes=deletes, size=size)
            await asyncio.sleep(0)  # a plan of many files must not hold up other requests
    return SpanPlan(spans, {each.name: number for number, each in enumerate(spans)}, scan, specification)


async def _missing(ctx: Context, leased: LeasedPlan, *, plan: SpanPlan, after: int, limit: int) -> list[int]:
    """Return the numbers of the next spans without files."""
    numbers: list[int] = []
    for first in range(after + 1, len(plan.spans), FOUND_AT_ONCE):
        names = [each.name for each in plan.spans[first : first + FOUND_AT_ONCE]]
        results = await find_spans(ctx, leased.place, into=leased.recipe.directory, names=names)
        numbers += [first + at for at, files in enumerate(results) if files is None]
        if len(numbers) >= limit:
            break
    return numbers[:limit]


async def executor_credentials(
    ctx: Context, place: CatalogStorage, *, into: str, roots: Sequence[str]
) -> dict[str, dict[str, str]]:
    """Return the properties for each location: to read those of the table, and to write to the operation's directory.

    They have vended credentials and no secret of the catalog. Files on a disk need none. Raises UnsupportedOperation if
    no credentials can be vended for a location, and as `issue_credentials`.
    """
    location_rights: dict[str, FileRights] = {into: BOTH, **dict.fromkeys(roots, READS)}
    results: dict[str, dict[str, str]] = {}
    for location, rights in location_rights.items():
        if is_local(location):
            continue
        request = credential_request_of(place, location, rights=rights)
        if request is None:
            raise UnsupportedOperation(
                "The catalog vends no credentials for a location of the table, so no executor can read it: the server"
                " writes the files"
            )
        issued = await VENDOR.of(ctx.services).issue_credentials(request)
        names = _PASSED_ON.get(parse(location).scheme, frozenset())
        properties = issued.client_properties(place.catalog.properties)
        results[location] = {name: value for name, value in properties.items() if name in names}
    return results


PLANS: ComponentKey[dict[int, SpanPlan]] = ComponentKey("span plans", lambda _: dict[int, SpanPlan]())
"""The spans of operations on this node, the last computed last."""
