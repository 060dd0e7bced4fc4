# SPDX-License-Identifier: Apache-2.0
"""An object store that refuses requests during a change, and deleted manifests: correct codes, and no partial
change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from limnos.config.storage import StorageSection
from tests.arrow_rows import ROWS, arrow
from tests.http.driver import API, DriverNode, node_at
from tests.objects import BUCKET, ObjectStoreServer, RequestFault, objects
from tests.rooms.lance.http.wire import Json, declare, failure_of, manifest, rows_of, table

pytestmark = pytest.mark.integration  # an object store is served
ROWS_OF, STAGED, FINAL = r"/data/", r"/_versions/.*manifest-", r"/_versions/\d{20}\.manifest$"
NO, LATER = "403 Forbidden", "503 Service Unavailable"


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStoreServer]:
    """An object store."""
    with objects() as object_store:
        yield object_store


@pytest.fixture(scope="module")
def node(store: ObjectStoreServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DriverNode]:
    """A node with a catalog there."""
    storage = StorageSection(allowed_roots=("s3://lake",), allowed_endpoints=(store.uri,), timeout_s=60.0)
    with node_at(tmp_path_factory.mktemp("stores") / "data", storage=storage) as running:
        known = {name: value for name, value in store.properties.items() if name != "s3-role-arn"}
        body = {"name": "cloud", "type": "relational", "provider": "lakehouse-generic"}
        running.done("POST", f"{API}/lake/catalogs", {**body, "properties": {**known, "warehouse": "s3://lake/cloud"}})
        yield running


@contextmanager
def refusing(store: ObjectStoreServer, trouble: RequestFault) -> Iterator[None]:
    """Let the store refuse requests. The check at the end fails if it refused none."""
    store.trouble = trouble
    try:
        yield
    finally:
        store.trouble = None
    assert trouble.seen > trouble.spared, "nothing was refused"


def filled(node: DriverNode, name: str, *, managed: bool) -> str:
    """Create a table with the first rows. Returns its URL."""
    declare(node, "cloud", name, properties={"managed_versioning": str(managed).lower()})
    at = table("cloud", name)
    node.done("POST", f"{at}/insert", arrow())
    return at


def ids(node: DriverNode, at: str) -> list[object]:
    """Return the ids of a table's rows."""
    return sorted(str(each["id"]) for each in rows_of(node.post(f"{at}/query", {"columns": ["id"]})))


def versions(node: DriverNode, at: str) -> list[int]:
    """Return the versions of a table."""
    return [each["version"] for each in node.done("POST", f"{at}/version/list", {})["versions"]]


CHANGES: dict[str, tuple[str, Json | bytes]] = {
    "insert": ("insert", arrow()),
    "merge": ("merge_insert?on=id&when_matched_update_all=true", arrow()),
    "update": ("update", {"updates": [["text", "'x'"]]}),
    "index": ("create_scalar_index", {"column": "id", "index_type": "BTREE"}),
}
COUNTS = ("num_inserted_rows", "num_updated_rows", "updated_rows")


@pytest.mark.parametrize("managed", [False, True], ids=["storage", "server"])
@pytest.mark.parametrize("change", CHANGES)
def test_store_refusal_returns_503_and_changes_no_version(
    node: DriverNode, store: ObjectStoreServer, change: str, *, managed: bool
) -> None:
    """If the store refuses rows or the manifest, the answer is 503 with code 17 and every version is unchanged; later
    writes succeed.
    """
    at = filled(node, f"{change}_{managed}", managed=managed)
    action, body = CHANGES[change]
    for pattern in (STAGED if managed else FINAL, r"/_indices/" if change == "index" else ROWS_OF):
        with refusing(store, RequestFault(method="PUT", pattern=pattern, status=NO)):
            assert failure_of(node.post(f"{at}/{action}", body)) == (503, 17)
        assert (versions(node, at), ids(node, at)) == ([1], ["1", "2", "3"])

    assert node.done("POST", f"{at}/{action}", body)["version"] == 2
    assert ids(node, at) == sorted(["1", "2", "3"] * (2 if change == "insert" else 1))


def test_busy_store_is_retried_and_rows_are_written_once(node: DriverNode, store: ObjectStoreServer) -> None:
    """If the store is busy for a moment, the server retries, and the rows are written once."""
    at = filled(node, "busy", managed=True)
    with refusing(store, RequestFault(method="PUT", pattern=STAGED, status=LATER, times=1)):
        assert node.done("POST", f"{at}/insert", arrow())["version"] == 2

    assert ids(node, at) == sorted(["1", "2", "3"] * 2)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("status", [NO, LATER])
def test_commit_succeeds_if_final_manifest_rename_fails(
    node: DriverNode, store: ObjectStoreServer, change: str, status: str
) -> None:
    """If the store refuses to give a committed manifest its final name, the writer's answer is a success. Reads are 503
    until the manifest has the name.
    """
    at = filled(node, f"late_{change}_{status[:3]}", managed=True)
    action, body = CHANGES[change]
    with refusing(store, RequestFault(method="PUT", pattern=f"{manifest(2)}$", status=status)):
        response = node.done("POST", f"{at}/{action}", body)
        assert response.get("version", 2) == 2
        assert response["transaction_id"] or change == "merge"
        assert sum(response.get(count, 0) for count in COUNTS) == (0 if change == "index" else len(ROWS))
        assert failure_of(node.post(f"{at}/version/list", {})) == (503, 17)

    assert versions(node, at) == [1, 2]
    assert ids(node, at) == sorted(["1", "2", "3"] * (2 if change == "insert" else 1))


