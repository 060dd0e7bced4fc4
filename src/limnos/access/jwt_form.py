# SPDX-License-Identifier: Apache-2.0
"""The JWT form of a token of this server, for clients that read the expiry from the token itself.

A JWT (RFC 7519) has three parts: a fixed header, claims, and a signature. The signature is the token's secret, whose
hash the server stores; the claims must be those of the stored token. So the token's rights, end and revocation are
decided by the stored token at each request, as for a token in the form `lim_<id>_<secret>`.
"""

from __future__ import annotations

import base64
import binascii
from typing import Final

import msgspec

from limnos.model.entities import Token

JWT_PREFIX: Final = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"limnos","typ":"JWT"}').rstrip(b"=").decode() + "."
"""The first part of each JWT of this server. Issuers sign by other algorithms (`issuer_tokens.ALGORITHMS`)."""
ID_DIGITS_MAX: Final = 16
"""The maximum number of digits of a token's id. Longer ones are no ids: the store's integers have 64 bits."""


class _Claims(msgspec.Struct, frozen=True, kw_only=True):
    iss: str = "limnos"
    sub: str
    iat: int
    exp: int
    jti: str


def claims_of(token: Token) -> str:
    """Return the claims of a token, as the second part of its JWT; "" for a token without an expiry, which has none."""
    if token.expires_at is None:
        return ""
    claims = _Claims(sub=token.user, iat=token.created_at // 1000, exp=token.expires_at // 1000, jti=str(token.id))
    return base64.urlsafe_b64encode(msgspec.json.encode(claims)).rstrip(b"=").decode()


def jwt_text(token: Token, secret: str) -> str:
    """Return the JWT of a token that expires."""
    return f"{JWT_PREFIX}{claims_of(token)}.{secret}"


def split_jwt(text: str) -> tuple[int, str, str] | None:
    """Return the token's id, the claims and the secret of a JWT of this server; None for any other text."""
    if not text.startswith(JWT_PREFIX):
        return None
    claims, _, secret = text.removeprefix(JWT_PREFIX).partition(".")
    try:
        document = base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4))
        token_id = msgspec.json.decode(document, type=_Claims).jti
    except (binascii.Error, ValueError):
        return None
    is_id = token_id.isascii() and token_id.isdecimal() and len(token_id) <= ID_DIGITS_MAX
    return (int(token_id), claims, secret) if is_id and secret else None
