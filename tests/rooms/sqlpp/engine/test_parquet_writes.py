# SPDX-License-Identifier: Apache-2.0
"""Rows written as one Parquet file of a table, and a search for existing keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from limnos.rooms.sqlpp.engine.parquet_lookups import FileCache, FileWithDeletes, UnsupportedFile
from limnos.rooms.sqlpp.engine.parquet_writes import has_key, key_range, with_field_ids, write_rows
from limnos.rooms.sqlpp.language.conditions import Condition

FIELDS: list[dict[str, Any]] = [
    {"id": 1, "name": "id", "required": True, "type": "long"},
    {"id": 2, "name": "s", "required": False, "type": "string"},
]
ROWS = pa.table({"id": pa.array([3, 5, 9], pa.int64()), "s": ["a", None, "c"]})


def test_columns_have_the_ids_of_the_table(tmp_path: Path) -> None:
    """Columns have the table's field ids, and key columns are required."""
    path = tmp_path / "data" / "a.parquet"
    write_rows(ROWS.cast(with_field_ids(ROWS.schema, FIELDS)), path)

    schema = pq.read_schema(path)
    assert [(field.name, field.nullable, field.metadata[b"PARQUET:field_id"]) for field in schema] == [
        ("id", False, b"1"),
        ("s", True, b"2"),
    ]
    assert pq.read_table(path).to_pylist() == ROWS.to_pylist()
    assert pq.read_metadata(path).row_group(0).column(0).statistics.max == 9


@pytest.mark.parametrize(
    "fields",
    [
        FIELDS[:1],
        FIELDS[::-1],
        [FIELDS[0], {**FIELDS[1], "type": "uuid"}],
        [FIELDS[0], {**FIELDS[1], "type": {"type": "list"}}],
    ],
)
def test_unsupported_tables_are_refused(fields: list[dict[str, Any]]) -> None:
    """Tables with additional columns, another order, or types that Arrow represents differently are unsupported."""
    with pytest.raises(UnsupportedFile):
        with_field_ids(ROWS.schema, fields)


def test_a_file_that_cannot_be_written_is_removed(tmp_path: Path) -> None:
    """A file that cannot be written completely is removed."""
    with pytest.raises(pa.ArrowException):
        write_rows(pa.table({"x": pa.array([1], pa.month_day_nano_interval())}), tmp_path / "a.parquet")
    assert list(tmp_path.iterdir()) == []


def test_key_range_covers_first_key_field() -> None:
    """The range is that of the key's first field; other types are unsupported."""
    assert key_range(ROWS, [("id",), ("s",)]) == (Condition(("id",), ">=", 3), Condition(("id",), "<=", 9))
    assert key_range(ROWS, [("s",)])[0].value == "a"
    for key in ("r", "x"), ("d",):
        with pytest.raises(UnsupportedFile):
            key_range(pa.table({"d": [0.5], "r": [{"x": 1}]}), [key])


def test_existing_keys_are_detected(tmp_path: Path) -> None:
    """The key of a deleted row does not exist; keys of several fields are left to Spark if a file may have them."""
    path, deletes = tmp_path / "a.parquet", tmp_path / "d.parquet"
    write_rows(ROWS.cast(with_field_ids(ROWS.schema, FIELDS)), path)
    pq.write_table(pa.table({"file_path": ["file:/a"], "pos": pa.array([1], pa.int64())}), deletes)
    file = FileWithDeletes(str(path), "file:/a", (str(deletes),))

    def exists(*keys: int, files: tuple[FileWithDeletes, ...] = (file,)) -> bool:
        return has_key(files, FIELDS, rows=pa.table({"id": keys}), keys=[("id",)], cache=FileCache())

    assert exists(4, 9)
    assert not exists(4, 5)
    assert exists(5, files=(file._replace(deletes=()),))
    assert not exists(9, files=())
    with pytest.raises(UnsupportedFile):
        has_key([file], FIELDS, rows=ROWS, keys=[("id",), ("s",)], cache=FileCache())
    with pytest.raises(UnsupportedFile):
        exists(1, files=(FileWithDeletes(str(tmp_path / "missing"), ""),))
