# SPDX-License-Identifier: Apache-2.0
"""`migrate from jdbc-catalog`: catalogs whose entries and files lie, conflict or are gone; what is printed and written,
and that no password is.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from limnos.cli.migration import pointer_source
from limnos.cli.migration.pointer_source import PointerSource
from limnos.cli.migration.states import ObjectError
from limnos.model.errors import StateUnknown
from limnos.sources.catalogs.jdbc_catalog import JdbcCatalog
from tests.cli.conftest import Run
from tests.client.fake import FakeServer

SCHEMA = (
    """CREATE TABLE iceberg_tables (catalog_name VARCHAR(255), table_namespace VARCHAR(255), table_name VARCHAR(255),
    metadata_location VARCHAR(1000), previous_metadata_location VARCHAR(1000), iceberg_type VARCHAR(5),
    PRIMARY KEY (catalog_name, table_namespace, table_name))""",
    """CREATE TABLE iceberg_namespace_properties (catalog_name VARCHAR(255), namespace VARCHAR(255),
    property_key VARCHAR(255), property_value VARCHAR(1000))""",
)
COLUMN = {"id": 1, "name": "id", "type": "long", "required": False}
TABLE = ("a", "t")


class OldCatalog:
    """A JDBC catalog in SQLite with metadata files below a directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "names.db"
        self._execute(*SCHEMA)

    @property
    def uri(self) -> str:
        """The database's address."""
        return f"sqlite:///{self.file}"

    def _execute(self, *statements: str) -> None:
        with closing(sqlite3.connect(self.file)) as connection, connection:
            for statement in statements:
                connection.execute(statement)

    def add_row(self, name: str, location: str, *, namespace: str = "a", kind: str = "TABLE") -> None:
        """Add an entry."""
        self._execute(
            f"INSERT INTO iceberg_tables VALUES ('prod', '{namespace}', '{name}', '{location}', NULL, '{kind}')"
        )

    def add(self, name: str, *, place: str | None = None, packed: bool = False, namespace: str = "a") -> Path:
        """Add a table with its metadata file."""
        location = self.folder / "warehouse" / (place or name)
        (location / "metadata").mkdir(parents=True, exist_ok=True)
        file = location / "metadata" / f"00000-{name}.metadata.json"
        document = {
            "format-version": 2,
            "table-uuid": f"00000000-0000-0000-0000-{len(name):012}",
            "location": f"file://{location}",
            "last-sequence-number": 0,
            "last-updated-ms": 1,
            "last-column-id": 1,
            "schemas": [{"type": "struct", "schema-id": 0, "fields": [COLUMN]}],
            "current-schema-id": 0,
            "partition-specs": [{"spec-id": 0, "fields": []}],
            "default-spec-id": 0,
            "last-partition-id": 999,
            "sort-orders": [{"order-id": 0, "fields": []}],
            "default-sort-order-id": 0,
            "properties": {"owner": "them"},
            "x-unknown": {"kept": 1},
        }
        data = json.dumps(document).encode()
        file.write_bytes(gzip.compress(data) if packed else data)
        self.add_row(name, f"file://{file}", namespace=namespace)
        return file

    def open(self) -> PointerSource:
        """Open it as a source."""
        return PointerSource(JdbcCatalog(self.uri, name=None, password=None, timeout_s=20.0))


@pytest.fixture
def old(tmp_path: Path) -> OldCatalog:
    """An empty catalog."""
    return OldCatalog(tmp_path)


@pytest.fixture
def source(old: OldCatalog) -> Iterator[PointerSource]:
    """A catalog with one table."""
    old.add("t")
    with closing(old.open()) as running:
        yield running


@pytest.fixture
def target(fake: FakeServer) -> FakeServer:
    """An empty catalog here."""
    fake.on("GET", "/iceberg/v1/config?warehouse=lake%2Fmain", {"overrides": {"prefix": "lake.main"}})
    catalog = {"name": "main", "type": "relational", "provider": "p", "properties": {"warehouse": "s3://own"}}
    fake.on("GET", "/api/metalakes/lake/catalogs/main", {"catalog": {**catalog, "audit": {}}})
    return fake


def test_plan_names_each_conflict(old: OldCatalog, target: FakeServer, limnos: Run) -> None:
    """A plan names twins by case, a place of two tables, files that are gone, no JSON, of a scheme that is none of a
    store, or devices, names that do not fit, and rows that are no table.
    """
    old.add("t")
    old.add("T", packed=True)
    old.add("twice", place="t")
    old.add_row("gone", f"file://{old.folder}/none.metadata.json")
    old.add("text").write_text("no json")
    old.add("list").write_text("[1]")
    old.add("bomb").write_bytes(gzip.compress(b"[" * 64)[:-4])
    old.add_row("internal", "http://127.0.0.1:1/latest/meta-data")
    old.add_row("device", "file:///dev/zero")
    old.add_row("index", "x", kind="INDEX")
    old.add(".", place="dot")
    old.add_row("v", f"file://{old.folder}/v.json", kind="VIEW")

    done = limnos("migrate", "from", "jdbc-catalog", old.uri, "--to", "main", "--plan")

    *lines, last = [json.loads(line) for line in done.out.splitlines()]
    states = {each["path"][1]: each["state"] for each in lines if len(each["path"]) > 1}
    assert done.code == 1
    assert states == {
        "t": "case-twin",
        "twice": "same-place",
        "gone": "gone",
        "text": "unreadable",
        "list": "unreadable",
        "bomb": "unreadable",
        "internal": "unreadable",
        "device": "gone",
        "index": "not-iceberg",
        ".": "illegal-name",
        "v": "view",
    }
    assert last["counts"]["new"] == 2
    assert f"--allowed-location file://{old.folder}/warehouse" in done.err
    assert [call for call in target.calls if not call.startswith("GET")] == []


