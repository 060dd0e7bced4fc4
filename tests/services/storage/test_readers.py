# SPDX-License-Identifier: Apache-2.0
"""Files that a table's metadata names elsewhere: no reader of the server opens one, whatever the spelling."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from limnos.model.errors import OutsideRoots
from limnos.rooms.maintenance.services.orphans.references import referenced_files_read
from limnos.rooms.maintenance.services.table_storage import maintained_files
from limnos.rooms.sqlpp.services.execution.engine import ENGINE
from limnos.services.iceberg.scan_queue import SCAN_OFFLOADER
from limnos.services.request.concurrency.previews import PREVIEW_OFFLOADER
from limnos.store.activity.maintenance import tables_page
from limnos.store.objects.documents import document_read
from tests.http.admin.catalog.test_previews import PREVIEW, Workers
from tests.http.admin.catalog.test_table_checks import CHECK
from tests.http.driver import DriverAnswer
from tests.http.iceberg import wire
from tests.http.iceberg.planning import WrittenTable
from tests.http.iceberg.test_restricted_plans import RestrictedTable
from tests.http.iceberg.test_restrictions import words
from tests.iceberg_manifests import DATA, POSITIONS, data_file, entry, listed, manifest, manifest_list
from tests.rooms.maintenance.services.rewriting.executor import FakeExecutor, ask, list_operations
from tests.rooms.sqlpp.http.test_datasets import RecordingEngine
from tests.rooms.sqlpp.http.wire import refusal

pytestmark = pytest.mark.slow

SPELLINGS = (
    "{other}/metadata/{file}",
    "{own}/../{other_name}/metadata/{file}",
    "{own}/%2e%2e/{other_name}/metadata/{file}",
    "{own}/%252e%252e/{other_name}/metadata/{file}",
    "{own}/..%2f{other_name}/metadata/{file}",
    "{own}x/{file}",
    "file:///etc/passwd",
    "/etc/passwd",
    "http://127.0.0.1:9/x",
    "hdfs://host/x",
    "s3://bucket/x",
    "s3a://bucket/x",
    "s3n://bucket/x",
    "s3:/{own_path}/metadata/x",
    "jar:file:{own_path}/metadata/x!/y",
    "metadata/x",
    "file://host{own_path}/metadata/x",
)
"""Files elsewhere: `own` is the location of the table, and `other` that of another table."""
POSITIONS_OF_NAMES = ("manifest list", "manifest", "data file", "delete file")
OPENED: list[str] = []
"""The paths of all files that this process has opened since the last `clear`."""


def record_open(event: str, arguments: tuple[object, ...]) -> None:
    """Record each file that is opened to be read or written: an audit hook of the interpreter, which no library
    bypasses. Nothing is read by `O_PATH`, which finds where a link leads.
    """
    is_looked_up = event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_PATH
    if event == "open" and not is_looked_up and isinstance(arguments[0], (str, bytes)):
        OPENED.append(arguments[0] if isinstance(arguments[0], str) else arguments[0].decode(errors="replace"))
    if event == "socket.connect":
        OPENED.append(str(arguments[1]))


@pytest.fixture(scope="module", autouse=True)
def recorded() -> None:
    """Record opened files from the first test of this module on; a hook cannot be removed."""
    sys.addaudithook(record_open)


@pytest.fixture
def table(tmp_path: Path) -> Iterator[RestrictedTable]:
    """The table a.t, which bob reads under a restriction; over SQLite, since files do not depend on the database."""
    with wire.node_over(tmp_path) as node:
        restricted_table = RestrictedTable(node)
        for key in (SCAN_OFFLOADER, PREVIEW_OFFLOADER):
            key.put(node.built.services, Workers())
        ENGINE.put(node.built.services, RecordingEngine(b"{}"))
        yield restricted_table


def name_file(table: RestrictedTable, path: str, *, position: str) -> None:
    """Commit a snapshot that names a file in a position."""
    number = table.snapshots + 1
    good = entry(data_file(f"{table.location}/metadata/0-0.parquet"))
    if position == "manifest list":
        table.snapshots = number
        snapshot = wire.snapshot(number, manifest_list=path, parent=number - 1 or None)
        snapshot["snapshot"] = {**snapshot["snapshot"], "sequence-number": number}  # type: ignore[dict-item]
        with wire.foreign_paths_accepted():
            answer = wire.commit(table.node, "a", "t", updates=[snapshot, wire.point(number)])
        assert answer.status == 200, answer.body
    elif position == "manifest":
        table.commit([listed(path, manifest([good]), added_files_count=1)])
    else:
        is_delete = position == "delete file"
        bad = entry(data_file(path, content=POSITIONS if is_delete else DATA))
        lists = [table.manifest(f"good{number}.avro", [good])]
        table.commit([*lists, table.manifest(f"bad{number}.avro", [bad], deletes=is_delete)])


def refused(answer: DriverAnswer) -> str:
    """Return the message of an answer that is no success."""
    assert answer.status in (400, 405, 406, 500, 503), answer.body
    return words(answer)


def load_references(table: RestrictedTable) -> str:
    """List the table's references as the removal of orphan files does. Returns the refusal."""
    services, run = table.node.built.services, table.node.runner.run
    ids = [head.node_id for head in run(services.gate.look_up(lambda: tables_page(0, limit=9)))]
    documents = [run(services.gate.look_up(partial(document_read, each))) for each in ids]
    (document,) = (each for each in documents if each is not None and each.location == table.location)
    files = run(maintained_files(services, document))
    assert files is not None
    with pytest.raises(OutsideRoots) as error:
        run(referenced_files_read(services, files, document=document))
    return error.value.message


