# SPDX-License-Identifier: Apache-2.0
"""Functions of a schema: register, list, load, alter, drop.

`formats.gravitino` parses definitions.
"""

from __future__ import annotations

from limnos.access.actions import Action
from limnos.formats.gravitino.functions import Function, FunctionChange, FunctionDefinition
from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.model.kinds import Kind
from limnos.rooms.gravitino.http import dto
from limnos.rooms.gravitino.http.dto import ok
from limnos.rooms.gravitino.http.handler_wrappers import GravitinoRequestBody, wrap_body_handler, wrap_handler
from limnos.rooms.gravitino.http.namespace_objects import (
    NamespaceObjectRoutes,
    drop_response,
    object_path_of,
    schema_path_of,
)
from limnos.rooms.gravitino.http.updates import UpdateComment, edits_of
from limnos.services.catalog import stored_functions as functions
from limnos.services.lookup import namespace_objects
from limnos.services.request.context import Context


class FunctionRegister(GravitinoRequestBody, frozen=True, kw_only=True):
    """The body of a request to register a function."""

    name: str
    function_type: str
    deterministic: bool
    definitions: list[FunctionDefinition]
    comment: str | None = None


class FunctionUpdates(GravitinoRequestBody, frozen=True):
    """The body of an update of a function: its changes, in order. Its name never changes."""

    updates: list[UpdateComment | FunctionChange]


_LEAF = NamespaceObjectRoutes(Kind.FUNCTION, dto.function)


async def functions_list(request: Request, ctx: Context) -> Response:
    """Return the functions of a schema that are visible to the caller: their names, or with `details` all fields."""
    if not request.query_flag("details"):
        return await _LEAF.list(request, ctx)
    schema_path = schema_path_of(request)
    nodes = await ctx.read(
        schema_path.scope,
        lambda request_view: namespace_objects.namespace_objects_list(
            request_view, schema_path.levels(request_view), kind=Kind.FUNCTION
        ),
    )
    return ok(functions=[dto.function(each) for each in nodes])


async def function_register(request: Request, ctx: Context, *, body: FunctionRegister) -> Response:
    """Register a function with its definitions. 409 if the name is taken."""
    schema_path = schema_path_of(request)
    path = await schema_path.path(ctx, body.name)
    function = Function(body.function_type, body.deterministic, tuple(body.definitions))
    return _LEAF.object_response(
        await functions.function_register(ctx, schema_path.scope, path=path, comment=body.comment, function=function)
    )


async def function_alter(request: Request, ctx: Context, *, body: FunctionUpdates) -> Response:
    """Apply updates to a function: its comment, and its definitions and implementations."""
    schema_path, name = object_path_of(request)
    path = await schema_path.path(ctx, name)
    comments = [each for each in body.updates if isinstance(each, UpdateComment)]
    changes = tuple(each for each in body.updates if not isinstance(each, UpdateComment))
    return _LEAF.object_response(
        await functions.function_alter(ctx, schema_path.scope, path=path, edits=edits_of(comments), changes=changes)
    )


async def function_drop(request: Request, ctx: Context) -> Response:
    """Drop a function; a missing one is not an error."""
    schema_path, name = object_path_of(request)
    path = await schema_path.path(ctx, name)
    return await drop_response(functions.function_drop(ctx, schema_path.scope, path=path), Kind.FUNCTION.word)


_FUNCTIONS = "/metalakes/{m}/catalogs/{c}/schemas/{s}/functions"
_LIST = "Failed to operate function(s) operation [LIST] under schema [{2}]"
_NEW = "Failed to operate function(s) [{body.name}] operation [REGISTER] under schema [{2}]"
_ONE = "Failed to operate function(s) [{3}] operation [%s] under schema [{2}]"
ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="GET",
        path=_FUNCTIONS,
        handler=wrap_handler(_LIST, functions_list),
        operation="list-functions",
        query=("details",),
    ),
    Route(
        method="POST",
        path=_FUNCTIONS,
        handler=wrap_body_handler(_NEW, FunctionRegister, function_register),
        operation="register-function",
        asks=(Action.FUNCTION_CREATE,),
    ),
    Route(
        method="GET",
        path=f"{_FUNCTIONS}/{{function}}",
        handler=wrap_handler(_ONE % "LOAD", _LEAF.load),
        operation="load-function",
    ),
    Route(
        method="PUT",
        path=f"{_FUNCTIONS}/{{function}}",
        handler=wrap_body_handler(_ONE % "ALTER", FunctionUpdates, function_alter),
        operation="alter-function",
        asks=(Action.FUNCTION_ALTER,),
    ),
    Route(
        method="DELETE",
        path=f"{_FUNCTIONS}/{{function}}",
        handler=wrap_handler(_ONE % "DROP", function_drop),
        operation="drop-function",
    ),
)
