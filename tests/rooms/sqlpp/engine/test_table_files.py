# SPDX-License-Identifier: Apache-2.0
"""Files of a table that may have rows of a key, and tables that are left to Iceberg's library."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from msgspec import structs

from limnos.rooms.sqlpp.engine import table_files
from limnos.rooms.sqlpp.engine.parquet_lookups import FileWithDeletes, UnsupportedFile
from limnos.rooms.sqlpp.engine.table_files import TableClient, TableSnapshot, files_of, local_path
from limnos.rooms.sqlpp.language.conditions import Condition
from limnos.rooms.sqlpp.language.jobs import DatasetRef, SnapshotPin
from limnos.rooms.sqlpp.language.values.model import Value
from tests.rooms.sqlpp.engine.iceberg_files import PATHS, Entry, Manifest, list_of, number

SCHEMA: dict[str, Any] = {
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "type": "long"},
        {"id": 2, "name": "s", "type": "string"},
        {"id": 3, "name": "d", "type": "date"},
    ],
}


def between(path: str, low: int, high: int, **more: Any) -> Entry:  # noqa: ANN401 - fields of an entry
    """Return a data file with ids between two bounds."""
    return Entry(path=path, lower={1: number(low), 2: b"b"}, upper={1: number(high), 2: b"c"}, **more)


def key(value: Value, path: str = "id", operator: str = "=") -> list[Condition]:
    """Return a key of one field."""
    return [Condition((path,), operator, value)]  # type: ignore[arg-type]


def paths(location: str, *keys: list[Condition]) -> list[str]:
    """Return the files that may have a row."""
    return [file.path for file in files_of(TableSnapshot(SCHEMA, location), keys)]


def test_files_are_skipped_by_their_bounds(tmp_path: Path) -> None:
    """Files are skipped by their bounds. A file without bounds, or a condition on a column without comparable bounds,
    skips nothing.
    """
    entries = [between("file:/a", 1, 9), between("file:/b", 10, 19), Entry(path="/c"), between("/d", 0, 99, status=2)]
    location = list_of(tmp_path, Manifest(entries[:1]), Manifest(entries[1:]))

    assert paths(location, key(9)) == ["/a", "/c"]
    assert paths(location, key(-1), key((3, 12), operator="in")) == ["/a", "/b", "/c"]
    assert paths(location, key(10, operator="<"), key(50)) == ["/a", "/c"]
    assert paths(location, [*key(5), *key("x", "s")]) == ["/c"]
    assert paths(location, [*key(5), *key("bee", "s")]) == ["/a", "/c"]
    assert paths(location, key(5, "d")) == ["/a", "/b", "/c"]
    assert files_of(TableSnapshot(SCHEMA, None), [key(1)]) == []


def test_delete_files_are_matched_to_data_files(tmp_path: Path) -> None:
    """Delete files apply by sequence number, by the paths in their bounds, and by the file that they reference."""
    deletes = [
        Entry(path="/all", content=1),
        Entry(path="/of-a", lower={PATHS: b"file:/a"}, upper={PATHS: b"file:/a"}, content=1),
        Entry(path="/of-b", content=1, referenced="file:/b"),
        Entry(path="/cut", lower={PATHS: b"file:"}, upper={PATHS: b"file:/"}, content=1),
        Entry(path="/old", content=1, sequence=1),
    ]
    location = list_of(
        tmp_path,
        Manifest([between("file:/a", 1, 9), between("file:/b", 1, 9)], sequence=2),
        Manifest([between("file:/new", 1, 9)], sequence=4),
        Manifest(deletes, sequence=3, deletes=True),
    )

    files_by_path = {file.path: file for file in files_of(TableSnapshot(SCHEMA, location), [key(5)])}

    assert files_by_path["/a"] == FileWithDeletes("/a", "file:/a", ("/all", "/of-a", "/cut"))
    assert files_by_path["/b"].deletes == ("/all", "/of-b", "/cut")
    assert files_by_path["/new"].deletes == ()


@pytest.mark.parametrize(
    "manifests",
    [
        [Manifest([between(f"/{at}", 1, 9) for at in range(17)])],
        [Manifest([between("/a", 1, 9, format="ORC")])],
        [Manifest([between("s3://b/a", 1, 9)])],
        [Manifest([between("/a", 1, 9)]), Manifest([Entry(path="/e", content=2)], deletes=True)],
        [Manifest([between("/a", 1, 9)]), Manifest([Entry(path="/e", content=1, format="PUFFIN")], deletes=True)],
        [
            Manifest([between("/a", 1, 9)]),
            Manifest([Entry(path=f"/{at}", content=1) for at in range(129)], deletes=True),
        ],
        [Manifest([between("/a", 1, 9, status=0)], sequence=2)],
        [Manifest([]) for _ in range(65)],
    ],
    ids=["files", "orc", "s3", "equality", "vectors", "deletes", "sequence", "manifests"],
)
def test_unsupported_tables_are_delegated_to_library(tmp_path: Path, manifests: list[Manifest]) -> None:
    """Tables with too many files, or with other file formats, are left to Iceberg's library."""
    with pytest.raises(UnsupportedFile):
        paths(list_of(tmp_path, *manifests), key(5))


