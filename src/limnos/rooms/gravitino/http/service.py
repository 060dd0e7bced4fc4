# SPDX-License-Identifier: Apache-2.0
"""Service routes: version, health, the caller's name.

Must not know resources.
"""

from __future__ import annotations

from typing import Final

from limnos import __version__
from limnos.http import health
from limnos.http.build_info import BuildInfo, installed_extras, read_build_info
from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.rooms.gravitino.http.dto import ok
from limnos.rooms.gravitino.http.handler_wrappers import wrap_handler
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope

GRAVITINO_VERSION: Final = "1.3.1"
"""The newest release of Gravitino whose calls are served: clients refuse a server whose version is below their own."""


def version_fields(build: BuildInfo, extras: list[str]) -> dict[str, object]:
    """Return the answer's fields: those that Gravitino's clients want (none may be empty), and the product's own."""
    gravitino = {"version": GRAVITINO_VERSION, "compileDate": build.built_at, "gitCommit": build.commit}
    product = {"version": __version__, "commit": build.commit, "builtAt": build.built_at, "extras": extras}
    return {"version": gravitino, "limnos": product}


_VERSION: Final = version_fields(read_build_info(), installed_extras())


async def version(_request: Request, ctx: Context) -> Response:
    """Return the Gravitino release that this server is compatible with, and its own release, commit and extras."""
    await ctx.read(RequestScope(), lambda request_view: request_view.user)
    return ok(**_VERSION)


async def principal_get(_request: Request, ctx: Context) -> Response:
    """Return the caller's user name."""
    return ok(principal=await ctx.read(RequestScope(), lambda request_view: request_view.user))


ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="GET",
        path="/version",
        handler=wrap_handler("Failed to get the version", version),
        operation="get-version",
    ),
    Route(
        method="GET",
        path="/authn/me",
        handler=wrap_handler("Failed to get the principal", principal_get),
        operation="get-principal",
    ),
    Route(method="GET", path="/health", handler=health.health, operation="health"),
    Route(method="GET", path="/health/live", handler=health.live, operation="health-live"),
    Route(method="GET", path="/health/ready", handler=health.ready, operation="health-ready"),
)
ANONYMOUS = frozenset({"health", "health-live", "health-ready"})
