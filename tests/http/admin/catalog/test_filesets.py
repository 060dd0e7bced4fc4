# SPDX-License-Identifier: Apache-2.0
"""Files of filesets over the admin API: lists of a directory in pages, and previews of files; on disk and in an object
store.
"""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

import boto3  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from limnos.app.preview_files import PREVIEW_FUNCTIONS
from limnos.config.storage import StorageSection
from limnos.model.errors import ServiceUnavailable
from limnos.services.catalog import fileset_browsing
from limnos.services.request.concurrency import previews as preview_limits
from limnos.services.request.concurrency.previews import PREVIEW_OFFLOADER
from limnos.services.request.offloaded_work import InlineOffloader
from tests.http.driver import API, OWN, DriverAnswer, DriverNode, grant, node_at
from tests.http.iceberg.wire import node_over
from tests.http.interference import InterferencePoint, interfere
from tests.objects import objects

pytestmark = pytest.mark.slow

FILESETS = f"{OWN}/metalakes/lake/catalogs/files/filesets"
NASTY = "<script>x<\N{PILE OF POO} \"' %2e \N{ARABIC LETTER ALEF}"


class Workers(InlineOffloader):
    """Executes offloaded work in this process. With `dies` the next file reader ends like a killed process, with
    `hangs` it never ends.
    """

    dies = hangs = False

    async def do(self, name: str, *parts: bytes, caller: str = "") -> list[bytes]:
        """Execute offloaded work."""
        if self.dies:
            raise ServiceUnavailable("a process died")
        if self.hangs and name != "preview-ready":
            await asyncio.Event().wait()
        return PREVIEW_FUNCTIONS[name](*parts)


class BrowsedFileset:
    """A fileset `raw.f`: bob may read it, eve may write it, ann may create filesets, kim may not use the catalog."""

    def __init__(self, node: DriverNode, properties: dict[str, str]) -> None:
        self.node = node
        self.workers = Workers()
        PREVIEW_OFFLOADER.put(node.built.services, self.workers)
        body = {"name": "files", "type": "fileset", "properties": properties}
        node.done("POST", f"{API}/lake/catalogs", body)
        node.done("POST", f"{API}/lake/catalogs/files/schemas", {"name": "raw"})
        created_fileset = node.done("POST", f"{API}/lake/catalogs/files/schemas/raw/filesets", {"name": "f"})
        self.location = str(created_fileset["fileset"]["storageLocation"])
        for user, privileges in (
            ("bob", "use_catalog use_schema read_fileset"),
            ("eve", "use_catalog use_schema write_fileset"),
            ("ann", "use_catalog use_schema create_fileset"),
            ("kim", "read_fileset"),
        ):
            grant(node, user, privileges, kind="CATALOG", on="files")
        for name, data in FILES.items():
            self.write(name, data)

    def write(self, name: str, data: bytes) -> None:
        """Write a file."""
        at = Path(self.location.removeprefix("file://"), name)
        at.parent.mkdir(exist_ok=True)
        at.write_bytes(data)

    def list(self, user: str = "bob", **query: object) -> DriverAnswer:
        """List a directory."""
        return self.node.get(f"{FILESETS}/entries?{urlencode({'fileset': 'raw.f', **query})}", user=user)

    def show(self, file: str, user: str = "bob", **query: object) -> DriverAnswer:
        """Request a preview of a file."""
        return self.node.get(f"{FILESETS}/preview?{urlencode({'fileset': 'raw.f', 'file': file, **query})}", user=user)


class StoredFileset(BrowsedFileset):
    """The same fileset in an object store."""

    def write(self, name: str, data: bytes) -> None:
        """Write an object."""
        bucket, _, prefix = self.location.removeprefix("s3://").partition("/")
        self.client.put_object(Bucket=bucket, Key=f"{prefix}/{name}", Body=data)

    def __init__(self, node: DriverNode, properties: dict[str, str]) -> None:
        self.client = boto3.client(
            "s3",
            endpoint_url=properties["s3.endpoint"],
            aws_access_key_id=properties["s3.access-key-id"],
            aws_secret_access_key=properties["s3.secret-access-key"],
            region_name=properties["s3.region"],
        )
        super().__init__(node, {**properties, "location": "s3://lake/files"})


