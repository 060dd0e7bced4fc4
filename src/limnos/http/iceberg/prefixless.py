# SPDX-License-Identifier: Apache-2.0
"""Routes without a prefix: reads use the default catalog, changes are refused with the prefix to use.

A client that omits the prefix of its own catalog would otherwise change an object of the same name in another catalog.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from limnos.http.request import Request
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.model.errors import BadRequest, NotFound, PermissionDenied
from limnos.names import iceberg
from limnos.services.catalog.catalogs import catalog_require
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.request_view import RequestView

READING = frozenset({"GET", "HEAD"})


def prefixless(routes: Sequence[Route[Handler]]) -> tuple[list[Route[Handler]], list[Route[Handler]]]:
    """Return a catalog's routes without their prefix: reads are served, changes are refused."""
    plain_routes = [route._replace(path=route.path.removeprefix("/{prefix}")) for route in routes]
    reads = [route for route in plain_routes if route.method in READING]
    return reads, [route._replace(handler=write_refuse) for route in plain_routes if route.method not in READING]


async def write_refuse(request: Request, ctx: Context) -> NoReturn:
    """Refuse a change without a catalog's prefix.

    The message names the prefix of the default catalog to callers who may use that catalog.
    """
    del request
    defaults = ctx.services.defaults
    scope = RequestScope(defaults.metalake, defaults.catalog)

    def read(request_view: RequestView) -> str:
        name = catalog_require(request_view).name
        return f"; for catalog {name} it is {iceberg.encode_prefix(defaults.metalake, defaults.catalog)}"

    try:
        known = await ctx.read(scope, read)
    except (NotFound, PermissionDenied):
        known = ""
    raise BadRequest(
        "Without a catalog's prefix in the path only reads are answered: request GET /v1/config?warehouse=<catalog> "
        f"for the prefix and send this to /v1/<prefix>/…{known}"
    )
