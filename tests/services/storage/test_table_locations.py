# SPDX-License-Identifier: Apache-2.0
"""Names of files in the locations of a table: every spelling that some reader could follow elsewhere is refused."""

from __future__ import annotations

import pytest

from limnos.files import AllowedStorage
from limnos.services.storage.table_locations import TableLocations

ALLOWED = AllowedStorage(("file:///w", "s3://lake", "gs://lake", "abfs://"), own_directories=("file:///w/t/keep",))


@pytest.mark.parametrize(
    "location",
    [
        "file:///w/t/a",
        "file:/w/t/a",
        "/w/t/a",
        "/w/t//a",
        "/w/t/metadata/snap-1.avro",
        "/w/t/x=1/a b.parquet",
        "/w/t/%20",
        "/w/t/%61",
        "file:///w//t/a",
        "/w/old/data/1.parquet",
        "s3://lake/d/1",
        "s3a://lake/d/1",
        "s3n://lake/d/1",
        "S3://lake/d/1",
        "s3://lake//d/1",
        "/w/t/..a",
        "/w/t/...",
    ],
)
def test_files_below_a_location_are_covered(location: str) -> None:
    """A file below one of the locations is covered in each spelling with the same key."""
    assert TableLocations(("file:///w/t", "file:///w/old", "s3://lake/d"), ALLOWED).covers(location)


@pytest.mark.parametrize(
    "location",
    [
        "",
        "a",
        "a/b",
        "w/t/a",
        "/w/t",
        "/w/t/",
        "/w",
        "/w/tx/a",
        "/w/u/a",
        "/w/t/../u/a",
        "/w/t/./a",
        "/w/t/%2e%2e/u",
        "/w/t/%2E%2E/u",
        "/w/t/.%2e/u",
        "/w/t/%252e%252e/u",
        "/w/t/%25252e%25252e/u",
        "/w/t/a%2f..%2f..%2fu",
        "/w/t/%5c..%5cx",
        "file://host/w/t/a",
        "//w/t/a",
        "file:w/t/a",
        "file:///etc/passwd",
        "http://127.0.0.1/w/t/a",
        "https://h/w/t/a",
        "ftp://h/w/t/a",
        "hdfs://h/w/t/a",
        "webhdfs://h/w/t/a",
        "viewfs:///w/t/a",
        "jar:file:/w/t/a!/b",
        "s3://lake/dd/1",
        "s3://lake/d",
        "s3://lake2/d/1",
        "s3://lake/d/../e/1",
        "s3://lake/d/1?x",
        "s3://lake/d/1#x",
        "gs://lake/d/1",
        "abfs://lake/d/1",
        "s3://user@lake/d/1",
        "/w/t/a\x00b",
        "/w/t/a\nb",
        "/w/t/\ud800",
        "/w/t/keep/key",
        "file:///w/t/keep/key",
    ],
)
def test_files_elsewhere_are_not_covered(location: str) -> None:
    """A file elsewhere, or in a spelling that some reader could follow elsewhere, is not covered."""
    assert not TableLocations(("file:///w/t", "file:///w/old", "s3://lake/d"), ALLOWED).covers(location)


def test_storage_that_the_server_may_not_use_is_not_covered() -> None:
    """A location outside of the server's allowed storage covers nothing."""
    locations = TableLocations(("file:///elsewhere/t",), ALLOWED)

    assert not locations.covers("file:///elsewhere/t/a")
    assert locations.prefixes == ()