def _parquet() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.table({"id": [1, 2, 3], "city": ["Oslo", None, "Rome"]}), sink)
    return sink.getvalue()


FILES = {
    "day=1/deep.csv": b"1",
    "a.csv": b"id,city\n1,Oslo\n2,<b>Rome</b>\n",
    "b.parquet": _parquet(),
    "c.html": b"<script>alert(1)</script>",
    "d.jsonl": b'{"id": 1}\n',
    "e.bin": b"\x00\x01",
    NASTY: b"nasty",
}


@contextmanager
def on_disk(data: Path) -> Iterator[BrowsedFileset]:
    """A fileset on the local disk."""
    with node_over(data) as node:
        yield BrowsedFileset(node, {})


@contextmanager
def in_a_store(data: Path) -> Iterator[BrowsedFileset]:
    """A fileset in an object store, with credentials in its catalog."""
    with objects() as store:
        storage = StorageSection(allowed_roots=("s3://lake",), allowed_endpoints=(store.uri,), timeout_s=60.0)
        known = {name: value for name, value in store.properties.items() if name != "s3-role-arn"}
        with node_at(data / "data", storage=storage) as node:
            yield StoredFileset(node, known)


@pytest.fixture(scope="module", params=["disk", pytest.param("store", marks=pytest.mark.integration)])
def fileset(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowsedFileset]:
    """The fileset, on disk and in an object store."""
    data = tmp_path_factory.mktemp("fileset")
    with (on_disk if request.param == "disk" else in_a_store)(data) as browsed_fileset:
        yield browsed_fileset


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[BrowsedFileset]:
    """A fileset on disk, for a single test."""
    with on_disk(tmp_path) as browsed_fileset:
        yield browsed_fileset


def test_directories_come_first(fileset: BrowsedFileset) -> None:
    """Directories come before files. Files have size and time; subdirectories can be listed."""
    top, inner = fileset.list().json(), fileset.list(directory="day=1").json()

    assert [(each["name"], each["directory"]) for each in top["entries"]] == [
        ("day=1", True),
        *((name, False) for name in sorted(FILES) if "/" not in name),
    ]
    (file,) = [each for each in top["entries"] if each["name"] == "a.csv"]
    assert (file["size"], file["changed_at"][:2], top["after"]) == (len(FILES["a.csv"]), "20", None)
    assert [each["name"] for each in inner["entries"]] == ["deep.csv"]


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_pages_list_each_entry_exactly_once(fileset: BrowsedFileset, limit: int) -> None:
    """Pages of any size list each entry exactly once, and the last page says so."""
    names, after = [], ""
    for _ in range(len(FILES) + 1):
        page = fileset.list(limit=limit, **({"after": after} if after else {})).json()
        assert len(page["entries"]) <= limit
        names += [each["name"] for each in page["entries"]]
        after = page["after"]
        if after is None:
            break

    assert (names, after) == (["day=1", *sorted(name for name in FILES if "/" not in name)], None)


def test_preview_shows_rows_text_or_size_by_format(fileset: BrowsedFileset) -> None:
    """Parquet, CSV and JSON are shown as rows, HTML as text, and a binary file by its size."""
    csv, parquet, lines = (fileset.show(name).json() for name in ("a.csv", "b.parquet", "d.jsonl"))

    assert (csv["kind"], csv["rows"], csv["complete"]) == ("rows", [["1", "Oslo"], ["2", "<b>Rome</b>"]], True)
    assert parquet["columns"] == [{"name": "id", "type": "int64"}, {"name": "city", "type": "string"}]
    assert (parquet["rows"], lines["rows"]) == ([[1, "Oslo"], [2, None], [3, "Rome"]], [[1]])
    html, binary, nasty = (fileset.show(name) for name in ("c.html", "e.bin", NASTY))
    assert (html.json()["text"], html.headers["content-type"]) == ("<script>alert(1)</script>", "application/json")
    assert binary.json() == {"kind": "binary", "size": 2, "complete": False}
    assert nasty.json()["text"] == "nasty"
    assert fileset.show("b.parquet", rows=1).json()["rows"] == [[1, "Oslo"]]


