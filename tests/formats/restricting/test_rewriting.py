# SPDX-License-Identifier: Apache-2.0
"""Rewritten files of restricted tables agree with a model in plain Python, for random filters and masks, with deletes
and changed columns.

`LIMNOS_TEST_RESTRICTIONS` is the number of filters and masks; the full check uses 1,000.
"""

from __future__ import annotations

import io
import os
import random

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.schema import Schema
from pyiceberg.types import DateType, DecimalType, DoubleType, LongType, NestedField, StringType, TimestamptzType

from limnos.formats.iceberg.read_restrictions import (
    BoundRestrictions,
    bind_terms,
    combine_restrictions,
    reading_shape,
    strictest,
)
from limnos.formats.iceberg.row_filters import filter_read
from limnos.formats.restricting.masking import mask_column
from limnos.formats.restricting.reading import ReadShape
from limnos.formats.restricting.rewriting import RewrittenFile, rewrite_file
from limnos.model.errors import UnsupportedOperation
from limnos.model.restrictions import ColumnMask, RestrictionTerms
from tests.formats.restricting.model import FITTING, FIXED, Cell, Row, random_filter, rows_made, same, shown_of

COUNT = int(os.environ.get("LIMNOS_TEST_RESTRICTIONS", "100"))
TYPES = {
    "id": "long",
    "city": "string",
    "card": "string",
    "born": "date",
    "seen": "timestamptz",
    "paid": "decimal(9, 2)",
    "ratio": "double",
}
SCHEMA = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": place, "name": name, "required": False, "type": kind}
        for place, (name, kind) in enumerate(TYPES.items(), 1)
    ],
}
METADATA = {
    "format-version": 2,
    "table-uuid": "9c12d441-03fe-4693-9a96-a0705ddf69c1",
    "location": "file:///wh/t",
    "last-updated-ms": 0,
    "last-column-id": 7,
    "schemas": [SCHEMA],
    "current-schema-id": 0,
    "partition-specs": [{"spec-id": 0, "fields": []}],
    "default-spec-id": 0,
    "last-partition-id": 999,
    "sort-orders": [{"order-id": 0, "fields": []}],
    "default-sort-order-id": 0,
    "properties": {},
}
ARROW = schema_to_pyarrow(
    Schema(
        NestedField(1, "id", LongType()),
        NestedField(2, "city", StringType()),
        NestedField(3, "card", StringType()),
        NestedField(4, "born", DateType()),
        NestedField(5, "seen", TimestamptzType()),
        NestedField(6, "paid", DecimalType(9, 2)),
        NestedField(7, "ratio", DoubleType()),
    )
)
FILE = {
    "spec-id": 0,
    "content": "data",
    "file-path": "f",
    "file-format": "parquet",
    "partition": [],
    "file-size-in-bytes": 1,
    "record-count": 60,
}


def parquet(table: pa.Table) -> bytes:
    """Return a Parquet file of rows."""
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def bound(filter_: Cell, masks: dict[str, str]) -> BoundRestrictions:
    """Return the restrictions of a reader, created from a request."""
    text = "" if filter_ is None else msgspec.json.encode(filter_read(filter_)).decode()
    terms = bind_terms(
        RestrictionTerms(row_filter=text, masks=tuple(ColumnMask(*each) for each in masks.items())), SCHEMA
    )
    return combine_restrictions([("r", terms)], SCHEMA)


def show(
    rows: list[Row],
    applies: BoundRestrictions,
    *,
    metadata: dict | None = None,
    deletes: tuple[tuple[dict, bytes], ...] = (),
    salt: str = "",
) -> RewrittenFile:
    """Rewrite a file of rows."""
    shape = ReadShape(reading_shape(metadata or METADATA), applies.row_filter, applies.masks, salt)
    files = {
        "f": parquet(pa.Table.from_pylist(rows, schema=ARROW)),
        **{delete_file["file-path"]: data for delete_file, data in deletes},
    }
    delete_files = [delete_file for delete_file, _ in deletes]
    results = rewrite_file(
        shape, {"data-file": FILE}, deletes=delete_files, open_file=lambda path: io.BytesIO(files[path])
    )
    return next(results, RewrittenFile(b"", {"record-count": 0}))


