# SPDX-License-Identifier: Apache-2.0
"""Service accounts: list, create and revoke their secrets. A secret's value is only in the response that creates it.

Has no business rules.
"""

from __future__ import annotations

from limnos.http.admin.bodies import AdminRequestBody, names_of
from limnos.http.admin.identity.logins import NO_STORE
from limnos.http.admin.numbers import number_of
from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.http.route_targets import Handler
from limnos.http.routing import Route
from limnos.http.times import instant
from limnos.model.entities import Token
from limnos.model.errors import NotFound
from limnos.services.identity import service_accounts
from limnos.services.request.context import Context


class SecretCreate(AdminRequestBody, frozen=True):
    """A secret to create. Without `expires_in_s` it never expires."""

    expires_in_s: int | None = None


async def secrets_list(request: Request, ctx: Context) -> Response:
    """Return a service account's secrets, without their values.

    `state` is `valid`, or why a secret is of no effect: `revoked`, `expired`, `untrusted`, `user missing` or
    `user disabled`.
    """
    (user,) = names_of(request)
    secrets = await service_accounts.secrets_list(ctx, user=user)
    return json_response({"secrets": [{**_encode(each.token), "state": each.state.value} for each in secrets]})


async def accounts_list(_request: Request, ctx: Context) -> Response:
    """Return the service accounts that have a valid secret, each with its count of valid secrets, the creation time of
    the newest, and the latest expiry time.
    """
    accounts = [
        {
            "user": each.user,
            "secrets": each.secrets,
            "newest_at": instant(each.newest_at),
            "ends_at": instant(each.ends_at),
        }
        for each in await service_accounts.accounts_list(ctx)
    ]
    return json_response({"service_accounts": accounts})


async def secret_create(request: Request, ctx: Context) -> Response:
    """Create an additional secret for a service account. Only this response contains its value."""
    (user,) = names_of(request)
    text = await request.body()
    body = Request.decode(text, SecretCreate) if text else SecretCreate()
    secret, message = await service_accounts.secret_create(ctx, user=user, expires_in_s=body.expires_in_s)
    return json_response({**_encode(secret), "client_id": user, "client_secret": message}, headers=NO_STORE)


async def secret_end(request: Request, ctx: Context) -> Response:
    """Revoke a secret with all tokens issued for it. Returns whether it was valid."""
    user, text = names_of(request)
    secret_id = number_of(text)
    if secret_id is None:
        raise NotFound(f"A secret's id is a number, not {text[:50]!a}: see 'limnos list secrets'", kind="secret")
    return json_response({"ended": await service_accounts.secret_end(ctx, user=user, secret_id=secret_id)})


def _encode(secret: Token) -> dict[str, object]:
    return {
        "id": secret.id,
        "created_at": instant(secret.created_at),
        "expires_at": instant(secret.expires_at),
        "ended": secret.revoked,
    }


ROUTES: tuple[Route[Handler], ...] = (
    Route(
        method="GET", path="/api/limnos/v1/service-accounts", handler=accounts_list, operation="list-service-accounts"
    ),
    Route(method="GET", path="/api/limnos/v1/users/{u}/secrets", handler=secrets_list, operation="list-secrets"),
    Route(method="POST", path="/api/limnos/v1/users/{u}/secrets", handler=secret_create, operation="create-secret"),
    Route(method="DELETE", path="/api/limnos/v1/users/{u}/secrets/{id}", handler=secret_end, operation="end-secret"),
)
