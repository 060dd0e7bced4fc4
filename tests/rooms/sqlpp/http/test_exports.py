# SPDX-License-Identifier: Apache-2.0
"""COPY TO over the query service: allowed locations, files that appear all at once, and audit records."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from limnos.access.authentication import Credential
from limnos.config.audit import AuditSection
from limnos.files import key_of
from limnos.files.exported_directory import ExportedDirectory
from limnos.model.permits import upkeep_permit
from limnos.rooms.sqlpp.language import SqlppError
from limnos.rooms.sqlpp.language.jobs import EngineJob
from limnos.rooms.sqlpp.services.execution import export_files
from limnos.rooms.sqlpp.services.execution.engine import ENGINE
from limnos.services.activity.audit import audit_read
from limnos.services.request.context import Context
from limnos.store.activity.audit import AuditFilter
from limnos.store.objects.storage_locations import rivals_read
from limnos.store.tx import Tx
from tests.http.driver import API, DriverAnswer, DriverNode, grant
from tests.http.iceberg import wire as iceberg
from tests.rooms.sqlpp.http.test_datasets import SEED, RecordingEngine
from tests.rooms.sqlpp.http.wire import refusal, rows

FILESETS = f"{API}/lake/catalogs/files/schemas/raw/filesets"
AS_JSON = "'format': 'json'"


def _line(**fields: object) -> bytes:
    return json.dumps(fields).encode()


FILES = (
    _line(begin=[]),
    _line(bytes=base64.b64encode(b"a" * 9).decode()),
    _line(bytes=base64.b64encode(b"b").decode()),
    _line(end=2),
    _line(begin=["x=1", "y"]),
    _line(bytes=base64.b64encode(b"c").decode()),
    _line(end=1),
)


class FailingEngine(RecordingEngine):
    """A fake engine that fails in the middle of a file."""

    async def run(self, job: EngineJob, **_more: object) -> AsyncIterator[bytes]:
        """Begin, then fail."""
        self.jobs.append(job)
        for row in FILES[:2]:
            yield row
        raise SqlppError(1245, "Parquet writer error: no")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DriverNode]:
    """A node with datasets, a fileset, an export directory, and three users with some of the rights."""
    base = tmp_path_factory.mktemp("exports")
    with iceberg.node_over(base / "data", audit=AuditSection(refusals="whole")) as running_node:
        rows(running_node, SEED)
        running_node.done("POST", f"{API}/lake/catalogs", {"name": "files", "type": "fileset"})
        running_node.done("POST", f"{API}/lake/catalogs/files/schemas", {"name": "raw"})
        for name in ("out", "other"):
            running_node.done("POST", FILESETS, {"name": name})
        (base / "exports").mkdir()
        services = running_node.built.services
        services.defaults = services.defaults._replace(export_roots=(f"file://{base}/exports",))
        for user in ("reader", "writer", "both"):
            if user != "writer":
                grant(running_node, user, "use_catalog use_schema select_table", kind="CATALOG", on="main")
            grant(running_node, user, "use_catalog use_schema read_fileset", kind="CATALOG", on="files")
            if user != "reader":
                grant(running_node, user, "write_fileset", kind="FILESET", on="files.raw.out")
        yield running_node


@pytest.fixture
def engine(node: DriverNode) -> RecordingEngine:
    """A fake engine that returns two files."""
    engine = RecordingEngine(*FILES)
    ENGINE.put(node.built.services, engine)
    return engine


@pytest.fixture
def exports(node: DriverNode) -> Path:
    """The export directory."""
    return Path(node.built.services.defaults.export_roots[0].removeprefix("file://"))


def _copy(
    path: str, *, to: str = "localfs", what: str = "sales.east.orders", more: str = "", settings: str = AS_JSON
) -> str:
    return f"copy {what} to {to} path ({path}) {more} with {{{settings}}}"


def _below(base: Path) -> dict[str, bytes]:
    return {str(path.relative_to(base)): path.read_bytes() for path in base.rglob("*") if path.is_file()}


def test_files_are_written_to_computed_directories(node: DriverNode, engine: RecordingEngine, exports: Path) -> None:
    """Files are written to the directories that the engine computed, with the suffix of their format."""
    settings = f"{AS_JSON}, 'compression': 'gzip', 'max-objects-per-file': 2000"
    assert rows(node, _copy(f"'localhost://{exports}/a', 'b/c'", settings=settings)) == []

    assert _below(exports / "a") == {"b/c/part-00000.json.gz": b"a" * 9 + b"b", "b/c/x=1/y/part-00001.json.gz": b"c"}
    (job,) = engine.jobs
    assert job.export is not None
    assert (job.kind, job.export.name, job.export.objects_max, job.export.is_partitioned) == (
        "export",
        "json",
        2000,
        False,
    )
    assert [ref.path for ref in job.reads] == [("main", "sales", "east", "orders")]


def test_parts_of_the_path_are_computed(node: DriverNode, engine: RecordingEngine, exports: Path) -> None:
    """Parts of the path are computed from the variables of OVER, and type names are resolved."""
    what, more = "(select value o from sales.east.orders o) as x", "over (partition by x.oid p order by x.oid desc)"
    rows(node, _copy(f"'{exports}/parts', 'k', to_string(p)", what=what, more=more))
    copy = _copy(f"'{exports}/typed'", more="type ({a: orderType})", settings="'format': 'parquet'")
    rows(node, f"use sales.east; {copy}")

    by_parts, typed = (job.export for job in engine.jobs)
    assert by_parts is not None
    assert typed is not None
    assert (by_parts.is_partitioned, typed.is_partitioned) == (True, False)
    assert typed.type == "OPEN { a: OPEN { oid: bigint } }"
    assert set(_below(exports / "parts")) == {"k/part-00000.json", "k/x=1/y/part-00001.json"}


def test_export_into_a_nonempty_directory_is_refused(node: DriverNode, engine: RecordingEngine, exports: Path) -> None:
    """An export into a directory with files is refused with AsterixDB's error."""
    (exports / "full").mkdir()
    (exports / "full" / "mine").write_bytes(b"x")

    status, text = refusal(node, _copy(f"'{exports}/full'"))
    assert (status, text) == (400, f"ASX0062: Cannot write to a non-empty directory 'file://{exports}/full'")
    assert (_below(exports / "full"), engine.jobs) == ({"mine": b"x"}, [])


