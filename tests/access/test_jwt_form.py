# SPDX-License-Identifier: Apache-2.0
"""Tokens of this server as JWTs: their three parts, and what is not one."""

from __future__ import annotations

import base64
import json

import pytest

from limnos.access.jwt_form import JWT_PREFIX, claims_of, jwt_text, split_jwt
from limnos.model.entities import Token
from limnos.model.principals import TokenTrust

TOKEN = Token(
    id=7,
    user="ana",
    name="access",
    secret_hash=b"",
    created_at=1_000,
    expires_at=3_601_000,
    revoked=False,
    trust=TokenTrust.PROVEN,
    root_id=5,
)


def test_jwt_states_user_times_and_id_in_seconds() -> None:
    """The second part of a JWT is a JSON object with the user, the times in seconds and the token's id."""
    header, claims, secret = jwt_text(TOKEN, "s-e_c").split(".")

    assert json.loads(base64.urlsafe_b64decode(header + "==")) == {"alg": "HS256", "kid": "limnos", "typ": "JWT"}
    document = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
    assert document == {"iss": "limnos", "sub": "ana", "iat": 1, "exp": 3601, "jti": "7"}
    assert secret == "s-e_c"
    assert split_jwt(jwt_text(TOKEN, "s-e_c")) == (7, claims_of(TOKEN), "s-e_c")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "lim_7_x",
        "eyJhbGciOiJSUzI1NiJ9.e30.x",
        JWT_PREFIX,
        f"{JWT_PREFIX}.x",
        f"{JWT_PREFIX}e30.x",
        f"{JWT_PREFIX}%.x",
        f"{JWT_PREFIX}{claims_of(TOKEN)}",
        f"{JWT_PREFIX}{claims_of(TOKEN)}.",
        f"{JWT_PREFIX}é.x",
    ],
)
def test_other_texts_are_no_jwt_of_this_server(text: str) -> None:
    """Tokens of issuers, opaque tokens and truncated JWTs are no JWT of this server."""
    assert split_jwt(text) is None


@pytest.mark.parametrize("token_id", ["9" * 17, "9" * 5_000, "-7", "７", " 7", ""])
def test_claims_without_an_id_of_the_store_are_no_jwt_of_this_server(token_id: str) -> None:
    """Whoever writes the claims may write any id; one that the store cannot have is refused before it is looked up."""
    claims = {"iss": "limnos", "sub": "ana", "iat": 1, "exp": 2, "jti": token_id}
    part = base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()

    assert split_jwt(f"{JWT_PREFIX}{part}.x") is None
