# SPDX-License-Identifier: Apache-2.0
"""The metadata document as a whole."""

from __future__ import annotations

import gzip

import pytest

from limnos.formats.iceberg import metadata
from limnos.formats.iceberg.json_types import Json
from limnos.model.errors import BadRequest
from tests.formats.iceberg.samples import (
    LOCATION,
    add,
    appended,
    commit,
    ids,
    legacy,
    ref,
    schema,
    steps,
    table,
)


def test_round_trip_keeps_everything() -> None:
    """Decoding and encoding change no byte: order, unknown fields and large integers are kept."""
    data = b'{"z":9223372036854775807,"a":123456789012345678901234567890,"x":{"y":[1,null,true,1.5,"\xc3\xa9"]}}'

    again = metadata.encode(metadata.decode(data))

    assert again == data


def test_gzip_is_decoded() -> None:
    """A compressed metadata file is read like an uncompressed one."""
    assert metadata.decode(gzip.compress(b'{"a":1}', mtime=0)) == {"a": 1}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[1]",
        b"null",
        b'"x"',
        b"\xff\xfe",
        b'{"a":"\xff"}',
        b'{"a":NaN}',
        b"[" * 100000,
        b'{"a":1e999}',
        b"\x1f\x8b",
        b"\x1f\x8bnonsense",
        gzip.compress(b'{"a":1}', mtime=0)[:-4],
    ],
)
def test_bytes_other_than_json_object_are_refused(data: bytes) -> None:
    """Bytes that are not one JSON object are BadRequest."""
    with pytest.raises(BadRequest) as caught:
        metadata.decode(data)

    assert caught.value.message.startswith("Table metadata")


def test_file_name_has_version_uuid_and_codec() -> None:
    """A file name has five digits, a uuid and the suffix of its compression."""
    assert metadata.file_name(7, uuid="u", gzip=False) == "00007-u.metadata.json"
    assert metadata.file_name(123456, uuid="u", gzip=True) == "123456-u.gz.metadata.json"


@pytest.mark.parametrize(
    "location,version",
    [
        (None, -1),
        ("s3://a/metadata/00041-u.metadata.json", 41),
        ("file:/a-b/metadata/00000-u.gz.metadata.json", 0),
        ("00003-u.metadata.json", 3),
        ("s3://a/v12.metadata.json", 0),
        ("s3://a/٣-u.metadata.json", 0),
        (f"s3://a/{'9' * 5000}-u.metadata.json", 0),
        ("", 0),
    ],
)
def test_version_is_parsed_from_file_name(location: str | None, version: int) -> None:
    """A file's version is the number at the beginning of its name, 0 without a number, and -1 without a file."""
    assert metadata.version_of(location) == version


def test_metadata_directory_follows_property() -> None:
    """Metadata files are below the table's location unless a property names another directory."""
    plain, moved = table(), table(properties={"write.metadata.path": "s3://other/place/"})

    assert metadata.metadata_directory(plain) == f"{LOCATION}/metadata"
    assert metadata.metadata_directory(moved) == "s3://other/place"


@pytest.mark.parametrize(
    "location,stripped",
    [
        ("s3://a/b//", "s3://a/b"),
        ("file:///", "file://"),
        ("file:/tmp/a", "file:/tmp/a"),
        ("/", "/"),
        ("s3://", "s3://"),
        ("s3:///", "s3://"),
        ("file:////", "file://"),
        ("//", "/"),
        ("a:/", "a:"),
        ("", ""),
    ],
)
def test_trailing_slashes_are_stripped(location: str, stripped: str) -> None:
    """Trailing slashes of locations are removed, but not those of a scheme."""
    assert metadata.strip_slash(location) == stripped


def test_compression_and_deletion_follow_properties() -> None:
    """Compression of metadata files and deletion of old ones follow table properties and are off by default."""
    properties = {"write.metadata.compression-codec": "GZIP", "write.metadata.delete-after-commit.enabled": "True"}
    plain, chosen = table(), table(properties=properties)

    assert not metadata.wants_gzip(plain)
    assert metadata.wants_gzip(chosen)
    assert not metadata.deletes_old_files(plain)
    assert metadata.deletes_old_files(chosen)


@pytest.mark.parametrize("text,versions_max", [("7", 7), ("0", 1), ("-3", 1), ("many", 100), ("9" * 5000, 100)])
def test_log_length_follows_its_property(text: str, versions_max: int) -> None:
    """The metadata log keeps as many entries as its property says, at least one, and the default number if the property
    is no number.
    """
    stored: Json = {"properties": {"write.metadata.previous-versions-max": text}}

    assert metadata.previous_versions_max(stored) == versions_max


def test_refs_only_keeps_heads() -> None:
    """With `refs` only, the document has only the snapshots that references name, with their statistics. Logs and times
    are unchanged.
    """
    base = commit(appended(3), ref(1, "old", "tag"), add(4, parent=3))
    stats: list[Json] = [{"snapshot-id": n * 100} for n in (1, 2, 3)]
    base = {**base, "statistics": stats, "partition-statistics": stats}
    before = metadata.encode(base)

    reduced = metadata.refs_only(base)

    assert ids(reduced, "snapshots", "snapshot-id") == [100, 300]
    assert ids(reduced, "statistics", "snapshot-id") == [100, 300]
    assert ids(reduced, "partition-statistics", "snapshot-id") == [100, 300]
    assert {**reduced, "snapshots": 0, "statistics": 0, "partition-statistics": 0} == {
        **base,
        "snapshots": 0,
        "statistics": 0,
        "partition-statistics": 0,
    }
    assert metadata.encode(base) == before


def test_refs_only_without_refs_keeps_the_current_snapshot() -> None:
    """A document from before references existed keeps its current snapshot."""
    base = appended(2)
    del base["refs"]

    reduced = metadata.refs_only(base)

    assert ids(reduced, "snapshots", "snapshot-id") == [200]


@pytest.mark.parametrize("current", [{}, {"current-snapshot-id": None}, {"current-snapshot-id": -1}])
def test_no_current_snapshot_has_three_forms(current: Json) -> None:
    """A missing, null or -1 current snapshot id means that there is no current snapshot."""
    assert metadata.current_snapshot_id(current) is None
    assert metadata.references(current) == {}


def test_legacy_document_is_read_with_lists() -> None:
    """A version 1 document of the first form is read with lists, ids from 1000 and a main branch. The document itself
    is not changed.
    """
    base = legacy()

    shaped = metadata.with_current_shape(base)

    assert base == legacy()
    assert shaped["schemas"] == [{**schema(), "schema-id": 0}]
    assert shaped["partition-specs"] == [
        {"spec-id": 0, "fields": [{"source-id": 1, "name": "id", "transform": "identity", "field-id": 1000}]}
    ]
    assert shaped["sort-orders"] == [{"order-id": 0, "fields": []}]
    assert shaped["refs"] == {"main": {"snapshot-id": 100, "type": "branch"}}
    assert [shaped[key] for key in ("current-schema-id", "default-spec-id", "last-partition-id", "owner")] == [
        0,
        0,
        1000,
        "ann",
    ]


def test_current_document_is_left_alone() -> None:
    """A document in the current form is returned unchanged."""
    base = appended(1)

    assert metadata.with_current_shape(base) is base


def test_trailing_slashes_are_stripped_in_one_step() -> None:
    """Normalizing a location with a hundred thousand trailing slashes takes no more calls than with one."""
    one, many = "s3://a/", "s3://a" + "/" * 100_000

    assert steps(lambda: metadata.strip_slash(many)) == steps(lambda: metadata.strip_slash(one))
