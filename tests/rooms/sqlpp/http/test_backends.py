# SPDX-License-Identifier: Apache-2.0
"""SQL++ over both store backends: the store's own statements for SQL++ have the same effect on SQLite and
PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.backends import Database
from tests.http.driver import DriverNode
from tests.http.iceberg.wire import node_over
from tests.rooms.sqlpp.http.wire import refusal, rows


@pytest.fixture
def lake(database: Database, tmp_path: Path) -> Iterator[DriverNode]:
    """A node with access control on, over SQLite and over PostgreSQL."""
    with node_over(tmp_path, database=None if database.kind == "sqlite" else database.address) as running:
        yield running


def test_dataverses_types_and_datasets_are_created_and_dropped(lake: DriverNode) -> None:
    """Dataverses, types and datasets can be created, listed and dropped. While another object needs one, its drop is
    refused.
    """
    rows(
        lake,
        "create dataverse a.b; use a.b; create type t as { id: int }; create dataset d(t) primary key id; create index"
        " i on d(id); create function f(x) { x }; create view v as select value f(1); create synonym s for v; create"
        " dataverse a.b.c; create view a.b.c.w as select value x from a.b.s x",
    )

    counts = "select value [(select value count(*) from Metadata.`Dataset` d where d.DataverseName = 'a.b')[0], f(2)]"
    assert rows(lake, f"use a.b; {counts}") == [[2, 2]]
    for statement in ("drop type a.b.t", "drop function a.b.f@1", "drop synonym a.b.s", "drop dataverse a.b"):
        assert refusal(lake, statement)[1][:8] in ("ASX1147:", "ASX1148:"), statement
    rows(lake, "drop view a.b.c.w; drop dataverse a.b; create dataverse a.b; drop dataverse a.b; drop dataverse a.b.c")
    assert rows(lake, "select value d.DataverseName from Metadata.`Dataverse` d order by d.DataverseName") == [
        "Default",
        "Metadata",
    ]