def test_path_outside_the_allowed_directories_is_refused(
    node: DriverNode, engine: RecordingEngine, exports: Path
) -> None:
    """Paths outside of the allowed directories are refused with the name of the setting."""
    (exports / "link").symlink_to(exports.parent)
    (exports / "data").symlink_to(node.data)
    for path in (
        f"{exports.parent}/x",
        f"{exports}",
        f"{exports}/link/x",
        f"{exports}/data/x",
        "/etc/x",
        f"elsewhere://{exports}/x",
        str(node.data / "x"),
    ):
        status, text = refusal(node, _copy(f"'{path}'"))
        assert (status, "sqlpp.export_roots" in text or "own machine" in text) == (400, True), (path, text)
    for path in (f"'{exports}/x', '..', 'y'", f"'{exports}/../x'"):
        assert "'.' or '..' segment" in refusal(node, _copy(path))[1]
    assert engine.jobs == []


def test_no_directory_is_allowed_without_the_setting(node: DriverNode, engine: RecordingEngine, exports: Path) -> None:
    """Without the setting, no directory is allowed."""
    services = node.built.services
    before, services.defaults = services.defaults, services.defaults._replace(export_roots=())
    try:
        assert "sqlpp.export_roots" in refusal(node, _copy(f"'{exports}/none'"))[1]
    finally:
        services.defaults = before


def test_export_to_a_fileset_needs_write_and_read_privileges(node: DriverNode, engine: RecordingEngine) -> None:
    """Export to a fileset needs the right to write it and to read the dataset; paths outside of the fileset are
    refused.
    """
    fileset = f"{AS_JSON}, 'fileset': 'files.raw.out'"
    copy = _copy("'day', '1'", to="fileset", settings=fileset)
    for user in ("reader", "writer"):
        assert refusal(node, copy, user=user)[0] == 403, user
    other = _copy("'day'", to="fileset", settings=f"{AS_JSON}, 'fileset': 'files.raw.other'")
    assert refusal(node, other, user="both")[0] == 403
    assert refusal(node, _copy("'..', 'x'", to="fileset", settings=fileset), user="both")[0] == 400
    assert engine.jobs == []
    rows(node, copy, user="both")

    base = Path(node.done("GET", f"{FILESETS}/out")["fileset"]["storageLocation"].removeprefix("file://"))
    assert set(_below(base)) == {"day/1/part-00000.json", "day/1/x=1/y/part-00001.json"}
    assert refusal(node, copy, user="both")[1].startswith("ASX0062")


def test_failed_export_deletes_its_directory(node: DriverNode, exports: Path) -> None:
    """A failed export leaves neither the directory nor hidden files."""
    ENGINE.put(node.built.services, FailingEngine())
    before = _below(exports)

    assert refusal(node, _copy(f"'{exports}/failed'"))[1].startswith("ASX1245")
    node.settle()
    assert _below(exports) == before
    assert not (exports / "failed").exists()
    assert not list(exports.glob(".limnos-*"))


