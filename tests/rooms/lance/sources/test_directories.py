# SPDX-License-Identifier: Apache-2.0
"""Directories of Lance tables: Lance's clients read what we write, and the reverse; on a disk and in an object
store.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import boto3  # type: ignore[import-untyped]
import lance
import lancedb
import msgspec
import pyarrow as pa
import pytest
from lance.namespace import DirectoryNamespace
from lance_namespace import (
    CreateNamespaceRequest,
    DeclareTableRequest,
    DeregisterTableRequest,
    DescribeNamespaceRequest,
    DescribeTableRequest,
    ListNamespacesRequest,
    ListTablesRequest,
)

from limnos.model.errors import (
    AlreadyExists,
    BadRequest,
    InvalidTable,
    NotEmpty,
    NotFound,
    StorageFailed,
    UnsupportedOperation,
)
from limnos.rooms.lance.formats.layouts import DirectoryLayout
from limnos.rooms.lance.sources.directories import LanceDirectory
from limnos.rooms.lance.sources.questions import Describe
from limnos.rooms.lance.sources.reading import describe

ROWS = pa.table({"id": [1, 2], "text": ["a", "b"]})
pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def native(root: str, **options: str) -> DirectoryNamespace:
    """Return Lance's own namespace over a directory."""
    return DirectoryNamespace(root=root, **{f"storage.{key}": value for key, value in options.items()})


def listed(directory: LanceDirectory, *levels: str) -> list[str]:
    """The names of the tables in a namespace."""
    return [entry.levels[-1] for entry in directory.tables(levels)]


def test_v0_folder_without_data_exists_but_cannot_be_loaded(tmp_path: Path) -> None:
    """An empty folder, or one with other content, exists as a table; only loading it fails, with the reason."""
    lance.write_dataset(ROWS, str(tmp_path / "table1"))
    (tmp_path / "empty").mkdir()
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "notes.txt").write_text("not a table")
    (tmp_path / "file").write_text("no folder")
    directory = LanceDirectory(str(tmp_path))

    assert (directory.layout, listed(directory)) == (DirectoryLayout.V0, ["empty", "foreign", "table1"])
    assert not directory.is_declared(directory.find(("table1",)))
    with pytest.raises(InvalidTable, match=r"does not comply with the Lance table format: it is empty"):
        directory.is_declared(directory.find(("empty",)))
    with pytest.raises(InvalidTable, match=r"it contains notes.txt"):
        directory.is_declared(directory.find(("foreign",)))
    with pytest.raises(NotFound):
        directory.find(("file",))


def test_v0_table_declared_by_us_is_opened_by_lance(tmp_path: Path) -> None:
    """A table that is declared in a V0 directory is a folder of its name, which Lance opens."""
    directory = LanceDirectory(str(tmp_path), layout=DirectoryLayout.V0)
    entry = directory.declare(("docs",))
    lance.write_dataset(ROWS, directory.location(entry), mode="append")

    assert lance.dataset(str(tmp_path / "docs")).count_rows() == 2
    assert listed(LanceDirectory(str(tmp_path))) == ["docs"]
    with pytest.raises(UnsupportedOperation, match="no namespaces"):
        directory.create_namespace(("a",), {})
    with pytest.raises(UnsupportedOperation, match="each folder is a table"):
        directory.deregister(("docs",))


def test_v0_drop_keeps_other_files_in_the_folder(tmp_path: Path) -> None:
    """A folder with other files is kept; the table's own files are deleted."""
    directory = LanceDirectory(str(tmp_path), layout=DirectoryLayout.V0)
    lance.write_dataset(ROWS, str(tmp_path / "mixed"))
    lance.write_dataset(ROWS, str(tmp_path / "own"))
    (tmp_path / "mixed" / "notes.txt").write_text("mine")

    with pytest.raises(InvalidTable, match=r"contains notes.txt"):
        directory.drop(("mixed",))
    directory.drop(("own",))

    assert lance.dataset(str(tmp_path / "mixed")).count_rows() == 2
    assert listed(directory) == ["mixed"]


