# SPDX-License-Identifier: Apache-2.0
"""Versions over Lance REST, of tables with and without managed versions."""

from __future__ import annotations

import os
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from limnos.model.permits import upkeep_permit
from limnos.store.sql import Sql
from limnos.store.tx import Tx
from tests.http.driver import DriverNode, grant
from tests.rooms.lance.http.wire import Json, commit, declare, failure_of, manifest, names, space, stage, table

ROWS = pa.table({"id": [1, 2]})
KEPT = {"managed_versioning": "true"}
AT = table("lance", "t")


def managed(node: DriverNode, **more: object) -> Json:
    """Create a table with managed versions."""
    return declare(node, "lance", "t", properties=KEPT, **more)


def listed(node: DriverNode, query: str = "") -> list[int]:
    """Return the listed versions."""
    return [each["version"] for each in node.done("POST", f"{AT}/version/list{query}", {})["versions"]]


def directory(declared: Json) -> Path:
    """Return the directory of a table's manifests."""
    return Path(str(declared["location"]).removeprefix("file://"), "_versions")


def test_managed_versions_are_committed_listed_and_described(lake: DriverNode) -> None:
    """Versions are committed in sequence, listed in both orders and in pages, and described by number."""
    declared = managed(lake)
    assert declared["managed_versioning"] is True
    assert listed(lake) == []

    for version in (1, 2, 3):
        answer = commit(lake, "lance", "t", location=declared["location"], version=version)
        assert answer.status == 200, answer.body

    assert listed(lake) == [1, 2, 3]
    assert listed(lake, "?descending=true") == [3, 2, 1]
    assert listed(lake, "?descending=true&limit=1") == [3]
    page = lake.done("POST", f"{AT}/version/list?limit=2", {})
    assert [each["version"] for each in page["versions"]] == [1, 2]
    assert listed(lake, f"?limit=2&page_token={page['page_token']}") == [3]
    told_of = lake.done("POST", f"{AT}/version/describe", {"version": 2})["version"]
    assert told_of["manifest_path"] == f"{str(directory(declared)).lstrip('/')}/{manifest(2)}"
    assert told_of["manifest_size"] == len(b"not readLANC")
    assert Path(f"/{told_of['manifest_path']}").read_bytes() == b"not readLANC"


def test_only_the_next_version_is_committed(lake: DriverNode) -> None:
    """A number other than the next one is a conflict that names the next; a repetition with the same file or bytes
    succeeds.
    """
    location = managed(lake)["location"]
    commit(lake, "lance", "t", location=location, version=1)
    commit(lake, "lance", "t", location=location, version=2)

    assert failure_of(commit(lake, "lance", "t", location=location, version=2, text=b"other", mark="x")) == (409, 14)
    assert failure_of(commit(lake, "lance", "t", location=location, version=4)) == (409, 14)
    assert commit(lake, "lance", "t", location=location, version=2).status == 200
    assert commit(lake, "lance", "t", location=location, version=2, mark="again").status == 200
    assert listed(lake) == [1, 2]


@pytest.mark.parametrize(
    "path",
    [
        "etc/passwd",
        "../x/_versions/18446744073709551614.manifest-a",
        "",
        "/",
        "{own}/data/18446744073709551614.manifest-a",
        "{own}/_versions/../../other/_versions/18446744073709551614.manifest-a",
        "{other}/_versions/18446744073709551614.manifest-a",
        "{own}/_versions/18446744073709551614.manifest",
        "{own}/_versions/18446744073709551614.manifest-missing",
        "{own}/_versions/18446744073709551613.manifest-two",
        "{own}/_versions/%2e%2e/18446744073709551614.manifest-a",
    ],
)
def test_a_manifest_that_is_not_the_tables_own_is_refused(node: DriverNode, path: str) -> None:
    """Only a staged manifest of this version, directly in the table's own directory, can be committed; otherwise
    nothing is stored.
    """
    declared = managed(node)
    other = declare(node, "lance", "other", properties=KEPT)
    for each in (declared, other):
        stage(each["location"], 1, mark="a")
    stage(declared["location"], 2, mark="two")
    own, beside = (str(each["location"]).removeprefix("file:///") for each in (declared, other))

    answer = node.post(f"{AT}/version/create", {"version": 1, "manifest_path": path.format(own=own, other=beside)})

    assert failure_of(answer) == (400, 13)
    assert listed(node) == []


