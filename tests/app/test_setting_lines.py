# SPDX-License-Identifier: Apache-2.0
"""Settings as lines: every setting has one, defaults are marked, and no line contains a secret."""

from __future__ import annotations

from limnos.app.setting_lines import setting_lines
from limnos.config.settings import Settings, keys
from limnos.config.storage import StorageSection

PLANTED = "planted-secret-4711"


def test_every_setting_has_a_line() -> None:
    """Every setting has a line, in the order of the documentation. Without configured values all are defaults."""
    lines = setting_lines(Settings(), {})

    assert tuple(each.name for each in lines) == keys()
    assert all(each.is_default for each in lines)


def test_a_line_has_the_origin_of_its_setting() -> None:
    """A line names the flag, the variable or the file of its value. Other settings have their defaults."""
    origins = {"server.data": "flag --data", "server.listen": "file limnos.toml"}
    lines = {each.name: each.origin for each in setting_lines(Settings(), origins)}

    assert {name: origin for name, origin in lines.items() if origin != "default"} == origins


def test_no_secret_is_shown() -> None:
    """Neither a secret setting nor a secret inside a table of storages is shown."""
    named = {"far": {"locations": "s3://bucket/x", "access-key-id": PLANTED, "secret-access-key": PLANTED}}
    settings = Settings.model_validate(
        {
            "database": {"url": f"postgresql://limnos:{PLANTED}@db.example.com/lake"},
            "storage": StorageSection(named=named),
        }
    )
    lines = {each.name: each for each in setting_lines(settings, {})}

    assert PLANTED not in str(lines)
    assert (lines["database.url"].value, lines["database.url"].is_default, lines["database.url"].is_secret) == (
        '"***"',
        False,
        True,
    )
    assert lines["server.data"].is_secret is False
