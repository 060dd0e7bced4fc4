# SPDX-License-Identifier: Apache-2.0
"""OAuth client credentials, for clients configured with `credential=`: it may be a service account's secret or an API
token.

Must not know token formats. It follows RFC 6749 (sections 2.3.1, 4.4, 5) and RFC 8693 (token exchange, with which
clients renew a token). The specification deprecates this route and keeps it for such clients. Gravitino's clients read
a token's end from the token, so that they get a JWT for the scope `gravitino`. Errors have OAuth's form, not Iceberg's.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl, unquote_plus

from limnos.http.request import Request
from limnos.http.response import Response, json_response
from limnos.model.errors import AuthenticationFailed, BadRequest
from limnos.services.identity.service_accounts import IssuedToken, token_by_secret, token_exchange
from limnos.services.request.context import Context

EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS_TOKEN: Final = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - a type, not a token
JWT_SCOPE: Final = "gravitino"
FIELDS_MAX: Final = 50
_NO_STORE: Final = ((b"cache-control", b"no-store"),)
_ERRORS: Final = {401: "invalid_client"}


async def token_issue(request: Request, ctx: Context) -> Response:
    """Return a token for client credentials, or in exchange for an earlier token."""
    form = _form(await request.body())
    grant_type = form.get("grant_type")
    header = request.headers.get(b"authorization", b"").decode("latin-1")
    as_jwt = JWT_SCOPE in form.get("scope", "").split()
    if grant_type == EXCHANGE:
        access = await _exchange_token(ctx, form, header=header, as_jwt=as_jwt)
    elif grant_type == "client_credentials":
        client, secret = _client(form, header)
        access = await token_by_secret(ctx, client=client, text=secret, as_jwt=as_jwt)
    else:
        context = {} if grant_type is None else {"oauth": "unsupported_grant_type"}
        raise BadRequest(
            f"grant_type must be client_credentials or {EXCHANGE}, not {str(grant_type)[:100]!a}", **context
        )
    body: dict[str, object] = {"access_token": access.token, "token_type": "bearer", "issued_token_type": ACCESS_TOKEN}
    if access.expires_in_s is not None:
        body["expires_in"] = access.expires_in_s
    if "scope" in form:
        body["scope"] = form["scope"]
    return json_response(body, headers=_NO_STORE)


async def _exchange_token(ctx: Context, form: Mapping[str, str], *, header: str, as_jwt: bool) -> IssuedToken:
    """Exchange a token for a new one (RFC 8693).

    An expired token is renewed if the client sends its secret, too, as Iceberg's Java client does.
    """
    try:
        return await token_exchange(ctx, text=form.get("subject_token", ""), as_jwt=as_jwt)
    except AuthenticationFailed:
        client, secret = _client(form, header)
        if not secret:
            raise
    return await token_by_secret(ctx, client=client, text=secret, as_jwt=as_jwt)


def oauth_error(error: Exception, response: Response) -> Response:
    """Convert an error response to OAuth's error body, with the same status, headers and reason."""
    otherwise = "invalid_request" if response.status < 500 and response.status != 429 else "temporarily_unavailable"
    word = getattr(error, "context", {}).get("oauth") or _ERRORS.get(response.status, otherwise)
    result = json_response(
        {"error": word, "error_description": str(error)}, response.status, (*response.headers[1:], *_NO_STORE)
    )
    result.reason = response.reason
    return result


def _form(body: bytes) -> Mapping[str, str]:
    """Parse a URL-encoded form. Raises BadRequest if it is malformed or repeats a field."""
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, strict_parsing=True, max_num_fields=FIELDS_MAX)
    except (UnicodeDecodeError, ValueError):
        raise BadRequest(
            "The body is not a form: send grant_type=client_credentials&client_id=…&client_secret=…"
        ) from None
    form = dict(pairs)
    if len(form) < len(pairs):
        raise BadRequest("A field of the form is repeated: send each once")
    return form


def _client(form: Mapping[str, str], header: str) -> tuple[str, str]:
    """Return a client's id and secret, from the header (RFC 6749, section 2.3.1) or the form.

    Raises BadRequest if both contain the secret, AuthenticationFailed if the header is malformed.
    """
    scheme, _, encoded = header.partition(" ")
    if scheme.lower() != "basic":
        return form.get("client_id", ""), form.get("client_secret", "")
    if "client_secret" in form:
        raise BadRequest("The client's secret is in the header and in the form: send it once")
    try:
        name, _, secret = base64.b64decode(encoded.strip(), validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError, ValueError):
        raise AuthenticationFailed("The Basic credential is not base64 of 'ID:SECRET' in UTF-8") from None
    return unquote_plus(name), unquote_plus(secret)
