# SPDX-License-Identifier: Apache-2.0
"""Reports of settings: effective values, origins, and masked secrets."""

from __future__ import annotations

import pytest

from limnos.config import load
from limnos.config.report import mask_value, rows
from limnos.config.settings import keys


def test_every_setting_has_a_row_with_origin() -> None:
    """The report lists every setting once, in order, with its effective value and origin."""
    loaded = load(flags={"server.bare": True}, file=None, environ={"LIMNOS__LOG__LEVEL": "error"})

    rows_by_key = {row.key: row for row in rows(loaded)}

    assert tuple(rows_by_key) == keys()
    assert (rows_by_key["server.bare"].value, rows_by_key["server.bare"].origin) == (True, "flag --bare")
    assert (rows_by_key["log.level"].value, rows_by_key["log.level"].origin) == (
        "error",
        "environment LIMNOS__LOG__LEVEL",
    )


def test_password_is_masked_in_the_report() -> None:
    """The database URL is shown without its password."""
    loaded = load(flags={"database.url": "postgresql://lim:hunter2@db:5432/lake"}, file=None, environ={})

    values_by_key = {row.key: row.value for row in rows(loaded)}

    assert values_by_key["database.url"] == "postgresql://lim:*****@db:5432/lake"


@pytest.mark.parametrize(
    "value,expected",
    [
        ("postgresql://h/d?user=u&password=hunter2", "postgresql://h/d?user=u&password=*****"),
        ("postgresql://u@h/d?host=/run/pg", "postgresql://u@h/d?host=/run/pg"),
        ("postgresql://u:a%40b@h/d", "postgresql://u:*****@h/d"),
        ("https://u:p@repo/maven2", "https://u:*****@repo/maven2"),
        ("./limnos-data", "./limnos-data"),
        (8, 8),
    ],
)
def test_mask_hides_secrets_only(value: object, expected: object) -> None:
    """Passwords in URLs are masked, and all other text is unchanged."""
    assert mask_value(value) == expected
