# SPDX-License-Identifier: Apache-2.0
"""JWTs of an external issuer: which are accepted, the user that each names, and the message for refused ones."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from joserfc import jwk, jws, jwt

from limnos.access.issuer_tokens import GROUPS_MAX, IssuerRules, UnknownSigningKey, identity_of, keys_of
from limnos.model.errors import AuthenticationFailed
from limnos.model.principals import IssuerIdentity

NOW_S = 1_800_000_000
RULES = IssuerRules(
    issuer="https://sign.example.com/",
    audiences=frozenset({"limnos", "lake"}),
    user_claim="sub",
    groups_claim="groups",
    skew_s=60,
)
RSA = jwk.RSAKey.generate_key(2048, parameters={"kid": "r1"})
OTHER = jwk.RSAKey.generate_key(2048, parameters={"kid": "r1"})
EC = jwk.ECKey.generate_key("P-256", parameters={"kid": "e1"})
PUBLISHED: dict[str, Any] = {"keys": [RSA.as_dict(private=False), EC.as_dict(private=False)]}
KEYS = keys_of(PUBLISHED)
GOOD: dict[str, Any] = {"iss": RULES.issuer, "aud": "limnos", "sub": "ana", "iat": NOW_S, "exp": NOW_S + 600}


def token(claims: dict[str, Any], key: Any = RSA, *, alg: str = "RS256", **header: object) -> str:  # noqa: ANN401
    """Return a signed token."""
    head = {"alg": alg, "kid": key.kid, **header}
    return jwt.encode(head, claims, key, algorithms=[alg])


def read(text: str, rules: IssuerRules = RULES) -> IssuerIdentity:
    """Check a token at the test's time."""
    return identity_of(text, KEYS, rules=rules, now_ms=NOW_S * 1000)


@pytest.mark.parametrize("key, alg", [(RSA, "RS256"), (RSA, "PS384"), (EC, "ES256")], ids=["rs256", "ps384", "es256"])
def test_token_signed_by_published_key_is_accepted(key: Any, alg: str) -> None:  # noqa: ANN401
    """A token signed by a published key is accepted. Its times are in milliseconds, and its expiry includes the allowed
    clock skew.
    """
    identity = read(token({**GOOD, "groups": ["b", "a", "b", "bad\nname"]}, key, alg=alg))

    assert identity == IssuerIdentity(
        user="ana",
        issued_ms=NOW_S * 1000,
        expires_ms=(NOW_S + 660) * 1000,
        groups=("a", "b"),
        signed_in_ms=NOW_S * 1000,
    )


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": ["x", "lake"]},
        {"exp": NOW_S - 59},
        {"iat": NOW_S + 59},
        {"nbf": NOW_S + 59},
        {"iat": NOW_S + 0.5},
        {"groups": []},
        {"groups": "crew"},
        {"typ": "whatever"},
    ],
    ids=str,
)
def test_matching_audience_and_clock_skew_are_accepted(claims: dict[str, Any]) -> None:
    """One matching audience of several is sufficient, and clocks may differ by the allowed skew."""
    assert read(token({**GOOD, **claims})).user == "ana"


@pytest.mark.parametrize(
    "claims, words",
    [
        ({"iss": "https://evil.example.com/"}, "comes from 'https://evil.example.com/'"),
        ({"iss": "https://sign.example.com"}, "accepts tokens of https://sign.example.com/ only"),
        ({"iss": None}, "comes from 'None'"),
        ({"aud": "other"}, "'aud' is lake or limnos"),
        ({"aud": {"limnos": 1}}, "'aud' is"),
        ({"aud": None}, "'aud' is"),
        ({"exp": NOW_S - 61}, "has expired"),
        ({"exp": None}, "no valid time in its claim 'exp'"),
        ({"exp": "soon"}, "no valid time in its claim 'exp'"),
        ({"exp": True}, "no valid time in its claim 'exp'"),
        ({"exp": 1e300}, "no valid time in its claim 'exp'"),
        ({"exp": -1}, "no valid time in its claim 'exp'"),
        ({"nbf": NOW_S + 61}, "not valid yet"),
        ({"iat": NOW_S + 61}, "not valid yet"),
        ({"sub": None}, "no user name in its claim 'sub'"),
        ({"sub": ""}, "no user name"),
        ({"sub": ["ana"]}, "no user name"),
        ({"sub": "a\u202eb"}, "no user name"),
        ({"sub": "x" * 256}, "no user name"),
        ({"sub": "anonymous"}, "not anonymous"),
        ({"groups": {"a": 1}}, "no list of at most"),
        ({"groups": [1]}, "no list of at most"),
        ({"groups": [str(i) for i in range(GROUPS_MAX + 1)]}, "no list of at most"),
        ({"pad": "x" * 20_000}, "longer than 16384 bytes"),
    ],
)
def test_invalid_claims_are_refused_with_advice(claims: dict[str, Any], words: str) -> None:
    """A missing or wrong claim, or one of the wrong type, is refused with advice."""
    with pytest.raises(AuthenticationFailed, match=words):
        read(token({**GOOD, **claims}))


def test_only_expiry_is_a_required_claim() -> None:
    """A token without an expiry is refused. Without a start time it is valid now, and without groups it has none."""
    with pytest.raises(AuthenticationFailed, match="no valid time in its claim 'exp'"):
        read(token({name: value for name, value in GOOD.items() if name != "exp"}))

    undated = read(undated_token(NOW_S + 600))
    assert (undated.user, undated.expires_ms, undated.groups) == ("ana", (NOW_S + 660) * 1000, ())
    assert read(token(GOOD), RULES._replace(groups_claim=None)).groups is None


