# SPDX-License-Identifier: Apache-2.0
"""Permissions: grants of roles to users and groups, and of privileges to roles.

Has no business rules.
"""

from __future__ import annotations

from functools import partial

from limnos.access.actions import Action
from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.rooms.gravitino.http import dto
from limnos.rooms.gravitino.http.dto import ok
from limnos.rooms.gravitino.http.handler_wrappers import (
    GravitinoRequestBody,
    catalog_not_found_as_object,
    names_of,
    wrap_body_handler,
)
from limnos.rooms.gravitino.http.securables import (
    PrivilegeBody,
    SecurableObject,
    privilege_request_of,
    privilege_requests_of,
    role_json,
)
from limnos.services.identity import grants, roles
from limnos.services.request.context import Context


class RoleNames(GravitinoRequestBody, frozen=True):
    """The names of roles to grant or revoke."""

    role_names: list[str]


class PrivilegesRequest(GravitinoRequestBody, frozen=True):
    """The privileges to grant to a role or to revoke from it."""

    privileges: list[PrivilegeBody]


class RoleOverrideRequest(GravitinoRequestBody, frozen=True):
    """The new and complete list of a role's privileges."""

    overrides: list[SecurableObject]


async def roles_change(request: Request, ctx: Context, body: RoleNames, *, kind: Kind, gives: bool) -> Response:
    """Grant roles to a user or group, or revoke them; both are idempotent."""
    metalake, name = names_of(request)
    if not body.role_names:
        raise BadRequest("The list roleNames is empty: name at least one role")
    holder = await grants.roles_give(
        ctx, metalake=metalake, kind=kind, name=name, roles=tuple(body.role_names), gives=gives
    )
    return ok(user=dto.user(holder)) if kind is Kind.USER else ok(group=dto.group(holder))


async def privileges_change(request: Request, ctx: Context, body: PrivilegesRequest, *, grants_them: bool) -> Response:
    """Grant privileges on an object to a role, or revoke them; both are idempotent."""
    metalake, role, kind, full_name = names_of(request)
    if not body.privileges:
        raise BadRequest("The list privileges is empty: name at least one privilege")
    with catalog_not_found_as_object():
        rules = await grants.privileges_grant(
            ctx,
            metalake=metalake,
            role=role,
            privilege_request=privilege_request_of(kind, full_name, body.privileges),
            grants_them=grants_them,
        )
    return ok(role=await role_json(ctx, rules))


async def role_override(request: Request, ctx: Context, body: RoleOverrideRequest) -> Response:
    """Replace all privileges of a role."""
    metalake, role = names_of(request)
    rules = await roles.rules_override(
        ctx, metalake=metalake, role=role, privilege_requests=privilege_requests_of(body.overrides)
    )
    return ok(role=await role_json(ctx, rules))


def _roles(what: str, word: str, kind: Kind, *, gives: bool) -> Handler:
    sentence = f"Failed to operate role(s) {{body.role_names}} operation [{what}] under {word} [{{1}}]"
    return wrap_body_handler(sentence, RoleNames, partial(roles_change, kind=kind, gives=gives), access=True)


def _privileges(what: str, *, grants_them: bool) -> Handler:
    sentence = f"Failed to operate object({{2}}: {{3}}) operation [{what}] under role [{{1}}]"
    return wrap_body_handler(
        sentence, PrivilegesRequest, partial(privileges_change, grants_them=grants_them), access=True
    )


_OVERRIDE = "Failed to operate role {1} operation [GRANT] under metalake [{0}]"
_PERMISSIONS = "/metalakes/{m}/permissions"
ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="PUT",
        path=f"{_PERMISSIONS}/users/{{u}}/grant",
        handler=_roles("GRANT", "user", Kind.USER, gives=True),
        operation="grant-roles-to-user",
        asks=(Action.ROLE_ASSIGN,),
    ),
    Route(
        method="PUT",
        path=f"{_PERMISSIONS}/users/{{u}}/revoke",
        handler=_roles("REVOKE", "user", Kind.USER, gives=False),
        operation="revoke-roles-from-user",
        asks=(Action.ROLE_ASSIGN,),
    ),
    Route(
        method="PUT",
        path=f"{_PERMISSIONS}/groups/{{g}}/grant",
        handler=_roles("GRANT", "group", Kind.GROUP, gives=True),
        operation="grant-roles-to-group",
        asks=(Action.ROLE_ASSIGN,),
    ),
    Route(
        method="PUT",
        path=f"{_PERMISSIONS}/groups/{{g}}/revoke",
        handler=_roles("REVOKE", "group", Kind.GROUP, gives=False),
        operation="revoke-roles-from-group",
        asks=(Action.ROLE_ASSIGN,),
    ),
    Route(
        method="PUT",
        path=f"{_PERMISSIONS}/roles/{{r}}/{{type}}/{{fullName}}/grant",
        handler=_privileges("GRANT", grants_them=True),
        operation="grant-privileges",
    ),
    Route(
        method="PUT",
        path=f"{_PERMISSIONS}/roles/{{r}}/{{type}}/{{fullName}}/revoke",
        handler=_privileges("REVOKE", grants_them=False),
        operation="revoke-privileges",
    ),
    Route(
        method="PUT",
        path=f"{_PERMISSIONS}/roles/{{r}}",
        handler=wrap_body_handler(_OVERRIDE, RoleOverrideRequest, role_override, access=True),
        operation="override-role",
        asks=(Action.ROLE_ASSIGN,),
    ),
)
