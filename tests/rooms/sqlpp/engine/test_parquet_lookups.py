# SPDX-License-Identifier: Apache-2.0
"""Rows of local Parquet files found by conditions, with deletes, row groups and a cache."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime
from operator import eq, ge, gt, le, lt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from limnos.rooms.sqlpp.engine import parquet_lookups
from limnos.rooms.sqlpp.engine.parquet_lookups import (
    FileCache,
    FileLookup,
    FileWithDeletes,
    ReadAllowance,
    UnsupportedFile,
    read_rows,
)
from limnos.rooms.sqlpp.language.conditions import Condition
from limnos.rooms.sqlpp.language.values.model import Date, DateTime, Integer, Value

SCHEMA: dict[str, Any] = {
    "type": "struct",
    "fields": [
        {"id": 1, "name": "id", "required": True, "type": "long"},
        {"id": 2, "name": "name", "required": False, "type": "string"},
    ],
}


def with_id(name: str, type_: pa.DataType, number: int) -> pa.Field:
    """Return a field with an Iceberg id."""
    return pa.field(name, type_, metadata={"PARQUET:field_id": str(number)})


def written(path: Path, columns: dict[tuple[str, int], pa.Array], *, rows_of_group: int = 1 << 20) -> FileWithDeletes:
    """A data file."""
    schema = pa.schema([with_id(name, array.type, number) for (name, number), array in columns.items()])
    pq.write_table(pa.table(list(columns.values()), schema=schema), path, row_group_size=rows_of_group)
    return FileWithDeletes(str(path), path.as_uri())


def numbers(path: Path, *, count: int = 10, rows_of_group: int = 4) -> FileWithDeletes:
    """Return a file with ids from 0 and names."""
    ids, names = pa.array(range(count), pa.int64()), pa.array([f"n{number}" for number in range(count)])
    return written(path, {("id", 1): ids, ("name", 2): names}, rows_of_group=rows_of_group)


def deleting(path: Path, *pairs: tuple[str, int]) -> str:
    """Return a position delete file."""
    columns = {"file_path": [location for location, _ in pairs], "pos": pa.array([at for _, at in pairs], pa.int64())}
    pq.write_table(pa.table(columns), path)
    return str(path)


def key(value: Value, path: str = "id", operator: str = "=") -> list[Condition]:
    """Return a key of one field."""
    return [Condition((path,), operator, value)]  # type: ignore[arg-type]


def find_rows(
    files: list[FileWithDeletes], *keys: list[Condition], schema: dict[str, Any] = SCHEMA, most: int | None = None
) -> list[tuple[int, dict[str, Any]]]:
    """Return the rows, with their positions."""
    rows = read_rows(files, schema, keys=keys, most=most, cache=FileCache())
    assert rows is not None
    return [(one.position, one.row) for one in rows]


def test_row_position_counts_preceding_row_groups(tmp_path: Path) -> None:
    """The position of a row includes the rows of preceding row groups."""
    file = numbers(tmp_path / "a.parquet")

    assert find_rows([file], key(Integer(9))) == [(9, {"id": 9, "name": "n9"})]
    assert [at for at, _ in find_rows([file], key(0), key(4), key(11))] == [0, 4]
    assert [at for at, _ in find_rows([file], key((3, 8), operator="in"))] == [3, 8]
    assert [at for at, _ in find_rows([file], [*key(2, operator=">="), *key("n3", "name")])] == [3]
    assert [at for at, _ in find_rows([file], key(7, operator=">"))] == [8, 9]


OPERATORS = {"=": eq, "<": lt, "<=": le, ">": gt, ">=": ge, "in": eq}


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("rows_of_group", [1, 3, 10])
def test_conditions_at_the_borders_of_row_groups_find_their_rows(
    tmp_path: Path, operator: str, rows_of_group: int
) -> None:
    """Each operator finds the same rows as a comparison in Python, for values at, below and above the least and the
    largest value of each row group.
    """
    file = numbers(tmp_path / "a.parquet", rows_of_group=rows_of_group)

    for value in range(-1, 11):
        condition = key((value,) if operator == "in" else value, operator=operator)
        expected = [at for at in range(10) if OPERATORS[operator](at, value)]
        assert [at for at, _ in find_rows([file], condition)] == expected, value


def test_value_of_a_row_that_is_not_deleted_is_found(tmp_path: Path) -> None:
    """A column has a value if any row with it is not deleted, also beside a deleted row with the same value."""
    ids = pa.array([7, 8, 8, 9, 7], pa.int64())
    file = written(tmp_path / "a.parquet", {("id", 1): ids, ("name", 2): pa.array(["x"] * 5)}, rows_of_group=2)

    def has(*values: int, deleted: tuple[int, ...]) -> bool:
        deletes = (deleting(tmp_path / "d.parquet", *((file.location, at) for at in deleted)),)
        lookup = FileLookup(
            file._replace(deletes=deletes), SCHEMA["fields"], cache=FileCache(), reading=ReadAllowance()
        )
        return lookup.has_value("id", pa.array(values, pa.int64()))

    assert has(7, deleted=(0,))
    assert has(7, deleted=(4,))
    assert not has(7, deleted=(0, 4))
    assert has(7, 9, deleted=(0, 4))
    assert has(8, deleted=(0, 2, 4))
    assert not has(1, deleted=(0,))


def test_lookup_reads_only_row_group_of_key(tmp_path: Path) -> None:
    """Statistics select the row group; the next lookup uses the cached columns."""
    file, cache = numbers(tmp_path / "a.parquet"), FileCache()

    read_rows([file], SCHEMA, keys=[key(5)], cache=cache)
    (tmp_path / "a.parquet").unlink()

    assert [one.row["name"] for one in read_rows([file], SCHEMA, keys=[key(6)], cache=cache) or ()] == ["n6"]
    assert read_rows([file], SCHEMA, keys=[key(99)], cache=cache) == []
    with pytest.raises(UnsupportedFile):
        read_rows([file], SCHEMA, keys=[key(9)], cache=cache)


def test_deleted_rows_are_not_returned(tmp_path: Path) -> None:
    """Deleted rows are not found; a delete file may name other files as well."""
    one, two = numbers(tmp_path / "a.parquet"), numbers(tmp_path / "b.parquet")
    deletes = (
        deleting(tmp_path / "d1.parquet", (one.location, 9), (two.location, 0)),
        deleting(tmp_path / "d2.parquet", (one.location, 3)),
    )
    keys = (key(0), key(3), key(9))

    assert [at for at, _ in find_rows([one._replace(deletes=deletes)], *keys)] == [0]
    assert [at for at, _ in find_rows([two._replace(deletes=deletes[:1])], *keys)] == [3, 9]


def test_more_matches_than_limit_return_none(tmp_path: Path) -> None:
    """If more rows match than requested, the result is None."""
    file = numbers(tmp_path / "a.parquet")

    assert read_rows([file], SCHEMA, keys=[key(0, operator=">=")], most=9, cache=FileCache()) is None
    assert len(find_rows([file], key(0, operator=">="), most=10)) == 10


def test_values_of_each_type_are_read_and_compared(tmp_path: Path) -> None:
    """Values of each type are plain values, and conditions compare them as such."""
    moment = datetime(2024, 2, 29, 1, 2, 3, 4000, tzinfo=UTC)
    own = uuid.UUID(int=7)
    values: dict[str, tuple[Any, pa.Array, Value, Any]] = {
        "date": ("date", pa.array([date(1970, 1, 3), None]), Date(2), 2),
        "at": (
            "timestamptz",
            pa.array([moment, None], pa.timestamp("us", "UTC")),
            DateTime(int(moment.timestamp() * 1000)),
            int(moment.timestamp() * 1000) * 1000,
        ),
        "u": ("uuid", pa.array([own.bytes, None], pa.binary(16)), own, str(own)),
        "i": ("int", pa.array([5, None], pa.int32()), Integer(5), 5),
        "wide": ("long", pa.array([6, None], pa.int32()), 6, 6),
    }
    columns = {(name, at): each[1] for at, (name, each) in enumerate(values.items(), start=1)}
    schema = {
        "fields": [{"id": at, "name": name, "type": each[0]} for at, (name, each) in enumerate(values.items(), start=1)]
    }
    file = written(tmp_path / "a.parquet", columns)

    for name, (_, _, value, plain) in values.items():
        (one,) = find_rows([file], key(value, name), schema=schema)
        assert one[1][name] == plain
        assert [at for at, _ in find_rows([file], key((value,), name, "in"), schema=schema)] == [0]


def test_columns_are_matched_by_field_id(tmp_path: Path) -> None:
    """Columns are found by field id: a renamed column has its values, and a later column is NULL in older files."""
    file = numbers(tmp_path / "a.parquet")
    schema = {"fields": [{"id": 1, "name": "key", "type": "long"}, {"id": 3, "name": "name", "type": "string"}]}

    assert find_rows([file], key(1, "key"), schema=schema) == [(1, {"key": 1, "name": None})]
    with pytest.raises(UnsupportedFile):
        find_rows([file], key("x", "name"), schema=schema)


@pytest.mark.parametrize("more", [{"initial-default": 5}, {"initial-default": None}, {"required": True}])
def test_file_without_a_column_with_a_default_is_unsupported(tmp_path: Path, more: dict[str, Any]) -> None:
    """Older files lack a column that was added with a default value, so the lookup leaves them to another reader."""
    file = numbers(tmp_path / "a.parquet")
    fields = [*SCHEMA["fields"], {"id": 3, "name": "added", "required": False, "type": "long", **more}]

    with pytest.raises(UnsupportedFile, match="default"):
        find_rows([file], key(1), schema={"fields": fields})


def test_records_and_arrays_with_equal_parts_are_read(tmp_path: Path) -> None:
    """Records and arrays are read if their parts have the same names and ids."""
    record = pa.struct([with_id("x", pa.int64(), 4)])
    columns = {("id", 1): pa.array([1], pa.int64()), ("r", 2): pa.array([{"x": 5}], record)}
    file = written(tmp_path / "a.parquet", columns)

    def schema(name: str) -> dict[str, Any]:
        part = {"id": 4, "name": name, "type": "long"}
        return {"fields": [SCHEMA["fields"][0], {"id": 2, "name": "r", "type": {"type": "struct", "fields": [part]}}]}

    assert find_rows([file], key(1), schema=schema("x")) == [(0, {"id": 1, "r": {"x": 5}})]
    with pytest.raises(UnsupportedFile):
        find_rows([file], key(1), schema=schema("y"))


@pytest.mark.parametrize("type_", ["decimal(3, 1)", "time", {"type": "map"}, {"type": "list", "element": "date"}])
def test_unsupported_column_types_are_delegated_to_other_reader(tmp_path: Path, type_: object) -> None:
    """Columns of other types are left to another reader."""
    file = numbers(tmp_path / "a.parquet")
    schema = {"fields": [SCHEMA["fields"][0], {"id": 2, "name": "name", "type": type_}]}

    with pytest.raises(UnsupportedFile):
        find_rows([file], key(1), schema=schema)


def test_unsupported_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files without ids, missing files, other formats and files that are too large are unsupported."""
    pq.write_table(pa.table({"id": [1], "name": ["x"]}), tmp_path / "plain.parquet")
    (tmp_path / "text.parquet").write_text("x")
    for name in ("plain", "text", "missing"):
        with pytest.raises(UnsupportedFile):
            find_rows([FileWithDeletes(str(tmp_path / f"{name}.parquet"), "")], key(1))
    file = numbers(tmp_path / "a.parquet")
    monkeypatch.setattr(parquet_lookups.ReadAllowance.__init__, "__defaults__", (10,))
    with pytest.raises(UnsupportedFile, match="read budget"):
        find_rows([file], key(1))


def test_cache_evicts_least_recently_used_columns(tmp_path: Path) -> None:
    """The cache keeps the columns that were used last."""
    files = [numbers(tmp_path / f"{at}.parquet", count=1000, rows_of_group=1000) for at in range(5)]
    cache = FileCache(bytes_max=40_000)

    for file in files:
        assert len(read_rows([file], SCHEMA, keys=[key(5)], cache=cache) or ()) == 1
        assert cache.size <= 40_000
    assert {path for path, _, _ in cache._columns} <= {file.path for file in files[2:]}
    assert cache.size == sum(array.nbytes for array in cache._columns.values())


def test_the_number_of_cached_columns_is_bounded(tmp_path: Path) -> None:
    """The number of cached columns is bounded as well, because small columns have an overhead."""
    cache = FileCache(columns_max=4)

    for at in range(5):
        read_rows([numbers(tmp_path / f"{at}.parquet")], SCHEMA, keys=[key(5)], cache=cache)
        assert len(cache._columns) <= 4
    assert cache.size == sum(array.nbytes for array in cache._columns.values()) > 0
