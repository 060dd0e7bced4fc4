# SPDX-License-Identifier: Apache-2.0
"""The admin API and the root as a protocol: routes with their full paths, and the error body.

It is the last protocol and handles the errors of unknown paths.
"""

from __future__ import annotations

from collections.abc import Iterable

from limnos.http.admin import documentation, pages, service
from limnos.http.admin.activity import audit, changes, reports, webhooks
from limnos.http.admin.catalog import (
    batch_loads,
    bulk,
    children,
    declared_objects,
    filesets,
    moves,
    nesting,
    previews,
    table_checks,
    transactions,
    trash,
)
from limnos.http.admin.errors import error_response
from limnos.http.admin.governance import access_requests, protection, restrictions
from limnos.http.admin.identity import access, groups, logins, service_accounts, tokens, users
from limnos.http.admin.operation import nodes, storage, tasks
from limnos.http.idempotency import IdempotencyTerms, IdempotentRoute, make_idempotent
from limnos.http.parameters import scope_of_path
from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.route_targets import Handler, routes_of
from limnos.http.routing import Route, Router
from limnos.manifests.manifest import Manifest
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
    batch_loads,
    trash,
    groups,
    users,
    tokens,
    storage,
    logins,
    service_accounts,
    tasks,
    nodes,
    transactions,
    bulk,
    access,
    access_requests,
    audit,
)


KEYED = {
    "transaction": IdempotentRoute(200, has_files=True),
    "joint-transaction": IdempotentRoute(200, has_files=True),
}
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

    def __init__(self, rooms: Iterable[Manifest] | None = None) -> None:
        """Build the protocol with the routes of rooms; by default those of all installed rooms."""
        routes = [*(route for module in _MODULES for route in module.ROUTES), *routes_of(self.name, rooms)]
        self._scopes = {route.path: route.scope for route in routes if route.scope is not None}
        self.router: Router[Handler] = Router(
            "", [_make_idempotent(route) if route.operation in KEYED else route for route in routes]
        )

    def place_of(self, path: str, request: Request, *, ctx: Context) -> tuple[RequestScope, Kind | None, Levels]:
        """Return the scope of a path (the server, a metalake or a catalog), with no object: kind None and an empty
        path.
        """
        if path in self._scopes:
            return self._scopes[path](request, ctx), None, ()
        return scope_of_path(path, request), None, ()

    def error(self, error: LimnosError, *, request_id: str, operation: str) -> Response:
        """Convert an error to the JSON error response of the admin API."""
        return error_response(error, request_id=request_id)