def test_truncated_or_linked_manifest_is_refused(node: DriverNode, tmp_path: Path) -> None:
    """A manifest without its end, with another size than stated, or behind a link is refused."""
    declared = managed(node)
    path = stage(declared["location"], 1)
    secret = tmp_path / "secret"
    secret.write_bytes(b"secretLANC")
    (directory(declared) / f"{manifest(1)}-link").symlink_to(secret)

    def answer(**more: object) -> tuple[int, object]:
        return failure_of(node.post(f"{AT}/version/create", {"version": 1, "manifest_path": path, **more}))

    assert answer(manifest_size=3) == (400, 13)
    assert answer(manifest_path=path.replace("-s", "-link")) == (400, 13)
    Path(f"/{path}").write_bytes(b"cut off")
    assert answer() == (400, 13)
    assert listed(node) == []


def test_manifests_written_by_path_are_moved_aside(lake: DriverNode) -> None:
    """Manifests that were written by path, with numbers after the newest version, are moved aside before versions are
    listed or committed.
    """
    declared = managed(lake)
    rogue = directory(declared)
    rogue.mkdir(parents=True)
    (rogue / manifest(1)).write_bytes(b"rogue")
    assert listed(lake) == []
    assert not (rogue / manifest(1)).exists()
    (rogue / manifest(1)).write_bytes(b"rogue")
    assert names(lake.get(f"{space('lance')}/table/list?include_declared=false")) == []

    commit(lake, "lance", "t", location=declared["location"], version=1)
    for version in (2, 3):
        (rogue / manifest(version)).write_bytes(b"rogue")
    assert failure_of(lake.post(f"{AT}/version/describe", {"version": 2})) == (404, 11)
    assert listed(lake, "?descending=true&limit=1") == [1]
    (rogue / manifest(2)).write_bytes(b"rogue")
    assert commit(lake, "lance", "t", location=declared["location"], version=2).status == 200

    assert (rogue / manifest(2)).read_bytes() == b"not readLANC"
    assert len(list((rogue.parent / "_bypassed").iterdir())) == 5
    assert listed(lake) == [1, 2]


def test_manifest_without_its_final_name_is_restored(lake: DriverNode) -> None:
    """If a committed version's manifest lacks its final name, the next access restores it. An older version without a
    manifest is not listed.
    """
    declared = managed(lake)
    for version in (1, 2, 3):
        commit(lake, "lance", "t", location=declared["location"], version=version)
    (directory(declared) / manifest(3)).unlink()
    assert listed(lake) == [1, 2, 3]
    assert (directory(declared) / manifest(3)).exists()

    (directory(declared) / manifest(1)).unlink()

    assert listed(lake) == [2, 3]
    assert failure_of(lake.post(f"{AT}/version/describe", {"version": 1})) == (404, 11)
    for each in directory(declared).glob(f"{manifest(3)}*"):
        each.unlink()
    assert failure_of(lake.post(f"{AT}/version/list", {})) == (409, 19)


def test_registered_managed_table_takes_over_its_versions(node: DriverNode, tmp_path: Path) -> None:
    """A table that is registered with managed versions takes over its existing versions. Versions written later by path
    are ignored.
    """
    path = tmp_path / "data" / "warehouse" / "lance" / "old"
    for mode in ("create", "append"):
        lance.write_dataset(ROWS, str(path), mode=mode)
    node.done("POST", f"{AT}/register", {"location": str(path), "properties": KEPT})
    assert listed(node) == [1, 2]

    lance.write_dataset(ROWS, str(path), mode="append")

    assert listed(node) == [1, 2]
    assert lance.dataset(str(path)).version == 2


