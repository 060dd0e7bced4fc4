# SPDX-License-Identifier: Apache-2.0
"""Restricted tables through scan planning: over random filters, masks and scans PyIceberg shows exactly the rows of a
model in plain Python.

`LIMNOS_TEST_RESTRICTIONS` is the number of filters and masks; the complete check uses 1,000.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import httpx2
import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import ForbiddenError, ServiceUnavailableError
from pyiceberg.expressions import AlwaysTrue, And, EqualTo, GreaterThan, IsNull, LessThanOrEqual, Or
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, DecimalType, DoubleType, LongType, NestedField, StringType, TimestamptzType

from tests.formats.restricting.model import (
    FITTING,
    FIXED,
    MASKS,
    Cell,
    Filter,
    Row,
    random_filter,
    rows_made,
    same,
    shown_of,
)
from tests.integration.live import LiveServer, serving
from tests.integration.test_pyiceberg import basic, connect

pytestmark = pytest.mark.integration
COUNT = int(os.environ.get("LIMNOS_TEST_RESTRICTIONS", "40"))
SCHEMA = Schema(
    NestedField(1, "id", LongType()),
    NestedField(2, "city", StringType()),
    NestedField(3, "card", StringType()),
    NestedField(4, "born", DateType()),
    NestedField(5, "seen", TimestamptzType()),
    NestedField(6, "paid", DecimalType(9, 2)),
    NestedField(7, "ratio", DoubleType()),
)
SPEC = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "city"))


class Shop:
    """A table that its admin restricts, and bob, a restricted user."""

    def __init__(self, server: LiveServer) -> None:
        self.http = httpx2.Client(base_url=server.uri, headers={"Authorization": f"Bearer {server.token}"}, timeout=120)
        self.owner: RestCatalog = connect(server)
        self.owner.create_namespace("shop")
        self.dice = random.Random(20261121)
        table = self.owner.create_table(("shop", "cards"), SCHEMA)
        self.rows: list[Row] = []
        for number in range(2):
            rows = rows_made(self.dice, number * 60, 60)
            table.append(pa.Table.from_pylist(rows, schema=SCHEMA.as_arrow()))
            self.rows += rows
        self.table = table
        self._reader()
        self.bob: RestCatalog = connect(server, **{**basic("bob"), "scan-planning-mode": "server"})

    def _reader(self) -> None:
        self.do("POST", "/api/metalakes/lake/users", {"name": "bob"})
        privileges = [
            {"name": name, "condition": "allow"}
            for name in ("use_catalog", "use_schema", "select_table", "modify_table")
        ]
        self.do(
            "POST",
            "/api/metalakes/lake/roles",
            {
                "name": "buyer",
                "properties": {},
                "securableObjects": [{"fullName": "main", "type": "catalog", "privileges": privileges}],
            },
        )
        self.do("PUT", "/api/metalakes/lake/permissions/users/bob/grant", {"roleNames": ["buyer"]})

    def do(self, method: str, path: str, body: object) -> dict[str, Any]:
        """Send a request as the admin."""
        answer = self.http.request(method, path, json=body)
        assert answer.status_code == 200, answer.text
        response_body: dict[str, Any] = answer.json()
        return response_body

    def restrict(self, filter_: Filter | None, masks: dict[str, str], *, table: str = "cards") -> None:
        """Set the table's restriction."""
        self.do(
            "PUT",
            f"/api/limnos/v1/metalakes/lake/objects/TABLE/main.shop.{table}/restrictions/r",
            {"filter": filter_, "masks": masks},
        )

    def table_of_bob(self) -> Table:
        """The table as bob loads it."""
        return self.bob.load_table(("shop", "cards"))

    def seen(self, row_filter: Cell = AlwaysTrue(), **more: Cell) -> list[Row]:  # noqa: B008 - the library's own default
        """Return the rows that bob reads."""
        rows: list[Row] = patient(
            lambda: self.table_of_bob().scan(row_filter=row_filter, **more).to_arrow()
        ).to_pylist()
        return rows