def undated_token(expires_s: int) -> str:
    """Return a token without an issue time."""
    return token({**{name: value for name, value in GOOD.items() if name != "iat"}, "exp": expires_s})


def test_token_without_issue_time_is_older_than_any_other() -> None:
    """A token without `iat` never counts as newer than one that has it, whenever it is verified. Of two such tokens the
    one that expires later counts as newer.
    """
    oldest = read(token({**GOOD, "iat": 0}))
    first, second = (read(undated_token(NOW_S + seconds)) for seconds in (600, 900))

    assert first.issued_ms < second.issued_ms < oldest.issued_ms
    assert first == identity_of(undated_token(NOW_S + 600), KEYS, rules=RULES, now_ms=NOW_S * 1000 + 5_000)


@pytest.mark.parametrize(
    "claims, signed_in_s",
    [
        ({}, NOW_S),
        ({"auth_time": NOW_S - 3600}, NOW_S - 3600),
        ({"auth_time": NOW_S, "iat": NOW_S - 60}, NOW_S),
    ],
    ids=str,
)
def test_time_of_sign_in_is_that_of_the_issuer(claims: dict[str, Any], signed_in_s: int) -> None:
    """The sign-in is at the claim `auth_time`, else at `iat`; a token with neither states no time."""
    assert read(token({**GOOD, **claims})).signed_in_ms == signed_in_s * 1000
    assert read(undated_token(NOW_S + 600)).signed_in_ms is None


def test_signature_by_another_key_is_refused() -> None:
    """A signature by another key with the published key's id is refused, and so is a changed payload."""
    with pytest.raises(AuthenticationFailed, match="does not match the issuer's key"):
        read(token(GOOD, OTHER))
    head, _, signature = token(GOOD).split(".")
    body = base64.urlsafe_b64encode(json.dumps({**GOOD, "sub": "admin"}).encode()).rstrip(b"=").decode()
    with pytest.raises(AuthenticationFailed, match="does not match the issuer's key"):
        read(f"{head}.{body}.{signature}")


def test_unsigned_and_hmac_signed_tokens_are_refused() -> None:
    """Unsigned tokens, and those signed by the public key as a shared secret, are refused before a key is looked up."""
    head = base64.urlsafe_b64encode(json.dumps({"alg": "none", "kid": "r1"}).encode()).rstrip(b"=").decode()
    body = token(GOOD).split(".")[1]
    with pytest.raises(AuthenticationFailed, match="signed by 'none'"):
        read(f"{head}.{body}.")
    secret = jwk.OctKey.import_key(json.dumps(PUBLISHED["keys"][0]))
    forged = jws.serialize_compact({"alg": "HS256", "kid": "r1"}, json.dumps(GOOD), secret, algorithms=["HS256"])
    with pytest.raises(AuthenticationFailed, match="signed by 'HS256'"):
        read(forged)


def test_unknown_key_id_is_refused_and_absent_id_tries_all_keys() -> None:
    """An unknown key id has its own error; a token without a key id is checked with all keys."""
    with pytest.raises(UnknownSigningKey):
        read(token(GOOD, RSA, kid="r2"))

    unnamed = jwt.encode({"alg": "RS256"}, GOOD, RSA, algorithms=["RS256"])
    assert read(unnamed).user == "ana"
    with pytest.raises(UnknownSigningKey):
        read(jwt.encode({"alg": "RS256"}, GOOD, OTHER, algorithms=["RS256"]))
    both = keys_of({"keys": [OTHER.as_dict(private=False), RSA.as_dict(private=False)]})
    assert identity_of(token(GOOD), both, rules=RULES, now_ms=NOW_S * 1000).user == "ana"


@pytest.mark.parametrize(
    "text",
    [
        "..",
        "a.b.c",
        "\xff.\xff.\xff",
        "e30.e30.e30",
        "bnVsbA.bnVsbA.",
        "W10.W10.W10",
        "eyJhbGciOiJSUzI1NiJ9.!.!",
        "eyJhbGciOlsxXX0.e30.e30",
        "eyJhbGciOiJSUzI1NiIsImtpZCI6W119.e30.e30",
        "eyJhbGciOiJSUzI1NiIsImNyaXQiOlsieCJdLCJ4IjoxLCJraWQiOiJyMSJ9.e30.e30",
    ],
)
def test_malformed_token_is_refused(text: str) -> None:
    """Any malformed token is refused, without a server error."""
    with pytest.raises((AuthenticationFailed, UnknownSigningKey)):
        read(text)


def test_deep_json_is_refused() -> None:
    """Claims that are nested too deeply are refused."""
    deep = "[" * 6000 + "]" * 6000
    text = jws.serialize_compact({"alg": "RS256", "kid": "r1"}, f'{{"a":{deep}}}', RSA)
    with pytest.raises(AuthenticationFailed):
        read(text)


def test_unusable_keys_of_a_set_are_ignored() -> None:
    """Keys of other types and uses and malformed ones are ignored, private parts are not read, and a malformed set is
    an error.
    """
    listed: list[Any] = [
        RSA.as_dict(private=True),
        {**EC.as_dict(private=False), "use": "enc"},
        {"kty": "oct", "k": "c2VjcmV0", "kid": "o"},
        7,
        {"kty": "RSA", "kid": "broken", "n": "?", "e": "AQAB"},
        {"kty": "XX"},
    ]

    keys = keys_of({"keys": listed})

    assert list(keys) == ["r1"]
    assert not keys["r1"][0].is_private
    for wrong in (None, [], {"keys": {}}, {"keys": [{}] * 101}, "x"):
        with pytest.raises(ValueError, match="not a JWK set"):
            keys_of(wrong)