def test_unreadable_files_are_delegated_to_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Missing, malformed and too large files are left to Iceberg's library."""
    (tmp_path / "x.avro").write_bytes(b"Obj\x01no")
    for name in ("missing", "x"):
        with pytest.raises(UnsupportedFile):
            paths((tmp_path / f"{name}.avro").as_uri(), key(1))
    location = list_of(tmp_path, Manifest([between("/a", 1, 9)]))
    monkeypatch.setattr(table_files, "MANIFEST_BYTES_MAX", 10)
    with pytest.raises(UnsupportedFile, match="large"):
        paths(location, key(1))


def test_unsupported_conditions_are_delegated_to_library(tmp_path: Path) -> None:
    """Conditions on fields of records, on other columns and on other values are left to Iceberg's library."""
    location = list_of(tmp_path, Manifest([between("/a", 1, 9)]))
    for condition in (Condition(("r", "x"), "=", 1), Condition(("y",), "=", 1), Condition(("id",), "=", 0.5)):
        with pytest.raises(UnsupportedFile):
            paths(location, [condition])


def test_local_locations_are_accepted_in_every_spelling() -> None:
    """Local locations are accepted in each spelling of Iceberg's libraries."""
    assert [local_path(one) for one in ("/a/b", "file:/a", "file:///a b", "file:////a")] == ["/a/b", "/a", "/a b", "/a"]
    for location in ("s3://a/b", "file://host/a", "a/b", "file:/a%20b", "hdfs:/a"):
        with pytest.raises(UnsupportedFile):
            local_path(location)


METADATA: dict[str, Any] = {
    "format-version": 2,
    "current-schema-id": 1,
    "schemas": [SCHEMA, {**SCHEMA, "schema-id": 1}],
    "partition-specs": [{"fields": []}],
    "current-snapshot-id": 7,
    "snapshots": [
        {"snapshot-id": 6, "manifest-list": "/old"},
        {"snapshot-id": 7, "manifest-list": "/list", "schema-id": 0},
    ],
}


class Table(BaseHTTPRequestHandler):
    """A server with one answer."""

    protocol_version = "HTTP/1.1"
    answer: tuple[int, object] = (200, None)
    asked: ClassVar[list[tuple[str, str | None]]] = []

    def do_GET(self) -> None:
        status, body = type(self).answer
        self.asked.append((self.path, self.headers.get("Authorization")))
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def client() -> Iterator[TableClient]:
    """A client of that server."""
    Table.asked.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Table) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        client = TableClient(f"http://127.0.0.1:{server.server_address[1]}", metalake="lake")
        yield client
        client.close()
        server.shutdown()


REF = DatasetRef(path=("main", "a b", "c", "t/u"), type="{ id: bigint }", key=(("id",),), pin=SnapshotPin(7, "/list"))


def test_a_table_is_loaded_with_the_statements_credential(client: TableClient) -> None:
    """A table is loaded with the statement's credential, with the schema of its current snapshot; names are encoded."""
    Table.answer = (200, {"metadata": METADATA, "config": {}})

    assert client.load(REF, "secret") == client.load(REF, "secret") == TableSnapshot(SCHEMA, "/list")
    assert Table.asked == [("/iceberg/v1/lake.main/namespaces/a%20b%1Fc/tables/t%2Fu", "Bearer secret")] * 2
    older = structs.replace(REF, pin=SnapshotPin(6, "/old"))
    assert client.load(older, "secret").manifest_list == "/old"
    Table.answer = (200, {"metadata": {**METADATA, "current-snapshot-id": None, "snapshots": []}})
    assert client.load(structs.replace(REF, pin=SnapshotPin()), "secret").manifest_list is None


@pytest.mark.parametrize(
    "pin", [None, SnapshotPin(8, "/list"), SnapshotPin(7, "/other"), SnapshotPin(7), SnapshotPin(6, "/list")]
)
def test_only_the_pinned_snapshot_is_read(client: TableClient, pin: SnapshotPin | None) -> None:
    """A table is not read here without a pin, and if its snapshot or manifest list is not the pinned one."""
    Table.answer = (200, {"metadata": METADATA, "config": {}})

    with pytest.raises(UnsupportedFile):
        client.load(structs.replace(REF, pin=pin), "secret")


@pytest.mark.parametrize(
    "answer",
    [
        (403, {}),
        (200, {}),
        (200, {"metadata": METADATA, "config": {"scan-planning-mode": "server"}}),
        (200, {"metadata": {**METADATA, "format-version": 3}}),
        (200, {"metadata": {**METADATA, "partition-specs": [{"fields": [{"name": "x"}]}]}}),
        (200, {"metadata": {**METADATA, "snapshots": [{"snapshot-id": 7}]}}),
    ],
)
def test_unexpected_responses_are_delegated_to_library(client: TableClient, answer: tuple[int, object]) -> None:
    """Refusals, settings for readers, and other tables are left to Iceberg's library, which reports or reads them."""
    Table.answer = answer
    with pytest.raises(UnsupportedFile):
        client.load(REF, "secret")


def test_unreachable_server_is_delegated_to_library() -> None:
    """An unreachable server, and one with TLS, are left to Iceberg's library."""
    for uri in ("http://127.0.0.1:1", "https://127.0.0.1:1"):
        with pytest.raises(UnsupportedFile):
            TableClient(uri, metalake="lake").load(REF, "secret")
