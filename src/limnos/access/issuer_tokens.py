# SPDX-License-Identifier: Apache-2.0
"""Tokens of an external issuer: verifies a JWT with the issuer's keys and returns the user's identity.

Must not know the network or clocks: the caller passes the keys (`services.identity.signing_in` fetches them) and the
time. It follows RFC 7519 (claims), RFC 8725 (the server chooses the algorithms, never the token) and OpenID Connect
Core 1.0, section 3.1.3.7.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from joserfc import errors, jwk, jws, jwt

from limnos.access.authentication import ANONYMOUS, EXPIRED
from limnos.model.errors import AuthenticationFailed
from limnos.model.principals import NAME_BYTES_MAX, IssuerIdentity, is_name

ALGORITHMS: Final = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
)
"""Only asymmetric algorithms: the issuer's published keys can verify tokens but not sign them."""
TOKEN_BYTES_MAX: Final = 16_384
GROUPS_MAX: Final = 1_000
KEYS_MAX: Final = 100
UNDATED_MS: Final = 1 << 60
"""Subtracted from the expiry time of a token without `iat`. The result is negative, so below every issue time."""

Key = jwk.RSAKey | jwk.ECKey
Keys = dict[str, tuple[Key, ...]]
"""Keys by their key id (`kid`); keys without one are listed under ""."""


class IssuerRules(NamedTuple):
    """The required issuer and audiences, the claims that name the user and the groups, and the allowed clock skew."""

    issuer: str
    audiences: frozenset[str]
    user_claim: str
    groups_claim: str | None
    skew_s: int


class UnknownSigningKey(Exception):
    """Raised if no key has the token's `kid`, or if the token has no `kid` and no key verifies its signature."""


def keys_of(document: object) -> Keys:
    """Read the public keys of a JWK set (RFC 7517, section 5).

    Malformed keys, key types other than RSA and EC, and keys that are not for signatures are omitted. Raises ValueError
    for a document that is not a JWK set of at most `KEYS_MAX` keys.
    """
    key_list = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(key_list, list) or len(key_list) > KEYS_MAX:
        raise ValueError(f"it is not a JWK set of at most {KEYS_MAX} keys")
    results: Keys = {}
    for each in key_list:
        if not isinstance(each, dict) or each.get("kty") not in ("RSA", "EC") or each.get("use", "sig") != "sig":
            continue
        try:
            key = jwk.import_key({name: value for name, value in each.items() if name in _PUBLIC})
        except (errors.JoseError, ValueError, TypeError):
            continue
        if isinstance(key, Key):
            kid = str(each.get("kid", ""))
            results[kid] = (*results.get(kid, ()), key)
    return results


_PUBLIC: Final = frozenset({"kty", "kid", "use", "alg", "n", "e", "crv", "x", "y"})


def identity_of(text: str, keys: Keys, *, rules: IssuerRules, now_ms: int, nonce: str | None = None) -> IssuerIdentity:
    """Verify a token and return the identity in it.

    With `nonce`, the token must be the ID token of the sign-in with this nonce, issued to a client in
    `rules.audiences`.

    Raises:
        AuthenticationFailed: The token is invalid; the message has the reason.
        UnknownSigningKey: The issuer's keys may have changed: fetch them and call again.
    """
    claims = _verify(text, keys)
    _check_issuer_and_audience(claims, rules)
    if nonce is not None:
        _check_own_sign_in(claims, rules, nonce=nonce)
    skew_ms = rules.skew_s * 1000
    expires_ms = _time_claim(claims, "exp") + skew_ms
    # A token without an issue time never counts as newer than one that has it; such tokens are ordered by expiry.
    issued_ms = _time_claim(claims, "iat") if "iat" in claims else expires_ms - UNDATED_MS
    if expires_ms <= now_ms:
        raise AuthenticationFailed(EXPIRED, was_right=True)
    if max(issued_ms, _time_claim(claims, "nbf") if "nbf" in claims else 0) > now_ms + skew_ms:
        raise _invalid_token("is not valid yet: compare the clocks of the issuer and of this server's database")
    signed_in_ms = next((_time_claim(claims, name) for name in ("auth_time", "iat") if name in claims), None)
    return IssuerIdentity(
        user=_user(claims, rules),
        issued_ms=issued_ms,
        expires_ms=expires_ms,
        groups=_groups(claims, rules),
        signed_in_ms=signed_in_ms,
    )


