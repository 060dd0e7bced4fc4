# SPDX-License-Identifier: Apache-2.0
"""The target of a request: finds the protocol and the route of a path, and builds that protocol's refusals.

Adds the routes of rooms, and refuses those of rooms that are off.

Must not know particular protocols, rooms or the application.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Final, cast
from typing import Protocol as Interface

from limnos.http import health
from limnos.http.refusals import hidden_metalake, unescape_percent
from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.routing import SHORT_BODY_BYTES, Route, RouteBodyKind, Router
from limnos.manifests.installed import installed_rooms
from limnos.manifests.manifest import Manifest, load
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
    # Optional attribute `refusal`: why the server serves none of its routes; every request for them is refused.
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
ROOM_OFF: Final = "room-off"
"""The operation names of requests without a route, with an unsupported method, and for a part of the product that the
server does not serve.
"""


def find_target(protocols: Sequence[Protocol], *, method: str, raw: bytes, body_bytes_max: int) -> RouteTarget:
    """Return the protocol and route for a path and method, or the target of a refusal. HEAD uses the route of GET."""
    segments = raw.strip(b"/").split(b"/")
    for protocol in protocols:
        match = protocol.router.find(segments)
        if match is None:
            continue
        if getattr(protocol, "refusal", ""):
            return RouteTarget(protocol, ROOM_OFF, route=None, params=(), body_bytes_max=body_bytes_max)
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
    depths = [protocol.router.reach(segments) for protocol in protocols]
    return protocols[depths.index(max(depths)) if any(depths) else -1]


def refusal_response(target: RouteTarget, error: LimnosError, *, request_id: str) -> Response:
    """Return the protocol's response for an error, with the message for the log."""
    response = target.protocol.error(error, request_id=request_id, operation=target.operation)
    if not response.reason:
        response.reason = unescape_percent(str(hidden_metalake(error)))
    return response


_WRONG_BASES: Final = {
    b"/v1/": "Iceberg REST is at /iceberg, as http://HOST:PORT/iceberg, and Lance REST at /lance",
    b"/iceberg/v1/v1/": "Clients of Iceberg REST add /v1 themselves: give the address that ends in /iceberg",
    b"/iceberg/config": "Clients of Iceberg REST add /v1 themselves: give the address that ends in /iceberg",
    b"/iceberg/iceberg/": "The address has /iceberg twice: give the one that ends in /iceberg once",
}
"""Beginnings of unknown paths that a wrong address in a client's settings makes, and what to write there."""


def unknown_target(target: RouteTarget, raw: bytes) -> LimnosError:
    """Return the error for a path without a route, or a route without this method."""
    if target.operation == UNKNOWN_METHOD:
        return UnsupportedOperation("This address does not support this method")
    if target.operation == ROOM_OFF:
        return NotFound(getattr(target.protocol, "refusal", ""), kind="route")
    advice = next((f". {text}" for base, text in _WRONG_BASES.items() if raw.startswith(base)), "")
    return NotFound(f"This address does not exist{advice}", kind="route")


METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class ErrorResponse(Interface):
    """A function that converts an error to a protocol's response."""

    def __call__(self, error: LimnosError, /, *, request_id: str, operation: str) -> Response:
        """Return the response."""


def routes_of(protocol: str, rooms: Iterable[Manifest] | None = None) -> list[Route[Handler]]:
    """Return the routes that rooms add to a protocol; by default those of all installed rooms."""
    manifests = installed_rooms().manifests if rooms is None else rooms
    return [
        route
        for room in manifests
        for entry in room.routes
        if entry.protocol == protocol
        for route in cast("Sequence[Route[Handler]]", load(entry.routes))
    ]


def refusing_router(paths: Iterable[str], handler: Callable[..., object]) -> Router[Callable[..., object]]:
    """Return a router that finds every path which begins with one of the patterns, by every method."""
    patterns = dict.fromkeys(text for path in paths for text in (path, f"{path}/{{rest...}}"))
    return Router(
        "",
        [
            Route(method=method, path=pattern, handler=handler, operation=ROOM_OFF)
            for pattern in patterns
            for method in METHODS
        ],
    )


class RefusingProtocol:
    """Refuses all paths of a room that is off, in the error format of the protocol that would serve them."""

    def __init__(self, name: str, paths: Iterable[str], *, reason: str, error: ErrorResponse) -> None:
        self.name = name
        self.refusal = reason
        self.anonymous: frozenset[str] = frozenset()
        self.router: Router[Handler] = cast("Router[Handler]", refusing_router(paths, _unused_handler))
        self._error = error

    def place_of(self, path: str, request: Request, *, ctx: Context) -> tuple[RequestScope, Kind | None, Levels]:
        """Return the server as the scope of every path."""
        return RequestScope(), None, ()

    def error(self, error: LimnosError, *, request_id: str, operation: str) -> Response:
        """Return the response of the protocol for an error."""
        return self._error(error, request_id=request_id, operation=operation)


async def _unused_handler(_request: Request, _ctx: Context) -> Response:
    """Stand for a handler: `route_targets` refuses the request before."""
    raise AssertionError("a refused route has no handler")
