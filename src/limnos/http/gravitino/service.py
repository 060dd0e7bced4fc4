"""Service routes: version, health, the caller's name.

May import `services` and the shared modules of `limnos.http`. Must not know resources.
"""

from __future__ import annotations

from limnos.http import health
from limnos.http.gravitino.dto import ok
from limnos.http.gravitino.handler_wrappers import wrap_handler
from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope

# Clients refuse a server whose version is below their own: 1.3.1 is the newest release whose calls are served here,
# not a statement about our own code. Java's clients also want the two other fields to be there.
VERSION = {"version": "1.3.1", "compileDate": "01/01/2026 00:00:00", "gitCommit": "limnos"}


async def version(_request: Request, ctx: Context) -> Response:
    """Return the Gravitino release that this server is compatible with, to any valid credential."""
    await ctx.read(RequestScope(), lambda request_view: request_view.user)
    return ok(version=VERSION)


async def me(_request: Request, ctx: Context) -> Response:
    """Return the caller's user name."""
    return ok(principal=await ctx.read(RequestScope(), lambda request_view: request_view.user))


ROUTES: tuple[Route[Handler], ...] = (
    Route("GET", "/version", wrap_handler("Failed to get the version", version), "get-version"),
    Route("GET", "/authn/me", wrap_handler("Failed to get the principal", me), "get-principal"),
    Route("GET", "/health", health.health, "health"),
    Route("GET", "/health/live", health.live, "health-live"),
    Route("GET", "/health/ready", health.ready, "health-ready"),
)
ANONYMOUS = frozenset({"health", "health-live", "health-ready"})
