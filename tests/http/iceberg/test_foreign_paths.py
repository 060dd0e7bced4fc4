# SPDX-License-Identifier: Apache-2.0
"""Paths elsewhere, and names of classes, in tables' documents: refused by every route that changes a document."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

import pytest

from tests.http.driver import API, DriverAnswer, DriverNode
from tests.http.iceberg import wire
from tests.http.iceberg.wire import (
    ROOT,
    commit,
    creation,
    error_of,
    make_table,
    metadata_of,
    point,
    space_path,
    table_path,
)

ELSEWHERE = (
    "file:///etc/passwd",
    "http://127.0.0.1:9/x",
    "s3://bucket/x",
    "{victim}/metadata/x",
    "{own}/../x",
    "{own}/%2e%2e/x",
    "x",
    "{own}",
)
TIMER = "java.util.Timer"


@pytest.fixture
def lake(node: DriverNode) -> DriverNode:
    """A node with the tables a.t and a.victim."""
    make_table(node, "a", "t")
    make_table(node, "a", "victim")
    return node


def spelled(node: DriverNode) -> list[str]:
    """Return the paths that are not below the location of a.t."""
    own, victim = (str(metadata_of(node, "a", name)["location"]) for name in ("t", "victim"))
    return [each.format(own=own, victim=victim) for each in ELSEWHERE]


def additions(path: str) -> list[list[object]]:
    """Return the updates that name a path: a manifest list, statistics and partition statistics."""
    statistics = {"snapshot-id": 100, "statistics-path": path, "file-size-in-bytes": 1}
    more = {"file-footer-size-in-bytes": 1, "blob-metadata": []}
    return [
        [wire.snapshot(1, manifest_list=path), point(1)],
        [{"action": "set-statistics", "snapshot-id": 100, "statistics": statistics | more}],
        [{"action": "set-partition-statistics", "partition-statistics": statistics}],
    ]


def refused(answer: DriverAnswer, path: str) -> None:
    """Check that an answer refuses a path and names it."""
    status, kind, message = error_of(answer)
    assert (status, kind) == (400, "IllegalArgumentException")
    assert "is not below a location of the table" in message
    assert path[:100] in message


def test_commits_of_foreign_paths_are_refused(lake: DriverNode) -> None:
    """A commit that names a path elsewhere is refused, alone, as a large body, and in a transaction."""
    padding = {"action": "set-properties", "updates": {"k": "x" * (1 << 17)}}
    for path in spelled(lake):
        for updates in additions(path):
            refused(commit(lake, "a", "t", updates=updates), path)
            refused(commit(lake, "a", "t", updates=[padding, *updates]), path)
            change = {"identifier": {"namespace": ["a"], "name": "t"}, "requirements": [], "updates": updates}
            both = lake.post(f"{ROOT}/transactions/commit", {"table-changes": [change]})
            assert both.status == 400
            assert "is not below a location of the table" in both.body.decode()
    assert "snapshots" not in metadata_of(lake, "a", "t") or metadata_of(lake, "a", "t")["snapshots"] == []


def test_escaped_words_of_a_large_body_are_read(lake: DriverNode) -> None:
    """A large body whose words are escaped in JSON is read like any other."""
    updates = [{"action": "set-properties", "updates": {"k": "x" * (1 << 17)}}, *additions("file:///etc/passwd")[0]]
    body = json.dumps({"requirements": [], "updates": updates}).replace("add-snapshot", "add\\u002dsnapshot").encode()

    refused(lake.ask("POST", table_path("a", "t"), body), "file:///etc/passwd")


def test_inline_manifests_elsewhere_are_refused(lake: DriverNode) -> None:
    """A snapshot of format version 1 names its manifests itself."""
    make_table(lake, "a", "v1", properties={"format-version": "1"})
    own = metadata_of(lake, "a", "v1")["location"]
    added: dict[str, Any] = wire.snapshot(1)  # type: ignore[assignment]
    for names, status in (([f"{own}/m.avro"], 200), ([f"{own}/m.avro", "/etc/passwd"], 400)):
        snapshot = {
            key: value for key, value in added["snapshot"].items() if key not in ("manifest-list", "sequence-number")
        }
        update = {"action": "add-snapshot", "snapshot": snapshot | {"manifests": names, "snapshot-id": 500 + status}}
        assert commit(lake, "a", "v1", updates=[update]).status == status


def test_a_location_that_a_commit_only_passes_through_gives_nothing(lake: DriverNode) -> None:
    """A commit cannot set another table's location, name its files, and set its own location again."""
    own, victim = (str(metadata_of(lake, "a", name)["location"]) for name in ("t", "victim"))
    path = f"{victim}/metadata/snap.avro"
    updates = [
        {"action": "set-location", "location": victim},
        *additions(path)[0],
        {"action": "set-location", "location": own},
    ]

    refused(commit(lake, "a", "t", updates=updates), path)


