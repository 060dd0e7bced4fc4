# SPDX-License-Identifier: Apache-2.0
"""Authentication: determines the user from an Authorization header.

Must not know the network. With `simple` authentication the user name of Basic authentication is accepted without proof.
A token is `lim_<id>_<secret>`: the id finds the stored token, whose hash must match and whose trust level this server
must accept; it may also come as a JWT (`jwt_form`), or as the password of Basic authentication with the token's user or
without a user. The token is a fact of zone 0, so every node refuses a revoked token at the next request. Parsed headers
are cached by their bytes; their validity is not. JWTs of an external issuer are verified by `issuer_tokens`, and their
identities are cached here.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
import time
from typing import NamedTuple, Protocol

from limnos.access.jwt_form import ID_DIGITS_MAX, JWT_PREFIX, claims_of, split_jwt
from limnos.model.entities import Token
from limnos.model.errors import AuthenticationFailed
from limnos.model.kinds import ROOT_ID
from limnos.model.principals import NAME_BYTES_MAX, TokenPurpose, TokenTrust, is_name
from limnos.view.cache_miss import require_fact
from limnos.view.keys import ABSENT, token_key
from limnos.view.view import StoreView

ANONYMOUS = "anonymous"
_PREFIX = "lim_"
_OWN_FORMS = (_PREFIX.encode(), JWT_PREFIX.encode())
_NOBODY = frozenset({b"", b"Bearer None"})
"""Headers without a credential. PyIceberg without a token sends `Bearer None`."""
REMEMBERED_MAX = 10_000
REMEMBERED_BYTES_MAX = 512
"""The maximum length in bytes of a header that is cached. Longer ones are parsed each time, which bounds the cache's
memory.
"""
JWT_POINTS = 2
CHECKED_BYTES_MAX = 16 << 20
"""The maximum size of the cache of checked JWTs, in bytes of headers."""
NO_TOKEN = 1 << 62
"""The root id of a user who is accepted without a token. It matches the current user of that name."""
_VOID_REASONS = {
    TokenTrust.OPEN: "while access control was off and no privileges were checked, and access control is on now",
    TokenTrust.BELIEVED: (
        "by a user who was not authenticated (or before the server recorded that), and this server accepts tokens only"
    ),
}


EXPIRED = "The token has expired: get a new one from its issuer"
EXPIRED_API = "The token has expired: sign in again, or ask an administrator for a new one ('limnos create token')"


class TimeSource(Protocol):
    """The clock of the store. Tokens expire on all nodes at the same time, independent of each node's clock."""

    def now_ms(self) -> int:
        """Return the time in milliseconds since 1970."""


class Credential(NamedTuple):
    """The content of an Authorization header: a user name that is accepted without proof, or a token to verify.

    With `expires_ms` (milliseconds since 1970) the user comes from a verified token of an external issuer.
    """

    user: str | None
    token_id: int = 0
    secret_hash: bytes = b""
    expires_ms: int | None = None
    is_cookie: bool = False
    """Whether the token came in the console's cookie, where only tokens of console sessions are valid."""
    signed_in_ms: int | None = None
    """The time of the sign-in at the external issuer, in milliseconds since 1970; None if its token states none."""
    claims: str = ""
    """The claims of a token in JWT form, which must be those of the stored token."""
    basic_user: str = ""
    """The user of Basic authentication with a token as password, which must be the token's user."""


def hash_secret(secret: str) -> bytes:
    """Hash a token's secret. It has 192 random bits, so a fast hash is enough."""
    return hashlib.sha256(secret.encode()).digest()


def new_secret() -> str:
    """Return a new random secret for a token."""
    return secrets.token_urlsafe(24)


def token_text(token_id: int, secret: str) -> str:
    """Return a token as it is sent, `lim_<id>_<secret>`. It is shown to the token's owner only once."""
    return f"{_PREFIX}{token_id}_{secret}"


