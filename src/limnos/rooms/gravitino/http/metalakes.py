# SPDX-License-Identifier: Apache-2.0
"""Metalakes: list, create, load, alter, enable and disable, drop.

Has no business rules.
"""

from __future__ import annotations

from limnos.access.actions import Action
from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.model.errors import NotFound
from limnos.rooms.gravitino.http import dto
from limnos.rooms.gravitino.http.dto import ok
from limnos.rooms.gravitino.http.handler_wrappers import GravitinoRequestBody, names_of, wrap_body_handler, wrap_handler
from limnos.rooms.gravitino.http.updates import EntityUpdates, InUseRequest, check_properties, edits_of
from limnos.services.catalog import metalakes
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope


class MetalakeCreate(GravitinoRequestBody, frozen=True):
    """The body of a request to create a metalake."""

    name: str
    comment: str | None = None
    properties: dict[str, str] | None = None


async def metalakes_list(_request: Request, ctx: Context) -> Response:
    """Return the metalakes of which the caller is a user."""
    return ok(metalakes=[dto.metalake(node) for node in await metalakes.metalakes_visible(ctx)])


async def metalake_create(_request: Request, ctx: Context, body: MetalakeCreate) -> Response:
    """Create a metalake, which the caller then owns. 409 if the name is taken."""
    node = await metalakes.metalake_create(
        ctx, name=body.name, comment=body.comment, properties=check_properties(body.properties)
    )
    return ok(metalake=dto.metalake(node))


async def metalake_load(request: Request, ctx: Context) -> Response:
    """Return a metalake to any of its users."""
    (name,) = names_of(request)
    return ok(metalake=dto.metalake(await ctx.read(RequestScope(name), metalakes.metalake_load)))


async def metalake_alter(request: Request, ctx: Context, body: EntityUpdates) -> Response:
    """Apply updates of name, comment and properties to a metalake."""
    (name,) = names_of(request)
    return ok(metalake=dto.metalake(await metalakes.metalake_alter(ctx, name=name, edits=edits_of(body.updates))))


async def metalake_set(request: Request, ctx: Context, body: InUseRequest) -> Response:
    """Enable or disable a metalake."""
    (name,) = names_of(request)
    await metalakes.metalake_set(ctx, name=name, in_use=body.in_use)
    return ok()


async def metalake_drop(request: Request, ctx: Context) -> Response:
    """Drop a disabled, empty metalake; with `force` any. A missing one is not an error if access control is off.

    If access control is on, the response for a missing one is 403, as for any metalake of which the caller is not a
    user.
    """
    (name,) = names_of(request)
    try:
        await metalakes.metalake_drop(ctx, name=name, force=request.query_flag("force"))
    except NotFound as error:
        if "user" in error.context:
            raise
        return ok(dropped=False)
    return ok(dropped=True)


_ONE = "Failed to operate metalake(s) [{0}] operation "
_NEW = "Failed to operate metalake(s) [{body.name}] operation [CREATE]"
ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="GET",
        path="/metalakes",
        handler=wrap_handler("Failed to operate metalake(s) operation [LIST]", metalakes_list),
        operation="list-metalakes",
    ),
    Route(
        method="POST",
        path="/metalakes",
        handler=wrap_body_handler(_NEW, MetalakeCreate, metalake_create),
        operation="create-metalake",
        asks=(Action.METALAKE_CREATE,),
    ),
    Route(
        method="GET",
        path="/metalakes/{m}",
        handler=wrap_handler(_ONE + "[LOAD]", metalake_load),
        operation="load-metalake",
    ),
    Route(
        method="PUT",
        path="/metalakes/{m}",
        handler=wrap_body_handler(_ONE + "[ALTER]", EntityUpdates, metalake_alter),
        operation="alter-metalake",
        asks=(Action.METALAKE_ALTER,),
    ),
    Route(
        method="PATCH",
        path="/metalakes/{m}",
        handler=wrap_body_handler(_ONE + "[ENABLE]", InUseRequest, metalake_set),
        operation="set-metalake",
    ),
    Route(
        method="DELETE",
        path="/metalakes/{m}",
        handler=wrap_handler(_ONE + "[DROP]", metalake_drop),
        operation="drop-metalake",
        query=("force",),
    ),
)
