# SPDX-License-Identifier: Apache-2.0
"""One table altered at random over Gravitino REST and Iceberg REST: both protocols and all readers agree with a pure
model.
"""

from __future__ import annotations

import copy
import os
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import NamedTuple, cast

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.types import StringType

from tests.integration.alter_model import (
    Alter,
    AlterRefused,
    Json,
    TableModel,
    drawn,
    for_gravitino,
    for_pyiceberg,
    wrong,
)
from tests.integration.live import LiveServer
from tests.integration.test_pyiceberg import connect
from tests.nodes.wire import GRAVITINO, PREFIX, Wire

STORIES = int(os.environ.get("LIMNOS_TEST_ALTERS", "8"))
"""Sequences of alters; the complete check uses 200."""
TURNS = 12
ROW_EVERY = 4
WRITERS, ALTERS_EACH = 4, 6
SCHEMAS = f"{GRAVITINO}/catalogs/main/schemas"


class Faces(NamedTuple):
    """A schema in both clients."""

    wire: Wire
    catalog: RestCatalog
    space: str

    def gravitino(self, table: str) -> str:
        """The address of a table over Gravitino REST."""
        return f"{SCHEMAS}/{self.space}/tables/{table}"

    def iceberg(self, table: str) -> str:
        """The address of the same table over Iceberg REST."""
        return f"{PREFIX}/namespaces/{self.space}/tables/{table}"


@pytest.fixture(scope="module")
def faces(server: LiveServer) -> Iterator[Faces]:
    """A schema of this module's own."""
    with closing(Wire(server.uri, token=server.token)) as wire, closing(connect(server)) as catalog:
        wire.do("POST", SCHEMAS, {"name": "faces", "properties": {}})
        yield Faces(wire, catalog, "faces")


def make(faces: Faces, table: str, model: TableModel, *, over_gravitino: bool) -> None:
    """Create the table of a model, over one of the protocols."""
    if over_gravitino:
        body = {"name": table, "columns": [column.gravitino() for column in model.columns], "properties": {}}
        faces.wire.do("POST", f"{SCHEMAS}/{faces.space}/tables", body)
        return
    model.columns[2].kind = "string"
    schema = {"type": "struct", "schema-id": 0, "fields": [column.iceberg() for column in model.columns]}
    faces.wire.do("POST", f"{PREFIX}/namespaces/{faces.space}/tables", {"name": table, "schema": schema})


def append(faces: Faces, table: str, model: TableModel) -> None:
    """Add a row by PyIceberg."""
    iceberg_table = faces.catalog.load_table((faces.space, table))
    iceberg_table.append(pa.Table.from_pylist([model.write()], schema=iceberg_table.schema().as_arrow()))


def alter_over_gravitino(faces: Faces, table: str, model: TableModel, *, dice: random.Random) -> None:
    """Send one to three alters in one request; one of four requests has an invalid alter, and changes nothing."""
    expected_model, alters = copy.deepcopy(model), list[Alter]()
    for _ in range(dice.randint(1, 3)):
        alters.append(drawn(expected_model, dice, over_gravitino=True))
        expected_model.apply(alters[-1])
    expected_model.settle(model.last_id)
    spoilt = dice.random() < 0.25
    if spoilt:
        alters.append(wrong(expected_model, dice))
        with pytest.raises(AlterRefused):
            expected_model.apply(alters[-1])
    body = {"updates": [for_gravitino(each) for each in alters]}
    answer = faces.wire.do("PUT", faces.gravitino(table), body, fine=(400,))
    assert answer.status == (400 if spoilt else 200), f"{alters}: {answer}"
    if not spoilt:
        model.__dict__.update(expected_model.__dict__)


def alter_over_iceberg(faces: Faces, table: str, model: TableModel, *, dice: random.Random) -> None:
    """Commit one alter by PyIceberg."""
    alter = drawn(model, dice, over_gravitino=False)
    iceberg_table = faces.catalog.load_table((faces.space, table))
    if alter.does in ("property", "forget", "about"):
        with iceberg_table.transaction() as change:
            name = "".join(alter.path) or "comment"
            if alter.does != "forget":
                change.set_properties({name: alter.word})
            elif name in model.properties:  # PyIceberg cannot remove a missing property
                change.remove_properties(name)
    else:
        with iceberg_table.update_schema() as update:
            for_pyiceberg(alter, update)
    model.apply(alter)


