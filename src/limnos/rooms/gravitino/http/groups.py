# SPDX-License-Identifier: Apache-2.0
"""Groups of a metalake: list, add, load, remove. The admin API manages their members; Gravitino has no routes for them.

Has no business rules.
"""

from __future__ import annotations

from functools import partial

from limnos.http.parameters import PAGING
from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.model.kinds import Kind
from limnos.rooms.gravitino.http import dto
from limnos.rooms.gravitino.http.dto import ok
from limnos.rooms.gravitino.http.handler_wrappers import GravitinoRequestBody, names_of, wrap_body_handler, wrap_handler
from limnos.rooms.gravitino.http.users import principal_load, principal_remove, principals_list
from limnos.services.identity import users
from limnos.services.request.context import Context


class GroupAdd(GravitinoRequestBody, frozen=True):
    """The body of a request to add a group."""

    name: str
    external_id: str | None = None


async def group_add(request: Request, ctx: Context, body: GroupAdd) -> Response:
    """Create a group without members in the metalake. 409 if the name is taken."""
    (metalake,) = names_of(request)
    holder = await users.principal_add(
        ctx, metalake=metalake, kind=Kind.GROUP, name=body.name, external_id=body.external_id
    )
    return ok(group=dto.group(holder))


_LIST = "Failed to operate groups operation [LIST] under metalake [{0}]"
_NEW = "Failed to operate group {body.name} operation [ADD] under metalake [{0}]"
_ONE = "Failed to operate group {1} operation [%s] under metalake [{0}]"
_GROUPS = "/metalakes/{m}/groups"
ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="GET",
        path=_GROUPS,
        handler=wrap_handler(_LIST, partial(principals_list, kind=Kind.GROUP), access=True),
        operation="list-groups",
        query=("details",),
        query_refused=PAGING,
    ),
    Route(
        method="POST",
        path=_GROUPS,
        handler=wrap_body_handler(_NEW, GroupAdd, group_add, access=True),
        operation="add-group",
    ),
    Route(
        method="GET",
        path=f"{_GROUPS}/{{g}}",
        handler=wrap_handler(_ONE % "GET", partial(principal_load, kind=Kind.GROUP), access=True),
        operation="load-group",
    ),
    Route(
        method="DELETE",
        path=f"{_GROUPS}/{{g}}",
        handler=wrap_handler(_ONE % "REMOVE", partial(principal_remove, kind=Kind.GROUP), access=True),
        operation="remove-group",
    ),
)
