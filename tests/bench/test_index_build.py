# SPDX-License-Identifier: Apache-2.0
"""The benchmark of the first index: its node indexes the objects of the database in which they were planted."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import index_build
from bench.search_lake import Lake, plant_lake, template_bodies
from bench.stores import Place
from limnos.rooms.search.services.words import words_of
from tests.backends import Database
from tests.http.iceberg.wire import node_over


def test_planted_and_created_objects_are_indexed(
    tmp_path: Path, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first index has each planted table, and the index of the batches has each created object."""
    monkeypatch.setattr(index_build, "CREATED", 5)
    monkeypatch.setattr(index_build, "settle_memory", lambda: None)  # other tests in this process collect as before
    place, lake = Place(tmp_path / "lake", None if database.kind == "sqlite" else database.address), Lake(300)
    with node_over(place.data, database=place.database) as node:
        for path, body in template_bodies():
            node.done("POST", path, body)
    stored = database if place.database else Database("sqlite", str(place.sqlite_file))
    plant_lake(place, lake)
    index_build.lose_index(place)
    assert stored.sql("SELECT name FROM search_text") == []

    index_build.build_index(place)

    indexed = {name for (name,) in stored.sql("SELECT name FROM search_text")}
    assert {words_of([table.name]) for table in lake.tables(0)} <= indexed
    before = stored.sql("SELECT count(*) FROM search_text")[0][0]
    index_build.created_cost(place)
    assert stored.sql("SELECT count(*) FROM search_text")[0][0] - before == 2 * index_build.ROUNDS * 5