def lease(table: RestrictedTable) -> str:
    """Request and lease a compaction: no executor gets it. Returns the reason."""
    assert ask(table.node).status == 200
    assert FakeExecutor(table.node).lease() == []
    (operation, *_) = list_operations(table.node)
    assert operation["state"] == "failed"
    return str(operation["result"])


def check(table: RestrictedTable) -> str:
    """Check the table, whose report names the file to those who may write the table, as one that was not opened."""
    findings = table.node.get(f"{CHECK}?table=a.t").json()["findings"]
    assert "outside" in {each["problem"] for each in findings}, findings
    return ""


READERS: dict[str, Callable[[RestrictedTable], str]] = {
    "scan plan": lambda table: refused(table.plan()),
    "restricted scan plan": lambda table: refused(table.seen()),
    "preview": lambda table: refused(table.node.get(f"{PREVIEW}?table=a.t")),
    "restricted preview": lambda table: refused(table.node.get(f"{PREVIEW}?table=a.t", user="bob")),
    "SQL++": lambda table: refusal(table.node, "select value t from a.t as t")[1],
    "lease of an operation": lease,
    "table check": check,
    "orphan files": load_references,
}
NAMES_ALONE = frozenset({"orphan files"})
"""Readers that do not open data files and delete files: they compare their names, and report them to the owner."""
CASES = [
    (reader, position)
    for reader in READERS
    for position in POSITIONS_OF_NAMES
    if reader not in NAMES_ALONE or not position.endswith("file")
]


@pytest.mark.parametrize("reader, position", CASES)
def test_no_reader_opens_a_file_elsewhere(table: RestrictedTable, reader: str, position: str) -> None:
    """Each reader refuses a table that names a file elsewhere, opens no such file, and tells no path."""
    other = WrittenTable(table.node, "other")
    for key in (SCAN_OFFLOADER, PREVIEW_OFFLOADER):
        key.put(table.node.built.services, Workers())
    file = "9-9.parquet" if position.endswith("file") else "theirs.avro"
    theirs = manifest([entry(data_file(f"{other.location}/metadata/x.parquet"))])
    other.write(file, manifest_list([listed(other.location, theirs)]) if position == "manifest list" else theirs)
    own_path = table.location.removeprefix("file://")
    for spelling in SPELLINGS:
        path = spelling.format(
            own=table.location,
            other=other.location,
            other_name=other.location.rpartition("/")[2],
            own_path=own_path,
            file=file,
        )
        name_file(table, path, position=position)
        OPENED.clear()

        message = READERS[reader](table)

        opened = [each for each in OPENED if file in each or "passwd" in each or "127.0.0.1" in each]
        assert opened == [], spelling
        assert path not in message
        assert other.location not in message


@pytest.mark.parametrize("reader", ["scan plan", "preview", "SQL++", "table check", "orphan files"])
def test_no_reader_follows_a_link_out_of_the_table(table: RestrictedTable, reader: str) -> None:
    """A manifest below the table's location that is a link to another table's manifest is not read."""
    other = WrittenTable(table.node, "other")
    for key in (SCAN_OFFLOADER, PREVIEW_OFFLOADER):
        key.put(table.node.built.services, Workers())
    theirs = wire.local(other.write("theirs.avro", manifest([entry(data_file(f"{other.location}/x.parquet"))])))
    wire.local(f"{table.location}/metadata/link.avro").symlink_to(theirs)
    name_file(table, f"{table.location}/metadata/link.avro", position="manifest")
    OPENED.clear()

    READERS[reader](table)

    assert [each for each in OPENED if "theirs.avro" in each or "link.avro" in each] == []


def test_every_reader_reads_files_in_data_paths(table: RestrictedTable) -> None:
    """Files in a location that the register gives the table, such as a data path, are its own for each reader."""
    place = table.location.rpartition("/")[0] + "/more"
    answer = wire.commit(table.node, "a", "t", updates=[wire.set_properties(write_data_path=place)])
    assert answer.status == 200, answer.body
    source = wire.local(f"{table.location}/metadata/0-0.parquet")
    target = wire.local(f"{place}/1.parquet")
    target.parent.mkdir(parents=True)
    target.write_bytes(source.read_bytes())
    file = data_file(f"{place}/1.parquet", file_size_in_bytes=source.stat().st_size)
    table.commit([table.manifest("more.avro", [entry(file)])])

    assert table.paths() == ["1.parquet"]
    assert len(table.rows(table.seen())) == 5
    assert len(table.node.get(f"{PREVIEW}?table=a.t").json()["rows"]) == 10
    assert len(table.node.get(f"{PREVIEW}?table=a.t", user="bob").json()["rows"]) == 5
    assert table.node.get(f"{CHECK}?table=a.t").json()["findings"] == []
