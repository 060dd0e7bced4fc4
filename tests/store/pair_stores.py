# SPDX-License-Identifier: Apache-2.0
"""Key-value databases for tests, one fixture for all kinds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from limnos.store.key_value_records.lmdb_storage import LmdbKeyValueStore
from limnos.store.key_value_records.sql_storage import SqlKeyValueStore
from limnos.store.key_value_records.storage import KeyValueStore

KINDS = ["lmdb", "sqlite", pytest.param("postgres", marks=pytest.mark.integration)]
Open = Callable[[], KeyValueStore]


def opener(kind: str, folder: Path, request: pytest.FixtureRequest) -> Open:
    """Return a function that opens an empty database of a kind, the same one each time."""
    if kind == "lmdb":
        return lambda: LmdbKeyValueStore(folder / "records.lmdb")
    if kind == "sqlite":
        return lambda: SqlKeyValueStore(str(folder / "records.db"))
    address = request.getfixturevalue("postgres_server").empty_database()
    return lambda: SqlKeyValueStore(address)