def test_catalog_property_enables_managed_versions_for_tables(node: DriverNode) -> None:
    """The catalog's property `lance.managed-versioning` applies to tables without their own."""
    node.done("POST", "/lance/v1/namespace/kept/create", {"properties": {"lance.managed-versioning": "true"}})

    assert declare(node, "kept", "t")["managed_versioning"] is True
    assert declare(node, "kept", "u", properties={"managed_versioning": "false"})["managed_versioning"] is False
    assert failure_of(node.post(f"{table('kept', 'v')}/declare", {"properties": {"managed_versioning": "yes"}})) == (
        400,
        13,
    )


def test_restored_table_has_its_versions(node: DriverNode) -> None:
    """A dropped table is restored with its versions. A new table of its name has none of them."""
    declared = managed(node)
    commit(node, "lance", "t", location=declared["location"], version=1)
    node.done("POST", f"{AT}/drop", {})
    managed(node)
    assert listed(node) == []
    node.done("POST", f"{AT}/drop", {})
    trash = "/api/limnos/v1/metalakes/lake/catalogs/lance/trash"
    first = node.get(trash).json()["trash"][-1]

    node.done("POST", f"{trash}/{first['id']}/undrop", {})

    assert listed(node) == [1]


def test_unmanaged_versions_are_listed_from_storage(node: DriverNode) -> None:
    """Versions of a table without managed versions are listed and described from its files, including those just
    written.
    """
    declared = declare(node, "lance", "t")
    assert listed(node) == []
    for mode in ("create", "append"):
        lance.write_dataset(ROWS, str(declared["location"]), mode=mode)

    assert listed(node) == [1, 2]
    assert listed(node, "?descending=true&limit=1") == [2]
    description = node.done("POST", f"{AT}/version/describe", {"version": 1})["version"]
    assert description["manifest_size"] == (directory(declared) / manifest(1)).stat().st_size
    assert failure_of(node.post(f"{AT}/version/describe", {"version": 9})) == (404, 11)
    assert failure_of(node.post(f"{AT}/version/list", {"branch": "dev"})) == (404, 22)
    assert failure_of(node.post(f"{AT}/version/list", {"branch": "../x"})) == (400, 13)


def test_unmanaged_commit_renames_the_staged_manifest(node: DriverNode) -> None:
    """A commit to a table without managed versions renames the staged manifest to its final name if that is unused."""
    declared = declare(node, "lance", "t")

    assert commit(node, "lance", "t", location=declared["location"], version=1).status == 200
    assert commit(node, "lance", "t", location=declared["location"], version=1).status == 200
    assert failure_of(commit(node, "lance", "t", location=declared["location"], version=1, text=b"other")) == (409, 14)
    assert failure_of(commit(node, "lance", "t", location=declared["location"], version=3)) == (409, 14)
    assert listed(node) == [1]


def test_staged_name_for_another_version_is_refused(lake: DriverNode) -> None:
    """A staged name for another number, or without one, is refused."""
    location = managed(lake)["location"]
    second = stage(location, 2)
    plain = Path("/", stage(location, 1))
    unnumbered = plain.with_name(f"{2**64:020d}.manifest-x")
    plain.rename(unnumbered)

    wrong = lake.post(f"{AT}/version/create", {"version": 1, "manifest_path": second})
    nameless = lake.post(f"{AT}/version/create", {"version": 1, "manifest_path": str(unnumbered).lstrip("/")})

    assert (failure_of(wrong), failure_of(nameless)) == ((400, 13), (400, 13))
    assert listed(lake) == []


