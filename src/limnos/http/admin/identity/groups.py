# SPDX-License-Identifier: Apache-2.0
"""Members of groups: list, add, remove.

Has no business rules.
"""

from __future__ import annotations

from limnos.access.actions import Action
from limnos.http.admin.bodies import AdminRequestBody, names_of
from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.services.identity import groups
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope


class MembersAdd(AdminRequestBody, frozen=True):
    """The body of a request to add users to a group: the users' names."""

    users: list[str]


async def members_list(request: Request, ctx: Context) -> Response:
    """Return the names of a group's members."""
    metalake, group = names_of(request)
    return json_response(
        {
            "members": await ctx.read(
                RequestScope(metalake), lambda request_view: groups.members_list(request_view, group)
            )
        }
    )


async def members_add(request: Request, ctx: Context) -> Response:
    """Add users to a group, all or none, and return all members."""
    metalake, group = names_of(request)
    body = Request.decode(await request.body(), MembersAdd)
    return json_response(
        {"members": await groups.members_add(ctx, metalake=metalake, group=group, users=tuple(body.users))}
    )


async def member_remove(request: Request, ctx: Context) -> Response:
    """Remove a user from a group, and return whether the user was a member."""
    metalake, group, user = names_of(request)
    return json_response({"removed": await groups.member_remove(ctx, metalake=metalake, group=group, user=user)})


ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="GET",
        path="/api/limnos/v1/metalakes/{m}/groups/{g}/members",
        handler=members_list,
        operation="list-members",
    ),
    Route(
        method="POST",
        path="/api/limnos/v1/metalakes/{m}/groups/{g}/members",
        handler=members_add,
        operation="add-members",
        asks=(Action.GROUP_MEMBERS,),
    ),
    Route(
        method="DELETE",
        path="/api/limnos/v1/metalakes/{m}/groups/{g}/members/{u}",
        handler=member_remove,
        operation="remove-member",
    ),
)
