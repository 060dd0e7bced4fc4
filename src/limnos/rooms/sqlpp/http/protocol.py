# SPDX-License-Identifier: Apache-2.0
"""The AsterixDB protocol: the routes of the query service and of the administration API, and its error format.

Must not know statements.
"""

from __future__ import annotations

from typing import Final

from limnos.access.actions import Action
from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route, Router
from limnos.model.errors import LimnosError
from limnos.model.kinds import Kind
from limnos.names.path import Levels
from limnos.rooms.sqlpp.http import admin, connector, result_handles, service
from limnos.rooms.sqlpp.http.errors import error_response
from limnos.rooms.sqlpp.http.parameters import GET_PARAMETERS
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope

BODY_BYTES_MAX: Final = 8 << 20
"""The maximum size of a body in bytes: a statement of at most 1 MiB, tripled by an encoding, and the parameters."""
GRACE_S: Final = 10.0
"""The time that a response may take beyond the statements' own time limit, in seconds."""

ADMIN_ROUTES: Final[tuple[Route[Handler], ...]] = (
    Route(method="GET", path="/connector", handler=connector.connector, operation="sqlpp-connector"),
    Route(method="GET", path="/admin/version", handler=admin.version, operation="sqlpp-version"),
    Route(method="GET", path="/admin/cluster", handler=admin.cluster, operation="sqlpp-cluster"),
    Route(method="GET", path="/admin/udf", handler=admin.libraries, operation="sqlpp-libraries"),
    Route(method="GET", path="/admin/requests/running", handler=admin.requests_list, operation="sqlpp-requests"),
    Route(
        method="DELETE",
        path="/admin/requests/running",
        handler=admin.request_cancel,
        operation="sqlpp-cancel",
        query=("request_id", "client_context_id"),
    ),
)
"""The routes of the connector and the administration API."""


def routes(timeout_s: float) -> tuple[Route[Handler], ...]:
    """Return the routes of the query service and the administration API. `timeout_s` is the time limit of one
    request.
    """
    asks = (Action.CATALOG_LOAD,)
    deadline_s = timeout_s + GRACE_S
    return (
        Route(
            method="GET",
            path="/query/service",
            handler=service.query_service,
            operation="query-service-read",
            query=(
                "statement",
                "mode",
                "dataverse",
                "pretty",
                "readonly",
                "compile-only",
                "plan-format",
                "timeout",
                "client_context_id",
                *GET_PARAMETERS,
            ),
            query_repeatable=("dataverse",),
            deadline_s=deadline_s,
        ),
        Route(
            method="POST",
            path="/query/service",
            handler=service.query_service,
            operation="query-service",
            deadline_s=deadline_s,
            body_bytes_max=BODY_BYTES_MAX,
            takes="any",
            asks=asks,
        ),
        Route(method="OPTIONS", path="/query/service", handler=admin.options, operation="query-service-options"),
        Route(
            method="GET",
            path="/query/service/status/{handle}",
            handler=result_handles.status,
            operation="query-service-status",
        ),
        Route(
            method="GET",
            path="/query/service/result/{handle}",
            handler=result_handles.result,
            operation="query-service-result",
            query=("pretty",),
            deadline_s=deadline_s,
        ),
        Route(
            method="DELETE",
            path="/query/service/result/{handle}",
            handler=result_handles.discard,
            operation="query-service-discard",
        ),
        *ADMIN_ROUTES,
    )


class AsterixProtocol:
    """The protocol of AsterixDB: SQL++ statements at `/query/service`."""

    name = "asterix"
    anonymous: frozenset[str] = frozenset()

    def __init__(self, *, timeout_s: float = 300.0) -> None:
        self.router: Router[Handler] = Router("", routes(timeout_s))

    def place_of(self, _path: str, _request: Request, *, ctx: Context) -> tuple[RequestScope, Kind | None, Levels]:
        """Return the metalake and catalog that requests apply to: those of the settings' defaults, for every path."""
        return RequestScope(ctx.services.defaults.metalake, ctx.services.defaults.sqlpp_catalog), None, ()

    def error(self, error: LimnosError, *, request_id: str, operation: str) -> Response:
        """Convert an error to a response of the query service, with AsterixDB's field `errors`."""
        return error_response(error, request_id=request_id, operation=operation)