def rows_in(rewritten_file: RewrittenFile) -> list[Row]:
    """Return the rows of a file."""
    return pq.read_table(io.BytesIO(rewritten_file.data)).to_pylist() if rewritten_file.data else []


def test_random_filters_and_masks_agree_with_model() -> None:
    """The rewritten file has exactly the rows of the model. Counts and bounds in its metadata reveal nothing else."""
    dice = random.Random(93)
    rows = rows_made(dice, 0, 60)
    for _ in range(COUNT):
        filter_ = None if dice.random() < 0.1 else random_filter(dice, rows)
        masks = {column: dice.choice(FITTING[column]) for column in dice.sample(tuple(FIXED), dice.randrange(4))}
        expected = shown_of(rows, filter_, masks)
        rewritten_file = show(rows, bound(filter_, masks))

        same(rows_in(rewritten_file), expected)
        assert rewritten_file.file_entry["record-count"] == len(expected)
        entry_text = msgspec.json.encode(rewritten_file.file_entry).decode()
        hidden = {row["card"] for row in rows} - {row["card"] for row in expected}
        assert not [card for card in hidden if card and len(card) > 3 and card.encode().hex().upper() in entry_text]


def test_position_and_equality_deletes_are_applied() -> None:
    """Rows that position or equality deletes remove, including by null values, are not in the file."""
    rows = rows_made(random.Random(1), 0, 30)
    positions = pa.table(
        {"file_path": ["f", "f", "g"], "pos": [0, 7, 3]},
        schema=pa.schema(
            [
                pa.field("file_path", pa.string(), metadata={"PARQUET:field_id": "2147483546"}),
                pa.field("pos", pa.int64(), metadata={"PARQUET:field_id": "2147483545"}),
            ]
        ),
    )
    values = pa.table(
        {"city": ["Bonn", None]}, schema=pa.schema([pa.field("city", pa.string(), metadata={"PARQUET:field_id": "2"})])
    )
    deletes = (
        ({**FILE, "content": "position-deletes", "file-path": "p"}, parquet(positions)),
        ({**FILE, "content": "equality-deletes", "file-path": "e", "equality-ids": [2]}, parquet(values)),
    )
    rewritten_file = show(rows, bound(None, {"id": "replace-with-null"}), deletes=deletes)

    left = [row for place, row in enumerate(rows) if place not in (0, 7) and row["city"] not in ("Bonn", None)]
    same(rows_in(rewritten_file), [{**row, "id": None} for row in left])


def test_several_equality_deletes_are_all_applied() -> None:
    """Each of several equality deletes of one file, by the same column and by another, removes its rows."""
    rows = rows_made(random.Random(4), 0, 30)
    cities = sorted({str(row["city"]) for row in rows if row["city"] is not None})[:2]
    deleted_ids = [rows[5]["id"], rows[9]["id"]]

    def delete(path: str, kind: pa.DataType, *, number: int, values: list[Cell]) -> tuple[dict, bytes]:
        field = pa.field("v", kind, metadata={"PARQUET:field_id": str(number)})
        delete_file = {**FILE, "content": "equality-deletes", "file-path": path, "equality-ids": [number]}
        return delete_file, parquet(pa.table({"v": values}, schema=pa.schema([field])))

    deletes = tuple([delete(f"c{city}", pa.string(), number=2, values=[city]) for city in cities])
    deletes += (delete("i", pa.int64(), number=1, values=deleted_ids),)
    rewritten_file = show(rows, bound(None, {"card": "replace-with-null"}), deletes=deletes)

    left = [row for row in rows if row["city"] not in cities and row["id"] not in deleted_ids]
    assert 0 < len(left) < len(rows) - 2
    same(rows_in(rewritten_file), [{**row, "card": None} for row in left])


