# SPDX-License-Identifier: Apache-2.0
"""Adding and removing many users in one request. Each is a separate change: a refusal for one affects no other user.

Has no business rules.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from limnos.http.request import Request
from limnos.http.response import Response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.model.errors import AlreadyExists, BadRequest, LimnosError, NotFound
from limnos.model.kinds import Kind
from limnos.rooms.gravitino.http import dto
from limnos.rooms.gravitino.http.dto import ok
from limnos.rooms.gravitino.http.errors import error_body
from limnos.rooms.gravitino.http.handler_wrappers import GravitinoRequestBody, names_of, wrap_body_handler
from limnos.rooms.gravitino.http.users import UserAdd
from limnos.services.identity import users
from limnos.services.request.context import Context

ITEMS_MAX: Final = 100
_OF_ONE = (BadRequest, AlreadyExists, NotFound)
"""Errors that concern a single user."""


class UsersAdd(GravitinoRequestBody, frozen=True):
    """The body of a request that adds users to a metalake."""

    users: list[UserAdd]


class UsersRemove(GravitinoRequestBody, frozen=True):
    """The body of a request that removes users from a metalake."""

    names: list[str]


async def _each(names: Sequence[str], do: Callable[[int], Awaitable[object]], *, word: str) -> Response:
    """Call `do` for each of several users, and return the outcome of each.

    An error that does not concern one user ends the loop. It is raised if no user was processed yet; otherwise the
    remaining users are reported as failed with that error.
    """
    results: list[object] = []
    errors: list[dict[str, object]] = []
    first_error: LimnosError | None = None
    for index, name in enumerate(names):
        try:
            if first_error is None:
                results.append(await do(index))
                continue
            error = first_error
        except _OF_ONE as refusal:
            error = refusal
        except LimnosError as failure:
            if not results:
                raise
            error = first_error = failure
        errors.append({"index": index, "name": name, **error_body(error)})
    summary = {"total": len(names), "succeeded": len(results), "failed": len(errors)}
    return ok(**{word: results}, errors=errors, summary=summary)


async def _check(ctx: Context, metalake: str, *, count: int) -> None:
    """Check that the caller may manage users. Raises PermissionDenied, and BadRequest for no items or too many."""
    await users.users_require(ctx, metalake=metalake)
    if not 0 < count <= ITEMS_MAX:
        raise BadRequest(f"A request must name 1 to {ITEMS_MAX} users, not {count}")


async def users_add(request: Request, ctx: Context, *, body: UsersAdd) -> Response:
    """Add users to a metalake. Returns the added users, and an error for each of the others."""
    (metalake,) = names_of(request)
    await _check(ctx, metalake, count=len(body.users))

    async def add(index: int) -> dict[str, object]:
        each = body.users[index]
        holder = await users.principal_add(
            ctx,
            metalake=metalake,
            kind=Kind.USER,
            name=each.name,
            external_id=each.external_id,
            enabled=each.enabled is not False,
        )
        return dto.user(holder)

    return await _each([each.name for each in body.users], add, word="users")


async def users_remove(request: Request, ctx: Context, *, body: UsersRemove) -> Response:
    """Remove users from a metalake. Returns the names of the removed users, and an error for each of the others."""
    (metalake,) = names_of(request)
    await _check(ctx, metalake, count=len(body.names))

    async def remove(index: int) -> str:
        name = body.names[index]
        await users.principal_remove(ctx, metalake=metalake, kind=Kind.USER, name=name)
        return name

    return await _each(body.names, remove, word="names")


_MANY = "Failed to operate users operation [%s] under metalake [{0}]"
_USERS = "/bulk/metalakes/{m}/users"
ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="POST",
        path=f"{_USERS}/add",
        handler=wrap_body_handler(_MANY % "ADD", UsersAdd, users_add, access=True),
        operation="add-users",
    ),
    Route(
        method="POST",
        path=f"{_USERS}/remove",
        handler=wrap_body_handler(_MANY % "REMOVE", UsersRemove, users_remove, access=True),
        operation="remove-users",
    ),
)
