# SPDX-License-Identifier: Apache-2.0
"""Roles of a metalake: list, create with privileges, load, drop; and the roles on an object.

Has no business rules.
"""

from __future__ import annotations

from limnos.access.actions import Action
from limnos.http.parameters import PAGING
from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.model.errors import NotFound
from limnos.rooms.gravitino.http.dto import ok
from limnos.rooms.gravitino.http.handler_wrappers import (
    GravitinoRequestBody,
    catalog_not_found_as_object,
    names_of,
    wrap_body_handler,
    wrap_handler,
)
from limnos.rooms.gravitino.http.securables import SecurableObject, privilege_requests_of, role_json
from limnos.services.identity import roles
from limnos.services.lookup.securables import parse_kind
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope


class RoleCreate(GravitinoRequestBody, frozen=True):
    """The body of a request to create a role. The list of objects may be empty, but not missing."""

    name: str
    securable_objects: list[SecurableObject]
    properties: dict[str, str] | None = None


async def roles_list(request: Request, ctx: Context) -> Response:
    """Return the names of the roles that the caller may load."""
    entities = await ctx.read(RequestScope(*names_of(request)), roles.roles_list)
    return ok(names=[role.name for role in entities])


async def role_create(request: Request, ctx: Context, body: RoleCreate) -> Response:
    """Create a role, with its privileges on objects. 409 if the name is taken."""
    (metalake,) = names_of(request)
    rules = await roles.role_create(
        ctx,
        metalake=metalake,
        name=body.name,
        properties=body.properties or {},
        privilege_requests=privilege_requests_of(body.securable_objects),
    )
    return ok(role=await role_json(ctx, rules))


async def role_load(request: Request, ctx: Context) -> Response:
    """Return a role with its privileges on each object."""
    metalake, name = names_of(request)
    rules = await ctx.read(RequestScope(metalake), lambda request_view: roles.role_load(request_view, name))
    return ok(role=await role_json(ctx, rules, metalake=metalake))


async def role_drop(request: Request, ctx: Context) -> Response:
    """Drop a role; a missing one is not an error. The result has two field names, for two releases of Gravitino."""
    metalake, name = names_of(request)
    try:
        await roles.role_drop(ctx, metalake=metalake, name=name)
    except NotFound as error:
        if error.kind != "role":
            raise
        return ok(dropped=False, deleted=False)
    return ok(dropped=True, deleted=True)


async def object_roles(request: Request, ctx: Context) -> Response:
    """Return the names of the roles with a privilege on an object, of those roles that the caller may load."""
    metalake, kind, full_name = names_of(request)
    with catalog_not_found_as_object():
        names = await roles.roles_on_object(ctx, metalake=metalake, kind=parse_kind(kind), full_name=full_name)
    return ok(names=names)


_LIST = "Failed to operate roles operation [LIST] under metalake [{0}]"
_NEW = "Failed to operate role {body.name} operation [CREATE] under metalake [{0}]"
_ONE = "Failed to operate role {1} operation [%s] under metalake [{0}]"
_ON = "Failed to operate roles operation [LIST] under object [{1} {2}]"
_ROLES = "/metalakes/{m}/roles"
ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="GET",
        path=_ROLES,
        handler=wrap_handler(_LIST, roles_list, access=True),
        operation="list-roles",
        query_refused=PAGING,
    ),
    Route(
        method="POST",
        path=_ROLES,
        handler=wrap_body_handler(_NEW, RoleCreate, role_create, access=True),
        operation="create-role",
        asks=(Action.ROLE_CREATE,),
    ),
    Route(
        method="GET",
        path=f"{_ROLES}/{{r}}",
        handler=wrap_handler(_ONE % "GET", role_load, access=True),
        operation="load-role",
    ),
    Route(
        method="DELETE",
        path=f"{_ROLES}/{{r}}",
        handler=wrap_handler(_ONE % "DELETE", role_drop, access=True),
        operation="drop-role",
    ),
    Route(
        method="GET",
        path="/metalakes/{m}/objects/{type}/{fullName}/roles",
        handler=wrap_handler(_ON, object_roles, access=True),
        operation="list-object-roles",
    ),
)
