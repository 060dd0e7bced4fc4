# SPDX-License-Identifier: Apache-2.0
"""Owners of objects: load and set.

Has no business rules.
"""

from __future__ import annotations

from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.rooms.gravitino.http import dto, handler_wrappers
from limnos.rooms.gravitino.http.dto import ok
from limnos.services.identity import owners
from limnos.services.lookup.securables import parse_kind
from limnos.services.request.context import Context

_KINDS = {"user": Kind.USER, "group": Kind.GROUP}


class OwnerSet(handler_wrappers.GravitinoRequestBody, frozen=True):
    """The new owner: a name, and the type `user` or `group` in upper or lower case."""

    name: str
    type: str


async def owner_load(request: Request, ctx: Context) -> Response:
    """Return the owner of an object; the response has no `owner` if the object has none."""
    metalake, kind, full_name = handler_wrappers.names_of(request)
    with handler_wrappers.catalog_not_found_as_object():
        principal = await owners.owner_load(ctx, metalake=metalake, kind=parse_kind(kind), full_name=full_name)
    return ok() if principal is None else ok(owner=dto.owner(principal))


async def owner_set(request: Request, ctx: Context, body: OwnerSet) -> Response:
    """Set the owner of an object."""
    metalake, kind, full_name = handler_wrappers.names_of(request)
    owner_kind = _KINDS.get(body.type.lower())
    if owner_kind is None:
        raise BadRequest(f"An owner must be a USER or a GROUP, not a {body.type}")
    with handler_wrappers.catalog_not_found_as_object():
        await owners.owner_set(
            ctx, metalake=metalake, kind=parse_kind(kind), full_name=full_name, owner_kind=owner_kind, owner=body.name
        )
    return ok(set=True)


_ONE = "Failed to execute {1} {2} owner operation [%s] under metalake [{0}]"
ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="GET",
        path="/metalakes/{m}/owners/{type}/{fullName}",
        handler=handler_wrappers.wrap_handler(_ONE % "GET", owner_load, access=True),
        operation="load-owner",
    ),
    Route(
        method="PUT",
        path="/metalakes/{m}/owners/{type}/{fullName}",
        handler=handler_wrappers.wrap_body_handler(_ONE % "SET", OwnerSet, owner_set, access=True),
        operation="set-owner",
    ),
)
