# SPDX-License-Identifier: Apache-2.0
"""Metadata of harvested tables: what a row has of each format, and files that are no metadata."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path

import lance
import pyarrow as pa
import pyarrow.parquet
import pytest

from limnos.model.errors import TooLarge
from limnos.spark.harvest import metadata
from limnos.spark.harvest.metadata import MetadataReader, MetadataTask, TableMetadata
from limnos.spark.harvest.stores import LocalStore

READER = MetadataReader(LocalStore())


def document(location: str, **fields: object) -> dict[str, object]:
    """Return the metadata of a table with one snapshot."""
    schema = {"type": "struct", "schema-id": 1, "fields": [{"id": 1, "name": "id", "required": False, "type": "int"}]}
    summary = {"operation": "append", "total-records": "7", "total-files-size": "900"}
    return {
        "format-version": 2,
        "table-uuid": "u-1",
        "location": location,
        "current-schema-id": 1,
        "schemas": [{"type": "struct", "schema-id": 0, "fields": []}, schema],
        "current-snapshot-id": 5,
        "snapshots": [{"snapshot-id": 4}, {"snapshot-id": 5, "summary": summary}],
        **{name.replace("_", "-"): value for name, value in fields.items()},
    }


def read(directory: Path, content: bytes | Mapping[str, object]) -> TableMetadata:
    """Read a file as the metadata of a table."""
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    (directory / "v1.metadata.json").write_bytes(data)
    location = f"file://{directory}"
    return READER.read("iceberg", directory=location, file=f"{location}/v1.metadata.json")


def test_iceberg_row_has_identity_columns_and_counts(tmp_path: Path) -> None:
    """The current schema and the totals of the current snapshot, compressed or not, whatever else there is."""
    content = document(str(tmp_path), properties={"x": [1] * 1000}, refs=7)
    plain = read(tmp_path, content)

    assert plain == read(tmp_path, gzip.compress(json.dumps(content).encode()))
    assert (plain.uuid, plain.format_version, plain.snapshot_id, plain.location) == ("u-1", 2, 5, f"file://{tmp_path}")
    assert (plain.row_count, plain.byte_count, plain.read_problem) == (7, 900, None)
    assert json.loads(plain.columns or "")["schema-id"] == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"snapshots": []},
        {"current_snapshot_id": -1},
        {"snapshots": [{"snapshot-id": 5}]},
        {"snapshots": [{"snapshot-id": 5, "summary": None}]},
        {"snapshots": [{"snapshot-id": 5, "summary": {"total-records": "many", "total-files-size": "9" * 30}}]},
        {"snapshots": [{"snapshot-id": 5, "summary": {"total-records": 7, "total-files-size": "-1"}}]},
    ],
)
def test_missing_totals_are_null(tmp_path: Path, fields: Mapping[str, object]) -> None:
    """A table without them is a table; numbers that no column can have are no numbers."""
    result = read(tmp_path, document(str(tmp_path), **fields))

    assert (result.row_count, result.byte_count, result.read_problem) == (None, None, None)


@pytest.mark.parametrize(
    "content, words",
    [
        (b"", "Input data was truncated"),
        (b"no json", "cannot be read"),
        (b"\x1f\x8bxx", "cannot be unpacked"),
        (b"[" * 100_000, "cannot be read"),
        (b"{}", "missing required field"),
        (b'{"format-version": 2, "location": 7}', "Expected `str`"),
        (b'{"format-version": 9, "location": "/x"}', "format version 9"),
        (b'{"format-version": 1e400, "location": "/x"}', "cannot be read"),
        (b'{"format-version": 2, "location": "/x", "current-snapshot-id": 99999999999999999999}', "cannot be read"),
        (b'{"format-version": 2, "location": "/x", "table-uuid": "' + b"u" * 5000 + b'"}', "length <= 2000"),
        (b'{"format-version": 2, "location": "/x", "table-uuid": "\\ud800"}', "cannot be read"),
    ],
)
def test_content_that_is_no_metadata_is_a_problem(tmp_path: Path, content: bytes, words: str) -> None:
    """Its row says what is wrong, in words of some length."""
    result = read(tmp_path, content)

    assert result.read_problem is not None
    assert words in result.read_problem
    assert len(result.read_problem) < 400


def test_large_files_are_problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither a large file nor a small one that unpacks to a large one is read."""
    monkeypatch.setattr(metadata, "METADATA_BYTES_MAX", 10_000)
    content = json.dumps(document(str(tmp_path), comment="x" * 20_000)).encode()

    assert "at most 10,000 are read" in str(read(tmp_path, content).read_problem)
    assert "more than 10000 bytes" in str(read(tmp_path, gzip.compress(content)).read_problem)


