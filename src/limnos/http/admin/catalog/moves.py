# SPDX-License-Identifier: Apache-2.0
"""Moves: change the name or parent of a table, a view, or a namespace with its subtree, within one catalog.

Has no business rules.
"""

from __future__ import annotations

from typing import Literal

from limnos.http.admin.bodies import AdminRequestBody, names_of
from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.names.parts import check_some_levels
from limnos.services.catalog.namespaces import namespace_move
from limnos.services.catalog.tables import table_move
from limnos.services.catalog.views import view_move
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope


class MoveRequest(AdminRequestBody, frozen=True):
    """The body of a move: the object's current and new path, each as names below the catalog, outermost first."""

    kind: Literal["namespace", "table", "view"]
    source: list[str]
    target: list[str]


async def move(request: Request, ctx: Context) -> Response:
    """Move an object, and return its new path."""
    metalake, catalog = names_of(request)
    body = Request.decode(await request.body(), MoveRequest)
    source, target = check_some_levels(body.source), check_some_levels(body.target)
    scope = RequestScope(metalake, catalog)
    if body.kind == "table":
        await table_move(ctx, scope, source=source, target=target)
    elif body.kind == "view":
        await view_move(ctx, scope, source=source, target=target)
    else:
        await namespace_move(ctx, scope, source=source, target=target)
    return json_response({"kind": body.kind, "path": [catalog, *target]})


ROUTES: tuple[Route[Handler], ...] = (
    Route(method="POST", path="/api/limnos/v1/metalakes/{m}/catalogs/{c}/move", handler=move, operation="move"),
)
