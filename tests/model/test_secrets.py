# SPDX-License-Identifier: Apache-2.0
"""Secrets are not printed accidentally, and passwords are removed from texts."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

from limnos.model.secrets import Secret, hide_secrets, passwords_of_url


def test_secret_is_masked_in_every_format() -> None:
    """In every format, alone or inside other values, a secret is shown as `***`. Only `reveal` returns it."""
    secret = Secret("hunter2")

    texts = [repr(secret), str(secret), f"{secret}", f"{secret!r:>9}", f"{secret:x}", repr([secret])]
    texts.append(json.dumps(secret, default=str))

    assert [text for text in texts if "hunter2" in text or "***" not in text] == []
    assert secret.reveal() == "hunter2"


def test_a_secret_is_not_pickled() -> None:
    """A secret cannot be pickled. A copy within the process is the secret itself."""
    secret = Secret("hunter2")

    with pytest.raises(TypeError, match="reveal"):
        pickle.dumps({"url": secret})
    assert copy.deepcopy([secret])[0] is secret
    assert not hasattr(secret, "__dict__")


def test_secrets_are_compared_by_their_texts() -> None:
    """Two secrets with the same text are equal and have the same hash. A secret does not equal a text."""
    assert {Secret("a"), Secret("a")} == {Secret("a")}
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert (bool(Secret("")), bool(Secret("a"))) == (False, True)


@pytest.mark.parametrize(
    "url,expected",
    [
        ("postgresql://ana:hunter2@h/d", ("hunter2",)),
        ("postgresql://ana:hun%3Ater2@h/d", ("hun%3Ater2", "hun:ter2")),
        ("postgresql://ana:hun/ter2@x@h/d", ("hun/ter2@x",)),
        ("postgresql://h/d?user=ana&password=hunter2", ("hunter2",)),
        ("https://ana@h/d", ()),
        ("postgresql://postgres:postgres@h/postgres", ()),
        ("s3://bucket/path", ()),
    ],
)
def test_passwords_in_url_are_detected(url: str, expected: tuple[str, ...]) -> None:
    """Passwords in a URL are found in encoded and decoded form, also in malformed URLs. A password that equals the user
    name is not a secret.
    """
    assert passwords_of_url(url) == expected


@pytest.mark.parametrize(
    "text,expected",
    [
        ("cannot open postgresql://ana:hunter2@h/d now", "cannot open postgresql://ana:***@h/d now"),
        ('at "https://a:b@h/x?sig=c&y=1"', 'at "https://a:***@h/x?sig=***&y=1"'),
        ("s3://b?X-Amz-Signature=abc&X-Amz-Date=1", "s3://b?X-Amz-Signature=***&X-Amz-Date=1"),
        ("host=h password=hunter2 dbname=d", "host=h password=*** dbname=d"),
        ("{'password': 'hunter2', 'a': 1}", "{'password': '***', 'a': 1}"),
        ("Authorization: Bearer lim_7_abcdefghij", "Authorization: Bearer ***"),
        ("token lim_7_abcdefghij of ana", "token *** of ana"),
        ("a 2000-character one of them", "a 2000-character one of them"),
        ("--token-file FILE or LIMNOS_TOKEN_FILE=FILE", "--token-file FILE or LIMNOS_TOKEN_FILE=FILE"),
        ("http://127.0.0.1:8090/users/ana@example.com", "http://127.0.0.1:8090/users/ana@example.com"),
        ("user or password: mend both", "user or password: mend both"),
        (
            "callers need not prove who they are (Basic believed)",
            "callers need not prove who they are (Basic believed)",
        ),
    ],
)
def test_secrets_are_recognized_by_form_and_masked(text: str, expected: str) -> None:
    """Passwords, signatures and credentials are recognized by their form and hidden. Similar text is not."""
    assert hide_secrets(text) == expected


def test_known_secrets_are_masked_within_words() -> None:
    """A known secret is replaced also within words, the longer one first. Secrets of three letters are not searched."""
    assert hide_secrets("xhunter2000y hunter2 abc", ["hunter2", "hunter2000", "abc"]) == "x***y *** abc"