class Authenticator:
    """Parses Authorization headers into credentials, with a cache.

    `believes_basic` is true for `access.authentication = simple`. With `has_issuer`, JWTs of an external issuer are
    accepted, too.
    """

    def __init__(self, *, believes_basic: bool, has_issuer: bool = False) -> None:
        self.believes_basic = believes_basic
        self.has_issuer = has_issuer
        self._remembered: dict[bytes, Credential] = {}
        self._checked: dict[bytes, tuple[Credential, float]] = {}
        self._checked_bytes = 0

    def credential(self, header: bytes) -> Credential | None:
        """Parse a header, or return it from the cache. Returns None for a JWT that must be verified first.

        Raises AuthenticationFailed for a malformed header.
        """
        credential = self._remembered.get(header)
        if credential is None:
            if self.has_issuer:
                checked_credential = self._checked.get(header)
                if checked_credential is not None and checked_credential[1] > time.monotonic():
                    return checked_credential[0]
                if is_jwt(header):
                    return None
            credential = self._parse(header)
            if len(header) > REMEMBERED_BYTES_MAX:
                return credential
            if len(self._remembered) >= REMEMBERED_MAX:
                self._remembered.clear()
            self._remembered[header] = credential
        return credential

    def remember(self, header: bytes, credential: Credential, *, for_s: float) -> None:
        """Cache the credential of a verified JWT for `for_s` seconds."""
        if self._checked_bytes > CHECKED_BYTES_MAX:
            self._checked.clear()
            self._checked_bytes = 0
        if header not in self._checked:
            self._checked_bytes += len(header)
        self._checked[header] = credential, time.monotonic() + for_s

    def _parse(self, header: bytes) -> Credential:
        if header in _NOBODY:
            return Credential(user=ANONYMOUS)
        scheme, _, rest = header.partition(b" ")
        if scheme.lower() == b"bearer":
            return _parse_token(rest.strip())
        if scheme.lower() == b"basic":
            user, password = _split_basic(rest.strip())
            if password.startswith((_PREFIX, JWT_PREFIX)):
                return _parse_token(password.encode())._replace(basic_user=user)
            if self.believes_basic:
                return _named_credential(user)
        raise AuthenticationFailed(
            "The Authorization header is not valid: send a token as 'Bearer lim_…', or as the password of Basic"
            + (", or a user as Basic" if self.believes_basic else "")
        )


def cookie_credential(text: bytes) -> Credential:
    """Parse the value of the console's session cookie into a credential. Raises AuthenticationFailed for a malformed
    value.
    """
    return _parse_token(text)._replace(is_cookie=True)


def is_jwt(header: bytes) -> bool:
    """Return whether a header has a bearer token in JWS compact serialization (RFC 7515, section 7.1)."""
    return (
        header[:7].lower() == b"bearer " and header.count(b".") == JWT_POINTS and not header[7:].startswith(_OWN_FORMS)
    )


def _split_basic(encoded: bytes) -> tuple[str, str]:
    """Return user and password of a Basic credential."""
    try:
        user, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError):
        raise AuthenticationFailed("The Basic credential is not base64 of 'user:anything' in UTF-8") from None
    return user, password


def _named_credential(user: str) -> Credential:
    if not user:
        raise AuthenticationFailed("The Basic credential names no user")
    if not is_name(user):
        raise AuthenticationFailed(
            f"The Basic credential's user has more than {NAME_BYTES_MAX} bytes, control characters or bidirectional"
            " formatting characters: send the name that an administrator gave you"
        )
    return Credential(user=user)


def _parse_token(text: bytes) -> Credential:
    if (jwt := split_jwt(text.decode("latin-1"))) is not None:
        return Credential(user=None, token_id=jwt[0], secret_hash=hash_secret(jwt[2]), claims=jwt[1])
    head, _, secret = text.decode("latin-1").removeprefix(_PREFIX).partition("_")
    if not text.startswith(_PREFIX.encode()) or not head.isdecimal() or not secret or len(head) > ID_DIGITS_MAX:
        raise AuthenticationFailed(
            "The Bearer token was not issued by this server: create one with 'limnos create token'"
        )
    return Credential(user=None, token_id=int(head), secret_hash=hash_secret(secret))


def accepted_trusts(*, access_enabled: bool, believes_basic: bool) -> frozenset[TokenTrust]:
    """Return the levels of trust whose tokens this server accepts.

    Tokens that were issued at any other level are refused.
    """
    counts = {TokenTrust.PROVEN}
    if believes_basic:
        counts.add(TokenTrust.BELIEVED)
    if not access_enabled:
        counts.add(TokenTrust.OPEN)
    return frozenset(counts)


