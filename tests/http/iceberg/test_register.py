# SPDX-License-Identifier: Apache-2.0
"""POST register: existing metadata files become tables, other files are refused."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from tests.http.driver import DriverAnswer, DriverNode
from tests.http.iceberg.wire import (
    commit,
    error_of,
    local,
    make_space,
    make_table,
    metadata_of,
    nothing_done,
    set_properties,
    space_path,
    table_path,
)


def warehouse(node: DriverNode) -> Path:
    """The directory of the catalog's warehouse."""
    return node.data / "warehouse" / "main"


def register(node: DriverNode, name: str, location: object, **more: object) -> DriverAnswer:
    """Register a metadata file as a table of namespace `a`."""
    return node.post(f"{space_path('a')}/register", {"name": name, "metadata-location": str(location), **more})


def dropped_table(node: DriverNode) -> str:
    """Create a table with two metadata files and drop it. Returns the newest file."""
    make_table(node, "a", "gone")
    location = str(commit(node, "a", "gone", updates=[set_properties(k="v")])["metadata-location"])
    node.delete(table_path("a", "gone"))
    return location


def test_registered_table_has_uuid_and_history_of_the_file(lake: DriverNode) -> None:
    """A registered table has the file's UUID, location and history, and accepts commits."""
    location = dropped_table(lake)
    file = json.loads(local(location).read_bytes())

    registered = register(lake, "t", location)
    committed = commit(lake, "a", "t", updates=[set_properties(n="1")])

    assert (registered["metadata"], registered["metadata-location"]) == (file, location)
    assert lake.get(table_path("a", "t"), if_none_match=registered.headers["etag"]).status == 200
    assert local(committed["metadata-location"]).name.startswith("00002-")
    assert [entry["metadata-file"] for entry in committed["metadata"]["metadata-log"]][-1] == location


def test_unknown_fields_survive(lake: DriverNode) -> None:
    """Unknown fields in the file are returned by loads, and commits preserve them."""
    location = dropped_table(lake)
    file = json.loads(local(location).read_bytes()) | {"x-new": {"deep": [1, 2.5, None]}, "x-big": 2**62}
    local(location).write_text(json.dumps(file))

    register(lake, "t", location)
    commit(lake, "a", "t", updates=[set_properties(n="1")])

    assert metadata_of(lake, "a", "t").items() >= {"x-new": {"deep": [1, 2.5, None]}, "x-big": 2**62}.items()


def test_compressed_file_can_be_registered(node: DriverNode) -> None:
    """A compressed metadata file can be registered."""
    location = dropped_table(node)
    packed = local(location).with_name("00007-x.gz.metadata.json")
    packed.write_bytes(gzip.compress(local(location).read_bytes()))

    answer = register(node, "t", f"file://{packed}")

    assert answer["metadata"] == json.loads(local(location).read_bytes())


def test_existing_name_without_overwrite_returns_409(lake: DriverNode) -> None:
    """Without `overwrite`, registering under a name in use is refused with 409, and the table is unchanged."""
    location = dropped_table(lake)
    before = make_table(lake, "a", "t")

    answer = register(lake, "t", location)

    assert error_of(answer)[:2] == (409, "AlreadyExistsException")
    assert lake.get(table_path("a", "t")).json() == before


def test_overwrite_replaces_the_metadata_and_keeps_grants(lake: DriverNode) -> None:
    """With `overwrite` the table uses the file from then on, with the same grants and another ETag."""
    location = dropped_table(lake)
    make_table(lake, "a", "t")
    old = lake.get(table_path("a", "t")).headers["etag"]

    answer = register(lake, "t", location, overwrite=True)
    again = register(lake, "t", location, overwrite=True)
    fresh = register(lake, "u", f"{location}", overwrite=False)

    assert (answer.status, again.status) == (200, 200)
    assert answer["metadata-location"] == lake.get(table_path("a", "t"))["metadata-location"] == location
    assert lake.get(table_path("a", "t"), if_none_match=old).status == 200
    assert error_of(fresh)[:2] == (400, "IllegalArgumentException")
    assert "Another table is at location" in error_of(fresh)[2]


def test_overwrite_keeps_a_data_path_with_which_the_table_was_registered(lake: DriverNode) -> None:
    """A table that was registered with a data path in the directory of another namespace is registered again with it,
    by the same file.
    """
    location = dropped_table(lake)
    file = json.loads(local(location).read_bytes())
    file["properties"]["write.data.path"] = f"file://{warehouse(lake)}/n999999/rows"
    local(location).write_text(json.dumps(file))

    first = register(lake, "t", location)
    again = register(lake, "t", location, overwrite=True)

    assert (first.status, again.status) == (200, 200), again.body