@pytest.mark.parametrize("way", ["absolute", "relative", "file:"])
def test_directory_is_opened_by_relative_absolute_path_or_uri(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    """A directory is opened by a relative path, an absolute path, or a URI."""
    from limnos.rooms.lance.formats.layouts import root_of

    lance.write_dataset(ROWS, str(tmp_path / "a.lance"))
    monkeypatch.chdir(tmp_path.parent)
    text = {"absolute": str(tmp_path), "relative": f"./{tmp_path.name}", "file:": f"file://{tmp_path}"}[way]

    assert listed(LanceDirectory(root_of(text, here=str(Path.cwd())))) == ["a"]


def test_v1_tables_are_exchanged_with_lancedb(tmp_path: Path) -> None:
    """Tables of LanceDB are listed by us; tables that we declare and write are opened by LanceDB."""
    db = lancedb.connect(str(tmp_path))
    db.create_table("theirs", ROWS)
    directory = LanceDirectory(str(tmp_path), layout=DirectoryLayout.V1)
    entry = directory.declare(("ours",))
    assert directory.is_declared(entry)
    lance.write_dataset(ROWS, directory.location(entry), mode="append")

    assert listed(directory) == ["ours", "theirs"]
    assert db.open_table("ours").count_rows() == 2
    directory.deregister(("theirs",))
    assert listed(directory) == ["ours"]
    assert "theirs" not in native(str(tmp_path), manifest_enabled="false").list_tables(ListTablesRequest(id=[])).tables
    with pytest.raises(AlreadyExists, match="exists already"):
        directory.declare(("theirs",))


def test_v2_written_by_lance_namespace_is_read(tmp_path: Path) -> None:
    """Namespaces, tables inside and outside of them, and properties that Lance's own namespace wrote are read."""
    theirs = native(str(tmp_path))
    theirs.create_namespace(CreateNamespaceRequest(id=["a"], properties={"k": "v"}))
    theirs.create_namespace(CreateNamespaceRequest(id=["a", "b c"]))
    lance.write_dataset(ROWS, namespace_client=theirs, table_id=["a", "b c", "t"], mode="create")
    lance.write_dataset(ROWS, namespace_client=theirs, table_id=["top"], mode="create")
    theirs.declare_table(DeclareTableRequest(id=["a", "later"], properties={"p": "q"}))
    lance.write_dataset(ROWS, str(tmp_path / "lying.lance"))
    directory = LanceDirectory(str(tmp_path))

    assert (directory.layout, directory.namespaces(), directory.namespaces(("a",))) == (
        DirectoryLayout.V2,
        ["a"],
        ["b c"],
    )
    assert [entry.levels for entry in directory.all_tables()] == [
        ("a", "b c", "t"),
        ("a", "later"),
        ("lying",),
        ("top",),
    ]
    assert directory.properties(("a",)) == {"k": "v"}
    later = directory.find(("a", "later"))
    assert (directory.is_declared(later), later.properties) == (True, {"p": "q"})
    description = describe(Describe(location=directory.location(directory.find(("a", "b c", "t"))), options={}))
    assert description is not None
    assert description.version == 1
    theirs.deregister_table(DeregisterTableRequest(id=["a", "later"]))
    assert listed(directory, "a") == []


def test_v2_written_by_us_is_read_by_lance_namespace(tmp_path: Path) -> None:
    """Lance's own namespace sees our namespaces, tables, properties, renames, registrations and drops."""
    directory = LanceDirectory(str(tmp_path))
    directory.create_namespace(("a",), {"k": "v"})
    directory.create_namespace(("a", "b c"), {})
    entry = directory.declare(("a", "b c", "t"), {"p": "q"})
    directory.declare(("top",))
    theirs = native(str(tmp_path))

    assert theirs.list_namespaces(ListNamespacesRequest(id=["a"])).namespaces == ["b c"]
    assert theirs.describe_namespace(DescribeNamespaceRequest(id=["a"])).properties == {"k": "v"}
    assert theirs.list_tables(ListTablesRequest(id=[])).tables == ["top"]
    response = theirs.describe_table(DescribeTableRequest(id=["a", "b c", "t"], check_declared=True))
    assert (response.properties, response.is_only_declared) == ({"p": "q"}, True)
    lance.write_dataset(ROWS, namespace_client=theirs, table_id=["a", "b c", "t"], mode="append")
    assert not directory.is_declared(entry)
    directory.rename(("a", "b c", "t"), ("a", "u"))
    assert lance.dataset(namespace_client=theirs, table_id=["a", "u"]).count_rows() == 2
    with pytest.raises(NotEmpty):
        directory.drop_namespace(("a",), cascade=False)
    directory.deregister(("a", "u"))
    directory.register(("a", "again"), entry.folder)
    assert lance.dataset(namespace_client=theirs, table_id=["a", "again"]).count_rows() == 2
    assert directory.drop_namespace(("a",), cascade=True) == {"k": "v"}
    assert theirs.list_namespaces(ListNamespacesRequest(id=[])).namespaces == []
    assert not (tmp_path / entry.folder).exists()


def test_unknown_index_columns_and_rows_are_preserved(tmp_path: Path) -> None:
    """An additional column, and rows of unknown kinds, are preserved by our changes of the index."""
    directory = LanceDirectory(str(tmp_path))
    directory.create_namespace(("a",), {})
    index = lance.dataset(str(tmp_path / "__manifest"))
    index.add_columns(pa.field("note", pa.string()))
    index.update({"note": "'kept'"})
    rows = index.to_table(filter="object_id = 'a'").to_pylist()
    rows[0] |= {"object_id": "a$t$1", "object_type": "table_version"}
    lance.write_dataset(pa.Table.from_pylist(rows, schema=index.schema), str(tmp_path / "__manifest"), mode="append")
    directory.declare(("a", "t"))
    directory.drop(("a", "t"))

    manifest_rows = lance.dataset(str(tmp_path / "__manifest")).to_table().to_pylist()

    assert {row["object_id"]: row["note"] for row in manifest_rows} == {"a": "kept", "a$t$1": "kept"}


def test_exactly_one_of_concurrent_declarations_succeeds(tmp_path: Path) -> None:
    """Of eight concurrent writers that declare one table, and one of their own each, one gets the shared one and no
    other table is lost.
    """
    directory = LanceDirectory(str(tmp_path))
    directory.create_namespace(("a",), {})

    def both(number: int) -> bool:
        own = LanceDirectory(str(tmp_path))
        own.declare(("a", f"own_{number}"))
        try:
            own.declare(("a", "same"))
        except AlreadyExists:
            return False
        return True

    with ThreadPoolExecutor(8) as threads:
        won = list(threads.map(both, range(8)))

    assert won.count(True) == 1
    assert listed(directory, "a") == [*(f"own_{number}" for number in range(8)), "same"]


def test_taken_names_and_missing_namespaces_are_refused(tmp_path: Path) -> None:
    """Tables and namespaces share names; a taken name, a missing namespace, and an index that leads out of the
    directory are refused.
    """
    directory = LanceDirectory(str(tmp_path))
    directory.create_namespace(("a",), {})
    directory.declare(("a", "t"))

    for levels in (("a", "t"), ("a",)):
        with pytest.raises(AlreadyExists):
            directory.create_namespace(levels, {})
        with pytest.raises(AlreadyExists):
            directory.declare(levels)
    with pytest.raises(NotFound, match="Namespace does not exist: x"):
        directory.declare(("x", "t"))
    with pytest.raises(NotFound, match="Namespace does not exist: x"):
        directory.find(("x", "t"))
    with pytest.raises(NotFound, match="Table does not exist: a"):
        directory.rename(("a", "u"), ("a", "v"))
    with pytest.raises(BadRequest, match="separates names"):
        directory.declare(("a", "b$c"))
    with pytest.raises(InvalidTable, match="outside of it"):
        directory.register(("a", "out"), "../elsewhere")
    with pytest.raises(InvalidTable, match="there is no Lance table"):
        directory.register(("a", "none"), "nothing")


def test_read_does_not_create_a_missing_root(tmp_path: Path) -> None:
    """A missing root lists nothing and is not created."""
    directory = LanceDirectory(str(tmp_path / "none"))

    assert (directory.layout, directory.tables(), directory.namespaces()) == (None, [], [])
    assert not (tmp_path / "none").exists()


SERVER = """
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(*server.get_host_and_port(), sep=":", flush=True)
input()
"""


@pytest.fixture(scope="module")
def options() -> Iterator[dict[str, str]]:
    """Lance's options for an S3 server with one bucket. The server is a separate process, because Lance's namespace
    blocks all threads of this one.
    """
    command = [sys.executable, "-c", SERVER]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        url = f"http://{server.stdout.readline().strip()}"
        client = boto3.client(
            "s3", endpoint_url=url, aws_access_key_id="key", aws_secret_access_key="secret", region_name="us-east-1"
        )
        client.create_bucket(Bucket="bucket")
        client.close()
        yield {
            "aws_access_key_id": "key",
            "aws_secret_access_key": "secret",
            "aws_region": "us-east-1",
            "aws_endpoint": url,
            "allow_http": "true",
        }
        server.kill()


@pytest.mark.parametrize("layout", list(DirectoryLayout))
def test_every_layout_works_in_an_object_store(options: dict[str, str], layout: DirectoryLayout) -> None:
    """Each layout is written, listed, loaded and dropped in S3 as on a disk; only files of others remain."""
    root = f"s3://bucket/{layout}"
    directory = LanceDirectory(root, options=options, layout=layout)
    levels = ("a", "docs") if layout is DirectoryLayout.V2 else ("docs",)
    if layout is DirectoryLayout.V2:
        directory.create_namespace(("a",), {"k": "v"})
    entry = directory.declare(levels)
    assert directory.is_declared(entry)
    lance.write_dataset(ROWS, directory.location(entry), mode="append", storage_options=options)

    opened = LanceDirectory(root, options=options)
    assert opened.layout is layout
    assert [each.levels for each in opened.all_tables()] == [levels]
    description = describe(Describe(location=opened.location(opened.find(levels)), options=options))
    assert description is not None
    assert description.version == 1
    if layout is DirectoryLayout.V2:
        assert (
            lance.dataset(
                namespace_client=native(root, **options), table_id=list(levels), storage_options=options
            ).count_rows()
            == 2
        )
    opened.drop(levels)
    assert opened.all_tables() == []


class Place(NamedTuple):
    """The location of a directory, and the settings with which Lance's clients open it."""

    root: str
    options: dict[str, str]


@pytest.fixture(params=["disk", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path, options: dict[str, str]) -> Place:
    """An empty directory on a disk, or in an object store."""
    if request.param == "disk":
        return Place(str(tmp_path), {})
    return Place(f"s3://bucket/{tmp_path.name}", options)


@pytest.mark.parametrize("layout", list(DirectoryLayout))
def test_layouts_of_other_libraries_are_read(place: Place, layout: DirectoryLayout) -> None:
    """Directories of pylance, LanceDB and Lance's own namespace are read: names, columns and rows."""
    root, options = place
    levels = ("a", "docs") if layout is DirectoryLayout.V2 else ("docs",)
    match layout:
        case DirectoryLayout.V0:
            lance.write_dataset(ROWS, f"{root}/docs", storage_options=options or None)
        case DirectoryLayout.V1:
            lancedb.connect(root, storage_options=options or None).create_table("docs", ROWS)
        case DirectoryLayout.V2:
            theirs = native(root, **options)
            theirs.create_namespace(CreateNamespaceRequest(id=["a"]))
            lance.write_dataset(
                ROWS, namespace_client=theirs, table_id=list(levels), mode="create", storage_options=options or None
            )
    # LanceDB writes its own index beside its tables: with the detected layout, and with a stated one
    for directory in (LanceDirectory(root, options=options), LanceDirectory(root, options=options, layout=layout)):
        assert [each.levels for each in directory.all_tables()] == [levels]
        location = directory.location(directory.find(levels))
        description = describe(Describe(location=location, options=options))
        assert description is not None
        assert (description.version, len(msgspec.json.decode(description.fields))) == (1, 2)
        assert lance.dataset(location, storage_options=options or None).to_table() == ROWS


@pytest.mark.parametrize("layout", list(DirectoryLayout))
def test_our_layouts_are_read_by_other_libraries(place: Place, layout: DirectoryLayout) -> None:
    """Our directories are read by pylance at its path, by LanceDB, and by Lance's own namespace and LanceDB on it."""
    root, options = place
    levels = ("a", "docs") if layout is DirectoryLayout.V2 else ("docs",)
    directory = LanceDirectory(root, options=options, layout=layout)
    if layout is DirectoryLayout.V2:
        directory.create_namespace(("a",), {})
    location = directory.location(directory.declare(levels))
    lance.write_dataset(ROWS, location, mode="append", storage_options=options or None)
    match layout:
        case DirectoryLayout.V0:
            assert lance.dataset(f"{root}/docs", storage_options=options or None).to_table() == ROWS
        case DirectoryLayout.V1:
            db = lancedb.connect(root, storage_options=options or None)
            assert list(db.table_names()) == ["docs"]
            assert db.open_table("docs").to_arrow() == ROWS
            assert lance.dataset(f"{root}/docs.lance", storage_options=options or None).to_table() == ROWS
        case DirectoryLayout.V2:
            theirs = native(root, **options)
            opened = lance.dataset(namespace_client=theirs, table_id=list(levels), storage_options=options or None)
            assert opened.to_table() == ROWS
            known = {"root": root, **{f"storage.{key}": value for key, value in options.items()}}
            spaces = lancedb.connect_namespace("dir", known, storage_options=options or None)
            assert spaces.open_table("docs", namespace_path=["a"], storage_options=options or None).to_arrow() == ROWS


def test_unreachable_store_is_a_storage_failure(options: dict[str, str]) -> None:
    """A store that cannot be reached is a failure of the store, not an empty directory."""
    wrong = {**options, "aws_endpoint": "http://127.0.0.1:9"}

    with pytest.raises(StorageFailed, match="Cannot list s3://bucket/v1"):
        LanceDirectory("s3://bucket/v1", options=wrong).tables()
