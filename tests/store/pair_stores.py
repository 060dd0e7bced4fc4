"""Databases of pairs for tests, each kind by one fixture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from limnos.store.pairs import Pairs
from limnos.store.pairs_lmdb import LmdbPairs
from limnos.store.pairs_sql import SqlPairs

KINDS = ["lmdb", "sqlite", pytest.param("postgres", marks=pytest.mark.integration)]
Open = Callable[[], Pairs]


def opener(kind: str, folder: Path, request: pytest.FixtureRequest) -> Open:
    """What opens an empty database of a kind, again and again the same one."""
    if kind == "lmdb":
        return lambda: LmdbPairs(folder / "records.lmdb")
    if kind == "sqlite":
        return lambda: SqlPairs(str(folder / "records.db"))
    address = request.getfixturevalue("postgres_server").empty_database()
    return lambda: SqlPairs(address)