def test_large_columns_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The row has all but them."""
    monkeypatch.setattr(metadata, "COLUMNS_BYTES_MAX", 10)
    result = read(tmp_path, document(str(tmp_path)))

    assert (result.columns, result.row_count) == (None, 7)


def test_metadata_of_another_place_is_a_problem(tmp_path: Path) -> None:
    """Who writes a file into one directory does not get the files of another; a link to the directory is the same."""
    table = tmp_path / "table"
    table.mkdir()
    (tmp_path / "link").symlink_to("table")
    problems = [read(table, document(str(tmp_path / name))).read_problem for name in ("table", "link", "other")]

    assert problems == [None, None, f"its metadata says that the table is at file://{tmp_path}/other"]


def test_rows_of_other_formats(tmp_path: Path) -> None:
    """Lance states columns and rows, Parquet and Delta columns; what is broken is a problem."""
    lance.write_dataset(pa.table({"id": [1, 2]}), str(tmp_path / "v.lance"))
    pyarrow.parquet.write_table(pa.table({"name": ["x"]}), tmp_path / "x.parquet")
    (tmp_path / "0.json").write_text('{"metaData":{"id":"d","schemaString":"[]"}}\n')
    (tmp_path / "bad").write_bytes(b"PAR1 no")
    location = f"file://{tmp_path}"
    of_lance = READER.read("lance", directory=f"{location}/v.lance", file="")
    of_parquet = READER.read("parquet", directory=location, file=f"{location}/x.parquet")
    of_delta = READER.read("delta", directory=location, file=f"{location}/0.json")

    assert (of_lance.row_count, of_lance.snapshot_id, json.loads(of_lance.columns or "")[0]["type"]) == (2, 1, "int64")
    assert json.loads(of_parquet.columns or "") == [{"name": "name", "type": "string", "nullable": True}]
    assert (of_delta.uuid, of_delta.columns) == ("d", "[]")
    for format_ in ("parquet", "delta", "lance"):
        assert READER.read(format_, directory=f"{location}/no", file=f"{location}/no").read_problem is not None
    assert READER.read("parquet", directory=location, file=f"{location}/bad").read_problem is not None


def test_task_yields_a_row_for_each_table(tmp_path: Path) -> None:
    """A broken table is one row among the others."""
    (tmp_path / "v1.metadata.json").write_text(json.dumps(document(str(tmp_path))))
    location = f"file://{tmp_path}"
    names = ["v1.metadata.json", "absent.metadata.json"]
    tables = {
        "directory": [location] * 2,
        "format": ["iceberg"] * 2,
        "metadata_location": [f"{location}/{name}" for name in names],
        "version": [1, 2],
    }
    (batch,) = MetadataTask()([pa.RecordBatch.from_pydict(tables)])

    assert batch.column("row_count").to_pylist() == [7, None]
    assert batch.column("read_problem").to_pylist() == [None, "its metadata cannot be read: it does not exist"]


def test_state_has_the_log(tmp_path: Path) -> None:
    """The log decides whether a table of the server is behind."""
    log = [{"metadata-file": f"{tmp_path}/v0.metadata.json", "timestamp-ms": 1}]
    (tmp_path / "v1.metadata.json").write_text(json.dumps(document(str(tmp_path), metadata_log=log)))
    state = READER.state(f"file://{tmp_path}/v1.metadata.json")

    assert state.log == frozenset({f"file://{tmp_path}/v0.metadata.json"})
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 32)
    with pytest.raises(TooLarge):
        READER.state(f"file://{tmp_path}/large")
