# SPDX-License-Identifier: Apache-2.0
"""The secrets that are found in the words and the environment of a command."""

from __future__ import annotations

import pytest

from limnos.cli.redaction import collect_secrets


@pytest.mark.parametrize(
    "words,secrets",
    [
        (["login", "--password", "p1"], ("p1",)),
        (["--token", "t1", "ls"], ("t1",)),
        (["--token=t1", "ls"], ("t1",)),
        (["--token", "-t1", "ls"], ("-t1",)),
        (["--token", "--T1-x_9", "ls"], ("--T1-x_9",)),
        (["--token", "--password", "p1"], ("p1",)),
        (["--token", "-v"], ()),
        (["--token", "--dry-run"], ()),
        (["--token", "--uri=http://h", "ls"], ()),
        (["--token"], ()),
        (["--token-file", "f", "--user", "u"], ()),
        (["set", "s3.secret-access-key=k1", "a=b"], ("k1",)),
        (["--uri", "http://u:planted@h"], ("planted",)),
    ],
)
def test_secrets_of_words_are_found(words: list[str], secrets: tuple[str, ...]) -> None:
    """The values of flags and properties with names of secrets are secrets, also as the last words, and also if they
    begin with "-" and are no flag.
    """
    assert collect_secrets(words, {}) == secrets


def test_each_key_of_a_variable_is_a_secret() -> None:
    """A variable with several keys has each of them as a secret, and the whole; other variables have none."""
    environ = {"LIMNOS__STORAGE__KEYS": "k1, k2,k3", "LIMNOS__LOG__LEVEL": "debug", "SECRET": "not ours"}

    assert collect_secrets([], environ) == ("k1, k2,k3", "k1", "k2", "k3")


def test_keys_of_named_storages_are_secrets() -> None:
    """The secrets in the JSON of named storages are found; malformed JSON is a secret as a whole."""
    name = "LIMNOS__STORAGE__NAMED"

    assert collect_secrets([], {name: '{"a": {"s3.secret-access-key": "k1", "s3.region": "r"}}'}) == ("k1",)
    assert collect_secrets([], {name: "{k1"}) == ("{k1",)


def test_lines_of_a_secret_are_secrets() -> None:
    """Each line of a private key in the place of a token is a secret, also as it stands in JSON."""
    secrets = collect_secrets(["--token", '-----BEGIN KEY-----\nMII"Eü'], {})

    assert {"-----BEGIN KEY-----", 'MII"Eü', 'MII\\"Eü', 'MII\\"E\\u00fc'} <= {*secrets}