def test_overwrite_of_a_missing_table_creates_it(node: DriverNode) -> None:
    """`overwrite` without an existing table creates one."""
    location = dropped_table(node)

    answer = register(node, "t", location, overwrite=True)

    assert answer.status == 200
    assert metadata_of(node, "a", "t") == answer["metadata"]


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize(
    "location", ["file:///etc/hostname", "s3://bucket/x.metadata.json", "{}/../x.json", "{}x/y.json"]
)
def test_file_outside_the_roots_is_refused_unread(node: DriverNode, location: str, overwrite: bool) -> None:
    """A file outside of the catalog's roots is refused without being read."""
    make_table(node, "a", "t")

    with nothing_done(node):
        answer = register(node, "t" if overwrite else "u", location.format(warehouse(node)), overwrite=overwrite)

    assert error_of(answer)[:2] == (400, "IllegalArgumentException")


def test_table_location_outside_the_roots_is_refused(node: DriverNode) -> None:
    """A file within the roots whose table location is outside of them is refused."""
    location = dropped_table(node)
    file = json.loads(local(location).read_bytes()) | {"location": "file:///elsewhere/t"}
    local(location).write_text(json.dumps(file))

    with nothing_done(node):
        answer = register(node, "t", location)

    assert error_of(answer)[:2] == (400, "IllegalArgumentException")
    assert "allowed-locations" in error_of(answer)[2]


@pytest.mark.parametrize("file_exists", [True, False])
@pytest.mark.parametrize("link", ["x.metadata.json", "deep/x.metadata.json"])
def test_symbolic_link_out_of_the_warehouse_looks_like_a_missing_file(
    node: DriverNode, link: str, file_exists: bool
) -> None:
    """A symbolic link out of the warehouse gets the same answer as a missing file, whether or not its target exists."""
    location = dropped_table(node)
    outside = node.data.parent / "outside" / "x.metadata.json"
    outside.parent.mkdir()
    if file_exists:
        outside.write_bytes(local(location).read_bytes())
    first = warehouse(node) / link.partition("/")[0]
    first.symlink_to(outside if first.suffix else outside.parent)

    with nothing_done(node):
        out = error_of(register(node, "t", f"file://{warehouse(node)}/{link}"))
    none = error_of(register(node, "t", f"file://{warehouse(node)}/none"))

    assert out == (404, "NotFoundException", none[2].replace("/none", f"/{link}"))


def test_symbolic_link_within_the_warehouse_is_followed(node: DriverNode) -> None:
    """A symbolic link within the warehouse is followed."""
    location = dropped_table(node)
    (warehouse(node) / "latest").symlink_to(local(location))

    assert register(node, "t", f"file://{warehouse(node)}/latest").status == 200


@pytest.mark.parametrize("place", ["none.metadata.json", "", "none/none.metadata.json"])
def test_missing_file_returns_404(node: DriverNode, place: str) -> None:
    """A missing file, or a directory, is 404 with the error type for files."""
    make_table(node, "a", "t")

    with nothing_done(node):
        answer = register(node, "u", f"file://{warehouse(node)}/{place}")

    assert error_of(answer)[:2] == (404, "NotFoundException")
    assert f"{warehouse(node)}" in error_of(answer)[2]


