# SPDX-License-Identifier: Apache-2.0
"""Versions of files: equal while nobody changes a file, and different after each change, even one that is undone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from limnos.files import file_versions
from tests.objects import BUCKET, objects


def version(at: Path, *roots: Path) -> object:
    """Return the version of a file on this machine."""
    (result,) = file_versions([f"file://{at}"], {}, roots=[f"file://{each}" for each in roots]).values()
    return result


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table's directory with a metadata file in a directory of the metadata directory."""
    (tmp_path / "table/metadata/old").mkdir(parents=True)
    (tmp_path / "table/metadata/m.avro").write_bytes(b"manifest")
    (tmp_path / "table/metadata/old/m.avro").write_bytes(b"manifest")
    return tmp_path / "table"


def test_a_file_has_one_version_until_it_changes(table: Path) -> None:
    """Reads, and other files in the same directory, change no version; the same bytes written again do, even with the
    former time of modification.
    """
    at = table / "metadata/m.avro"
    first = version(at, table)
    at.read_bytes()
    (table / "metadata/m2.avro").write_bytes(b"another")
    assert version(at, table) == first is not None

    status = at.stat()
    at.write_bytes(b"manifest")
    os.utime(at, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert version(at, table) != first


def test_a_directory_on_the_path_that_was_replaced_and_restored_changes_the_version(table: Path) -> None:
    """Another directory under the name of the file's own directory, or of one above it, for a moment, is noticed, but
    nothing above the root counts.
    """
    for name in ("metadata/m.avro", "metadata/old/m.avro"):
        at, directory = table / name, (table / name).parent
        first = version(at, table)
        directory.rename(directory.with_name("kept"))
        directory.mkdir()
        directory.rmdir()
        directory.with_name("kept").rename(directory)
        assert version(at, table) != first

    first = version(at, table)
    (table.parent / "neighbour").mkdir()
    assert version(at, table) == first


def test_directories_of_each_location_of_a_table_count(table: Path) -> None:
    """Another directory for a moment is noticed for files at an earlier location of the table, too, and for those with
    another spelling of the location.
    """
    at, directory = table / "metadata/m.avro", table / "metadata"
    for roots in ([table.parent / "new", table], [table.parent / "new"]):
        first = version(at, *roots)
        directory.rename(table / "kept")
        directory.mkdir()
        directory.rmdir()
        (table / "kept").rename(directory)
        assert version(at, *roots) != first


def test_links_and_missing_files_have_no_version(table: Path) -> None:
    """A link, a file behind a link below the root, a directory, and a missing file have no version."""
    (table / "metadata/link.avro").symlink_to(table / "metadata/m.avro")
    (table / "linked").symlink_to(table / "metadata")
    for name in ("metadata/link.avro", "linked/old/m.avro", "metadata/old", "metadata/none.avro"):
        assert version(table / name, table) is None, name


def test_an_object_that_is_written_again_has_another_version() -> None:
    """In an object store the version of an object is equal until it is written again; a missing one has none."""
    with objects() as store:
        root, at = f"s3://{BUCKET}/table", f"s3://{BUCKET}/table/metadata/m.avro"
        client = store.client()
        client.put_object(Bucket=BUCKET, Key="table/metadata/m.avro", Body=b"manifest")
        first = file_versions([at], store.properties, roots=[root])
        assert file_versions([at], store.properties, roots=[root]) == first != {at: None}
        client.put_object(Bucket=BUCKET, Key="table/metadata/m.avro", Body=b"other bytes")
        second = file_versions([at], store.properties, roots=[root])
        client.delete_object(Bucket=BUCKET, Key="table/metadata/m.avro")
        client.close()

        assert first != second
        assert file_versions([at], store.properties, roots=[root]) == {at: None}
