# SPDX-License-Identifier: Apache-2.0
"""A check of a table's files reports missing files and wrong lengths, request by request, on a disk and in an object
store; it reads no other files.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from limnos.config.storage import StorageSection
from limnos.services.iceberg import table_checks
from tests.http.driver import API, OWN, DriverNode, grant, node_at
from tests.http.iceberg import wire
from tests.http.iceberg.test_added_files import Writer
from tests.http.iceberg.test_plans import steer
from tests.iceberg_manifests import DELETED, EXISTING, data_file, entry, listed, manifest, manifest_list
from tests.objects import BUCKET, ObjectStoreServer, RequestFault, objects

pytestmark = pytest.mark.slow

CHECK = f"{OWN}/metalakes/lake/catalogs/main/tables/check"
Finding = tuple[str, str, str]


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Writer]:
    """A table with two snapshots, each of which adds a file. Over SQLite only: checks do not depend on the database."""
    with wire.node_over(tmp_path) as node:
        writer = Writer(node)
        steer(node, check_added_files=False)
        lists = []
        for number, name in enumerate(("one", "two")):
            size = wire.local(writer.file(f"{name}.parquet")).stat().st_size
            file = data_file(f"{writer.location}/data/{name}.parquet", file_size_in_bytes=size)
            lists.append(writer.manifest(f"{name}.avro", [entry(file)]))
            assert writer.send(*lists).status == 200
            writer.snapshots = number + 1
        yield writer


def checked(node: DriverNode, query: str = "", *, table: str = "a.t") -> dict[str, Any]:
    """Return the answer to one request of the check."""
    answer = node.get(f"{CHECK}?table={table}{query}")
    assert answer.status == 200, answer.body
    return answer.json()  # type: ignore[no-any-return]


def findings(node: DriverNode, query: str = "", *, table: str = "a.t") -> list[Finding]:
    """Return the findings of the check: kinds, problems and names."""
    findings_json = checked(node, query, table=table)["findings"]
    assert all(each["told"] for each in findings_json)
    return [(each["kind"], each["problem"], each["file"].rpartition("/")[2]) for each in findings_json]


def test_complete_table_has_no_findings(table: Writer) -> None:
    """A complete table has no findings. Each file is counted once, even if all snapshots are checked."""
    assert checked(table.node) == {"files": 6, "findings": [], "after": None}
    assert checked(table.node, "&snapshots=all") == {"files": 7, "findings": [], "after": None}


def test_missing_and_truncated_files_are_reported_by_kind(table: Writer) -> None:
    """Missing files and wrong lengths are reported by kind and snapshot; files removed from the snapshot are not
    checked.
    """
    node, place = table.node, table.location
    dropped = entry(data_file(f"{place}/data/dropped.parquet"), status=DELETED, snapshot=1, sequence=1)
    cut = entry(data_file(table.file("cut.parquet"), file_size_in_bytes=900), status=EXISTING, snapshot=1, sequence=1)
    deletes = data_file(f"{place}/data/gone.puffin", content=1, file_format="PUFFIN")
    longer = table.manifest("longer.avro", [dropped, cut])
    wire.local(f"{place}/metadata/longer.avro").write_bytes(
        wire.local(f"{place}/metadata/longer.avro").read_bytes() + b""
    )
    manifests = [
        {**longer, "manifest_length": 1},
        table.manifest("deletes.avro", [entry(deletes), entry(deletes)], deletes=True),
        listed(f"{place}/metadata/none.avro", b"", snapshot=300),
        listed(table.write("odd.avro", b"odd"), b"odd", snapshot=300),
    ]
    stats = {
        "snapshot-id": 300,
        "statistics-path": f"{place}/metadata/s.puffin",
        "file-size-in-bytes": 9,
        "file-footer-size-in-bytes": 5,
        "blob-metadata": [],
    }
    updates = [*table.updates(*manifests), {"action": "set-statistics", "statistics": stats}]
    assert wire.commit(node, "a", "t", updates=updates).status == 200

    assert findings(node) == [
        ("statistics", "missing", "s.puffin"),
        ("manifest", "size", "longer.avro"),
        ("file", "size", "cut.parquet"),
        ("file", "missing", "gone.puffin"),
        ("manifest", "missing", "none.avro"),
        ("manifest", "unreadable", "odd.avro"),
    ]
    sizes = [(each["size_told"], each["size_found"]) for each in checked(node)["findings"]]
    assert sizes[2] == (900, 4)
    wire.local(f"{place}/metadata/l3.avro").unlink()
    assert findings(node)[1:] == [("manifest list", "missing", "l3.avro")]
    metadata = wire.metadata_of(node, "a", "t")
    assert metadata["current-snapshot-id"] == 300
    wire.local(node.get(wire.table_path("a", "t")).json()["metadata-location"]).unlink()
    assert findings(node)[0][:2] == ("metadata", "missing")


def test_all_snapshots_are_checked_on_request(table: Writer) -> None:
    """A missing older manifest list is found when all snapshots are checked; a file of both snapshots is reported
    once.
    """
    wire.local(f"{table.location}/metadata/l1.avro").unlink()
    assert findings(table.node) == []
    assert findings(table.node, "&snapshots=all") == [("manifest list", "missing", "l1.avro")]
    wire.local(f"{table.location}/data/two.parquet").unlink()
    assert findings(table.node, "&snapshots=all")[1:] == findings(table.node) == [("file", "missing", "two.parquet")]


def test_slices_check_each_file_once(table: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each slice returns the position of the next one. Together they check each file once, for every slice size."""
    many = [entry(data_file(f"{table.location}/data/{number}.parquet")) for number in range(7)]
    assert table.send(table.manifest("a.avro", many[:4]), table.manifest("b.avro", many[4:])).status == 200
    expected = [("file", "missing", f"{number}.parquet") for number in range(7)]
    assert findings(table.node) == expected
    for size in (1, 2, 3):
        monkeypatch.setattr(table_checks.table_check, "__kwdefaults__", {"files_max": size})
        monkeypatch.setattr(table_checks, "_FILES_AT_A_TIME", 2)
        all_findings, after, slices, files = [], "", 0, 0
        while after is not None:
            part = checked(table.node, f"&after={after}")
            all_findings += [
                (each["kind"], each["problem"], each["file"].rpartition("/")[2]) for each in part["findings"]
            ]
            after, slices, files = part["after"], slices + 1, files + part["files"]
        assert (all_findings, files) == (expected, 11)
        assert 11 // (size + 2) <= slices <= 11


