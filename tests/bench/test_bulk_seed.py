# SPDX-License-Identifier: Apache-2.0
"""Bulk statements of the benchmark: the server accepts the rows, their documents are intact, indexes are as before."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bench import bulk_seed, seed
from bench.bulk_seed import BULK, CROWD, BulkForest, plant_bulk
from bench.operations import PREFIX
from bench.seed import open_filler, plant
from bench.stores import Place
from limnos.store.backends.damage import find_damage
from tests.bench.test_seed import SHAPE, SMALL, names, prepare
from tests.http.iceberg.wire import node_over

TABLES, EACH = 40, 5


def indexes(file: Path) -> list[tuple[str, str]]:
    """Return names and definitions of all indexes."""
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'index' ORDER BY name").fetchall()


def test_bulk_tables_equal_created_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables that were written by statements over ranges are listed and loaded, their documents have the digests of
    their bodies, their indexes are those of the schema, and the reader's role covers them.
    """
    for name, value in SMALL.items():
        monkeypatch.setattr(seed, name, value)
    monkeypatch.setattr(bulk_seed, "EACH", EACH)
    monkeypatch.setattr(bulk_seed, "ROWS_AT_ONCE", 7)
    with node_over(tmp_path) as node:
        prepare(node)
    place = Place(tmp_path, None)
    plant(place, SHAPE)
    before = indexes(place.sqlite_file)

    plant_bulk(BulkForest(open_filler(place, journals=False)), TABLES, loaded=[0, 19])

    assert indexes(place.sqlite_file) == before
    assert find_damage(str(place.sqlite_file)) == []
    with closing(sqlite3.connect(place.sqlite_file)) as connection:
        assert connection.execute(
            "SELECT count(*) FROM document WHERE digest IS NULL AND node_id > (SELECT max(node_id) FROM document) - 40"
        ).fetchall() == [(0,)]
    with node_over(tmp_path) as node:
        assert names(node, CROWD, "reader") == [f"table_{number:07}" for number in range(20)]
        for space in range(4):
            expected = [f"subject{space:02}_{number:03}" for number in range(EACH)]
            assert names(node, f"{BULK}%1Farea_000%1Fspace_{space:05}", "reader") == expected
        for space, number in ((0, 0), (3, 4)):
            path = f"{PREFIX}/namespaces/{BULK}%1Farea_000%1Fspace_{space:05}/tables/subject{space:02}_{number:03}"
            loaded = node.get(path, user="reader")
            assert loaded["metadata"]["location"] in loaded["metadata-location"]
