# SPDX-License-Identifier: Apache-2.0
"""Authorization headers: the user that each names, which credentials are accepted, and what is cached."""

from __future__ import annotations

import base64

import pytest

from limnos.access.authentication import REMEMBERED_BYTES_MAX, REMEMBERED_MAX, Authenticator, Credential, token_text
from limnos.model.errors import AuthenticationFailed


def basic(user: str | bytes) -> bytes:
    """Return a Basic header."""
    name = user if isinstance(user, bytes) else user.encode()
    return b"Basic " + base64.b64encode(name + b":x")


@pytest.mark.parametrize("believes_basic", [False, True])
def test_api_token_is_accepted_as_the_password_of_basic(believes_basic: bool) -> None:
    """The password of Basic may be a token, whether names are believed or not: the credential is the token, and
    remembers the user's name. Any other password counts for nothing, or is refused where only tokens are accepted.
    """
    secret = token_text(7, "secret")
    authenticator = Authenticator(believes_basic=believes_basic)
    expected = authenticator.credential(b"Bearer " + secret.encode())
    assert expected is not None

    for user in ("ana", ""):
        header = b"Basic " + base64.b64encode(f"{user}:{secret}".encode())
        assert authenticator.credential(header) == expected._replace(basic_user=user)
    for password in ("", "x", f"Bearer {secret}"):
        header = b"Basic " + base64.b64encode(f"ana:{password}".encode())
        if believes_basic:
            assert authenticator.credential(header) == Credential(user="ana")
        else:
            with pytest.raises(AuthenticationFailed):
                authenticator.credential(header)
    for password in ("lim_", "lim_x_y"):
        with pytest.raises(AuthenticationFailed):
            authenticator.credential(b"Basic " + base64.b64encode(f"ana:{password}".encode()))


@pytest.mark.parametrize("scheme", [b"Basic ", b"basic ", b"BASIC "])
def test_basic_user_is_refused_in_token_only_mode(scheme: bytes) -> None:
    """If only tokens are accepted, a user named by Basic is refused."""
    header = scheme + base64.b64encode(b"admin:x")

    assert Authenticator(believes_basic=True).credential(header) == Credential(user="admin")
    with pytest.raises(AuthenticationFailed, match=r"send a token as 'Bearer lim_…', or as the password of Basic$"):
        Authenticator(believes_basic=False).credential(header)


def test_simple_mode_refusal_names_both_header_forms() -> None:
    """In simple mode the refusal of a malformed header names both accepted forms."""
    with pytest.raises(AuthenticationFailed, match=r"or a user as Basic$"):
        Authenticator(believes_basic=True).credential(b"Digest x")


@pytest.mark.parametrize(
    "mark",
    [
        "\n",
        "\r",
        "\t",
        "\0",
        "\x1b",
        "\x7f",
        "\x9b",
        "\u2028",
        "\u200e",
        "\u200f",
        "\u061c",
        "\u202a",
        "\u202e",
        "\u2066",
        "\u2069",
    ],
)
def test_user_names_with_control_characters_are_refused(mark: str) -> None:
    """Names with characters that move the cursor, end a line or change the writing direction are refused."""
    for name in (f"ad{mark}min", f"admin{mark}", mark):
        with pytest.raises(AuthenticationFailed, match="control characters"):
            Authenticator(believes_basic=True).credential(basic(name))


@pytest.mark.parametrize(
    "name",
    ["ana", "Ana Ruiz", "аня", "花子", "ben@example.com", "x" * 255, "\u0639\u0644\u06cc\u200c\u0631\u0636\u0627"],
)
def test_user_names_of_all_scripts_are_accepted(name: str) -> None:
    """Letters of any script are accepted, joiners inside a word included."""
    assert Authenticator(believes_basic=True).credential(basic(name)) == Credential(user=name)


def test_long_names_are_refused() -> None:
    """The length of a user name is limited, as where users are added."""
    with pytest.raises(AuthenticationFailed, match="255 bytes"):
        Authenticator(believes_basic=True).credential(basic("x" * 256))


def test_header_cache_is_bounded() -> None:
    """The cache of headers is limited in entries and in header size. Long headers are accepted but not cached."""
    authenticator = Authenticator(believes_basic=True)
    long = b"Basic " + base64.b64encode(b"ana:" + b"x" * REMEMBERED_BYTES_MAX)

    for i in range(REMEMBERED_MAX + 10):
        authenticator.credential(basic(f"u{i}"))

    assert authenticator.credential(long) == Credential(user="ana")
    assert long not in authenticator._remembered
    assert len(authenticator._remembered) <= REMEMBERED_MAX
