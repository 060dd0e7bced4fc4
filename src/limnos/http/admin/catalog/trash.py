# SPDX-License-Identifier: Apache-2.0
"""The trash of a catalog: list, restore and forget dropped objects.

Has no business rules.
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
from limnos.names import display
from limnos.names.parts import check_some_levels
from limnos.names.path import Levels
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.upkeep import trash

_TRASH = "/api/limnos/v1/metalakes/{m}/catalogs/{c}/trash"


class UndropRequest(AdminRequestBody, frozen=True):
    """A request to restore a dropped object.

    `to` is the target path: names below the catalog, outermost first; by default the old path. `contents` restores the
    contents of the object, too.
    """

    to: list[str] | None = None
    contents: bool = False


async def trash_list(request: Request, ctx: Context) -> Response:
    """Return a page of the dropped objects that the caller may restore, newest first; optionally `below` a path.

    `restrictions` names restrictions and denials that stay with the path, for callers who may grant on the object. A
    page has at most `limit` objects; `before` is the page token that the previous page returned.
    """
    metalake, catalog = names_of(request)
    page = await trash.trash_list(
        ctx,
        RequestScope(metalake, catalog),
        below=_parse_below(request),
        before=_before(request),
        limit=_limit(request),
    )
    results = [
        {
            "id": each.row.id,
            "kind": each.row.kind.word,
            "path": [catalog, *each.path],
            "dropped_by": each.row.dropped_by,
            "dropped_at": instant(each.row.dropped_at),
            "expires_at": instant(each.row.expires_at),
            "restrictions": each.restrictions,
        }
        for each in page.entries
    ]
    mark = None if page.following is None else "-".join(map(str, page.following))
    return json_response({"trash": results, "before": mark})


async def undrop(request: Request, ctx: Context) -> Response:
    """Restore a dropped object. Returns its path, and the counts of restored and skipped objects in it."""
    metalake, catalog, text = names_of(request)
    body = Request.decode(await request.body() or b"{}", UndropRequest)
    to = None if body.to is None else check_some_levels(body.to)
    result = await trash.trash_restore(
        ctx, RequestScope(metalake, catalog), dropped_id=number_of(text) or 0, to=to, contents=body.contents
    )
    return json_response(
        {"kind": result.kind.word, "path": [catalog, *result.path], "contents": result.contents, "left": result.left}
    )


async def trash_forget(request: Request, ctx: Context) -> Response:
    """Remove an object from the trash before it expires, without deleting its files. Only the caller may then reuse its
    location.
    """
    metalake, catalog, text = names_of(request)
    number = number_of(text) or 0
    await trash.trash_forget(ctx, RequestScope(metalake, catalog), dropped_id=number)
    return json_response({"forgotten": number})


def _parse_below(request: Request) -> Levels:
    text = request.query("below")
    return tuple(display.parse(text)) if text else ()


def _before(request: Request) -> tuple[int, int]:
    at, dash, number = (request.query("before") or "").partition("-")
    if not at and not dash:
        return trash.NEWEST
    mark = number_of(at), number_of(number)
    if mark[0] is None or mark[1] is None:
        raise BadRequest(f"'{request.query('before')}' is not a page token: send the 'before' of the previous page")
    return mark[0], mark[1]


def _limit(request: Request) -> int:
    text = request.query("limit") or str(trash.PAGE_MAX)
    limit = number_of(text)
    if not limit:
        raise BadRequest(f"limit must be a number from 1 to {trash.PAGE_MAX}, not '{text[:20]}'")
    return limit


ROUTES: tuple[Route[Handler], ...] = (
    Route(method="GET", path=_TRASH, handler=trash_list, operation="list-trash", query=("below", "before", "limit")),
    Route(method="DELETE", path=f"{_TRASH}/{{id}}", handler=trash_forget, operation="forget-trash"),
    Route(method="POST", path=f"{_TRASH}/{{id}}/undrop", handler=undrop, operation="undrop"),
)
