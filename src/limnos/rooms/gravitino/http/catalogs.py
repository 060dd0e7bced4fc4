# SPDX-License-Identifier: Apache-2.0
"""Catalogs: list, create, test the connection, load, alter, enable and disable, drop.

Has no business rules.
"""

from __future__ import annotations

from collections.abc import Awaitable

from limnos.access.actions import Action
from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.model.errors import AuthenticationFailed, LimnosError, NotFound, PermissionDenied
from limnos.rooms.gravitino.http import dto
from limnos.rooms.gravitino.http.dto import identifiers, ok
from limnos.rooms.gravitino.http.errors import SUBJECT, error_body
from limnos.rooms.gravitino.http.handler_wrappers import GravitinoRequestBody, names_of, wrap_body_handler, wrap_handler
from limnos.rooms.gravitino.http.updates import EntityUpdates, InUseRequest, check_properties, edits_of
from limnos.services.catalog import catalog_checks, catalogs
from limnos.services.request.browsing import catalog_names
from limnos.services.request.context import Context
from limnos.services.request.property_edits import PropertyEdits
from limnos.services.request.request_scope import RequestScope


class CatalogCreate(GravitinoRequestBody, frozen=True, kw_only=True):
    """The body of a request to create a catalog, or to test the connection of one."""

    name: str
    type: str | None = None
    provider: str | None = None
    comment: str | None = None
    properties: dict[str, str] | None = None


async def catalogs_list(request: Request, ctx: Context) -> Response:
    """Return the names of the catalogs that the caller may use or that contain an object which the caller may use; with
    `details` only usable catalogs, with all fields.
    """
    (metalake,) = names_of(request)
    if request.query_flag("details"):
        nodes = await ctx.read(RequestScope(metalake), catalogs.catalogs_list)
        return ok(catalogs=[dto.catalog(node) for node in nodes])
    return identifiers([metalake], await catalog_names(ctx, metalake))


async def catalog_create(request: Request, ctx: Context, body: CatalogCreate) -> Response:
    """Create a catalog, which the caller then owns. 409 if the name is taken."""
    (metalake,) = names_of(request)
    node = await catalogs.catalog_create(
        ctx,
        metalake=metalake,
        name=body.name,
        catalog_type=body.type,
        provider=body.provider,
        comment=body.comment,
        properties=check_properties(body.properties),
    )
    return ok(catalog=dto.catalog(node))


async def connection_test(request: Request, ctx: Context, body: CatalogCreate) -> Response:
    """Test whether a catalog could be created with this body, its connection included. Creates nothing."""
    (metalake,) = names_of(request)

    async def test() -> None:
        await catalog_checks.catalog_test(
            ctx,
            metalake=metalake,
            name=body.name,
            catalog_type=body.type,
            provider=body.provider,
            properties=check_properties(body.properties),
        )

    return await _test_response(
        test(), f"Failed to operate catalog(s) [{body.name}] operation [TEST] under metalake [{metalake}]"
    )


async def catalog_test(request: Request, ctx: Context) -> Response:
    """Test a catalog's connection, with the changes in the body, if any. Changes nothing."""
    metalake, name = names_of(request)
    data = await request.body()
    edits = edits_of(Request.decode(data, EntityUpdates).updates) if data.strip() else PropertyEdits()
    test = catalog_checks.catalog_test_edited(ctx, metalake=metalake, name=name, edits=edits)
    return await _test_response(
        test, f"Failed to operate catalog(s) [{name}] operation [TEST] under metalake [{metalake}]"
    )


async def _test_response(test: Awaitable[None], sentence: str) -> Response:
    """Await a connection test, and return its response. A failed test is 200 with an error body; only a refusal of
    access and a missing metalake change the status.
    """
    try:
        await test
    except (PermissionDenied, AuthenticationFailed):
        raise
    except LimnosError as error:
        if isinstance(error, NotFound) and error.kind == "metalake":
            raise
        error.context[SUBJECT] = sentence
        return json_response(error_body(error))
    return ok()


async def catalog_load(request: Request, ctx: Context) -> Response:
    """Return a catalog; its secrets are masked or omitted."""
    metalake, name = names_of(request)
    return ok(catalog=dto.catalog(await ctx.read(RequestScope(metalake, name), catalogs.catalog_load)))


async def catalog_alter(request: Request, ctx: Context, body: EntityUpdates) -> Response:
    """Apply updates of name, comment and properties to a catalog."""
    metalake, name = names_of(request)
    node = await catalogs.catalog_alter(ctx, metalake=metalake, name=name, edits=edits_of(body.updates))
    return ok(catalog=dto.catalog(node))


async def catalog_set(request: Request, ctx: Context, body: InUseRequest) -> Response:
    """Enable or disable a catalog."""
    metalake, name = names_of(request)
    await catalogs.catalog_enable(ctx, metalake=metalake, name=name, in_use=body.in_use)
    return ok()


async def catalog_drop(request: Request, ctx: Context) -> Response:
    """Drop a disabled, empty catalog; with `force` any. A missing one is not an error."""
    metalake, name = names_of(request)
    try:
        await catalogs.catalog_drop(ctx, metalake=metalake, name=name, force=request.query_flag("force"))
    except NotFound as error:
        if error.kind != "catalog":
            raise
        return ok(dropped=False)
    return ok(dropped=True)


_LIST = "Failed to operate catalog(s) operation [LIST] under metalake [{0}]"
_NEW = "Failed to operate catalog(s) [{body.name}] operation [%s] under metalake [{0}]"
_ONE = "Failed to operate catalog(s) [{1}] operation [%s] under metalake [{0}]"
_CATALOGS = "/metalakes/{m}/catalogs"
ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="GET",
        path=_CATALOGS,
        handler=wrap_handler(_LIST, catalogs_list),
        operation="list-catalogs",
        query=("details",),
    ),
    Route(
        method="POST",
        path=_CATALOGS,
        handler=wrap_body_handler(_NEW % "CREATE", CatalogCreate, catalog_create),
        operation="create-catalog",
        asks=(Action.CATALOG_CREATE,),
    ),
    Route(
        method="POST",
        path=f"{_CATALOGS}/testConnection",
        handler=wrap_body_handler(_NEW % "TEST", CatalogCreate, connection_test),
        operation="test-new-catalog",
        asks=(Action.CATALOG_CREATE,),
    ),
    Route(
        method="GET",
        path=f"{_CATALOGS}/{{c}}",
        handler=wrap_handler(_ONE % "LOAD", catalog_load),
        operation="load-catalog",
    ),
    Route(
        method="PUT",
        path=f"{_CATALOGS}/{{c}}",
        handler=wrap_body_handler(_ONE % "ALTER", EntityUpdates, catalog_alter),
        operation="alter-catalog",
        asks=(Action.CATALOG_ALTER,),
    ),
    Route(
        method="PATCH",
        path=f"{_CATALOGS}/{{c}}",
        handler=wrap_body_handler(_ONE % "ENABLE", InUseRequest, catalog_set),
        operation="set-catalog",
    ),
    Route(
        method="DELETE",
        path=f"{_CATALOGS}/{{c}}",
        handler=wrap_handler(_ONE % "DROP", catalog_drop),
        operation="drop-catalog",
        query=("force",),
    ),
    Route(
        method="POST",
        path=f"{_CATALOGS}/{{c}}/testConnection",
        handler=wrap_handler(_ONE % "TEST", catalog_test),
        operation="test-catalog",
    ),
)
