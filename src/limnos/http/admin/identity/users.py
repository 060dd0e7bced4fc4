# SPDX-License-Identifier: Apache-2.0
"""Users: disable and enable.

Has no business rules.
"""

from __future__ import annotations

from limnos.http.admin.bodies import AdminRequestBody, names_of
from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.services.identity import users
from limnos.services.request.context import Context


class UserChange(AdminRequestBody, frozen=True):
    """A change of a user's state: whether the user is enabled."""

    enabled: bool


async def user_enable(request: Request, ctx: Context) -> Response:
    """Enable or disable a user, and return the new state."""
    metalake, name = names_of(request)
    body = Request.decode(await request.body(), UserChange)
    user = await users.user_enable(ctx, metalake=metalake, name=name, enabled=body.enabled)
    return json_response({"user": {"name": user.name, "enabled": user.enabled}})


ROUTES: tuple[Route[Handler], ...] = (
    Route(method="PATCH", path="/api/limnos/v1/metalakes/{m}/users/{u}", handler=user_enable, operation="enable-user"),
)