GARBAGE = {
    "empty": b"",
    "no JSON": b"PAR1\x00\x01",
    "no object": b"[1]",
    "cut off": b'{"format-version": 2, "loc',
    "deep": b"[" * 100_000,
    "broken gzip": b"\x1f\x8b\x08\x00junk",
    "no UTF-8": b'{"format-version": 2, "location": "\xff"}',
    "bare": b"{}",
    "another version": b'{"format-version": 9}',
    "a view": b'{"view-uuid": "x", "format-version": 1}',
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_file_without_table_metadata_returns_400(node: DriverNode, kind: str) -> None:
    """A file that is no table metadata is 400 with the reason, and no table is created."""
    make_space(node, "a")
    path = warehouse(node) / "x.metadata.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(GARBAGE[kind])

    with nothing_done(node):
        answer = register(node, "t", f"file://{path}")

    status, type_name, message = error_of(answer)
    assert (status, type_name) == (400, "IllegalArgumentException")
    assert "metadata" in message


@pytest.mark.parametrize(
    "change",
    [
        {"table-uuid": None},
        {"table-uuid": 7},
        {"table-uuid": "x\0y"},
        {"location": 7},
        {"location": ""},
        {"location": "x\0y"},
        {"schemas": {}},
        {"schemas": []},
        {"current-schema-id": 9},
        {"default-spec-id": "0"},
        {"snapshots": [{}]},
        {"current-snapshot-id": 5},
        {"refs": {"main": 1}},
        {"properties": {"a": 1}},
        {"last-updated-ms": -1},
        {"last-column-id": 2**40},
        {"metadata-log": [{"metadata-file": 1}]},
        {"last-sequence-number": None},
        {"format-version": "2"},
    ],
    ids=str,
)
def test_metadata_with_an_invalid_field_returns_400(lake: DriverNode, change: dict[str, object]) -> None:
    """On either store backend, metadata with an invalid field is refused with 400, and no table is created."""
    location = dropped_table(lake)
    local(location).write_text(json.dumps(json.loads(local(location).read_bytes()) | change))

    answer = register(lake, "t", location)

    assert error_of(answer)[:2] == (400, "IllegalArgumentException")
    assert lake.ask("HEAD", table_path("a", "t")).status == 404


def test_file_of_an_existing_table_cannot_be_registered_again(node: DriverNode) -> None:
    """A file of an existing table cannot be registered as a second table."""
    table = make_table(node, "a", "t")

    with nothing_done(node):
        answer = register(node, "u", table["metadata-location"])

    assert error_of(answer)[:2] == (400, "IllegalArgumentException")


def test_copied_metadata_file_keeps_its_original_location(node: DriverNode) -> None:
    """A copied metadata file is registered as the table that it describes, at the location that it contains."""
    location = dropped_table(node)
    copied = warehouse(node) / "copy.metadata.json"
    shutil.copy(local(location), copied)

    answer = register(node, "t", f"file://{copied}")

    assert answer["metadata-location"] == f"file://{copied}"
    assert answer["metadata"] == json.loads(local(location).read_bytes())


def legacy_table(node: DriverNode) -> str:
    """Write the metadata file of a version 1 table without a UUID, as old engines did. Returns its location."""
    location = f"file://{warehouse(node)}/old"
    file = {
        "format-version": 1,
        "location": location,
        "last-updated-ms": 1,
        "last-column-id": 1,
        "properties": {},
        "schema": {"type": "struct", "fields": [{"id": 1, "name": "c", "required": False, "type": "long"}]},
        "partition-spec": [],
        "current-snapshot-id": -1,
        "snapshots": [],
    }
    path = warehouse(node) / "old" / "metadata" / "v1.metadata.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(file))
    return f"file://{path}"


def test_version_1_table_without_uuid_gets_a_uuid(lake: DriverNode) -> None:
    """A version 1 table without a UUID gets a UUID, which clients can use in requirements."""
    make_space(lake, "a")

    registered = register(lake, "t", legacy_table(lake))
    assigned_uuid = registered["metadata"]["table-uuid"]
    seen = metadata_of(lake, "a", "t")["table-uuid"]
    holds = {"type": "assert-table-uuid", "uuid": assigned_uuid}
    committed = commit(lake, "a", "t", updates=[set_properties(n="1")], requirements=[holds])
    upgraded = commit(lake, "a", "t", updates=[{"action": "upgrade-format-version", "format-version": 2}])

    assert (registered.status, committed.status, upgraded.status) == (200, 200, 200)
    assert assigned_uuid == seen == committed["metadata"]["table-uuid"] == upgraded["metadata"]["table-uuid"]


@pytest.mark.parametrize(
    "change",
    [
        {
            "partition-specs": [
                {"spec-id": 0, "fields": [{"field-id": 1000, "name": "p", "transform": "identity", "source-id": [1]}]}
            ]
        },
        {
            "partition-specs": [
                {"spec-id": 0, "fields": [{"field-id": [1000], "name": "p", "transform": "identity", "source-id": 1}]}
            ]
        },
        {
            "partition-specs": [
                {"spec-id": 0, "fields": [{"field-id": 1000, "name": ["p"], "transform": "identity", "source-id": 1}]}
            ]
        },
        {
            "partition-specs": [
                {"spec-id": 0, "fields": [{"field-id": 1000, "name": "p", "transform": {}, "source-id": 1}]}
            ]
        },
        {
            "sort-orders": [
                {
                    "order-id": 0,
                    "fields": [
                        {"source-id": [1], "transform": "identity", "direction": "asc", "null-order": "nulls-first"}
                    ],
                }
            ]
        },
        {
            "sort-orders": [
                {
                    "order-id": 0,
                    "fields": [
                        {"source-id": 1, "transform": "identity", "direction": ["asc"], "null-order": "nulls-first"}
                    ],
                }
            ]
        },
    ],
    ids=str,
)
def test_partition_spec_or_sort_order_of_wrong_type_returns_400(node: DriverNode, change: dict[str, object]) -> None:
    """A list in place of a number or text in a partition spec or sort order is refused with 400, because later commits
    would fail.
    """
    location = dropped_table(node)
    local(location).write_text(json.dumps(json.loads(local(location).read_bytes()) | change))

    answer = register(node, "t", location)

    assert error_of(answer)[:2] == (400, "IllegalArgumentException")
