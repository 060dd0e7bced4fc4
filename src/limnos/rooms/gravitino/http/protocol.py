# SPDX-License-Identifier: Apache-2.0
"""Gravitino REST as a protocol: all routes below `/api`, and the error body.

Has no business rules.
"""

from __future__ import annotations

from collections.abc import Iterable

from limnos.http.parameters import scope_of_path
from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.route_targets import Handler, routes_of
from limnos.http.routing import Router
from limnos.manifests.manifest import Manifest
from limnos.model.errors import LimnosError
from limnos.model.kinds import Kind
from limnos.names.path import Levels
from limnos.rooms.gravitino.http import (
    bulk_users,
    catalogs,
    credentials,
    filesets,
    functions,
    groups,
    metalakes,
    models,
    owners,
    permissions,
    policies,
    roles,
    schemas,
    service,
    statistics,
    tables,
    tags,
    topics,
    users,
    views,
)
from limnos.rooms.gravitino.http.errors import error_response
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope

ROOT = "/api"
_MODULES = (
    service,
    metalakes,
    catalogs,
    schemas,
    users,
    bulk_users,
    groups,
    roles,
    permissions,
    owners,
    tags,
    policies,
    statistics,
    credentials,
    tables,
    views,
    models,
    filesets,
    functions,
    topics,
)


class GravitinoProtocol:
    """Gravitino REST at `/api`, as a protocol of the HTTP application."""

    name = "gravitino"
    anonymous = service.ANONYMOUS
    narrows = True

    def __init__(self, rooms: Iterable[Manifest] | None = None) -> None:
        """Build the protocol with the routes of rooms; by default those of all installed rooms."""
        own_routes = [route for module in _MODULES for route in module.ROUTES]
        self.router: Router[Handler] = Router(ROOT, [*own_routes, *routes_of(self.name, rooms)])

    def place_of(self, path: str, request: Request, *, ctx: Context) -> tuple[RequestScope, Kind | None, Levels]:
        """Return the scope of a path (the server, a metalake or a catalog), with no object: kind None and an empty
        path.
        """
        return scope_of_path(path, request), None, ()

    def error(self, error: LimnosError, *, request_id: str, operation: str) -> Response:
        """Return the response for an error. The request id is in the header."""
        return error_response(error)