def test_deleted_unsettled_manifest_is_not_listed_as_a_version(lake: DriverNode) -> None:
    """If the manifest of a version that has no final name was deleted, the version is not listed, and commits continue.
    If it is the newest version, commits are refused.
    """
    declared = managed(lake)
    for version in (1, 2, 3):
        commit(lake, "lance", "t", location=declared["location"], version=version)

    def unsettle(tx: Tx) -> None:
        tx.count(Sql("UPDATE lance_version SET settled = FALSE WHERE version > 1"), {})

    lake.runner.run(lake.built.services.store.submit(upkeep_permit("limnos"), unsettle))
    for each in directory(declared).glob(f"{manifest(2)}*"):
        each.unlink()

    assert listed(lake) == [1, 3]
    assert commit(lake, "lance", "t", location=declared["location"], version=4).status == 200
    assert listed(lake) == [1, 3, 4]
    for each in directory(declared).glob(f"{manifest(4)}*"):
        each.unlink()
    assert failure_of(commit(lake, "lance", "t", location=declared["location"], version=5)) == (409, 19)


@pytest.mark.parametrize("is_managed", [True, False])
def test_each_commit_writes_one_change_to_the_feed(lake: DriverNode, is_managed: bool) -> None:
    """Each committed version writes one change, with and without managed versions."""
    declared = managed(lake) if is_managed else declare(lake, "lance", "t")
    before = len(commits_told(lake))

    for version in (1, 2):
        assert commit(lake, "lance", "t", location=declared["location"], version=version).status == 200

    assert len(commits_told(lake)) == before + 2


def commits_told(node: DriverNode) -> list[Json]:
    """Return the table commits in the metalake's change feed."""
    changes = node.done("GET", "/api/limnos/v1/metalakes/lake/changes?after=oldest&limit=1000")["changes"]
    return [each for each in changes if each["operation"] == "commit"]


def test_version_page_reads_only_its_own_manifests(node: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a table without managed versions, the server reads sizes and times only of the manifests on the requested
    page.
    """
    declared = declare(node, "lance", "t")
    for version in range(1, 31):
        assert commit(node, "lance", "t", location=declared["location"], version=version).status == 200
    (directory(declared) / "notes").touch()
    read_names: list[str] = []
    look = os.lstat

    def lstat(path: str) -> os.stat_result:
        if "/_versions/" in str(path):
            read_names.append(Path(path).name)
        return look(path)

    monkeypatch.setattr(os, "lstat", lstat)

    def looked(*, done: object, expected: object) -> list[str]:
        assert done == expected
        names, read_names[:] = sorted(set(read_names)), []
        return names

    assert looked(done=listed(node, "?descending=true&limit=1"), expected=[30]) == [manifest(30)]
    newest = node.done("POST", f"{AT}/version/describe", {})["version"]
    assert looked(done=newest["version"], expected=30) == [manifest(30)]
    assert (newest["manifest_size"], newest["timestamp_millis"] > 0) == (len(b"not readLANC"), True)
    told_of = node.done("POST", f"{AT}/version/describe", {"version": 2})["version"]["version"]
    assert looked(done=told_of, expected=2) == [manifest(2)]
    token = node.done("POST", f"{AT}/version/list?limit=2", {})["page_token"]
    read_names.clear()
    assert looked(done=listed(node, f"?limit=2&page_token={token}"), expected=[3, 4]) == [manifest(4), manifest(3)]
    assert looked(done=failure_of(node.post(f"{AT}/version/describe", {"version": 31})), expected=(404, 11)) == []


def test_reader_cannot_delete_managed_versions(node: DriverNode) -> None:
    """A user who may only read a table may not delete its managed versions."""
    declared = managed(node)
    for version in (1, 2):
        commit(node, "lance", "t", location=declared["location"], version=version)
    grant(node, "ana", "use_catalog use_schema select_table", kind="CATALOG", on="lance")
    body = {"ranges": [{"start_version": 1, "end_version": 2}]}

    assert node.post(f"{AT}/version/delete", body, user="ana").status == 403
    assert sorted(listed(node)) == [1, 2]
