# SPDX-License-Identifier: Apache-2.0
"""Protection of objects from drops: load, set, remove.

Has no business rules.
"""

from __future__ import annotations

from limnos.http.admin.bodies import AdminRequestBody, names_of
from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.http.times import instant
from limnos.services.catalog import protection
from limnos.services.lookup.securables import parse_kind
from limnos.services.request.context import Context

_PATH = "/api/limnos/v1/metalakes/{m}/objects/{type}/{fullName}/protection"


class ProtectRequest(AdminRequestBody, frozen=True):
    """A request to protect an object; with `below` also everything below it."""

    below: bool = False


async def protection_load(request: Request, ctx: Context) -> Response:
    """Return the protection of an object: its own, or that of an ancestor whose protection covers its content."""
    metalake, kind, full_name = names_of(request)
    view = await protection.protection_load(ctx, metalake=metalake, kind=parse_kind(kind), full_name=full_name)
    if view.by is None:
        return json_response({"protected": False})
    by = {"kind": view.by[0].word, "name": view.by[1]}
    body = {"by": by, "below": view.below, "set_by": view.set_by, "set_at": instant(view.set_at)}
    return json_response({"protected": True, **body})


async def protect(request: Request, ctx: Context) -> Response:
    """Protect an object; with `below` also everything below it."""
    metalake, kind, full_name = names_of(request)
    body = Request.decode(await request.body() or b"{}", ProtectRequest)
    await protection.protection_set(
        ctx, metalake=metalake, kind=parse_kind(kind), full_name=full_name, below=body.below
    )
    return json_response({"protected": True})


async def unprotect(request: Request, ctx: Context) -> Response:
    """Remove an object's own protection, and return whether it existed."""
    metalake, kind, full_name = names_of(request)
    was_protected = await protection.protection_remove(
        ctx, metalake=metalake, kind=parse_kind(kind), full_name=full_name
    )
    return json_response({"removed": was_protected})


ROUTES: tuple[Route[Handler], ...] = (
    Route(method="GET", path=_PATH, handler=protection_load, operation="load-protection"),
    Route(method="PUT", path=_PATH, handler=protect, operation="protect"),
    Route(method="DELETE", path=_PATH, handler=unprotect, operation="unprotect"),
)