def test_slow_slice_ends_after_at_least_one_manifest(table: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A slice that takes too long ends after at least one manifest, so that the check makes progress."""
    monkeypatch.setattr(table_checks, "SLICE_S", -1.0)
    first = checked(table.node)
    second = checked(table.node, f"&after={first['after']}")

    assert first["after"].endswith(".200.1.0")
    assert second["after"] is None


def test_snapshot_expired_during_the_check_is_handled(table: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the checked snapshot expires during the check, the next slice says to start again. A check of all snapshots
    continues with the remaining ones.
    """
    monkeypatch.setattr(table_checks, "SLICE_S", -1.0)
    after = checked(table.node)["after"]
    first = checked(table.node, "&snapshots=all")["after"]
    assert table.send().status == 200
    remove_snapshots = {"action": "remove-snapshots", "snapshot-ids": [100, 200]}
    assert wire.commit(table.node, "a", "t", updates=[remove_snapshots]).status == 200

    answer = table.node.get(f"{CHECK}?table=a.t&after={after}")
    assert (answer.status, b"start the check again" in answer.body) == (400, True)
    assert checked(table.node, f"&snapshots=all&after={first}")["findings"] == []
    for odd in ("x", "1.2.3", "1.2.-3.4", "1.2.3.4.5", "9" * 101):
        assert table.node.get(f"{CHECK}?table=a.t&after={odd}").status == 400, odd


def test_files_outside_the_table_are_reported_but_not_read(table: Writer) -> None:
    """Files in other tables' locations are reported as outside, and the storage is not asked for them. Files at earlier
    locations of the table are checked.
    """
    node = table.node
    other = str(wire.make_table(node, "a", "u")["metadata"]["location"])  # type: ignore[index]
    wire.local(f"{other}/data").mkdir(exist_ok=True)
    wire.local(f"{other}/data/there.parquet").write_bytes(b"PAR1")
    files = [entry(data_file(f"{other}/data/{name}.parquet")) for name in ("there", "gone")]
    assert (
        table.send(table.manifest("m.avro", files), listed(f"{other}/metadata/m.avro", b"", snapshot=300)).status == 200
    )
    assert findings(node) == [
        ("file", "outside", "there.parquet"),
        ("file", "outside", "gone.parquet"),
        ("manifest", "outside", "m.avro"),
    ]

    moved = {"action": "set-location", "location": f"{table.location}-moved"}
    assert wire.commit(node, "a", "t", updates=[moved]).status == 200
    assert {each[1] for each in findings(node, "&snapshots=all")} == {"outside"}


def test_check_needs_the_rights_to_modify_and_to_read_the_table(table: Writer) -> None:
    """A check needs the right to modify the table, and that to read it, since names of files have values of partitions;
    restricted users are refused.
    """
    both = "modify_table select_table"
    for user, privileges in (("wes", both), ("mod", "modify_table"), ("rita", "select_table"), ("bo", both)):
        grant(table.node, user, f"use_catalog use_schema {privileges}", kind="CATALOG", on="main")
    restriction = {"filter": "id > 5", "to": {"users": ["bo"]}}
    answer = table.node.ask("PUT", f"{OWN}/metalakes/lake/objects/table/main.a.t/restrictions/few", restriction)
    assert answer.status in (200, 201, 204), answer.body

    statuses = {each: table.node.get(f"{CHECK}?table=a.t", user=each).status for each in ("wes", "mod", "rita", "bo")}

    assert statuses == {"wes": 200, "mod": 403, "rita": 403, "bo": 403}


def test_table_of_another_format_is_refused(table: Writer) -> None:
    """A table of another format is refused by its format, and a path without a namespace is 404."""
    node = table.node
    body = {"name": "vectors", "type": "relational", "provider": "lakehouse-generic", "properties": {}}
    node.done("POST", f"{API}/lake/catalogs", body)

    assert node.get(f"{CHECK.replace('main', 'vectors')}?table=a.t").status == 404
    assert node.get(f"{CHECK}?table=t").status == 404
    assert node.get(f"{CHECK}?table=a.t&snapshots=some").status == 400


@pytest.mark.integration  # an object store is served
def test_files_on_s3_are_checked(tmp_path: Path) -> None:
    """Files on S3 are checked, too. An error of the store fails the check and is not a finding."""
    with objects() as store:
        storage = StorageSection(allowed_roots=("s3://lake",), allowed_endpoints=(store.uri,), timeout_s=60.0)
        with node_at(tmp_path / "data", storage=storage) as node:
            properties = {**store.properties, "warehouse": "s3://lake/checked"}
            body = {"name": "cloud", "type": "relational", "provider": "lakehouse-iceberg", "properties": properties}
            node.done("POST", f"{API}/lake/catalogs", body)
            root = "/iceberg/v1/lake.cloud"
            node.done("POST", f"{root}/namespaces", {"namespace": ["a"]})
            created_table = node.done(
                "POST", f"{wire.space_path('a', root=root)}/tables", {"name": "t", "schema": wire.SCHEMA}
            )
            place = created_table["metadata"]["location"]  # type: ignore[index]
            _commit_to(store, node, place=place, path=wire.table_path("a", "t", root=root))
            check = f"{CHECK.replace('main', 'cloud')}?table=a.t"

            report = node.get(check).json()
            assert [(each["problem"], each["file"]) for each in report["findings"]] == [
                ("size", f"{place}/data/cut.parquet"),
                ("missing", f"{place}/data/gone.parquet"),
            ]
            assert report["files"] == 6
            store.trouble = RequestFault(method="HEAD", pattern="data/a.parquet", status="403 Forbidden")
            assert node.get(check).status == 502


def _commit_to(store: ObjectStoreServer, node: DriverNode, *, place: str, path: str) -> None:
    """Add a snapshot of three files to a table: one exists, one is longer than stated, one is missing."""

    def put(name: str, data: bytes) -> str:
        store.client().put_object(Bucket=BUCKET, Key=f"{place.removeprefix(f's3://{BUCKET}/')}/{name}", Body=data)
        return f"{place}/{name}"

    files = [
        data_file(put("data/a.parquet", b"PAR1"), file_size_in_bytes=4),
        data_file(put("data/cut.parquet", b"PAR"), file_size_in_bytes=4),
        data_file(f"{place}/data/gone.parquet"),
    ]
    data = manifest([entry(each) for each in files])
    row = listed(put("metadata/m.avro", data), data, snapshot=100)
    snapshot_update = wire.snapshot(1, manifest_list=put("metadata/l.avro", manifest_list([row])))
    answer = node.ask("POST", path, {"requirements": [], "updates": [snapshot_update, wire.point(1)]})
    assert answer.status == 200, answer.body
