"""Scans planned over Iceberg REST: what is answered, for whom, and what is refused."""

from __future__ import annotations

from tests.http.driver import Node, grant
from tests.http.iceberg.planning import Written
from tests.http.iceberg.wire import error_of
from tests.manifests import data_file, entry


def long(value: int) -> bytes:
    """A bound of a column of longs."""
    return value.to_bytes(8, "little", signed=True)


def ranged(path: str, low: int, high: int, **more: object) -> dict[str, object]:
    """A data file whose column 1 lies between two values."""
    counts = {"value_counts": {1: 10, 2: 10}, "null_value_counts": {1: 0, 2: 10}}
    return data_file(path, lower_bounds={1: long(low)}, upper_bounds={1: long(high)}, **counts, **more)


def test_a_scan_is_planned(lake: Node) -> None:
    """A plan names the files of the current snapshot that may hold rows of the filter, whole, with what is left of the filter."""
    table = Written(lake)
    entries = [entry(ranged(f"{table.location}/data/{n}.parquet", n * 10, n * 10 + 9)) for n in range(3)]
    table.commit([table.manifest("m.avro", entries)])

    every, some = table.plan(), table.plan(filter={"type": "gt", "term": "id", "value": 14}, stats_fields=["id"])

    assert [each["residual-filter"] for each in every.json()["file-scan-tasks"]] == [True] * 3
    assert every.json()["file-scan-tasks"][0]["data-file"] == {
        "spec-id": 0, "content": "data", "file-path": f"{table.location}/data/0.parquet", "file-format": "parquet", "partition": [],
        "file-size-in-bytes": 1_000, "record-count": 10,
    }  # fmt: skip
    task = some.json()["file-scan-tasks"][0]
    assert len(some.json()["file-scan-tasks"]) == 2
    assert task["residual-filter"] == {"type": "gt", "term": "id", "value": 14}
    assert task["data-file"]["lower-bounds"] == {"keys": [1], "values": [long(10).hex().upper()]}
    assert (every.json()["status"], "delete-files" in every.json()) == ("completed", False)


def test_an_empty_table(lake: Node) -> None:
    """A table without a snapshot has no files to read, and its columns are looked at all the same."""
    table = Written(lake)

    there, not_there = table.plan(), table.plan(filter={"type": "is-null", "term": "nowhere"})

    assert (there.status, there.json()["file-scan-tasks"]) == (200, [])
    assert error_of(not_there)[:2] == (400, "IllegalArgumentException")


def test_a_right_to_rows(lake: Node) -> None:
    """A plan tells of rows, so who may write the table and not read it gets none."""
    table = Written(lake)
    grant(lake, "reader", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    grant(lake, "writer", "use_catalog use_schema modify_table", kind="CATALOG", on="main")

    assert table.plan(user="reader").status == 200
    assert error_of(table.plan(user="writer"))[:2] == (403, "ForbiddenException")
