# SPDX-License-Identifier: Apache-2.0
"""Namespaces whose names contain the separator: find and rename them, so that namespaces may nest.

Has no business rules. Each request changes one batch of names; the client repeats it until all are done.
"""

from __future__ import annotations

from limnos.http.admin.bodies import AdminRequestBody, names_of
from limnos.http.admin.numbers import number_of
from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.http.times import instant
from limnos.model.errors import BadRequest
from limnos.services.catalog import nesting
from limnos.services.catalog.nesting import PlannedRename
from limnos.services.catalog.nesting_steps import NestingProgress
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope

_NAMES = "/api/limnos/v1/metalakes/{m}/catalogs/{c}/names"
_CHANGES = f"{_NAMES}/changes"


class NestingPlanRequest(AdminRequestBody, frozen=True):
    """The body of a request to plan the renames: the separator that names must not contain (by default the server's),
    its replacement, and whether namespaces will nest.
    """

    separator: str | None = None
    replacement: str = "_"
    nested: bool = True


class NestingAdvanceRequest(AdminRequestBody, frozen=True):
    """The target state of the names: `planned`, `migrated` or `undone`."""

    to: str


async def names_check(request: Request, ctx: Context) -> Response:
    """Return the count of namespaces whose names contain `separator` (by default the server's), and the first of these
    names.
    """
    metalake, catalog = names_of(request)
    check = await nesting.nesting_check(
        ctx, RequestScope(metalake, catalog), separator=request.query("separator"), limit=_limit(request)
    )
    body = {"nested": check.nested, "separator": check.separator, "conflicts": check.conflicts}
    return json_response({**body, "names": list(check.names), "free": list(check.free)})


async def names_plan(request: Request, ctx: Context) -> Response:
    """Plan the renames, and replace an older plan. Changes no name yet. A long plan needs several requests."""
    metalake, catalog = names_of(request)
    body = Request.decode(await request.body() or b"{}", NestingPlanRequest)
    progress = await nesting.nesting_plan(
        ctx, RequestScope(metalake, catalog), separator=body.separator, replacement=body.replacement, nested=body.nested
    )
    return json_response(_progress(progress))


async def names_show(request: Request, ctx: Context) -> Response:
    """Return the progress of the renames, with a page of at most `limit` names after the page token `after`."""
    metalake, catalog = names_of(request)
    limit = _limit(request)
    after = number_of(request.query("after") or "0")
    if after is None:
        raise BadRequest("after must be the page token 'after' of the previous page")
    progress, changes = await nesting.nesting_load(ctx, RequestScope(metalake, catalog), after=after, limit=limit)
    mark = changes[-1].mark if len(changes) == limit else None
    return json_response({**_progress(progress), "changes": [_change(each) for each in changes], "after": mark})


async def names_go_on(request: Request, ctx: Context) -> Response:
    """Execute the next batch towards the target state, and return the progress. Repeat until it is `done`."""
    metalake, catalog = names_of(request)
    body = Request.decode(await request.body(), NestingAdvanceRequest)
    progress = await nesting.nesting_continue(ctx, RequestScope(metalake, catalog), to=body.to)
    return json_response({**_progress(progress), "done": progress.is_done(body.to)})


async def names_confirm(request: Request, ctx: Context) -> Response:
    """Delete a plan, or the record of the old names by which executed renames could be undone."""
    metalake, catalog = names_of(request)
    await nesting.nesting_confirm(ctx, RequestScope(metalake, catalog))
    return json_response({"confirmed": catalog})


def _progress(progress: NestingProgress) -> dict[str, object]:
    head = progress.migration
    return {
        "state": head.state,
        "separator": head.separator,
        "replacement": head.replacement,
        "nests": head.nests,
        "planned_by": head.planned_by,
        "planned_at": instant(head.planned_at),
        "total": progress.total,
        "renamed": progress.renamed,
        "nested": progress.nested,
        "left": progress.left,
    }


def _change(change: PlannedRename) -> dict[str, object]:
    path = None if change.path is None else list(change.path)
    return {"name": change.name, "new_name": change.new_name, "path": path, "step": change.step}


def _limit(request: Request) -> int:
    text = request.query("limit") or str(nesting.SHOWN_MAX)
    limit = number_of(text)
    if not limit or limit > nesting.SHOWN_MAX:
        raise BadRequest(f"limit must be a number from 1 to {nesting.SHOWN_MAX}, not '{text[:20]}'")
    return limit


ROUTES: tuple[Route[Handler], ...] = (
    Route(method="GET", path=_NAMES, handler=names_check, operation="check-names", query=("separator", "limit")),
    Route(method="GET", path=_CHANGES, handler=names_show, operation="show-name-changes", query=("after", "limit")),
    Route(method="PUT", path=_CHANGES, handler=names_plan, operation="plan-name-changes"),
    Route(method="POST", path=_CHANGES, handler=names_go_on, operation="change-names"),
    Route(method="DELETE", path=_CHANGES, handler=names_confirm, operation="confirm-name-changes"),
)
