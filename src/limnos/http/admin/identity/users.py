# SPDX-License-Identifier: Apache-2.0
"""Users: disable and enable, and their groups.

Has no business rules.
"""

from __future__ import annotations

from limnos.http.admin.bodies import AdminRequestBody, names_of
from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.services.identity import groups, users
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope


class UserChange(AdminRequestBody, frozen=True):
    """A change of a user's state: whether the user is enabled."""

    enabled: bool


async def user_enable(request: Request, ctx: Context) -> Response:
    """Enable or disable a user, and return the new state."""
    metalake, name = names_of(request)
    body = Request.decode(await request.body(), UserChange)
    user = await users.user_enable(ctx, metalake=metalake, name=name, enabled=body.enabled)
    return json_response({"user": {"name": user.name, "enabled": user.enabled}})


async def groups_of_user(request: Request, ctx: Context) -> Response:
    """Return the names of a user's groups that the caller may load, sorted."""
    metalake, user = names_of(request)
    names = await ctx.read(RequestScope(metalake), lambda request_view: groups.groups_of_user(request_view, user))
    return json_response({"groups": names})


ROUTES: tuple[Route[Handler], ...] = (
    Route(method="PATCH", path="/api/limnos/v1/metalakes/{m}/users/{u}", handler=user_enable, operation="enable-user"),
    Route(
        method="GET",
        path="/api/limnos/v1/metalakes/{m}/users/{u}/groups",
        handler=groups_of_user,
        operation="list-groups-of-user",
    ),
)