@pytest.mark.parametrize("names", [["..", "x"], ["."], ["a\x00b"], ["a\\b"], ["x" * 256], ["ab" * 50] * 11])
def test_computed_directory_with_dots_or_slashes_is_refused(node: DriverNode, exports: Path, names: list[str]) -> None:
    """Computed directory names with dots or slashes are refused, and no files are left."""
    ENGINE.put(node.built.services, RecordingEngine(_line(begin=names), _line(end=1)))

    status, text = refusal(node, _copy(f"'{exports}/odd', to_string(oid)", more="over (partition by orders.oid oid)"))
    assert (status, text[:9] in ("ASX0064: ", "ASX0065: ")) == (400, True), text
    assert not (exports / "odd").exists()


@pytest.mark.parametrize(
    "statement,says",
    [
        (_copy("missing"), "ASX0064: Path expression produced a value of type 'missing'. Path must be of type string"),
        (_copy("null"), "type 'null'"),
        (_copy("'x'", to="s3"), '"fileset": "catalog.schema.name"'),
        (_copy("'x'", to="ftp"), "Unknown adapter: ftp"),
        (_copy("'x'", to="fileset"), 'needs the option "fileset"'),
        (_copy("oid"), "must begin with the string of a directory"),
        (_copy("'x'", settings="'format': 'avro'"), "Supported formats"),
        (_copy("'x'", more="as (id wrongType)"), "ASX1082: Cannot find datatype with name wrongType"),
        (_copy("'x'", more="as (string)"), "TYPE and AS must name an object type"),
    ],
)
def test_invalid_copy_to_is_refused_before_the_engine_runs(
    node: DriverNode, engine: RecordingEngine, statement: str, says: str
) -> None:
    """Invalid COPY TO statements are refused with the reason before the engine runs."""
    status, text = refusal(node, statement)

    assert (status, says in text) == (400, True), text
    assert engine.jobs == []


def test_read_only_request_writes_no_files(node: DriverNode, engine: RecordingEngine, exports: Path) -> None:
    """COPY TO is refused in read-only requests. A compile-only request writes nothing and does not find errors in
    values.
    """
    assert refusal(node, _copy(f"'{exports}/ro'"), readonly=True)[1].startswith("ASX0044: COPY_TO")
    rows(node, _copy(f"'{exports}/ro'"), compile_only=True)

    assert (engine.jobs, (exports / "ro").exists()) == ([], False)


def test_empty_export_creates_no_directory(node: DriverNode, exports: Path) -> None:
    """As in AsterixDB, an export without objects creates no directory."""
    ENGINE.put(node.built.services, RecordingEngine())
    rows(node, _copy(f"'{exports}/empty'"))
    node.settle()

    assert not (exports / "empty").exists()
    assert not list(exports.glob(".limnos-*"))


def test_each_export_has_an_audit_record(node: DriverNode, engine: RecordingEngine) -> None:
    """Each export has an audit record with user, dataset, location, size and rights; a refused one has a record,
    too.
    """
    settings = f"{AS_JSON}, 'fileset': 'files.raw.out'"
    rows(node, _copy("'audited'", to="fileset", settings=settings), user="both")
    node.runner.run(node.built.services.audit.flush())
    ctx = Context(node.built.services, Credential(user="admin"), "audit")
    lines = node.runner.run(audit_read(ctx, None, filters=AuditFilter(action="export"), limit=1000)).lines

    audit_records = [line for line in lines if "/audited: 2 files, 3 objects fileset files.raw.out" in line.detail]
    assert {line.kind for line in audit_records} >= {"table", "fileset"}
    assert {(line.user, line.outcome, line.operation) for line in audit_records} == {
        ("both", "done", audit_records[0].operation)
    }


class Meanwhile(RecordingEngine):
    """A fake engine that runs a callback before the last line of its answer."""

    def __init__(self, happens: Callable[[], Awaitable[None]]) -> None:
        super().__init__()
        self.happens = happens

    async def run(self, job: EngineJob, **_more: object) -> AsyncIterator[bytes]:
        """Return the files, and run the callback before the last line."""
        self.jobs.append(job)
        for row in FILES[:-1]:
            yield row
        await self.happens()
        yield FILES[-1]


