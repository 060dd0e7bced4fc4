# SPDX-License-Identifier: Apache-2.0
"""The admin API and the root as a protocol: routes with their full paths, and the error body.

It is the last protocol and handles the errors of unknown paths.
"""

from __future__ import annotations

from limnos.http.admin import documentation, pages, service
from limnos.http.admin.activity import audit, changes, exchange, jobs, lineage, pipelines, reports, runs, webhooks
from limnos.http.admin.catalog import (
    children,
    declared_objects,
    filesets,
    moves,
    nesting,
    previews,
    searches,
    table_checks,
    transactions,
    trash,
)
from limnos.http.admin.errors import error_response
from limnos.http.admin.governance import protection, restrictions
from limnos.http.admin.identity import access, console_codes, groups, logins, service_accounts, tokens, users
from limnos.http.admin.operation import maintenance, nodes, rewrites, storage, tasks
from limnos.http.idempotency import IdempotencyTerms, IdempotentRoute, make_idempotent
from limnos.http.parameters import scope_of_path
from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route, Router
from limnos.model.errors import LimnosError
from limnos.model.kinds import Kind
from limnos.names.path import Levels
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope

_MODULES = (
    pages,
    documentation,
    service,
    changes,
    children,
    searches,
    exchange,
    webhooks,
    moves,
    nesting,
    protection,
    restrictions,
    reports,
    previews,
    filesets,
    declared_objects,
    table_checks,
    maintenance,
    rewrites,
    pipelines,
    runs,
    lineage,
    trash,
    groups,
    jobs,
    users,
    tokens,
    storage,
    logins,
    console_codes,
    service_accounts,
    tasks,
    nodes,
    transactions,
    access,
    audit,
)


KEYED = {"transaction": IdempotentRoute(200, has_files=True)}
"""Operations that accept an `Idempotency-Key`: those that change several objects at once."""


def _make_idempotent(route: Route[Handler]) -> Route[Handler]:
    terms = IdempotencyTerms(
        lambda request, _: scope_of_path(route.path, request),
        lambda error, request, _: error_response(error, request_id=request.id),
    )
    return make_idempotent(route, KEYED[route.operation], terms)


class AdminProtocol:
    """The admin API and the routes at the root, as a protocol of the HTTP application."""

    name = "admin"
    anonymous = service.ANONYMOUS | pages.ANONYMOUS | documentation.ANONYMOUS | logins.ANONYMOUS

    def __init__(self) -> None:
        routes = [route for module in _MODULES for route in module.ROUTES]
        self.router: Router[Handler] = Router(
            "", [_make_idempotent(route) if route.operation in KEYED else route for route in routes]
        )

    def place_of(self, path: str, request: Request, *, ctx: Context) -> tuple[RequestScope, Kind | None, Levels]:
        """Return the scope of a path (the server, a metalake or a catalog), with no object: kind None and an empty
        path.
        """
        if path in lineage.ANY_METALAKE:
            return RequestScope(lineage.metalake_of(request, ctx)), None, ()
        return scope_of_path(path, request), None, ()

    def error(self, error: LimnosError, *, request_id: str, operation: str) -> Response:
        """Convert an error to the JSON error response of the admin API."""
        return error_response(error, request_id=request_id)