def _verify(text: str, keys: Keys) -> dict[str, object]:
    if len(text) > TOKEN_BYTES_MAX:
        raise _invalid_token(f"is longer than {TOKEN_BYTES_MAX} bytes: have the issuer put fewer claims into it")
    try:
        header = jws.extract_compact(text.encode("latin-1"), registry=_REGISTRY).headers()
        if header.get("alg") not in ALGORITHMS:
            raise _invalid_token(
                f"is signed by {header.get('alg')!a}, which is not accepted: sign with one of {', '.join(ALGORITHMS)}"
            )
        kid = header.get("kid")
        usable = [key for each in keys.values() for key in each] if kid is None else keys.get(kid, ())
        claims = _decode_claims(text, usable)
    except (errors.JoseError, ValueError, TypeError, RecursionError) as error:
        raise _invalid_token(
            f"cannot be checked ({type(error).__name__}): send it exactly as the issuer issued it"
        ) from None
    if claims is not None:
        return claims
    if kid is None or not usable:
        raise UnknownSigningKey
    raise _invalid_token("has a signature that does not match the issuer's key of that name")


_REGISTRY: Final = jws.JWSRegistry(algorithms=list(ALGORITHMS), strict_check_header=False)
_REGISTRY.max_header_length = TOKEN_BYTES_MAX


def _decode_claims(text: str, usable: Iterable[Key]) -> dict[str, object] | None:
    """Return the claims if one of the keys verifies the token's signature, else None."""
    for key in usable:
        try:
            return jwt.decode(text, key, algorithms=ALGORITHMS, registry=_REGISTRY).claims
        except (errors.BadSignatureError, errors.InvalidKeyTypeError, errors.InvalidKeyCurveError):
            continue
    return None


def _check_issuer_and_audience(claims: Mapping[str, object], rules: IssuerRules) -> None:
    if claims.get("iss") != rules.issuer:
        raise _invalid_token(
            f"comes from {str(claims.get('iss'))[:200]!a}: this server accepts tokens of {rules.issuer} only"
        )
    claim = claims.get("aud")
    audiences = {claim} if isinstance(claim, str) else set(map(str, claim)) if isinstance(claim, list) else set()
    if not audiences & rules.audiences:
        raise _invalid_token(
            "is not meant for this server: ask the issuer for one whose 'aud' is"
            f" {' or '.join(sorted(rules.audiences))}"
        )


def _check_own_sign_in(claims: Mapping[str, object], rules: IssuerRules, *, nonce: str) -> None:
    """Check the claims `nonce` and `azp` of an ID token (OpenID Connect Core 1.0, section 3.1.3.7).

    Raises AuthenticationFailed for a token of another sign-in or another client.
    """
    if claims.get("nonce") != nonce:
        raise _invalid_token("belongs to another sign-in: sign in again")
    party = claims.get("azp")
    audiences = claims.get("aud")
    if (party is not None or (isinstance(audiences, list) and len(audiences) > 1)) and party not in rules.audiences:
        raise _invalid_token("was issued to another client of the issuer: sign in again")


def _time_claim(claims: Mapping[str, object], name: str) -> int:
    seconds = claims.get(name)
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 <= seconds < 1 << 40:
        raise _invalid_token(f"has no valid time in its claim '{name}'")
    return int(seconds * 1000)


def _user(claims: Mapping[str, object], rules: IssuerRules) -> str:
    name = claims.get(rules.user_claim)
    if not isinstance(name, str) or not is_name(name) or name == ANONYMOUS:
        raise _invalid_token(
            f"has no user name in its claim '{rules.user_claim}': it must be a string of 1 to {NAME_BYTES_MAX} bytes"
            f" without control characters and not {ANONYMOUS}"
        )
    return name


def _groups(claims: Mapping[str, object], rules: IssuerRules) -> tuple[str, ...] | None:
    """Return the groups named in the token, or None if the rules name no groups claim.

    If they name one, a token without that claim means no groups. Invalid group names are omitted. Raises
    AuthenticationFailed if the claim is not a list of at most `GROUPS_MAX` strings.
    """
    if rules.groups_claim is None:
        return None
    claim = claims.get(rules.groups_claim, [])
    group_list = [claim] if isinstance(claim, str) else claim
    if (
        not isinstance(group_list, list)
        or len(group_list) > GROUPS_MAX
        or not all(isinstance(each, str) for each in group_list)
    ):
        raise _invalid_token(f"has no list of at most {GROUPS_MAX} group names in its claim '{rules.groups_claim}'")
    return tuple(sorted({each for each in group_list if is_name(each)}))


def _invalid_token(what: str) -> AuthenticationFailed:
    return AuthenticationFailed(f"The token of the external issuer {what}")