def test_own_earlier_and_new_locations_are_accepted(lake: DriverNode) -> None:
    """Paths below the table's location, an earlier one, a data path, and a location that the commit sets, are
    accepted.
    """
    own = str(metadata_of(lake, "a", "t")["location"])
    warehouse = own.rpartition("/")[0]
    moved, data = f"{warehouse}/moved", f"{warehouse}/data-of-t"
    paths = (
        f"{own}/metadata/1",
        f"{moved}/metadata/2",
        f"{own}/metadata/3",
        f"{data}/4",
        f"file:{moved.removeprefix('file://')}/5",
    )
    more = ([], [{"action": "set-location", "location": moved}], [], [wire.set_properties(write_data_path=data)], [])
    for number, (path, before) in enumerate(zip(paths, more, strict=True), 1):
        updates = [*before, wire.snapshot(number, manifest_list=path, parent=number - 1 or None), point(number)]
        assert commit(lake, "a", "t", updates=updates).status == 200


def test_staged_creates_of_foreign_paths_are_refused(lake: DriverNode) -> None:
    """The commit of a staged create names files below the location that it sets."""
    own = str(metadata_of(lake, "a", "t")["location"])
    for path in spelled(lake):
        updates = [*creation(f"{own}-new"), *additions(path)[0]]
        refused(commit(lake, "a", "new", updates=updates, requirements=[{"type": "assert-create"}]), path)


def register(node: DriverNode, *, more: dict[str, object], name: str = "r", overwrite: bool = False) -> DriverAnswer:
    """Register a copy of the metadata of the table a.t, which is unregistered first unless it is to be replaced."""
    loaded = node.get(table_path("a", "t")).json()
    if not overwrite:
        own = "/api/limnos/v1/metalakes/lake/catalogs/main/tables/unregister"
        node.post(f"{own}?table=a.t")
    file = wire.local(loaded["metadata-location"]).parent / "00009-x.metadata.json"
    file.write_text(json.dumps(loaded["metadata"] | more))
    body = {"name": name, "metadata-location": f"file://{file}", "overwrite": overwrite}
    return node.post(f"{space_path('a')}/register", body)


@pytest.mark.parametrize("size", [1, 1 << 17])
def test_documents_with_foreign_paths_are_not_registered(lake: DriverNode, size: int) -> None:
    """A metadata file that names a path elsewhere is registered neither as a new table nor in place of another's."""
    snapshot: dict[str, Any] = wire.snapshot(1)["snapshot"]  # type: ignore[assignment]
    numbered = {"last-sequence-number": snapshot["sequence-number"]}
    for path in spelled(lake):
        partition_statistics = {"snapshot-id": 100, "statistics-path": path, "file-size-in-bytes": 1}
        statistics = partition_statistics | {"file-footer-size-in-bytes": 1, "blob-metadata": []}
        for more in (
            numbered | {"snapshots": [snapshot | {"manifest-list": path}]},
            {"metadata-log": [{"timestamp-ms": 1, "metadata-file": path}]},
            {"statistics": [statistics]},
            {"partition-statistics": [partition_statistics]},
        ):
            refused(register(lake, more=more | {"properties": {"k": "x" * size}}, name="t", overwrite=True), path)
    own = metadata_of(lake, "a", "t")["location"]
    fine = numbered | {"snapshots": [snapshot | {"manifest-list": f"{own}/metadata/1"}]}
    assert register(lake, more=fine, name="t", overwrite=True).status == 200