def test_marked_table_has_a_new_file_beside_the_last(source: PointerSource, old: OldCatalog) -> None:
    """A marker is a commit: a new version beside the former file, with that in the log and unknown fields kept."""
    before = source.table(TABLE)

    after = source.mark(TABLE, {"limnos.moved-to": "here"}, expected=before)

    file = Path(after.metadata_location.removeprefix("file://"))
    document = json.loads(file.read_bytes())
    assert source.table(TABLE) == after
    assert file.parent == old.folder / "warehouse" / "t" / "metadata"
    assert file.name.startswith("00001-")
    assert document["properties"] == {"owner": "them", "limnos.moved-to": "here"}
    assert document["x-unknown"] == {"kept": 1}
    assert [each["metadata-file"] for each in document["metadata-log"]] == [before.metadata_location]


def test_mark_that_loses_leaves_no_file(
    source: PointerSource, old: OldCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A commit of another client, before the look or after it, is not overwritten; the marked file is deleted. After
    an unknown outcome the file stays.
    """
    before = source.table(TABLE)
    folder = old.folder / "warehouse" / "t" / "metadata"
    plain = source.catalog.replace

    def replace_late(path: tuple[str, ...], location: str, *, expected: str, properties: dict[str, str]) -> None:
        plain(path, expected + ".other", expected=expected, properties={})
        plain(path, location, expected=expected, properties=properties)

    def replace_unknown(path: tuple[str, ...], location: str, *, expected: str, properties: dict[str, str]) -> None:
        raise StateUnknown("the answer was lost")

    monkeypatch.setattr(source.catalog, "replace", replace_unknown)
    with pytest.raises(ObjectError, match="the answer was lost; run the command again"):
        source.mark(TABLE, {"k": "v"}, expected=before)
    assert len(list(folder.iterdir())) == 2
    monkeypatch.setattr(source.catalog, "replace", replace_late)
    with pytest.raises(ObjectError, match="meanwhile"):
        source.mark(TABLE, {"k": "v"}, expected=before)
    with pytest.raises(ObjectError, match="meanwhile"):
        source.mark(TABLE, {"k": "v"}, expected=before)

    assert len(list(folder.iterdir())) == 2


def test_source_that_fails_for_a_while_is_asked_again(source: PointerSource, monkeypatch: pytest.MonkeyPatch) -> None:
    """A locked database is no reason to leave a table out; one that stays locked stops the command."""
    monkeypatch.setattr(pointer_source, "PAUSE_S", 0.0)
    plain, failures = source.catalog.names, [1, 2]

    def names(namespace: tuple[str, ...]) -> object:
        if failures:
            failures.pop()
            raise pointer_source.SourceFailed("busy")
        return plain(namespace)

    monkeypatch.setattr(source.catalog, "names", names)

    assert list(source.tables(("a",))) == ["t"]
    failures += range(9)
    with pytest.raises(pointer_source.StoppedError, match="busy"):
        list(source.tables(("a",)))


@pytest.mark.parametrize(
    "uri", ["postgresql://ana:s3cret-one@127.0.0.1:1/lake", "jdbc:postgresql://127.0.0.1:1/lake?password=s3cret-one"]
)
@pytest.mark.parametrize("step", ["--plan", "--check", "--cut-over=mark"])
def test_password_is_not_printed(target: FakeServer, limnos: Run, uri: str, step: str) -> None:
    """A database that does not answer is named without user and password."""
    done = limnos("migrate", "from", "jdbc-catalog", uri, "--to", "main", step, "--timeout", "2")

    assert done.code not in (0, 2)
    assert "postgresql://127.0.0.1:1/lake does not answer" in done.err
    assert "s3cret-one" not in done.out + done.err


def test_password_of_the_environment_is_not_printed(
    target: FakeServer, limnos: Run, old: OldCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A catalog that does not exist is answered by those that do, without the password beside."""
    monkeypatch.setenv("LIMNOS_SOURCE_TOKEN", "s3cret-two")
    old.add("t")

    done = limnos("migrate", "from", "jdbc-catalog", old.uri, "--to", "main", "--warehouse", "s3cret-two")

    assert done.code == 2
    assert "it has: prod" in done.err
    assert "s3cret-two" not in done.out + done.err
