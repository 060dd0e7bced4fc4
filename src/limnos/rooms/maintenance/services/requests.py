# SPDX-License-Identifier: Apache-2.0
"""Requests for operations on tables: the format of the table determines the executor of an operation.

Must not know any wire format. The server itself maintains Lance tables. Of Iceberg tables it expires snapshots and
removes orphan files, and executors rewrite their files.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final, NamedTuple

from limnos.model.errors import BadRequest
from limnos.names.path import Levels
from limnos.rooms.maintenance.formats.row_retention import RETENTION
from limnos.rooms.maintenance.services.lance.operations import LANCE_KINDS, lance_request
from limnos.rooms.maintenance.services.operations import EXPIRE, expiry_request
from limnos.rooms.maintenance.services.orphans.requests import orphans_request
from limnos.rooms.maintenance.services.orphans.rounds import ORPHANS
from limnos.rooms.maintenance.services.rewriting.kinds import KINDS
from limnos.rooms.maintenance.services.rewriting.planning import rewrite_request
from limnos.rooms.maintenance.services.rewriting.row_retention import retention_request
from limnos.rooms.maintenance.services.table_access import catalog_require
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView
from limnos.services.request.table_formats import LANCE, format_of, least_levels, levels_within

_ICEBERG: Final[Mapping[str, Callable[..., Awaitable[int]]]] = {
    EXPIRE: expiry_request,
    ORPHANS: orphans_request,
    **{kind: partial(rewrite_request, kind=kind) for kind in KINDS},
    RETENTION: retention_request,
}
ICEBERG_KINDS: Final = tuple(_ICEBERG)
OPERATION_KINDS: Final = tuple(dict.fromkeys((*ICEBERG_KINDS, *LANCE_KINDS)))
"""All kinds of operations that a user may request."""


class TableTarget(NamedTuple):
    """The table of a request: its path below the catalog, and the format of the catalog's tables."""

    path: Levels
    table_format: str


def table_target(request_view: RequestView, path: Levels) -> TableTarget:
    """Return the table that a path names, with its format. A Lance table may lie directly in its catalog.

    Raises PermissionDenied, BadRequest for a path without a namespace.
    """
    if len(path) < least_levels(request_view) or not path[-1]:
        catalog_require(request_view)
        raise BadRequest("Name a table with its namespace: one begins after the catalog, as raw.trips")
    table_format = format_of(request_view)
    if table_format == LANCE:
        path = (*levels_within(request_view, path[:-1]), path[-1])
    return TableTarget(path, table_format)


async def operation_start(ctx: Context, scope: RequestScope, *, path: Levels, kind: str) -> int:
    """Request an operation on a table on behalf of the caller. Returns the id of the operation, new or already open.

    Raises as `operation_request`, and BadRequest for a kind that tables of this format do not have.
    """

    def look(request_view: RequestView) -> TableTarget:
        target = table_target(request_view, path)
        if kind not in OPERATION_KINDS:
            catalog_require(request_view)
            kinds = ", ".join(OPERATION_KINDS)
            raise BadRequest(f"'{kind[:50]}' is not an operation on tables: use one of {kinds}")
        return target

    target = await ctx.read(scope, look)
    if target.table_format == LANCE:
        return await lance_request(ctx, scope, path=target.path, kind=kind)
    if kind not in _ICEBERG:
        raise BadRequest(f"Only Lance tables have the operation {kind}: use one of {', '.join(_ICEBERG)}")
    return await _ICEBERG[kind](ctx, scope, path=target.path)
