# SPDX-License-Identifier: Apache-2.0
"""Restrictions in stores of earlier releases."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from limnos.model.restrictions import RestrictionTerms
from limnos.store.backends.migrate import migrate

BEFORE = "0051"


@pytest.mark.parametrize("to,after", [((7,), (7,)), ((7, 8), ()), ((9,), ()), ((), ()), ((5,), (5,))])
def test_restrictions_of_dropped_principals_apply_to_all_users(
    tmp_path: Path, to: tuple[int, ...], after: tuple[int, ...]
) -> None:
    """A restriction that names a dropped user or role applies to all users after the upgrade; others are unchanged."""
    path = tmp_path / "limnos.db"
    migrate(str(path))
    with closing(sqlite3.connect(path)) as connection:
        principal = "INSERT INTO principal VALUES (?, 1, 1, ?, NULL, 1, 'a', 0, NULL, NULL, ?, 0, NULL)"
        connection.executemany(principal, [(7, "bob", 0), (8, "gone", 8)])
        connection.execute("INSERT INTO role VALUES (5, 1, 'r', 'a', 0, NULL, NULL, 0, x'')")
        text = msgspec.json.encode(RestrictionTerms(row_filter="", masks=(), to=to, unless=(8,))).decode()
        connection.execute("INSERT INTO restriction VALUES (3, 'eu', 2, ?, 'a', 0)", (text,))
        connection.execute("UPDATE alembic_version SET version_num = ?", (BEFORE,))
        connection.commit()

    migrate(str(path))

    with closing(sqlite3.connect(path)) as connection:
        text = connection.execute("SELECT terms FROM restriction").fetchone()[0]
    assert msgspec.json.decode(text, type=RestrictionTerms) == RestrictionTerms(
        row_filter="", masks=(), to=after, unless=(8,)
    )
