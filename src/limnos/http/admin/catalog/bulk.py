# SPDX-License-Identifier: Apache-2.0
"""Bulk: many independent changes of a metalake in one request, one JSON object a line, each with its outcome as a line.

Has no business rules. A client sends a long job in parts, in order, and continues it by sending a part again.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Final

import msgspec

from limnos.access.actions import Action
from limnos.http.admin.bodies import names_of
from limnos.http.admin.catalog.bulk_item import ItemBody
from limnos.http.admin.catalog.bulk_items import AnyItem
from limnos.http.admin.catalog.item_audit import audit_item_error, request_of_item
from limnos.http.admin.errors import error_fields
from limnos.http.admin.numbers import number_of
from limnos.http.request import Request
from limnos.http.response import Response, begun_stream_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.model.errors import BadRequest, LimnosError
from limnos.services.request.context import Context
from limnos.services.transactions.bulk_jobs import (
    ITEMS_MAX,
    BulkItem,
    ItemOutcome,
    PlacedItem,
    bulk_run,
    bulk_run_atomic,
    check_job,
)
from limnos.services.transactions.transactions import require_member

_PART_S: Final = 120.0
"""The time limit of a few items, in seconds: each may refer to a metadata file, which is read."""
_LINES = ((b"content-type", b"application/x-ndjson"),)
_REFUSED: Final = "refused"


async def bulk(request: Request, ctx: Context) -> Response:
    """Execute the items of a part of a `job`, which follow its first `after` items. Streams an outcome for each item,
    and a line with the counts. The response begins with the first outcomes, so a store that fails before them is a 503.

    `atomic=true` executes all items of a catalog or none, and refuses the request as its first refused item.
    """
    (metalake,) = names_of(request)
    await require_member(ctx, metalake)
    job, after = check_job(request.query("job")), number_of(request.query("after") or "0")
    if after is None:
        raise BadRequest("after must be the number of the job's items before these")
    atomic = request.query_flag("atomic")
    body = await request.body()
    lines = [line for line in body.split(b"\n") if line.strip()]
    if not 0 < len(lines) <= ITEMS_MAX:
        raise BadRequest(f"A request has 1 to {ITEMS_MAX} items, one JSON object a line, not {len(lines)}")
    if atomic:
        return await _atomic(ctx, metalake, job=job, lines=lines)
    items = [_decode_item(line, position=position) for position, line in enumerate(lines, after)]
    return await begun_stream_response(_outcomes(request, ctx, metalake=metalake, job=job, items=items), _LINES)


def _decode_item(line: bytes, *, position: int) -> PlacedItem:
    """Decode an item. One that cannot be decoded has its error in place of the item."""
    item: BulkItem | BadRequest
    try:
        item = Request.decode(line, AnyItem)  # type: ignore[arg-type]  # a union of structs is a type for msgspec
    except BadRequest as error:
        item = error
    return PlacedItem(position, line, item)


async def _outcomes(
    request: Request, ctx: Context, *, metalake: str, job: str, items: Sequence[PlacedItem]
) -> AsyncGenerator[bytes, None]:
    counts = {"made": 0, "same": 0, _REFUSED: 0, "failed": 0}
    requester = partial(request_of_item, request)
    async for outcomes in bulk_run(ctx, metalake, job=job, items=items, new_requester=requester):
        for each in outcomes:
            counts[each.state] += 1
            _record(request, ctx, outcome=each)
        yield b"".join([_encode(each, request.id) for each in outcomes])
    yield msgspec.json.encode({"items": len(items), **counts}) + b"\n"


def _record(request: Request, ctx: Context, *, outcome: ItemOutcome) -> None:
    """Record a refused item in the audit as a single request. Transactions have recorded the changes."""
    if outcome.requester is None and outcome.error is None:
        return
    own = outcome.requester or request_of_item(request)
    if not isinstance(own, Request):
        return
    request.has_changed = request.has_changed or own.has_changed
    if outcome.error is not None:
        audit_item_error(own, ctx, error=outcome.error)


def _encode(outcome: ItemOutcome, request_id: str) -> bytes:
    fields: dict[str, object] = {"index": outcome.placed.position, "outcome": outcome.state}
    if outcome.is_repeated:
        fields["repeated"] = True
    if outcome.error is not None:
        fields |= error_fields(outcome.error)
        fields["request_id"] = request_id
    return msgspec.json.encode(fields) + b"\n"


async def _atomic(ctx: Context, metalake: str, *, job: str, lines: list[bytes]) -> Response:
    operations, catalogs = [], set[str]()
    for number, line in enumerate(lines):
        try:
            item: ItemBody = Request.decode(line, AnyItem)  # type: ignore[arg-type]  # as above
            operations.append(item.to_operation())
            catalogs.add(item.catalog)
        except LimnosError as error:
            raise BadRequest(f"Item {number}: {error}") from error
    if len(catalogs) > 1:
        raise BadRequest(f"The items of an all-or-nothing job are in one catalog, not in {len(catalogs)}: send several")
    is_new = await bulk_run_atomic(
        ctx, metalake, job=job, text=b"\n".join(lines), catalog=catalogs.pop(), operations=operations
    )
    again: dict[str, object] = {} if is_new else {"repeated": True}
    outcomes = [msgspec.json.encode({"index": number, "outcome": "made", **again}) for number in range(len(lines))]
    counts = {"items": len(lines), "made": len(lines), "same": 0, _REFUSED: 0, "failed": 0}
    return Response(200, b"\n".join([*outcomes, msgspec.json.encode(counts), b""]), _LINES)


ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="POST",
        path="/api/limnos/v1/metalakes/{m}/bulk",
        handler=bulk,
        operation="bulk",
        query=("job", "after", "atomic"),
        deadline_s=_PART_S,
        takes="any",
        asks=(
            Action.TABLE_REGISTER,
            Action.NAMESPACE_CREATE,
            Action.NAMESPACE_ALTER,
            Action.NAMESPACE_DROP,
            Action.TABLE_CREATE,
            Action.TABLE_ALTER,
            Action.TABLE_DROP,
            Action.VIEW_DROP,
            Action.FILESET_CREATE,
            Action.FILESET_ALTER,
            Action.FILESET_DROP,
            Action.MODEL_CREATE,
            Action.MODEL_ALTER,
            Action.MODEL_LINK,
            Action.MODEL_DROP,
            Action.TAG_CREATE,
            Action.TAG_APPLY,
            Action.POLICY_APPLY,
            Action.PRIVILEGE_GRANT,
            Action.ROLE_CREATE,
            Action.ROLE_ASSIGN,
            Action.USER_MANAGE,
            Action.GROUP_MANAGE,
            Action.GROUP_MEMBERS,
            Action.OWNER_SET,
        ),
    ),
)
