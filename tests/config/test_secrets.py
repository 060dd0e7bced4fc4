# SPDX-License-Identifier: Apache-2.0
"""Secrets in settings: each has the type that hides its value, and no report of settings shows one."""

from __future__ import annotations

import base64
import json
import pickle
import re
from collections.abc import Mapping

import pytest

from limnos.config import ConfigError, LoadedSettings, load
from limnos.config.report import rows, variable_name
from limnos.config.secrets import secrets_of
from limnos.config.settings import is_secret, keys, sections
from limnos.model.secrets import Secret

KEY = base64.b64encode(b"planted-" * 4).decode()
PLANTED: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "database.url": ("postgresql://ana:planted-password@127.0.0.1:9/lake", ("planted-password",)),
    "storage.keys": (KEY, (KEY,)),
    "storage.named": (
        json.dumps({"big": {"locations": "s3://b", "s3.region": "eu-1", "s3.secret-access-key": "planted-storage"}}),
        ("planted-storage",),
    ),
}
"""For each setting that can contain secrets: a value, and the secret parts of it."""
SHOWN = {"oidc.console_secret_file", "storage.key_file", "tls.key", "access.session_refresh_s"}
"""Settings whose names suggest secrets but whose values are file names or times."""
LOOKS_SECRET = re.compile(r"secret|passw|token|credential|(?:^|[._])keys?(?:$|_)|database\.url|dsn|private")


def planted() -> LoadedSettings:
    """Settings with a secret value in each setting that can contain one."""
    return load(flags={}, file=None, environ={variable_name(key): value for key, (value, _) in PLANTED.items()})


def test_every_secret_setting_is_covered_by_the_test() -> None:
    """The test covers every setting with the secret type, including future ones."""
    assert {key for key in keys() if is_secret(key)} == set(PLANTED)


def test_setting_named_like_a_secret_has_the_secret_type() -> None:
    """A setting whose name suggests a secret has the secret type."""
    assert [key for key in keys() if LOOKS_SECRET.search(key) and not is_secret(key) and key not in SHOWN] == []


def test_settings_show_no_secret() -> None:
    """Neither `repr`, nor dumps, nor the report contain a secret, and the settings cannot be pickled."""
    loaded = planted()
    settings = loaded.settings
    texts = [
        repr(loaded),
        str(settings),
        f"{settings.database}",
        settings.model_dump_json(),
        str(settings.model_dump()),
        str(rows(loaded)),
    ]
    secrets = [each for _, parts in PLANTED.values() for each in parts]

    assert [each for text in texts for each in secrets if each in text] == []
    assert all("***" in text for text in texts)
    with pytest.raises(TypeError, match="reveal"):
        pickle.dumps(settings)


def test_texts_to_hide_are_exactly_the_secrets() -> None:
    """The texts to be hidden in logs are all secrets, and nothing that is not secret, such as a region."""
    secrets = secrets_of(planted().settings)

    assert set(secrets) == {each for _, parts in PLANTED.values() for each in parts}


@pytest.mark.parametrize("key", [key for key in keys() if key not in PLANTED])
def test_visible_setting_refuses_url_with_password(key: str) -> None:
    """A setting whose value is shown refuses a URL with a password, and the message does not contain it."""
    with pytest.raises(ConfigError) as refused:
        load(flags={key: "https://ana:planted-password@h.example.com"}, file=None, environ={})

    assert "planted-password" not in str(refused.value)


@pytest.mark.parametrize(
    "value",
    [
        "postgresql://ana:planted/password@h/d",
        "mysql://ana:planted-password@h/d",
        "ana:planted-password@h",
        5,
        ["planted-password"],
    ],
)
def test_a_wrong_database_url_is_not_repeated(value: object) -> None:
    """The error about an invalid URL, and the exceptions that caused it, do not contain its password."""
    with pytest.raises(ConfigError) as refused:
        load(flags={"database.url": value}, file=None, environ={})

    message = f"{refused.value}{refused.value.__cause__!r}"
    assert not re.search(r"planted.password|planted", message)
    assert refused.value.__suppress_context__


def test_sections_have_no_default_secret() -> None:
    """No default of a setting is a secret, because defaults are documented."""
    defaults = [model.model_fields[name].default for model in sections().values() for name in model.model_fields]

    assert [each for each in defaults if isinstance(each, Secret)] == []
