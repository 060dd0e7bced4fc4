# SPDX-License-Identifier: Apache-2.0
"""Verification of an Iceberg table's files, with hostile metadata and files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from limnos.spark.verification import tables
from limnos.spark.verification.storage import files_for
from limnos.spark.verification.tables import FINDINGS_MAX, MetadataCheck, metadata_differences, places_of
from tests.iceberg_manifests import data_file, entry, listed, manifest, manifest_list

if TYPE_CHECKING:
    from limnos.client.values import Json

STORED: Json = {
    "table-uuid": "a",
    "location": "file:///lake/t",
    "format-version": 2,
    "current-snapshot-id": 5,
    "last-updated-ms": 100,
    "last-sequence-number": 3,
}


class Table:
    """A table's directory, in which a test writes files."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def write(self, name: str, data: bytes) -> str:
        """Write a file. Returns its location."""
        (self.directory / name).write_bytes(data)
        return f"file://{self.directory}/{name}"

    def check(self, listing: bytes) -> MetadataCheck:
        """Check a table whose current snapshot has this manifest list."""
        metadata: Json = {
            **STORED,
            "location": f"file://{self.directory}",
            "snapshots": [{"snapshot-id": 5, "manifest-list": self.write("list", listing)}],
        }
        location = self.write("metadata.json", json.dumps(metadata).encode())
        return MetadataCheck(files_for(places_of(metadata), {}), metadata, metadata_location=location)

    def findings(self, listing: bytes) -> list[str]:
        """Return the findings of such a table."""
        check = self.check(listing)
        check.check_metadata()
        list(check.check_files(footers=True))
        return [each.finding for each in check.findings]


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """A table without files."""
    return Table(tmp_path)


@pytest.mark.parametrize(
    "change,finding",
    [
        ({}, []),
        ({"location": "/lake/t/"}, []),
        ({"table-uuid": "b"}, ["uuid differs"]),
        ({"location": "file:///lake/u"}, ["location differs"]),
        ({"table-uuid": "b", "location": "file:///lake/u"}, ["metadata file of another object"]),
        ({"format-version": 1}, ["format version differs"]),
        ({"current-snapshot-id": 4}, ["current snapshot differs"]),
        ({"current-snapshot-id": 4, "last-updated-ms": 99}, ["metadata file is older"]),
        ({"location": ["x"], "table-uuid": {"y": 1}}, ["metadata file of another object"]),
    ],
)
def test_differences_of_metadata_have_findings(change: Json, finding: list[str]) -> None:
    """Each difference between the store and the file has its own finding."""
    assert [each.finding for each in metadata_differences(STORED, {**STORED, **change})] == finding


@pytest.mark.parametrize(
    "change,values",
    [
        ({"table-uuid": "b"}, ("a", "b")),
        ({"location": "file:///lake/u"}, ("file:///lake/t", "file:///lake/u")),
        ({"format-version": 1}, ("2", "1")),
        ({"last-updated-ms": 99}, ("100", "99")),
    ],
)
def test_difference_expects_the_value_of_the_store(change: Json, values: tuple[str, str]) -> None:
    """The store's value is the expected one, and that of the file the actual one."""
    (finding,) = metadata_differences(STORED, {**STORED, **change})

    assert (finding.expected, finding.actual) == values


def test_table_without_snapshot_is_the_same_in_both_spellings() -> None:
    """A missing current snapshot equals -1."""
    written = {key: value for key, value in STORED.items() if key != "current-snapshot-id"}

    assert list(metadata_differences({**STORED, "current-snapshot-id": -1}, written)) == []


def test_manifest_list_that_names_itself_ends(table: Table) -> None:
    """A manifest list that names itself, and a manifest often, reads each file once."""
    own = f"file://{table.directory}/list"
    path = table.write("manifest", manifest([]))
    once = [listed(own, b"", snapshot=5), *[listed(path, manifest([]), snapshot=5) for _ in range(50)]]
    check = table.check(manifest_list(once))
    list(check.check_files(footers=False))

    assert {each.finding for each in check.findings} == {"manifest longer"}
    assert check.files == 3


def test_files_elsewhere_are_not_looked_at(table: Table) -> None:
    """A manifest that names files of others learns nothing about them."""
    names = ["/etc/passwd", f"file://{table.directory}/../x", "s3://bucket/file", "http://host/x", "relative"]
    data = manifest([entry(data_file(name)) for name in names])
    present = table.findings(manifest_list([listed(table.write("manifest", data), data, snapshot=5)]))

    assert present == ["data file outside of the location"] * len(names)


def test_findings_and_files_of_a_table_are_bounded(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table with very many lost files has a bounded number of findings; beyond a number of files the check ends."""
    data = manifest([entry(data_file(f"file://{table.directory}/{number}")) for number in range(FINDINGS_MAX + 50)])
    listing = manifest_list([listed(table.write("manifest", data), data, snapshot=5)])
    present = table.findings(listing)
    assert (len(present), present[-1]) == (FINDINGS_MAX + 1, "not checked")

    monkeypatch.setattr(tables, "FILES_MAX", 1)
    assert table.findings(listing).count("data file missing") == 0


def test_footer_with_other_rows_is_a_finding(table: Table) -> None:
    """A file of the stated size that is no Parquet file is unreadable."""
    location = table.write("file.parquet", b"x" * 1000)
    data = manifest([entry(data_file(location, file_format="PARQUET"))])
    present = table.findings(manifest_list([listed(table.write("manifest", data), data, snapshot=5)]))

    assert present == ["data file unreadable"]


def test_metadata_bomb_is_unreadable(table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """A metadata file that is too large, and one that is nested deeply, are findings."""
    check = table.check(b"")
    table.write("metadata.json", b"[" * 100_000)
    check.check_metadata()
    monkeypatch.setattr(tables, "METADATA_BYTES_MAX", 1_000)
    check.check_metadata()

    assert [each.finding for each in check.findings] == ["metadata file unreadable"] * 2
    assert "more than 1,000 bytes" in (check.findings[1].actual or "")