def patient(ask: Callable[[], pa.Table]) -> pa.Table:
    """Repeat the request while the rewritten files are not ready in time. Written files are kept, so each attempt has
    less to do.
    """
    for _ in range(20):
        with suppress(ServiceUnavailableError):
            return ask()
    return ask()


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """A server with the table, and a long timeout."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LIMNOS__SERVER__REQUEST_TIMEOUT_S", "300")
        with serving(tmp_path_factory.mktemp("shop") / "data") as server:
            restricted_shop = Shop(server)
            yield restricted_shop
            restricted_shop.http.close()


def test_random_restrictions_return_the_rows_of_the_model(shop: Shop) -> None:
    """With random filters and masks, and random filters of the reader, PyIceberg reads exactly the rows of the
    model.
    """
    dice = shop.dice
    for _ in range(COUNT):
        filter_ = None if dice.random() < 0.1 else random_filter(dice, shop.rows)
        masks = {column: dice.choice(FITTING[column]) for column in dice.sample(tuple(FIXED), dice.randrange(4))}
        if filter_ is None and not masks:
            continue
        shop.restrict(filter_, masks)
        expected = shown_of(shop.rows, filter_, masks)
        least = dice.randrange(130)
        row_filter, fits = dice.choice(
            (
                (AlwaysTrue(), lambda _: True),
                (GreaterThan("id", least), lambda row, least=least: row["id"] is not None and row["id"] > least),
                (EqualTo("city", "Bonn"), lambda row: row["city"] == "Bonn"),
                (IsNull("card"), lambda row: row["card"] is None),
                (
                    Or(LessThanOrEqual("id", 20), IsNull("city")),
                    lambda row: row["city"] is None or (row["id"] is not None and row["id"] <= 20),
                ),
                (
                    And(EqualTo("city", "Wien"), GreaterThan("id", 9)),
                    lambda row: row["city"] == "Wien" and (row["id"] or 0) > 9,
                ),
            )
        )

        same(shop.seen(row_filter), [row for row in expected if fits(row)])


def test_restrictions_respect_deletes_evolution_and_snapshots(shop: Shop) -> None:
    """Deleted rows remain deleted, renamed and added columns have their current names, and an older snapshot is
    restricted as the newest is.
    """
    table = shop.table.refresh()
    before = table.current_snapshot().snapshot_id
    table.delete("id < 10")
    with table.update_schema() as update:
        update.rename_column("card", "number")
        update.add_column("later", StringType())
    shop.restrict({"type": "eq", "term": "city", "value": "Bonn"}, {"number": "show-last-4"})
    rows = [
        {**{("number" if key == "card" else key): value for key, value in row.items()}, "later": None}
        for row in shop.rows
    ]
    expected = [
        {**row, "number": None if row["number"] is None else MASKS["show-last-4"](row["number"])}
        for row in rows
        if row["city"] == "Bonn"
    ]

    same(shop.seen(), [row for row in expected if row["id"] >= 10])
    old = patient(lambda: shop.table_of_bob().scan(snapshot_id=before).to_arrow())
    assert sorted(old.column("id").to_pylist()) == sorted(row["id"] for row in expected)


def test_restricted_table_needs_server_planning(shop: Shop) -> None:
    """A client that plans scans itself fails on a missing file whose name advises it to use server planning. A
    restricted user cannot commit or read metadata tables.
    """
    parted = shop.owner.create_table(("shop", "parted"), SCHEMA, partition_spec=SPEC)
    parted.append(pa.Table.from_pylist(shop.rows[:9], schema=SCHEMA.as_arrow()))
    shop.restrict({"type": "not-null", "term": "city"}, {"city": "mask-to-fixed-value"}, table="parted")
    table = shop.bob.load_table(("shop", "parted"))
    own = connect_alone(shop).load_table(("shop", "parted"))

    with pytest.raises(Exception, match="read-restricted-set-scan-planning-mode-to-server"):
        own.scan().to_arrow()
    with pytest.raises(Exception, match="read-restricted-set-scan-planning-mode-to-server"):
        table.inspect.files()
    with pytest.raises((ForbiddenError, FileNotFoundError), match="read-restricted-set-scan-planning-mode-to-server"):
        table.append(pa.Table.from_pylist([], schema=table.schema().as_arrow()))
    assert set(patient(lambda: table.scan().to_arrow()).column("city").to_pylist()) == {"XXXXXXXX"}
    files = [task.file.file_path for task in table.scan().plan_files()]
    assert all("/restricted-reads/" in file for file in files)
    assert not [file for file in files if "city=" in file]


def connect_alone(shop: Shop) -> RestCatalog:
    """Connect bob with a client that plans scans itself."""
    properties = {**shop.bob.properties, "scan-planning-mode": "client"}
    properties.pop("prefix", None)
    return RestCatalog("alone", **properties)
