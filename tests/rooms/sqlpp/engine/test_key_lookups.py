# SPDX-License-Identifier: Apache-2.0
"""Queries that look up objects without Spark, and queries that Spark has to execute."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec import structs

from limnos.rooms.sqlpp.engine.key_lookups import look_up
from limnos.rooms.sqlpp.engine.parquet_lookups import UnsupportedFile
from limnos.rooms.sqlpp.engine.table_files import TableClient, TableSnapshot
from limnos.rooms.sqlpp.language import SqlppError
from limnos.rooms.sqlpp.language.evaluator import Budget
from limnos.rooms.sqlpp.language.jobs import DatasetRef, ExternalSource, type_of
from limnos.rooms.sqlpp.language.lookups import LookupIndex
from limnos.rooms.sqlpp.language.stored import schema_of, storage_form_of_record
from tests.rooms.sqlpp.engine.iceberg_files import Entry, Manifest, list_of
from tests.rooms.sqlpp.engine.live_engine import EngineDataverse

if TYPE_CHECKING:
    from collections.abc import Mapping

TYPE = "{ id: bigint, name: string, n: bigint? }"


class Tables(TableClient):
    """The existing tables, and how often each was loaded."""

    def __init__(self, tables: Mapping[str, TableSnapshot]) -> None:
        super().__init__("http://127.0.0.1:1", metalake="lake")
        self.tables = tables
        self.asked: list[tuple[str, str]] = []

    def load(self, ref: DatasetRef, credential: str) -> TableSnapshot:
        """Return a table."""
        self.asked.append((ref.name, credential))
        if ref.name not in self.tables:
            raise UnsupportedFile("none")
        return self.tables[ref.name]


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    """A table of birds, each with an open field."""
    schema = schema_of(storage_form_of_record(type_of(TYPE), (("id",),)))
    arrays = {
        "id": pa.array(range(5), pa.int64()),
        "name": pa.array([f"bird {at}" for at in range(5)]),
        "n": pa.array([None, 1, 2, 2, 2], pa.int64()),
        "_open": pa.array([f'{{"x":{at}}}' for at in range(5)]),
    }
    fields = [
        pa.field(name, array.type, metadata={"PARQUET:field_id": str(at)})
        for at, (name, array) in enumerate(arrays.items(), start=1)
    ]
    pq.write_table(pa.table(list(arrays.values()), schema=pa.schema(fields)), tmp_path / "a.parquet")
    listed = list_of(tmp_path, Manifest([Entry(path=(tmp_path / "a.parquet").as_uri())]))
    return Tables({"birds": TableSnapshot(dict(schema), listed), "empty": TableSnapshot(dict(schema), None)})


@pytest.fixture
def asking() -> EngineDataverse:
    """Statements about datasets, some of which have no table here."""
    asking = EngineDataverse(None, None, ("d",))  # type: ignore[arg-type]
    index = (LookupIndex("by_n", (("n",),)),)
    for name in ("birds", "empty", "lost"):
        asking.refs[name] = DatasetRef(path=("main", "d", name), type=TYPE, key=(("id",),), indexes=index)
    asking.refs["outside"] = DatasetRef(
        path=("main", "d", "outside"), type=TYPE, key=(("id",),), files=ExternalSource(adapter="localfs", options=())
    )
    asking.refs["foreign"] = DatasetRef(path=("main", "d", "foreign"), type="", key=())
    return asking


def looked_up(asking: EngineDataverse, tables: Tables, text: str) -> list[object] | None:
    """Return the results of a query; None if it is left to Spark."""
    lines = look_up(asking.job(text, credential="secret"), tables, budget=Budget())
    return None if lines is None else [json.loads(line) for line in lines]


def test_lookup_by_key_returns_object(asking: EngineDataverse, tables: Tables) -> None:
    """An object is found by its key, with its open fields, by the statement's credential; a missing key gives no
    results.
    """
    assert looked_up(asking, tables, "select value b from birds as b where b.id = 3") == [
        {"id": 3, "name": "bird 3", "n": 2, "x": 3}
    ]
    assert looked_up(asking, tables, "select value b.name from birds as b where b.id = 30") == []
    assert looked_up(asking, tables, "select value b.name from empty as b where b.id = 3") == []
    assert tables.asked[0] == ("birds", "secret")


def test_lookup_by_index_returns_objects(
    asking: EngineDataverse, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Objects are found by an index; if there are too many, the query is left to Spark."""
    query = "select value b.id from birds as b where b.n = 2 order by b.id desc"

    assert looked_up(asking, tables, query) == [4, 3, 2]
    monkeypatch.setattr("limnos.rooms.sqlpp.engine.key_lookups.INDEXED_MAX", 2)
    assert looked_up(asking, tables, query) is None


def test_query_reads_dataset_at_one_snapshot(asking: EngineDataverse, tables: Tables) -> None:
    """A table is loaded once per query, so that all references see one snapshot."""
    query = "select value [a.name, b.name] from birds as a, birds as b where a.id = 1 and b.id = 2"

    assert looked_up(asking, tables, query) == [["bird 1", "bird 2"]]
    assert len(tables.asked) == 1


@pytest.mark.parametrize(
    "query",
    [
        "select value b from birds as b",
        "select value b from birds as b where b.name = 'x'",
        "select value b from birds as b, birds as c where b.id = 1",
        "select value b from lost as b where b.id = 1",
        "select value b from outside as b where b.id = 1",
        "select value b from foreign as b where b.id = 1",
        "1 + 1",
    ],
)
def test_unsupported_queries_are_delegated_to_spark(asking: EngineDataverse, tables: Tables, query: str) -> None:
    """Queries without a key, over files, over a table of another writer, or with unsupported parts are left to
    Spark.
    """
    assert looked_up(asking, tables, query) is None


def test_data_changes_are_delegated_to_spark(asking: EngineDataverse, tables: Tables) -> None:
    """Statements that change data are left to Spark."""
    job = asking.job("select value b from birds as b where b.id = 1", "insert", target="birds", credential="x")

    assert look_up(job, tables, budget=Budget()) is None


def test_query_error_is_raised_as_by_spark(asking: EngineDataverse, tables: Tables) -> None:
    """Errors of the query are raised as by Spark's execution."""

    def stop() -> None:
        raise SqlppError(41, "cancelled")

    job = asking.job("select value b from birds as b where b.id = 1", credential="x")
    budget = Budget(steps=-1, stop=stop)
    lines = look_up(job, tables, budget=budget)

    assert lines is not None
    with pytest.raises(SqlppError):
        list(lines)


def test_declared_fields_precede_open_fields(tables: Tables, asking: EngineDataverse) -> None:
    """If fields are not ordered, declared fields come before those whose type only the values determine."""
    job = asking.job("select b.x, b.name, b.n from birds b where b.id = 2", credential="none")
    lines = [
        list(look_up(structs.replace(job, ordered_fields=is_ordered), tables, budget=Budget()) or ())
        for is_ordered in (True, False)
    ]

    assert [list(json.loads(line)) for (line,) in lines] == [["x", "name", "n"], ["name", "n", "x"]]