@pytest.mark.parametrize(
    "file",
    ["gone.csv", "day=1", "../f/a.csv/x", "day=1/../a.csv", "..%2fx", "%2e%2e/x", "a\x00b", "/etc/passwd", "//x"],
)
def test_path_cannot_escape_the_fileset(fileset: BrowsedFileset, file: str) -> None:
    """Missing files are 404, paths with dots are refused, and absolute paths are relative to the fileset."""
    assert fileset.show(file).status == (404 if ".." not in file and "%2e" not in file and "\x00" not in file else 400)
    assert fileset.list(directory=file).status in (200, 400)
    assert fileset.list(directory=file).json().get("entries", []) in (
        [],
        fileset.list(directory="day=1").json()["entries"],
    )


@pytest.mark.parametrize("query", [{"rows": 0}, {"rows": 201}, {"rows": "x"}, {"fileset": "f"}])
def test_invalid_preview_limit_is_400(fileset: BrowsedFileset, query: dict[str, object]) -> None:
    """Invalid limits are 400."""
    assert fileset.show("a.csv", **query).status == 400


@pytest.mark.parametrize("query", [{"limit": 0}, {"limit": 1001}, {"limit": "x"}, {"fileset": "f"}])
def test_invalid_list_limit_is_400(fileset: BrowsedFileset, query: dict[str, object]) -> None:
    """Invalid limits are 400."""
    assert fileset.list(**query).status == 400


def test_unknown_fileset_or_location_is_404(fileset: BrowsedFileset) -> None:
    """An unknown fileset or an unknown location of a fileset is 404."""
    assert fileset.show("a.csv", user="ann", fileset="raw.gone").status == 403
    assert fileset.show("a.csv", user="admin", fileset="raw.gone").status == 404
    assert fileset.show("a.csv", location="elsewhere").status == 404
    assert fileset.list(location="elsewhere").status == 404


def test_file_content_needs_the_read_privilege(fileset: BrowsedFileset) -> None:
    """A user who may only write sees file names but no content; one who may only create filesets, or may not use the
    catalog, sees nothing.
    """
    refused = ("eve", "ann", "kim", "stranger")
    assert [fileset.show("a.csv", user=user).status for user in refused] == [403] * len(refused)
    assert b"READ_FILESET" in fileset.show("a.csv", user="eve").body
    assert [fileset.list(user=user).status for user in refused] == [200, 403, 403, 403]
    assert fileset.show("gone.csv", user="eve").status == 403  # and learns nothing about which files there are


async def revoke_and_write(fileset: BrowsedFileset) -> None:
    """Take all roles from bob, and then write a file."""
    roles = (await fileset.node.answer("GET", f"{API}/lake/users/bob", user="admin")).json()["user"]["roles"]
    answer = await fileset.node.answer(
        "PUT", f"{API}/lake/permissions/users/bob/revoke", {"roleNames": roles}, user="admin"
    )
    assert answer.status == 200, answer
    fileset.write("late.txt", b"secret")