@pytest.mark.parametrize("change", CHANGES)
def test_commit_succeeds_if_manifest_read_back_fails(node: DriverNode, store: ObjectStoreServer, change: str) -> None:
    """If the store refuses to return a manifest that it has just accepted, the answer is a success, so that the client
    does not repeat the change.
    """
    at = filled(node, f"unread_{change}", managed=False)
    action, body = CHANGES[change]
    with refusing(store, RequestFault(method="GET", pattern=f"{manifest(2)}$", status=NO)):
        assert node.done("POST", f"{at}/{action}", body)["version"] == 2

    assert versions(node, at) == [1, 2]
    assert ids(node, at) == sorted(["1", "2", "3"] * (2 if change == "insert" else 1))


def test_create_refused_by_the_store_leaves_no_name_or_files(node: DriverNode, store: ObjectStoreServer) -> None:
    """A create that the store refuses leaves neither a name nor files."""
    before = store.names("cloud/")
    for pattern in (ROWS_OF, FINAL):
        with refusing(store, RequestFault(method="PUT", pattern=pattern, status=NO)):
            assert failure_of(node.post(f"{table('cloud', 'new')}/create", arrow())) == (503, 17)
        assert failure_of(node.post(f"{table('cloud', 'new')}/exists", {})) == (404, 4)

    assert node.done("POST", f"{table('cloud', 'new')}/create", arrow())["version"] == 1
    new = [each for each in store.names("cloud/") if each not in before]
    assert len({each.split("/")[1] for each in new}) <= 3


def test_refused_store_reads_are_errors_not_empty_results(node: DriverNode, store: ObjectStoreServer) -> None:
    """A count and a query whose reads the store refuses are errors, not empty results."""
    at = filled(node, "read", managed=False)
    with refusing(store, RequestFault(method="GET", pattern=ROWS_OF, status=NO)):
        assert failure_of(node.post(f"{at}/query", {"columns": ["text"]})) == (503, 17)
        assert failure_of(node.post(f"{at}/count_rows", {"predicate": "text = 'a cat'"})) == (503, 17)

    assert len(ids(node, at)) == len(ROWS)


def taken_away(node: DriverNode, store: ObjectStoreServer, at: str, pattern: str) -> dict[str, bytes]:
    """Delete the manifests that match a pattern. Returns their content."""
    place = str(node.done("POST", f"{at}/describe", {"load_detailed_metadata": False})["location"])
    client = store.client()
    names = [each for each in store.names(f"{place.removeprefix('s3://lake/')}/_versions/") if re.search(pattern, each)]
    contents = {name: client.get_object(Bucket=BUCKET, Key=name)["Body"].read() for name in names}
    for name in names:
        client.delete_object(Bucket=BUCKET, Key=name)
    client.close()
    assert contents
    return contents


def test_managed_table_with_deleted_manifests_returns_409(node: DriverNode, store: ObjectStoreServer) -> None:
    """If manifests of a table with managed versions were deleted, reads and writes are 409 with code 19. They succeed
    once the manifests are restored.
    """
    at = filled(node, "deleted", managed=True)
    node.done("POST", f"{at}/insert", arrow())
    contents = taken_away(node, store, at, "manifest")

    answers = [
        failure_of(node.post(f"{at}/{action}", body)) for action, body in (*CHANGES.values(), ("query", {"k": 1}))
    ]
    client = store.client()
    for name, data in contents.items():
        client.put_object(Bucket=BUCKET, Key=name, Body=data)
    client.close()

    assert set(answers) == {(409, 19)}
    assert (versions(node, at), len(ids(node, at))) == ([1, 2], 2 * len(ROWS))


def test_unmanaged_table_falls_back_from_a_deleted_manifest(node: DriverNode, store: ObjectStoreServer) -> None:
    """If the latest manifest of a table without managed versions was deleted, the previous version is the latest, for
    reads and writes.
    """
    at = filled(node, "shorter", managed=False)
    node.done("POST", f"{at}/insert", arrow())
    taken_away(node, store, at, manifest(2))
    assert (versions(node, at), len(ids(node, at))) == ([1], len(ROWS))

    assert node.done("POST", f"{at}/update", {"updates": [["text", "'x'"]]})["version"] == 2

    assert len(ids(node, at)) == len(ROWS)


@pytest.mark.parametrize("managed", [False, True], ids=["storage", "server"])
def test_object_store_branch_is_read_and_written(node: DriverNode, *, managed: bool) -> None:
    """A branch shares its table's files, and is read and written like the table."""
    at = filled(node, f"branched_{managed}", managed=managed)
    node.done("POST", f"{at}/branches/create", {"name": "dev"})
    node.done("POST", f"{at}/insert?branch=dev", arrow())

    counted = [node.done("POST", f"{at}/count_rows", body) for body in ({"branch": "dev"}, {})]
    assert counted == [2 * len(ROWS), len(ROWS)]