@pytest.mark.parametrize("what", ["dropped", "revoked", "moved"])
def test_fileset_privilege_is_rechecked_before_publishing_files(node: DriverNode, what: str) -> None:
    """The privilege to write the fileset is checked again before the files are published. If it was lost, or the
    fileset changed, no file is published.
    """
    name, user = f"lost-{what}", f"loser-{what}"
    fileset = node.done("POST", FILESETS, {"name": name})["fileset"]
    base = Path(fileset["storageLocation"].removeprefix("file://"))
    grant(node, user, "use_catalog use_schema select_table", kind="CATALOG", on="main")
    grant(node, user, "use_catalog use_schema read_fileset", kind="CATALOG", on="files")
    role = grant(node, user, "write_fileset", kind="FILESET", on=f"files.raw.{name}")

    async def happens() -> None:
        if what == "dropped":
            answer = await node.answer("DELETE", f"{FILESETS}/{name}")
        elif what == "revoked":
            answer = await node.answer("DELETE", f"{API}/lake/roles/{role}")
        else:
            answer = await node.answer("DELETE", f"{FILESETS}/{name}")
            assert answer.status == 200, answer.body
            elsewhere = f"file://{base.parent}/{name}-elsewhere"
            answer = await node.answer("POST", FILESETS, {"name": name, "storageLocation": elsewhere})
        assert answer.status == 200, answer.body

    ENGINE.put(node.built.services, Meanwhile(happens))
    settings = f"{AS_JSON}, 'fileset': 'files.raw.{name}'"
    status, text = refusal(node, _copy("'day'", to="fileset", settings=settings), user=user)

    assert status in (400, 403, 404), text
    assert not (base / "day").exists()


def test_fileset_root_is_refused_as_export_target_on_disk(node: DriverNode, engine: RecordingEngine) -> None:
    """The top directory of a fileset cannot be the target of an export on disk, because files are staged beside the
    target.
    """
    settings = f"{AS_JSON}, 'fileset': 'files.raw.out'"
    status, text = refusal(node, _copy("''", to="fileset", settings=settings))

    assert (status, "name of a directory in the fileset" in text, engine.jobs) == (400, True, [])


@pytest.mark.parametrize("place", ["", "/sub", "/.."])
def test_export_overlapping_a_fileset_location_is_refused(
    node: DriverNode, engine: RecordingEngine, exports: Path, place: str
) -> None:
    """An export to a path at, below or above the location of a fileset is refused, even in an allowed directory."""
    location = exports / "claims" / f"claimed{len(place)}" / "files"
    services = node.built.services
    own = node.done("GET", f"{FILESETS}/other")["fileset"]["storageLocation"]
    (fileset, *_) = node.runner.run(services.gate.look_up(lambda: rivals_read(key_of(own))))

    def claim(tx: Tx) -> None:
        tx.places.put(fileset.claim, key_of(f"file://{location}"))

    node.runner.run(services.store.submit(upkeep_permit("limnos"), claim))
    target = Path(os.path.normpath(f"{location}{place}"))
    for user in ("admin", "reader"):
        status, text = refusal(node, _copy(f"'{target}'"), user=user)
        assert (status, "of an object" in text, engine.jobs) == (400, True, []), text


def test_export_cancelled_while_publishing_is_audited(
    node: DriverNode, engine: RecordingEngine, exports: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If an export is cancelled while its files are published, the answer says that the files exist, and the export is
    audited.
    """
    real, start_event = export_files.ExportedDirectory.publish, threading.Event()

    def publish(directory: ExportedDirectory) -> None:
        start_event.set()
        time.sleep(0.3)
        real(directory)

    monkeypatch.setattr(export_files.ExportedDirectory, "publish", publish)

    async def play() -> DriverAnswer:
        form = {"statement": _copy(f"'{exports}/late'"), "client_context_id": "late"}
        export_task = asyncio.create_task(node.answer("POST", "/query/service", form))
        while not start_event.is_set():  # noqa: ASYNC110 - a thread sets it
            await asyncio.sleep(0.01)
        ended = await node.answer("DELETE", "/admin/requests/running?client_context_id=late")
        assert ended.status == 200, ended.body
        return await export_task

    answer = node.runner.run(play())
    node.runner.run(node.built.services.audit.flush())
    ctx = Context(node.built.services, Credential(user="admin"), "audit")
    lines = node.runner.run(audit_read(ctx, None, filters=AuditFilter(action="export"), limit=1000)).lines

    assert b"its files had been written before that" in answer.body, answer.body
    assert (exports / "late").exists()
    assert any("/late: 2 files" in line.detail for line in lines)


def test_computed_directory_named_like_a_file_is_refused(node: DriverNode, exports: Path) -> None:
    """A computed directory that has the name of an exported file is refused with a message."""
    lines = (*FILES[:4], _line(begin=["part-00000.json"]), _line(end=1))
    ENGINE.put(node.built.services, RecordingEngine(*lines))
    status, text = refusal(node, _copy(f"'{exports}/twice', to_string(oid)", more="over (partition by orders.oid oid)"))

    assert (status, "of a directory and of a file" in text, (exports / "twice").exists()) == (400, True, False), text