def test_delete_by_dropped_column_is_refused() -> None:
    """A delete by a dropped column cannot be evaluated, so the rewrite is refused. The message contains no data."""
    delete_file = {**FILE, "content": "equality-deletes", "file-path": "e", "equality-ids": [99]}
    with pytest.raises(UnsupportedOperation, match="no longer has"):
        show(rows_made(random.Random(1), 0, 3), bound(None, {"id": "replace-with-null"}), deletes=((delete_file, b""),))


@pytest.mark.parametrize("change", [{"file-format": "orc"}, {"file-path": "elsewhere"}])
def test_unreadable_file_is_refused_without_data(change: dict[str, str]) -> None:
    """A file of another format, or a damaged one, is refused with a message without names and values."""
    shape = ReadShape(reading_shape(METADATA), None, {1: "replace-with-null"})
    with pytest.raises(UnsupportedOperation) as refused:
        list(
            rewrite_file(
                shape,
                {"data-file": {**FILE, **change}},
                deletes=[],
                open_file=lambda path: io.BytesIO({"elsewhere": b"secret rows"}[path]),
            )
        )

    assert "secret" not in str(refused.value)
    assert "elsewhere" not in str(refused.value)


def test_rewritten_file_has_current_columns() -> None:
    """The rewritten file has the current columns: dropped columns are omitted, renamed ones are masked, and added ones
    have their default, masked too.
    """
    fields = [
        {**field, "name": "number"} if field["id"] == 3 else field for field in SCHEMA["fields"] if field["id"] != 5
    ]  # type: ignore[index, attr-defined]
    fields.append({"id": 9, "name": "level", "required": True, "type": "string", "initial-default": "secret-default"})
    schema = {**SCHEMA, "fields": fields}
    metadata = {**METADATA, "format-version": 3, "next-row-id": 0, "schemas": [schema], "last-column-id": 9}
    rows = rows_made(random.Random(2), 0, 9)
    rewritten_rows = rows_in(
        show(rows, BoundRestrictions(None, {3: "replace-with-null", 9: "mask-to-fixed-value"}), metadata=metadata)
    )

    assert list(rewritten_rows[0]) == ["id", "city", "number", "born", "paid", "ratio", "level"]
    assert {(row["number"], row["level"]) for row in rewritten_rows} == {(None, "XXXXXXXX")}


def test_local_hashes_differ_by_query() -> None:
    """In one query equal values have equal hashes. In another query the hashes differ."""
    values = pa.array(["a", "b", "a", None])
    one, other = (mask_column(values, "sha-256-query-local", salt=salt).to_pylist() for salt in (b"1", b"2"))

    assert one[0] == one[2] != one[1]
    assert one[3] is None
    assert not set(one[:3]) & set(other[:3])


def test_unknown_mask_is_refused() -> None:
    """An unknown mask action fails, because the file would otherwise have unmasked values."""
    with pytest.raises(UnsupportedOperation):
        list(
            rewrite_file(
                ReadShape(reading_shape(METADATA), None, {1: "blur"}),
                {"data-file": FILE},
                deletes=[],
                open_file=lambda _: io.BytesIO(parquet(pa.Table.from_pylist([{"id": 1}], schema=ARROW))),
            )
        )


def test_combined_masks_hide_what_either_hides() -> None:
    """The combination of two masks does not depend on their order, and hides what either of them hides."""
    actions = sorted({each for fitting in FITTING.values() for each in fitting} | {"sha-256-query-local"})
    for one in actions:
        for two in actions:
            assert strictest(one, two) == strictest(two, one)
            for three in actions:
                assert strictest(strictest(one, two), three) == strictest(one, strictest(two, three))
        assert strictest("replace-with-null", one) == strictest(one, "replace-with-null") == "replace-with-null"
    assert strictest("truncate-to-year", "truncate-to-month") == "truncate-to-year"
    assert strictest("show-first-4", "show-last-4") == "mask-to-fixed-value"
    assert strictest("mask-to-fixed-value", "replace-with-null") == "replace-with-null"
