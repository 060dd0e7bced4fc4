# SPDX-License-Identifier: Apache-2.0
"""Changes of data by a real engine: geometry columns, objects of the metadata, and arrays that UPDATE changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.live import LiveServer, serving
from tests.rooms.sqlpp.engine.query_requests import answer_of

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.heavy]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server whose engine all tests share."""
    with serving(tmp_path_factory.mktemp("changes")) as running:
        yield running


def rows(server: LiveServer, statement: str) -> Any:  # noqa: ANN401 - results are any JSON
    """Return the results of statements, which must succeed."""
    status, body = answer_of(server.uri, server.token, statement)
    assert status == 200, body
    return body.get("results")


def test_geometry_columns_are_stored_and_read(server: LiveServer) -> None:
    """Geometries of declared and open fields are read back; functions and UPDATE work on them."""
    rows(
        server,
        "create type Shape as { id: bigint, g: geometry? }; create dataset shapes(Shape) primary key id;"
        "insert into shapes ([{'id': 1, 'g': st_make_point(1, 2)}, {'id': 2},"
        " {'id': 3, 'g': st_geom_from_text('LINESTRING (0 0, 3 4)'), 'more': st_make_point(5, 6)}])",
    )

    assert rows(server, "select value st_as_text(s.g) from shapes s where s.g is known order by s.id") == [
        "POINT (1 2)",
        "LINESTRING (0 0, 3 4)",
    ]
    assert rows(server, "select value st_length(s.g) from shapes s where s.id = 3") == [5.0]
    assert rows(server, "select value [st_x(s.more), s.g] from shapes s where s.id in [2, 3] order by s.id") == [
        [None, None],
        [5.0, {"type": "LineString", "coordinates": [[0.0, 0.0], [3.0, 4.0]]}],
    ]
    rows(server, "update shapes as s set s.g = st_make_point(7, 8) where s.id = 2")
    assert rows(server, "select value st_y(s.g) from shapes s where s.id = 2") == [8.0]


def test_insert_from_metadata_stores_nested_fields(server: LiveServer) -> None:
    """INSERT from Metadata writes objects with nested fields, which are read as data."""
    rows(
        server,
        "create type Kept as { name: string }; create dataset kept(Kept) primary key name;"
        "insert into kept (select d.DatasetName as name, d.InternalDetails.PrimaryKey as `key`"
        " from Metadata.`Dataset` d where d.DatasetName = 'kept')",
    )

    assert rows(server, "select value k from kept k") == [{"name": "kept", "key": [["name"]]}]


def test_update_changes_arrays(server: LiveServer) -> None:
    """One UPDATE inserts, deletes and updates items of a declared and of an open array."""
    rows(
        server,
        "create type Order2 as { id: bigint, items: [{ n: bigint }]? }; create dataset orders2(Order2) primary key id;"
        "insert into orders2 ([{'id': 1, 'items': [{'n': 1}, {'n': 2}], 'tags': ['a', 'b']}, {'id': 2}])",
    )

    returned_rows = rows(
        server,
        "update orders2 as o (insert into o.items at 0 ([{'n': 0}])) (update o.items as i set i.n = i.n + 1 where i.n >"
        " 0) (delete from o.tags at p where p = -1) where o.id = 1 returning o",
    )

    expected = {"id": 1, "items": [{"n": 0}, {"n": 2}, {"n": 3}], "tags": ["a"]}
    assert returned_rows == [expected]
    assert rows(server, "select value o from orders2 o order by o.id") == [expected, {"id": 2}]
    status, body = answer_of(server.uri, server.token, "update orders2 as o set o = {'id': 3} where o.id = 1")
    assert (status, "ASX0037" in str(body)) == (400, True)
