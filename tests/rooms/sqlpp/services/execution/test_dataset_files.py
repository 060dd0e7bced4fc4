# SPDX-License-Identifier: Apache-2.0
"""Datasets whose files lie elsewhere: no statement over them reaches an engine, and no answer tells what lies there."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path

import pytest

from limnos.formats.iceberg.current_files import document_files
from limnos.rooms.sqlpp.language.errors import SnapshotMoved
from limnos.rooms.sqlpp.language.jobs import EngineJob, SnapshotPin
from limnos.rooms.sqlpp.services.execution import dataset_files
from limnos.rooms.sqlpp.services.execution.engine import ENGINE
from limnos.services.request.files import FileOperations
from limnos.services.storage.checked_files import CHECKED_FILES
from tests.http.driver import DriverNode
from tests.http.iceberg import wire
from tests.http.iceberg.planning import WrittenTable
from tests.iceberg_manifests import DATA, DELETED, POSITIONS, data_file, entry, listed, manifest, manifest_list
from tests.rooms.sqlpp.http.test_datasets import RecordingEngine
from tests.rooms.sqlpp.http.wire import refusal, rows

pytestmark = pytest.mark.slow

QUERY = "select value t from a.t as t"


@pytest.fixture
def engine(node: DriverNode) -> RecordingEngine:
    """A fake engine of the node."""
    engine = RecordingEngine(b"{}")
    ENGINE.put(node.built.services, engine)
    return engine


@pytest.fixture
def table(node: DriverNode) -> WrittenTable:
    """The table a.t."""
    return WrittenTable(node)


def refused(node: DriverNode, statement: str = QUERY) -> str:
    """Return the message of a refusal that names the dataset."""
    status, message = refusal(node, statement)
    assert status == 400
    assert "a.t" in message
    return message


def test_a_dataset_is_pinned_to_the_checked_snapshot(
    node: DriverNode, engine: RecordingEngine, table: WrittenTable
) -> None:
    """The engine gets the current snapshot's id and manifest list; none for a table without a snapshot, which it reads
    as empty.
    """
    rows(node, QUERY)
    table.commit([table.manifest("m1.avro", [entry(data_file(f"{table.location}/data/1.parquet"))])])
    rows(node, QUERY)
    rows(node, "insert into a.t ({'id': 1})")

    assert engine.jobs[0].reads[0].pin == SnapshotPin()
    assert engine.jobs[1].reads[0].pin == SnapshotPin(100, f"{table.location}/metadata/snap-1.avro")
    assert engine.jobs[2].target is not None
    assert engine.jobs[2].target.pin == engine.jobs[1].reads[0].pin


SPELLINGS = (
    "{other}/data/1.parquet",
    "{at}/../{other_name}/data/1.parquet",
    "{at}/%2e%2e/x.parquet",
    "{at}/%252e%252e/x.parquet",
    "{at}x/1.parquet",
    "file:///etc/passwd",
    "/etc/passwd",
    "http://127.0.0.1:9/x",
    "https://host/x",
    "ftp://host/x",
    "hdfs://host/x",
    "webhdfs://host/x",
    "s3://bucket/x",
    "s3a://bucket/x",
    "jar:file:/x!/y",
    "data/1.parquet",
    "",
    "file://host/x",
    "{at}/..\\..\\%2e%2e\\x",
    "{at}",
    "{at}/x\n",
)
"""Files that are not below the table's location `at`; some are those of the other table."""


