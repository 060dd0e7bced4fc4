# SPDX-License-Identifier: Apache-2.0
"""Stores of a harvest: spellings of roots, kinds of entries, and files that are no regular ones."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from moto.server import ThreadedMotoServer
from pyarrow import fs

from limnos.model.errors import InvalidTable, MissingFile, TooLarge, UnsupportedOperation
from limnos.spark.harvest import stores
from limnos.spark.harvest.listing import DirectoryLister, HarvestRoot
from limnos.spark.harvest.metadata import MetadataReader
from limnos.spark.harvest.stores import EntryKind, LocalStore, root_location, store_of

STORE = LocalStore()


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[fs.S3FileSystem]:
    """A bucket of a server in this process, which the environment names, by a client of the test."""
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    variables = {"AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}
    for name, value in (variables | {"AWS_REGION": "us-east-1"}).items():
        monkeypatch.setenv(name, value)
    stores._s3_store.cache_clear()
    client = fs.S3FileSystem(
        access_key="k",
        secret_key="s",
        region="us-east-1",
        endpoint_override=f"{host}:{port}",
        scheme="http",
        allow_bucket_creation=True,
    )
    client.create_dir("lake")
    try:
        yield client
    finally:
        stores._s3_store.cache_clear()
        server.stop()


def test_root_has_one_spelling(tmp_path: Path) -> None:
    """Links on the way to the root are resolved, and clients' schemes of S3 are one."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    expected = f"file://{tmp_path}/real"

    assert {root_location(each) for each in (f"{tmp_path}/link/", f"file:{tmp_path}/real", expected)} == {expected}
    assert {root_location(f"{scheme}://bucket/a/") for scheme in ("s3", "s3a", "s3n")} == {"s3://bucket/a"}


@pytest.mark.parametrize("path", ["relative", "s3://", "s3://bucket/../x", "hdfs://host/a", "https://host/a", ""])
def test_other_roots_are_refused(path: str) -> None:
    """Executors list local directories and S3, and never above the root."""
    with pytest.raises(UnsupportedOperation):
        root_location(path)


def test_entries_have_their_kinds(tmp_path: Path) -> None:
    """A link is a link, whatever it leads to; a pipe is no file."""
    (tmp_path / "directory").mkdir()
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("directory")
    os.mkfifo(tmp_path / "pipe")
    kinds = {each.name: each.kind for each in STORE.entries(f"file://{tmp_path}")}

    assert kinds == {
        "directory": EntryKind.DIRECTORY,
        "file": EntryKind.FILE,
        "link": EntryKind.LINK,
        "pipe": EntryKind.OTHER,
    }


def test_file_is_read_to_its_limit(tmp_path: Path) -> None:
    """A longer file is refused before it is read."""
    (tmp_path / "file").write_bytes(b"12345")
    location = f"file://{tmp_path}/file"

    assert STORE.read(location, bytes_max=5) == b"12345"
    assert STORE.facts(location).size == 5
    with pytest.raises(TooLarge, match="5 bytes or more"):
        STORE.read(location, bytes_max=4)


def test_sparse_file_of_ten_gigabytes_is_refused(tmp_path: Path) -> None:
    """Its size says enough: nothing of it is read."""
    with (tmp_path / "file").open("wb") as file:
        file.truncate(10 << 30)

    with pytest.raises(TooLarge):
        STORE.read(f"file://{tmp_path}/file", bytes_max=64 << 20)


def test_links_and_pipes_are_not_opened(tmp_path: Path) -> None:
    """Neither a link of the file nor one on its way is followed, and a pipe does not block."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "file").write_bytes(b"secret")
    (tmp_path / "in").symlink_to("out")
    (tmp_path / "link").symlink_to("out/file")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", "in/file"):
        with pytest.raises((InvalidTable, OSError)):
            STORE.read(f"file://{tmp_path}/{name}", bytes_max=100)
    with pytest.raises(MissingFile):
        STORE.read(f"file://{tmp_path}/absent", bytes_max=100)
    with pytest.raises(InvalidTable, match="a link"):
        STORE.facts(f"file://{tmp_path}/link")


def test_odd_times_fit_a_timestamp(tmp_path: Path) -> None:
    """The owner of a file can set a time that no timestamp has."""
    file = tmp_path / "file"
    file.touch()
    os.utime(file, ns=(-(10**18), -(10**18)))

    assert STORE.facts(f"file://{file}").modified_ms == 0


def test_bucket_is_listed_and_read(bucket: fs.S3FileSystem) -> None:
    """Prefixes are directories; the newest metadata file of a table is found and read."""
    document = b'{"format-version": 2, "location": "s3a://lake/wh/sales/a"}'
    for key in ("v1.metadata.json", "v2.metadata.json", "version-hint.text"):
        with bucket.open_output_stream(f"lake/wh/sales/a/metadata/{key}") as file:
            file.write(b"1" if key.endswith("text") else document)
    with bucket.open_output_stream("lake/wh/files/x.parquet") as file:
        file.write(b"x")
    root = HarvestRoot(location=root_location("s3://lake/wh"))
    lister, store = DirectoryLister(root), store_of(root.location)
    (table,) = lister.visit(("sales", "a")).candidates
    (files,) = lister.visit(("files",)).candidates
    (absent,) = lister.visit(("absent",)).candidates
    metadata = MetadataReader(store).read(
        "iceberg", directory=root.path(table.levels), file=str(table.metadata_location)
    )

    assert sorted(lister.visit(()).below) == [("files",), ("sales",)]
    assert (table.version, table.metadata_location) == (2, "s3://lake/wh/sales/a/metadata/v2.metadata.json")
    assert (metadata.read_problem, metadata.location) == (None, "s3a://lake/wh/sales/a")
    assert (files.format, files.byte_count) == ("parquet", 1)
    assert absent.problem is not None
    assert store.read(str(table.metadata_location), bytes_max=len(document)) == document
    with pytest.raises(TooLarge):
        store.read(str(table.metadata_location), bytes_max=3)
    with pytest.raises(MissingFile):
        store.read("s3://lake/wh/no", bytes_max=3)
    with pytest.raises(MissingFile):
        store.facts("s3://lake/wh/sales")