def user_of(
    view: StoreView, credential: Credential, trusts: frozenset[TokenTrust], clock: TimeSource
) -> tuple[str, int, Token | None]:
    """Return the user's name, the root id of the token, and the token itself if it gives less than the user's rights.

    The root id is `NO_TOKEN` without a token; the third value is None for any other credential.

    The arguments are positional for speed, because every request calls this function. A token that passed its checks is
    cached until the access revision of zone 0 changes. Its expiry is compared on each call, and an expired token is
    read again.

    Raises:
        AuthenticationFailed: The token is wrong, expired, revoked, of another purpose, or of a level of trust that this
            server refuses.
        CacheMiss: The token is not cached.
    """
    if credential.user is not None:
        if credential.expires_ms is not None and credential.expires_ms <= clock.now_ms():
            raise AuthenticationFailed(EXPIRED, was_right=True)
        return credential.user, NO_TOKEN, None
    memo = view.memo(ROOT_ID)
    token: Token | None = memo.get(credential)
    if token is None or token.is_over(clock.now_ms()):
        # An extension does not advance the access revision, so a cached token may have been extended since.
        token = memo[credential] = _check_token(view, credential, trusts)
    if token.is_over(clock.now_ms()):
        raise AuthenticationFailed(EXPIRED_API, was_right=True)
    return token.user, token.root_id, token if token.table_id is not None or token.second_user_id else None


def known_user(view: StoreView, credential: Credential | None) -> str | None:
    """Return the credential's user if it is cached, else None.

    For the log only: it does not prove the user's identity.
    """
    if credential is None or credential.user is not None:
        return None if credential is None else credential.user
    root = view.zones.get(ROOT_ID)
    if root is None:
        return None
    token: Token | None = root.memo.get(credential)
    if token is None:
        fact = view.get(token_key(credential.token_id))
        token = None if fact is ABSENT else fact
        if token is None or not hmac.compare_digest(token.secret_hash, credential.secret_hash):
            return None
    return token.user


def _check_token(view: StoreView, credential: Credential, trusts: frozenset[TokenTrust]) -> Token:
    token = require_fact(view, token_key(credential.token_id), zone=ROOT_ID)
    if token is None or not hmac.compare_digest(token.secret_hash, credential.secret_hash):
        raise AuthenticationFailed("The token is not valid: create one with 'limnos create token'")
    if credential.claims and credential.claims != claims_of(token):
        raise AuthenticationFailed("The claims of the token are not those that this server issued: fetch a new one")
    if credential.basic_user not in ("", token.user):
        raise AuthenticationFailed(
            "The token belongs to another user than the one named by Basic: name the token's user, or none",
            was_right=True,
        )
    if token.revoked:
        raise AuthenticationFailed(
            "The token was revoked: sign in again, or ask an administrator for a new one ('limnos create token')",
            was_right=True,
        )
    if credential.is_cookie is not (token.purpose is TokenPurpose.CONSOLE):
        raise AuthenticationFailed(
            "A token of a console session is only valid in its cookie: create a token with 'limnos create token'"
        )
    if token.purpose is TokenPurpose.CONSOLE_CODE:
        raise AuthenticationFailed("This code only opens the console: open its address in a browser")
    if token.purpose is TokenPurpose.REFRESH:
        raise AuthenticationFailed(
            "This is a refresh token, which does not authenticate requests: send the session's access token"
        )
    if token.purpose is TokenPurpose.CLIENT:
        raise AuthenticationFailed(
            "This is a service account's secret, which does not authenticate requests: engines fetch tokens with it by"
            " their setting credential=USER:SECRET; programs that call 'limnos' use an API token, which an"
            " administrator creates by 'limnos create token --for USER'"
        )
    if token.trust not in trusts:
        raise AuthenticationFailed(
            f"The token is not valid on this server: it was created {_VOID_REASONS[token.trust]}. Ask an administrator"
            " to create a new one with 'limnos create token' and a valid token",
            was_right=True,
        )
    return token