def test_a_dataset_with_a_foreign_file_does_not_reach_the_engine(
    node: DriverNode, engine: RecordingEngine, table: WrittenTable
) -> None:
    """A data file or delete file elsewhere, in whatever spelling, keeps the statement from the engine; the message
    names the dataset and no file.
    """
    other = WrittenTable(node, "other")
    fine = entry(data_file(f"{table.location}/data/1.parquet"))
    for number, spelled in enumerate(SPELLINGS):
        name = spelled.format(at=table.location, other=other.location, other_name=other.location.rpartition("/")[2])
        for content in (DATA, POSITIONS):
            files = [fine, entry(data_file(name, content=content))]
            table.commit([table.manifest(f"m{number}-{content}.avro", files, deletes=bool(content))])
            for statement in (QUERY, "insert into a.t ({'id': 1})"):
                message = refused(node, statement)
                assert not name or name not in message
                assert other.location not in message
    assert engine.jobs == []


def test_usual_spellings_of_own_files_reach_the_engine(
    node: DriverNode, engine: RecordingEngine, table: WrittenTable
) -> None:
    """Files below the table's location count as its own in each spelling that clients write."""
    path = table.location.removeprefix("file://")
    names = (f"file://{path}/a b.parquet", f"file:{path}/é.parquet", f"{path}/x=1/%20.parquet", f"{path}//y.parquet")
    table.commit([table.manifest("m1.avro", [entry(data_file(name)) for name in names])])

    rows(node, QUERY)
    assert len(engine.jobs) == 1


def test_a_foreign_manifest_does_not_reach_the_engine(
    node: DriverNode, engine: RecordingEngine, table: WrittenTable
) -> None:
    """A manifest elsewhere keeps the statement from the engine, and the answer is the same whether it exists or not."""
    other = WrittenTable(node, "other")
    data = manifest([entry(data_file(f"{table.location}/data/1.parquet"))])
    outside = other.write("m.avro", data)
    table.commit([listed(outside, data)])
    present = refused(node)
    wire.local(outside).unlink()

    assert refused(node) == present
    assert engine.jobs == []


def test_a_refusal_names_no_missing_or_malformed_manifest(
    node: DriverNode, engine: RecordingEngine, table: WrittenTable
) -> None:
    """A manifest or manifest list that is missing or malformed is a refusal without a file's name."""
    table.commit([table.manifest("m1.avro", [entry(data_file(f"{table.location}/data/1.parquet"))])])
    wire.local(f"{table.location}/metadata/m1.avro").write_bytes(b"Obj")
    malformed = refused(node)
    wire.local(f"{table.location}/metadata/m1.avro").unlink()
    missing = refused(node)
    wire.local(f"{table.location}/metadata/snap-1.avro").unlink()

    assert malformed == missing == refused(node)
    assert "avro" not in missing
    assert engine.jobs == []


def test_files_that_a_manifest_deletes_do_not_count(
    node: DriverNode, engine: RecordingEngine, table: WrittenTable
) -> None:
    """A deleted entry of a manifest is not read by anybody, so it may lie elsewhere."""
    files = [entry(data_file("s3://elsewhere/x.parquet"), status=DELETED, snapshot=1)]
    table.commit([table.manifest("m1.avro", files)])

    rows(node, QUERY)
    assert len(engine.jobs) == 1


