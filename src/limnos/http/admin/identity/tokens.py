# SPDX-License-Identifier: Apache-2.0
"""API tokens: list, create, revoke. A token's value is only in the response that creates it.

Has no business rules.
"""

from __future__ import annotations

from limnos.http.admin.bodies import AdminRequestBody, names_of
from limnos.http.admin.numbers import number_of
from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.http.times import instant
from limnos.model.entities import Token
from limnos.model.errors import BadRequest, NotFound
from limnos.services.identity import tokens
from limnos.services.request.context import Context


class TokenCreate(AdminRequestBody, frozen=True):
    """The body of a request to create a token.

    It is for the caller unless `user` is set, and never expires unless `expires_in_s` is set.
    """

    user: str | None = None
    name: str | None = None
    expires_in_s: int | None = None


async def tokens_list(request: Request, ctx: Context) -> Response:
    """Return the tokens of the caller, of `user`, or with `all` of all users, without their values.

    `state` is `valid`, or why a token is of no effect: `revoked`, `expired`, `untrusted`, `user missing` or
    `user disabled`.
    """
    user, everybody = request.query("user"), request.query_flag("all")
    if user is not None and everybody:
        raise BadRequest("Give either user or all: they select different tokens")

    result = await tokens.tokens_visible(ctx, user, everybody=everybody)
    return json_response({"tokens": [{**_encode(each.token), "state": each.state.value} for each in result]})


async def token_create(request: Request, ctx: Context) -> Response:
    """Create an API token. Only this response contains its value."""
    body = Request.decode(await request.body(), TokenCreate)
    token, text = await tokens.token_create(ctx, user=body.user, name=body.name or "", expires_in_s=body.expires_in_s)
    return json_response({**_encode(token), "token": text})


async def token_revoke(request: Request, ctx: Context) -> Response:
    """Revoke a token, and return whether it was valid before."""
    (text,) = names_of(request)
    token_id = number_of(text)
    if token_id is None:
        raise NotFound(f"Token {text[:50]} does not exist: the id is a number, see 'limnos list tokens'", kind="token")
    return json_response({"revoked": await tokens.token_revoke(ctx, token_id=token_id)})


def _encode(token: Token) -> dict[str, object]:
    return {
        "id": token.id,
        "user": token.user,
        "name": token.name or None,
        "created_at": instant(token.created_at),
        "expires_at": instant(token.expires_at),
        "revoked": token.revoked,
        "trust": token.trust.value,
    }


ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="GET", path="/api/limnos/v1/tokens", handler=tokens_list, operation="list-tokens", query=("user", "all")
    ),
    Route(method="POST", path="/api/limnos/v1/tokens", handler=token_create, operation="create-token"),
    Route(method="DELETE", path="/api/limnos/v1/tokens/{id}", handler=token_revoke, operation="revoke-token"),
)