def faces_agree(faces: Faces, table: str, model: TableModel) -> None:
    """Check that both protocols return the model's columns, ids, comments and properties."""
    gravitino_table = cast("Json", faces.wire.do("GET", faces.gravitino(table)).body["table"])
    columns = [
        {key: value for key, value in each.items() if key != "autoIncrement"}
        for each in cast("list[Json]", gravitino_table["columns"])
    ]
    assert columns == [column.gravitino() for column in model.columns]
    metadata = cast("Json", faces.wire.do("GET", faces.iceberg(table)).body["metadata"])
    schemas = {each["schema-id"]: each for each in cast("list[Json]", metadata["schemas"])}
    assert schemas[metadata["current-schema-id"]]["fields"] == [column.iceberg() for column in model.columns]
    assert metadata["last-column-id"] == model.last_id
    for properties, comment in (
        (cast("dict[str, str]", gravitino_table["properties"]), gravitino_table.get("comment")),
        (cast("dict[str, str]", metadata["properties"]), cast("Json", metadata["properties"]).get("comment")),
    ):
        assert {key: value for key, value in properties.items() if key in ("k0", "k1", "k2")} == model.properties
        assert comment == model.comment


def alter_table_randomly(faces: Faces, number: int) -> TableModel:
    """Create a table, alter it over both protocols with rows in between, and check it after each alter."""
    dice, model, table = random.Random(number), TableModel(), f"t{number}"
    make(faces, table, model, over_gravitino=number % 2 == 0)
    for turn in range(TURNS):
        if turn % ROW_EVERY == 0:
            append(faces, table, model)
        alters = alter_over_gravitino if dice.random() < 0.5 else alter_over_iceberg
        alters(faces, table, model, dice=dice)
        faces_agree(faces, table, model)
    append(faces, table, model)
    return model


@pytest.mark.parametrize("number", range(STORIES))
def test_alters_over_both_protocols_agree_with_a_model(faces: Faces, number: int) -> None:
    """After each alter both protocols return the model's columns with their ids; PyIceberg reads every row under the
    current names.
    """
    model = alter_table_randomly(faces, number)

    rows = faces.catalog.load_table((faces.space, f"t{number}")).scan().to_arrow().to_pylist(maps_as_pydicts="strict")
    assert sorted(rows, key=lambda row: str(row["n"])) == model.read()


def test_concurrent_alters_over_both_protocols_lose_no_column(faces: Faces, server: LiveServer) -> None:
    """If two writers per protocol add columns to one table concurrently, every acknowledged column exists, and no id
    occurs twice.
    """
    model = TableModel()
    make(faces, "both", model, over_gravitino=True)

    def over_gravitino(writer: int) -> list[str]:
        with closing(Wire(server.uri, token=server.token)) as wire:
            names = [f"g{writer}_{number}" for number in range(ALTERS_EACH)]
            for name in names:
                change = for_gravitino(Alter("add", (name,), "string"))
                wire.do("PUT", faces.gravitino("both"), {"updates": [change]})
            return names

    def over_iceberg(writer: int) -> list[str]:
        added = []
        with closing(connect(server)) as catalog:
            while len(added) < ALTERS_EACH:
                name = f"i{writer}_{len(added)}"
                try:
                    with catalog.load_table((faces.space, "both")).update_schema() as update:
                        update.add_column(name, StringType())
                except CommitFailedException:
                    continue
                added.append(name)
        return added

    with ThreadPoolExecutor(WRITERS) as threads:
        work = [threads.submit((over_gravitino, over_iceberg)[number % 2], number) for number in range(WRITERS)]
        added = {name for each in work for name in each.result()}

    metadata = cast("Json", faces.wire.do("GET", faces.iceberg("both")).body["metadata"])
    schemas = {each["schema-id"]: each for each in cast("list[Json]", metadata["schemas"])}
    fields = cast("list[Json]", schemas[metadata["current-schema-id"]]["fields"])
    assert {each["name"] for each in fields} == added | {"n", "c2", "c3"}
    assert sorted(cast("int", each["id"]) for each in fields) == list(range(1, 4 + WRITERS * ALTERS_EACH))