def test_a_second_statement_reads_no_manifest(
    node: DriverNode, engine: RecordingEngine, table: WrittenTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a check an unchanged table costs no read, and a new snapshot only that of its new manifests."""
    read: list[str] = []
    real = FileOperations.read_first_within

    async def recording(
        self: FileOperations, locations: Sequence[str], properties: Mapping[str, str], **more: object
    ) -> list[bytes]:
        read.extend(each.rpartition("/")[2] for each in locations)
        return await real(self, locations, properties, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(FileOperations, "read_first_within", recording)
    first = table.manifest("m1.avro", [entry(data_file(f"{table.location}/data/1.parquet"))])
    table.commit([first])
    rows(node, QUERY)
    assert read == ["snap-1.avro", "m1.avro"]
    rows(node, QUERY)
    assert len(read) == 2
    second = table.manifest("m2.avro", [entry(data_file(f"{table.location}/data/2.parquet"))])
    table.commit([first, second])
    rows(node, QUERY)
    assert read[2:] == ["snap-2.avro", "m2.avro"]
    table.commit([first, second, listed("file:///etc/passwd", b"x" * 10)])

    assert len(engine.jobs) == 3
    refused(node)
    assert len(engine.jobs) == 3


@pytest.mark.parametrize("name", ["m1.avro", "snap-1.avro"])
def test_a_file_that_was_replaced_after_its_check_is_checked_again(
    node: DriverNode, engine: RecordingEngine, table: WrittenTable, name: str
) -> None:
    """The writer of a table replaces a manifest or manifest list, whose check has succeeded, by one with foreign
    files: the next statement does not reach the engine.
    """
    table.commit([table.manifest("m1.avro", [entry(data_file(f"{table.location}/data/1.parquet"))])])
    rows(node, QUERY)
    foreign = table.manifest("m2.avro", [entry(data_file("file:///etc/passwd"))])
    table.write(name, table_bytes(table, "m2.avro") if name == "m1.avro" else manifest_list([foreign]))

    refused(node)
    assert len(engine.jobs) == 1


def test_a_manifest_that_is_a_link_does_not_reach_the_engine(
    node: DriverNode, engine: RecordingEngine, table: WrittenTable
) -> None:
    """A manifest behind a symbolic link is not read, since the link may lead elsewhere a moment later."""
    named = table.manifest("m1.avro", [entry(data_file(f"{table.location}/data/1.parquet"))])
    at = wire.local(f"{table.location}/metadata/m1.avro")
    at.rename(at.with_name("m0.avro"))
    at.symlink_to(at.with_name("m0.avro"))
    table.commit([named])

    refused(node)
    assert engine.jobs == []


class WritingEngine(RecordingEngine):
    """An engine during whose jobs somebody changes files; `before` runs when it begins, `after` when it has read."""

    def __init__(self, before: Callable[[], object], after: Callable[[], object] = lambda: None) -> None:
        super().__init__(b'"SECRET"')
        self.before, self.after = before, after

    async def run(self, job: EngineJob, **more: object) -> AsyncIterator[bytes]:
        """Change the files before and after the job's rows are read."""
        self.before()
        self.after()
        async for row in super().run(job, **more):
            yield row


def table_bytes(table: WrittenTable, name: str) -> bytes:
    """Return a metadata file of a table."""
    return wire.local(f"{table.location}/metadata/{name}").read_bytes()


@pytest.mark.parametrize("name", ["m1.avro", "snap-1.avro"])
def test_rows_of_files_that_were_replaced_meanwhile_are_not_returned(
    node: DriverNode, table: WrittenTable, name: str
) -> None:
    """A manifest or manifest list that is replaced while the engine works ends in a second check, which refuses it."""
    table.commit([table.manifest("m1.avro", [entry(data_file(f"{table.location}/data/1.parquet"))])])
    foreign = table.manifest("m2.avro", [entry(data_file("file:///etc/passwd"))])
    content = table_bytes(table, "m2.avro") if name == "m1.avro" else manifest_list([foreign])
    engine = WritingEngine(lambda: table.write(name, content))
    ENGINE.put(node.built.services, engine)

    assert "SECRET" not in refused(node)
    assert len(engine.jobs) == 1


def _swapped(at: Path, content: bytes) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return functions that replace a file, and put the former file back under its name."""

    def swap() -> None:
        at.rename(at.with_name("kept"))
        at.write_bytes(content)

    return swap, lambda: at.with_name("kept").rename(at)


def _rewritten(at: Path, content: bytes) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return functions that write other bytes into a file, and its own again, with its time of modification."""
    own, status = at.read_bytes(), at.stat()

    def restore() -> None:
        at.write_bytes(own)
        os.utime(at, ns=(status.st_atime_ns, status.st_mtime_ns))

    return (lambda: at.write_bytes(content)), restore


def _moved(at: Path, content: bytes) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return functions that replace the directory of a file by another, and put it back."""
    directory = at.parent
    other, aside = directory.with_name("other"), directory.with_name("kept")
    shutil.copytree(directory, other)
    (other / at.name).write_bytes(content)

    def swap() -> None:
        directory.rename(aside)
        other.rename(directory)

    def restore() -> None:
        directory.rename(other)
        aside.rename(directory)

    return swap, restore


@pytest.mark.parametrize("change", [_swapped, _rewritten, _moved])
def test_rows_of_files_that_were_replaced_and_restored_are_not_returned(
    node: DriverNode,
    table: WrittenTable,
    change: Callable[[Path, bytes], tuple[Callable[[], object], Callable[[], object]]],
) -> None:
    """Files that are the checked ones before and after a job, but were others in between, are noticed, however they
    were restored. The statement is tried again, and ends without rows.
    """
    table.commit([table.manifest("m1.avro", [entry(data_file(f"{table.location}/data/1.parquet"))])])
    table.manifest("m2.avro", [entry(data_file("file:///etc/passwd"))])
    before, after = change(wire.local(f"{table.location}/metadata/m1.avro"), table_bytes(table, "m2.avro"))
    engine = WritingEngine(before, after)
    ENGINE.put(node.built.services, engine)

    status, message = refusal(node, QUERY)
    assert (status, "SECRET" in message) == (503, False)
    assert len(engine.jobs) == dataset_files.TRIES


def test_files_in_earlier_locations_and_data_paths_are_read(
    node: DriverNode, engine: RecordingEngine, table: WrittenTable
) -> None:
    """Files below a data path and below an earlier location of the table are its own, since the register says so."""
    warehouse = table.location.rpartition("/")[0]
    data_path, moved = f"{warehouse}/elsewhere", f"{warehouse}/moved"
    set_path = {"action": "set-properties", "updates": {"write.data.path": data_path}}
    assert wire.commit(node, "a", "t", updates=[set_path]).status == 200
    files = [entry(data_file(f"{data_path}/1.parquet")), entry(data_file(f"{table.location}/data/2.parquet"))]
    table.commit([table.manifest("m1.avro", files)])
    rows(node, QUERY)
    assert wire.commit(node, "a", "t", updates=[{"action": "set-location", "location": moved}]).status == 200
    rows(node, QUERY)
    CHECKED_FILES.of(node.built.services).__init__()  # type: ignore[misc]
    rows(node, QUERY)

    assert len(engine.jobs) == 3


class MovedEngine(RecordingEngine):
    """A fake engine that finds another snapshot for a number of jobs."""

    def __init__(self, times: int) -> None:
        super().__init__(b"1")
        self.times = times

    async def run(self, job: EngineJob, **more: object) -> AsyncIterator[bytes]:
        """Raise for the first jobs."""
        if len(self.jobs) < self.times:
            self.jobs.append(job)
            raise SnapshotMoved
        async for row in super().run(job, **more):
            yield row


def test_a_job_over_another_snapshot_is_repeated(node: DriverNode, table: WrittenTable) -> None:
    """If the engine finds another snapshot than the checked one, the files are checked again and the job is repeated;
    after many times the answer is 503.
    """
    engine = MovedEngine(2)
    ENGINE.put(node.built.services, engine)
    assert rows(node, QUERY) == [1]
    assert len(engine.jobs) == 3

    engine = MovedEngine(1000)
    ENGINE.put(node.built.services, engine)
    status, message = refusal(node, QUERY)
    assert status == 503
    assert "changed repeatedly" in message
    assert len(engine.jobs) == dataset_files.TRIES


def test_the_pin_of_version_1_has_no_manifest_list() -> None:
    """A snapshot of format version 1 names its manifests in the document."""
    body = b'{"location": "/w/t", "current-snapshot-id": 5, "snapshots": [{"snapshot-id": 5, "manifests": ["/w/t/m"]}]}'

    assert dataset_files.pin_of(document_files(body)) == SnapshotPin(5, None)