def test_properties_that_name_classes_are_refused_by_every_route(lake: DriverNode) -> None:
    """A table gets no property that names a class: by create, commit, transaction, staged create, register, and
    Gravitino REST.
    """
    named = {"write.location-provider.impl": TIMER}
    body = {"name": "n", "schema": wire.SCHEMA, "properties": named}
    staged = {**body, "stage-create": True}
    update = {"action": "set-properties", "updates": named}
    change = {"identifier": {"namespace": ["a"], "name": "t"}, "requirements": [], "updates": [update]}
    own = str(metadata_of(lake, "a", "t")["location"])
    tables = f"{API}/lake/catalogs/main/schemas/a/tables"
    gravitino = {"name": "n", "columns": [{"name": "id", "type": "long", "nullable": True}], "properties": named}
    answers = [
        lake.post(f"{space_path('a')}/tables", body),
        lake.post(f"{space_path('a')}/tables", staged),
        commit(lake, "a", "t", updates=[update]),
        commit(lake, "a", "t", updates=[{"action": "set-properties", "updated": named}]),
        commit(lake, "a", "t", updates=[update, wire.set_properties(k="x" * (1 << 17))]),
        lake.post(f"{ROOT}/transactions/commit", {"table-changes": [change]}),
        commit(lake, "a", "n", updates=[*creation(f"{own}-n"), update], requirements=[{"type": "assert-create"}]),
        register(lake, more={"properties": named}, name="t", overwrite=True),
        lake.post(tables, gravitino),
        lake.put(f"{tables}/t", {"updates": [{"@type": "setProperty", "property": "io-impl", "value": TIMER}]}),
    ]

    for answer in answers:
        assert answer.status == 400, answer.body
        assert "names a class or a setting" in answer.body.decode()


def test_views_name_no_classes(lake: DriverNode) -> None:
    """A view gets no property that names a class: by create, replace, register, and Gravitino REST. Spark's own
    property of views is allowed.
    """
    views = f"{space_path('a')}/views"
    own = {"spark.query-column-names": "id"}
    assert lake.post(views, wire.view_body("v", properties=own)).status == 200
    location = str(lake.get(f"{views}/v").json()["metadata"]["location"])
    document = lake.get(f"{views}/v").json()["metadata"]
    named = {"io-impl": TIMER}
    file = f"{location}/metadata/00009-x.metadata.json"
    wire.local(file).write_text(json.dumps({**document, "view-uuid": str(uuid4()), "properties": named}))
    update = {"action": "set-properties", "updates": named}
    answers = [
        lake.post(views, wire.view_body("w", properties=named)),
        lake.post(f"{views}/v", {"requirements": [], "updates": [update]}),
        lake.post(f"{views}/v", {"requirements": [], "updates": [{"action": "set-properties", "updated": named}]}),
        lake.post(f"{space_path('a')}/register-view", {"name": "w", "metadata-location": file}),
        lake.put(
            f"{API}/lake/catalogs/main/schemas/a/views/v",
            {"updates": [{"@type": "setProperty", "property": "io-impl", "value": TIMER}]},
        ),
    ]

    for answer in answers:
        assert answer.status == 400, answer.body
        assert "of a view names a class or a setting" in answer.body.decode(), answer.body
    assert lake.post(f"{views}/v", {"requirements": [], "updates": [{**update, "updates": own}]}).status == 200


def test_catalogs_name_no_classes(lake: DriverNode) -> None:
    """A catalog is created and altered without properties that name classes, except Iceberg's own file access."""
    catalogs = f"{API}/lake/catalogs"
    body = {"name": "c", "type": "RELATIONAL", "provider": "lakehouse-iceberg", "properties": {"io-impl": TIMER}}
    change = {"updates": [{"@type": "setProperty", "property": "io-impl", "value": TIMER}]}
    own = {"updates": [{"@type": "setProperty", "property": "io-impl", "value": "org.apache.iceberg.aws.s3.S3FileIO"}]}

    for answer in (lake.post(catalogs, body), lake.put(f"{catalogs}/main", change)):
        assert answer.status == 400
        assert "names a class or a setting" in answer.body.decode()
    assert lake.put(f"{catalogs}/main", own).status == 200
    assert lake.get("/iceberg/v1/config?warehouse=lake/main").json()["defaults"]["io-impl"].endswith("S3FileIO")
