# SPDX-License-Identifier: Apache-2.0
"""Users of a metalake: list, add, load, remove. `groups` has the same routes for groups, with the same functions.

Has no business rules.
"""

from __future__ import annotations

import asyncio
from functools import partial

from limnos.http.parameters import PAGING
from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.model.errors import NotFound
from limnos.model.kinds import Kind
from limnos.rooms.gravitino.http import dto
from limnos.rooms.gravitino.http.dto import ok
from limnos.rooms.gravitino.http.handler_wrappers import GravitinoRequestBody, names_of, wrap_body_handler, wrap_handler
from limnos.services.identity import users
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope

_AT_ONCE = 500
"""The number of users or groups that are encoded before other requests run."""
_ENCODERS = {Kind.USER: dto.user, Kind.GROUP: dto.group}


class UserAdd(GravitinoRequestBody, frozen=True):
    """The body of a request to add a user."""

    name: str
    external_id: str | None = None
    enabled: bool | None = None


async def principals_list(request: Request, ctx: Context, kind: Kind) -> Response:
    """Return the users or groups visible to the caller: names, or with `details` all fields."""
    scope = RequestScope(*names_of(request))
    if not request.query_flag("details"):
        principals = await ctx.read(scope, lambda request_view: users.principals_list(request_view, kind))
        return ok(names=[each.name for each in principals])
    holders = await ctx.read(scope, lambda request_view: users.holders_list(request_view, kind))
    encode, encoded = _ENCODERS[kind], []
    for begin in range(0, len(holders), _AT_ONCE):
        encoded += [encode(each) for each in holders[begin : begin + _AT_ONCE]]
        await asyncio.sleep(0)  # let other requests run between the parts
    return ok(**{f"{kind.word}s": encoded})


async def principal_load(request: Request, ctx: Context, kind: Kind) -> Response:
    """Return one user or group with its roles."""
    metalake, name = names_of(request)
    holder = await ctx.read(RequestScope(metalake), lambda request_view: users.principal_load(request_view, kind, name))
    return ok(**{kind.word: _ENCODERS[kind](holder)})


async def principal_remove(request: Request, ctx: Context, kind: Kind) -> Response:
    """Remove a user or group; a missing one is not an error."""
    metalake, name = names_of(request)
    try:
        await users.principal_remove(ctx, metalake=metalake, kind=kind, name=name)
    except NotFound as error:
        if error.kind != kind.word:
            raise
        return ok(removed=False)
    return ok(removed=True)


async def user_add(request: Request, ctx: Context, body: UserAdd) -> Response:
    """Add a user to the metalake. 409 if the name is taken."""
    (metalake,) = names_of(request)
    holder = await users.principal_add(
        ctx,
        metalake=metalake,
        kind=Kind.USER,
        name=body.name,
        external_id=body.external_id,
        enabled=body.enabled is not False,
    )
    return ok(user=dto.user(holder))


_LIST = "Failed to operate users operation [LIST] under metalake [{0}]"
_NEW = "Failed to operate user {body.name} operation [ADD] under metalake [{0}]"
_ONE = "Failed to operate user {1} operation [%s] under metalake [{0}]"
_USERS = "/metalakes/{m}/users"
ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="GET",
        path=_USERS,
        handler=wrap_handler(_LIST, partial(principals_list, kind=Kind.USER), access=True),
        operation="list-users",
        query=("details",),
        query_refused=PAGING,
    ),
    Route(
        method="POST",
        path=_USERS,
        handler=wrap_body_handler(_NEW, UserAdd, user_add, access=True),
        operation="add-user",
    ),
    Route(
        method="GET",
        path=f"{_USERS}/{{u}}",
        handler=wrap_handler(_ONE % "GET", partial(principal_load, kind=Kind.USER), access=True),
        operation="load-user",
    ),
    Route(
        method="DELETE",
        path=f"{_USERS}/{{u}}",
        handler=wrap_handler(_ONE % "REMOVE", partial(principal_remove, kind=Kind.USER), access=True),
        operation="remove-user",
    ),
)