@pytest.mark.parametrize(
    "target",
    [
        f"{FILESETS}/entries?fileset=raw.f",
        f"{FILESETS}/preview?fileset=raw.f&file=late.txt",
        f"{FILESETS}/preview?fileset=raw.f&file=missing.txt",
    ],
)
def test_files_are_read_with_the_rights_at_the_end_of_the_request(
    disk: BrowsedFileset, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    """A user who loses the roles after the decision and before the read sees no file that is written after that, and
    does not learn which files are missing.
    """
    act = partial(revoke_and_write, disk)

    with interfere(disk.node, monkeypatch, step=InterferencePoint.READ, act=act) as interference:
        answer = disk.node.get(target, user="bob")

    assert interference.is_done
    assert (answer.status, b"late.txt" in answer.body, b"secret" in answer.body) == (403, False, False), answer


def test_gravitino_list_has_the_files_of_the_rights_at_the_end_of_the_request(
    disk: BrowsedFileset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list of files over Gravitino REST is refused to a user who loses the roles while it is read."""
    files = disk.node.built.services.files
    real = files.directories

    async def directories(*args: object, **named: object) -> list[str]:
        monkeypatch.setattr(files, "directories", real)
        await revoke_and_write(disk)
        return await real(*args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(files, "directories", directories)

    answer = disk.node.get(f"{API}/lake/catalogs/files/schemas/raw/filesets/f/files", user="bob")

    assert files.directories == real
    assert (answer.status, b"late.txt" in answer.body) == (403, False), answer


def test_preview_shows_the_fileset_that_has_the_name_at_the_end(
    disk: BrowsedFileset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the fileset is dropped and created again at another location before the file is read, the preview shows the
    new fileset's file.
    """
    schema = f"{API}/lake/catalogs/files/schemas/raw/filesets"

    async def replace() -> None:
        await disk.node.answer("DELETE", f"{schema}/f", user="admin")
        answer = await disk.node.answer("POST", schema, {"name": "f"}, user="admin")
        assert answer.status == 200, answer
        disk.location = answer.json()["fileset"]["storageLocation"]
        Path(disk.location.removeprefix("file://")).mkdir(parents=True, exist_ok=True)
        disk.write("c.html", b"new")

    with interfere(disk.node, monkeypatch, step=InterferencePoint.READ, act=replace) as interference:
        answer = disk.show("c.html")

    assert interference.is_done
    assert answer["text"] == "new"


def test_each_preview_has_an_audit_record(fileset: BrowsedFileset) -> None:
    """Each preview has an audit record with the user, the fileset, the file, and the number of rows or characters.
    Lists of directories have none.
    """

    def lines() -> list[dict]:
        fileset.node.runner.run(fileset.node.built.services.audit.flush())
        audit_lines: list[dict] = fileset.node.done("GET", f"{OWN}/metalakes/lake/audit?user=bob")["lines"]
        return audit_lines

    before = lines()
    assert [fileset.list().status, fileset.list(directory="day=1").status] == [200, 200]
    assert lines() == before
    for name in ("c.html", "e.bin", "a.csv"):
        assert fileset.show(name).status == 200

    line, *others = lines()
    assert others[2:] == before
    assert [each["detail"] for each in others[:2]] == [
        "preview of 0 characters of e.bin",
        "preview of 25 characters of c.html",
    ]
    assert (line["operation"], line["outcome"], line["object"]["path"]) == (
        "preview-fileset-file",
        "done",
        "files.raw.f",
    )
    assert line["detail"] == "preview of 2 rows of a.csv"
    assert "read_fileset" in str(line).lower()


def test_links_out_of_the_fileset_are_ignored(disk: BrowsedFileset, tmp_path: Path) -> None:
    """Links to files or directories outside of the fileset are neither listed nor read; links within it are."""
    top = Path(disk.location.removeprefix("file://"))
    other_fileset = disk.node.done("POST", f"{API}/lake/catalogs/files/schemas/raw/filesets", {"name": "other"})[
        "fileset"
    ]
    other = Path(str(other_fileset["storageLocation"]).removeprefix("file://"))
    (tmp_path / "secret").mkdir()
    for place in (tmp_path / "secret", other):
        (place / "s.txt").write_text("secret")
    for name, target in (
        ("out", tmp_path / "secret"),
        ("out.txt", tmp_path / "secret/s.txt"),
        ("far", other),
        ("far.txt", other / "s.txt"),
        ("db.txt", disk.node.data / "limnos.db"),
        ("in.txt", top / "c.html"),
    ):
        (top / name).symlink_to(target)

    names = {each["name"] for each in disk.list().json()["entries"]}

    assert names.isdisjoint({"out", "out.txt", "far", "far.txt", "db.txt"})
    for name in ("out.txt", "out/s.txt", "far.txt", "far/s.txt", "db.txt"):
        answer = disk.show(name)
        assert (answer.status, b"secret" in answer.body) == (404, False), name
    for name in ("out", "far"):
        assert b"s.txt" not in disk.list(directory=name).body
    assert disk.show("in.txt").json()["text"] == "<script>alert(1)</script>"


def test_non_utf8_file_names_are_listed_with_replacements(disk: BrowsedFileset) -> None:
    """Bytes in a file name that are not UTF-8 are listed as replacement characters, by both protocols."""
    top = Path(disk.location.removeprefix("file://"))
    (Path(bytes(top).decode()) / b"z\xff.txt".decode("utf-8", "surrogateescape")).write_text("x")

    entries = disk.list().json()["entries"]
    listed = disk.node.done("GET", f"{API}/lake/catalogs/files/schemas/raw/filesets/f/files?sub_path=/")["files"]

    assert [each["name"] for each in entries if each["name"].startswith("z")] == ["z\ufffd.txt"]
    assert [each["name"] for each in listed if each["name"].startswith("z")] == ["z\ufffd.txt"]


@pytest.mark.parametrize("limit", [1, 2, 3, 5])
def test_pages_ending_at_unusual_names_are_complete(disk: BrowsedFileset, limit: int) -> None:
    """Lists are complete if a page ends at a name that is not UTF-8, that displays like another, or that is a prefix of
    another.
    """
    top = Path(disk.location.removeprefix("file://"))
    names = [b"q", b"q!", b"q\xfe", b"q\xff", b"q\xff!", "q\ufffd".encode(), "q\ufffe".encode(), b"q~"]
    for name in names:
        (top / os.fsdecode(b"d" + name)).mkdir()
        (top / os.fsdecode(b"f" + name)).write_text("x")

    listed: list[str] = []
    after: str | None = ""
    while after is not None and len(listed) < 100:
        page = disk.list(limit=limit, **({"after": after} if after else {})).json()
        listed += [each["name"] for each in page["entries"]]
        after = page["after"]

    ours = [name for name in listed if name[1:2] == "q"]
    assert sorted(ours) == sorted((first + name).decode("utf-8", "replace") for first in (b"d", b"f") for name in names)
    assert len(listed) == len(ours) + len(FILES)


def test_oversized_and_damaged_files_are_refused(disk: BrowsedFileset, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file beyond the byte limit, and a damaged one, are refused with advice."""
    disk.write("no.parquet", b"no parquet")
    damaged = disk.show("no.parquet")
    monkeypatch.setattr(fileset_browsing, "READ_BYTES_MAX", 10)
    large = disk.show("b.parquet")

    assert (damaged.status, b"damaged" in damaged.body) == (405, True)
    assert (large.status, b"with a client" in large.body) == (405, True)


def test_killed_or_late_preview_is_503_with_advice(disk: BrowsedFileset, monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed or late preview process is 503 with advice, and the next preview is served."""
    disk.workers.dies = True
    killed = disk.show("a.csv")
    disk.workers.dies = False
    disk.workers.hangs = True
    monkeypatch.setattr(preview_limits, "DEADLINE_S", 0.01)
    late = disk.show("a.csv")
    monkeypatch.setattr(preview_limits, "DEADLINE_S", 600.0)
    disk.workers.hangs = False

    assert (killed.status, b"worker process has ended" in killed.body) == (503, True)
    assert (late.status, b"took longer" in late.body) == (503, True)
    assert disk.show("a.csv").status == 200
