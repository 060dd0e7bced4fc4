# SPDX-License-Identifier: Apache-2.0
"""Reading data files in spans and batches: with deletes in any span, and with columns that the file lacks."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from limnos.formats.iceberg.read_restrictions import reading_shape
from limnos.formats.restricting import reading, rewriting
from limnos.formats.restricting.reading import ReadShape, ReadTable
from limnos.formats.restricting.rewriting import rewrite_file
from limnos.formats.restricting.spans import FileSpan
from limnos.model.errors import UnsupportedOperation
from tests.formats.restricting.test_rewriting import FILE, METADATA, SCHEMA, parquet

ROWS = 1_000
ID = pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})
CITY = pa.field("city", pa.string(), metadata={"PARQUET:field_id": "2"})


def grouped(*, dots: bool = False) -> bytes:
    """Return a Parquet file of ten row groups, with the city `odd` or `even` for each id."""
    names = ("i.d", "i") if dots else ("id", "city")
    schema = pa.schema([ID.with_name(names[0]), CITY.with_name(names[1])])
    rows = pa.table([list(range(ROWS)), [("even", "odd")[each % 2] for each in range(ROWS)]], schema=schema)
    sink = io.BytesIO()
    pq.write_table(rows, sink, row_group_size=ROWS // 10)
    return sink.getvalue()


def spans_of(data: bytes, *, count: int) -> list[FileSpan]:
    """Return equal spans of a file, the last without an end."""
    step = len(data) // count + 1
    return [FileSpan(each * step, (each + 1) * step if each < count - 1 else 1 << 60) for each in range(count)]


def positions(*numbers: int, path: str = "f") -> bytes:
    """Return a position delete file."""
    fields = [pa.field("file_path", pa.string()), pa.field("pos", pa.int64())]
    return parquet(pa.table([[path] * len(numbers), list(numbers)], schema=pa.schema(fields)))


def read_ids(files: dict[str, bytes], *, span: FileSpan | None, deletes: list[dict] | None = None) -> list[int]:
    """Return the ids of the live rows of a span of the file `f`."""
    table = ReadTable(ReadShape(reading_shape(METADATA), None, {}))
    batches = table.batches(
        {"data-file": FILE}, deletes=deletes or [], open_file=lambda path: io.BytesIO(files[path]), span=span
    )
    return [each for batch in batches for each in batch.column("id").to_pylist()]


@pytest.mark.parametrize("count", [1, 2, 3, 7, 40])
@pytest.mark.parametrize("batch_rows", [7, 16 << 10])
def test_spans_together_have_each_live_row_once(monkeypatch: pytest.MonkeyPatch, count: int, batch_rows: int) -> None:
    """The spans of a file have all rows in their order and none twice. Deleted positions and deleted values are missing
    in whichever span and batch they are.
    """
    monkeypatch.setattr(reading, "ROWS_AT_ONCE", batch_rows)
    monkeypatch.setattr(reading, "_ROWS_AT_LEAST", 1)
    removed = {0, 99, 100, 512, ROWS - 1}
    files = {
        "f": grouped(),
        "p": positions(*sorted(removed)[:3]),
        "q": positions(*sorted(removed)[2:], ROWS + 5),
        "other": positions(7, path="g"),
        "e": parquet(pa.table([[3, 700]], schema=pa.schema([ID]))),
    }
    deletes = [{**FILE, "content": "position-deletes", "file-path": each} for each in ("p", "q", "other")]
    deletes.append({**FILE, "content": "equality-deletes", "file-path": "e", "equality-ids": [1]})

    ids = [each for span in spans_of(files["f"], count=count) for each in read_ids(files, span=span, deletes=deletes)]

    assert ids == [each for each in range(ROWS) if each not in removed | {3, 700}]


def test_columns_with_dots_in_their_names_are_read_by_field_id() -> None:
    """A column whose name in the file has a dot, and another one with the part before the dot, are not confused."""
    table = ReadTable(ReadShape(reading_shape(METADATA), None, {}))
    task = {"data-file": FILE}
    (batch,) = table.batches(task, deletes=[], open_file=lambda _: io.BytesIO(grouped(dots=True)))

    assert batch.column("id").to_pylist() == list(range(ROWS))
    assert set(batch.column("city").to_pylist()) == {"odd", "even"}


def test_file_without_any_column_of_the_table_has_its_rows() -> None:
    """A file that has none of the table's columns has as many rows of nulls as it has rows."""
    other = pa.field("gone", pa.int64(), metadata={"PARQUET:field_id": "90"})
    data = parquet(pa.table([[1, 2, 3]], schema=pa.schema([other])))

    assert read_ids({"f": data}, span=None) == [None] * 3


def test_value_of_an_identity_partition_replaces_a_missing_column() -> None:
    """A column that the file lacks has the value of the file's identity partition."""
    spec = {"spec-id": 1, "fields": [{"source-id": 2, "field-id": 1000, "name": "city", "transform": "identity"}]}
    metadata = {**METADATA, "partition-specs": [*METADATA["partition-specs"], spec], "last-partition-id": 1000}  # type: ignore[misc]
    table = ReadTable(ReadShape(reading_shape(metadata), None, {}))
    data = parquet(pa.table([[1, 2]], schema=pa.schema([ID])))
    task = {"data-file": {**FILE, "spec-id": 1, "partition": ["Bonn"]}}
    (batch,) = table.batches(task, deletes=[], open_file=lambda _: io.BytesIO(data))

    assert batch.column("city").to_pylist() == ["Bonn"] * 2


def test_large_results_are_split_into_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """A result that exceeds the size of a file continues in further files, which together have all visible rows."""
    monkeypatch.setattr(reading, "ROWS_AT_ONCE", 50)
    monkeypatch.setattr(rewriting, "WRITTEN_BYTES", 300)
    monkeypatch.setattr(rewriting, "_GROUP_ROWS", 100)
    shape = ReadShape(
        reading_shape({**METADATA, "schemas": [{**SCHEMA, "fields": SCHEMA["fields"][:2]}]}),
        {
            "type": "eq",
            "left": {"type": "reference", "id": 2, "name": "city"},
            "right": {"type": "literal", "value": "odd"},
        },
        {},
    )
    files = list(rewrite_file(shape, {"data-file": FILE}, deletes=[], open_file=lambda _: io.BytesIO(grouped())))

    tables = [pq.read_table(io.BytesIO(each.data)) for each in files]
    assert len(files) > 2
    assert [each.num_rows for each in tables] == [each.file_entry["record-count"] for each in files]
    assert [number for each in tables for number in each.column("id").to_pylist()] == list(range(1, ROWS, 2))


def test_delete_file_of_an_unknown_format_is_refused() -> None:
    """A position delete file of an unknown format is refused, and not ignored."""
    delete = {**FILE, "content": "position-deletes", "file-path": "p", "file-format": "avro"}
    with pytest.raises(UnsupportedOperation, match="delete files of format avro"):
        read_ids({"f": grouped(), "p": b""}, span=None, deletes=[delete])
