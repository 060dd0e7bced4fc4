# SPDX-License-Identifier: Apache-2.0
"""Fields whose names no column can have: names that Iceberg reserves, and names that differ by case alone."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language.errors import SqlppError
from limnos.rooms.sqlpp.language.jobs import DatasetRef
from limnos.rooms.sqlpp.language.stored import FieldType, RecordType, Scalar, StorageForm, properties_of, schema_of
from tests.rooms.sqlpp.engine.conftest import Do
from tests.rooms.sqlpp.engine.live_engine import EngineDataverse

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.heavy]

TYPE = (
    "{ id: bigint, _file: string, _pos: bigint?, Name: string?, name: string?, st: { a: bigint?, A: bigint? }?,"
    " _metadata: string? }"
)
OBJECT = {
    "id": 1,
    "_file": "f",
    "_pos": 7,
    "Name": "A",
    "name": "b",
    "st": {"a": 1, "A": 2},
    "_metadata": "m",
    "_row_id": 5,
    "x": 1,
    "X": 2,
}
MORE = 70
"""More objects than are written without a Spark job."""


@pytest.mark.parametrize("variant", [False, True])
@pytest.mark.parametrize("closed", [False, True])
def test_fields_without_columns_are_stored(asking: EngineDataverse, do: Do, *, closed: bool, variant: bool) -> None:
    """Objects with such fields, declared or not, are inserted, read as a whole and by field, changed and deleted."""
    name = f"d{closed:d}{variant:d}"
    asking.make(name, f"{'closed ' if closed else ''}{TYPE}", "id", variant=variant)
    one = {key: value for key, value in OBJECT.items() if not closed or key not in ("_row_id", "x", "X")}
    do(asking.insert(name, str([one]).replace("'", '"')))
    numbers = list(range(100, 100 + MORE))
    do(asking.insert(name, str([{**one, "id": number} for number in numbers]).replace("'", '"')))

    assert do(asking.query(f"select value d from {name} d where d.id = 1")) == [one]
    assert do(asking.query(f"select d.Name, d.name, d._file, d._pos, d.st.a, d.st.A from {name} d where d.id = 1")) == [
        {"Name": "A", "name": "b", "_file": "f", "_pos": 7, "a": 1, "A": 2}
    ]
    assert do(
        asking.query(f"select d._file as _file, d.name as name, count(*) as n from {name} d group by d._file, d.name")
    ) == [{"_file": "f", "name": "b", "n": 1 + MORE}]
    assert do(asking.query(f"select value d.id from {name} d where d._pos = 7 and d.name = 'b' and d.id < 10")) == [1]

    do(asking.upsert(name, str([{**one, "_file": "g", "name": "c"}]).replace("'", '"')))
    do(asking.delete(name, "t._file = 'f'"))

    assert do(asking.query(f"select value d from {name} d")) == [{**one, "_file": "g", "name": "c"}]


def test_reserved_name_is_no_key(asking: EngineDataverse) -> None:
    """A primary key is a column, so a reserved name is refused when the dataset is made, with the reason."""
    with pytest.raises(SqlppError, match=r"The key _file has a name that is not possible for a column: .*Iceberg"):
        asking.make("keyed", "{ _file: string }", "_file")
    asking.make("twin", "{ id: bigint, ID: bigint }", "ID")


def test_column_of_an_older_release_is_refused(asking: EngineDataverse, do: Do) -> None:
    """A dataset that an older release made with a column for each field is refused with advice; once the column has
    another name, the dataset takes objects.
    """
    fields = (FieldType("id", Scalar("bigint")), *(FieldType(name, Scalar("string"), optional=True) for name in "aA"))
    old = StorageForm(RecordType(fields), (("id",),))
    body = {"name": "older", "schema": schema_of(old), "properties": properties_of(old)}
    asking.rest("POST", f"/iceberg/v1/lake.main/namespaces/{'%1F'.join(asking.dataverse)}/tables", body)
    path = ("main", *asking.dataverse, "older")
    asking.refs["older"] = DatasetRef(path=path, type="{ id: bigint, a: string?, A: string? }", key=(("id",),))
    words = "Dataset older was made by an older release with a column for the field A"

    with pytest.raises(SqlppError, match=words):
        do(asking.query("select value o from older o"))
    with pytest.raises(SqlppError, match=words):
        do(asking.insert("older", '[{"id": 1, "A": "f"}]'))
    with asking.table("older").update_schema() as update:
        update.rename_column("A", "a_capital")
    do(asking.insert("older", '[{"id": 1, "a": "e", "A": "f"}]'))

    assert do(asking.query("select value o from older o")) == [{"id": 1, "a": "e", "A": "f"}]
    asking.refs["older"] = DatasetRef(path=path, type="{ id: bigint, s: { a: bigint, A: bigint }? }", key=(("id",),))
    with pytest.raises(SqlppError, match=r"with a column for the field s\.A"):
        do(asking.query("select value o from older o"))
