# SPDX-License-Identifier: Apache-2.0
"""The target of a request: finds the protocol and the route of a path, and builds that protocol's refusals.

Must not know particular protocols or the application.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final
from typing import Protocol as Interface

from limnos.http import health
from limnos.http.refusals import hidden_metalake, unescape_percent
from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.routing import SHORT_BODY_BYTES, Route, RouteBodyKind, Router
from limnos.model.errors import LimnosError, NotFound, UnsupportedOperation
from limnos.model.kinds import Kind
from limnos.names.path import Levels
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope

Handler = Callable[[Request, Context], Coroutine[Any, Any, Response]]


class Protocol(Interface):
    """One protocol: its routes below a root, and its error bodies."""

    name: str
    router: Router[Handler]
    anonymous: frozenset[str]
    """Operations that need no credential: health, metrics, public configuration."""
    # Optional attribute `takes_key`: if true, a token may also come in the header `x-api-key`.
    # Optional attribute `narrows`: if true, every right is decided by the request view, so active roles are supported.

    def place_of(self, path: str, request: Request, *, ctx: Context) -> tuple[RequestScope, Kind | None, Levels]:
        """Return the scope that a route's path names, and the kind and levels of an object below the catalog, if it
        names one.
        """

    def error(self, error: LimnosError, *, request_id: str, operation: str) -> Response:
        """Return the protocol's response for an error."""


class RouteTarget:
    """The target of a path: the protocol, its route, the parameters."""

    __slots__ = (
        "anonymous",
        "body_bytes_max",
        "handler",
        "key",
        "keys",
        "narrows",
        "operation",
        "params",
        "protocol",
        "route",
        "seconds",
        "takes",
        "takes_key",
        "takes_turns",
    )

    def __init__(
        self,
        protocol: Protocol,
        operation: str,
        *,
        route: Route[Handler] | None,
        params: tuple[bytes, ...],
        body_bytes_max: int,
    ) -> None:
        self.protocol = protocol
        self.operation = operation
        self.key = (protocol.name, operation)
        self.keys: dict[int, tuple[str, str, int]] = {}
        """The keys of metrics, by status."""
        self.handler = None if route is None else route.handler
        self.params = params
        self.anonymous = route is None or operation in protocol.anonymous
        self.seconds = None if route is None else route.deadline_s
        self.body_bytes_max = min(SHORT_BODY_BYTES if route is None else route.body_limit, body_bytes_max)
        self.route = route
        self.takes: RouteBodyKind = "json" if route is None else route.takes
        self.takes_key = getattr(protocol, "takes_key", False)
        self.takes_turns = operation not in health.OPERATIONS
        self.narrows = getattr(protocol, "narrows", False)


UNKNOWN_ROUTE: Final = "unknown-route"


UNKNOWN_METHOD: Final = "unknown-method"
"""The operation names of requests without a route, and of requests with an unsupported method."""


def find_target(protocols: Sequence[Protocol], *, method: str, raw: bytes, body_bytes_max: int) -> RouteTarget:
    """Return the protocol and route for a path and method, or the target of a refusal. HEAD uses the route of GET."""
    segments = raw.strip(b"/").split(b"/")
    for protocol in protocols:
        match = protocol.router.find(segments)
        if match is None:
            continue
        routes, params = match
        route = routes.get(method) or (routes.get("GET") if method == "HEAD" else None)
        operation = UNKNOWN_METHOD if route is None else route.operation
        return RouteTarget(protocol, operation, route=route, params=params, body_bytes_max=body_bytes_max)
    return RouteTarget(
        _protocol_of_unknown_path(protocols, segments),
        UNKNOWN_ROUTE,
        route=None,
        params=(),
        body_bytes_max=body_bytes_max,
    )


def _protocol_of_unknown_path(protocols: Sequence[Protocol], segments: list[bytes]) -> Protocol:
    """Return the protocol whose routes match the longest prefix of an unknown path.

    If several match equally, the first is returned; if none matches, the last protocol.
    """
    reached = [protocol.router.reach(segments) for protocol in protocols]
    return protocols[reached.index(max(reached)) if any(reached) else -1]


def refusal_response(target: RouteTarget, error: LimnosError, *, request_id: str) -> Response:
    """Return the protocol's response for an error, with the message for the log."""
    response = target.protocol.error(error, request_id=request_id, operation=target.operation)
    if not response.reason:
        response.reason = unescape_percent(str(hidden_metalake(error)))
    return response


def unknown_target(target: RouteTarget) -> LimnosError:
    """Return the error for a path without a route, or a route without this method."""
    if target.operation == UNKNOWN_METHOD:
        return UnsupportedOperation("This address does not support this method")
    return NotFound("This address does not exist", kind="route")
