# SPDX-License-Identifier: Apache-2.0
"""Vended credentials over Lance REST: storage options, for users with access to the table, until their expiry."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from botocore.exceptions import ClientError  # type: ignore[import-untyped]

from limnos.config.storage import StorageSection
from limnos.services.vending.credentials import VENDOR
from tests.arrow_rows import arrow
from tests.http.driver import API, DriverAnswer, DriverNode, grant, node_at
from tests.objects import BUCKET, ObjectStoreServer, objects
from tests.rooms.lance.http.wire import Json, declare, failure_of, make_space, space, table

pytestmark = pytest.mark.integration  # an object store is served
DOCS = ("cloud", "ml", "docs")


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStoreServer]:
    """An object store with a token service."""
    with objects() as object_store:
        yield object_store


@pytest.fixture(scope="module")
def node(store: ObjectStoreServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DriverNode]:
    """A node with the table `ml.docs` in a catalog that vends credentials; ana reads, ben writes."""
    storage = StorageSection(allowed_roots=("s3://lake",), allowed_endpoints=(store.uri,), timeout_s=60.0)
    with node_at(tmp_path_factory.mktemp("lance") / "data", storage=storage) as running:
        for name, known in (("cloud", store.properties), ("keys", without_role(store))):
            body = {"name": name, "type": "relational", "provider": "lakehouse-generic"}
            properties = {**known, "warehouse": f"s3://lake/{name}"}
            running.done("POST", f"{API}/lake/catalogs", {**body, "properties": properties})
        make_space(running, "cloud", "ml")
        declare(running, *DOCS)
        use = "use_catalog use_schema"
        grant(running, "ana", f"{use} select_table", kind="CATALOG", on="cloud")
        grant(running, "ben", f"{use} modify_table", kind="CATALOG", on="cloud")
        grant(running, "cid", f"{use} create_table", kind="CATALOG", on="cloud")
        yield running


def without_role(store: ObjectStoreServer) -> dict[str, str]:
    """Return the properties of a catalog with keys and without a role."""
    return {name: value for name, value in store.properties.items() if name != "s3-role-arn"}


def describe(
    node: DriverNode, *path: str, user: str = "admin", body: Json | None = None, **headers: str
) -> DriverAnswer:
    """Describe a table without its details."""
    request_body = {"load_detailed_metadata": False, **(body or {})}
    return node.ask("POST", f"{table(*path)}/describe", request_body, user=user, **headers)


def options_of(answer: DriverAnswer) -> dict[str, str] | None:
    """Return the storage options in an answer; None without any."""
    assert answer.status == 200, answer
    options: dict[str, str] | None = answer.json().get("storage_options")
    return options


def opens(store: ObjectStoreServer, options: dict[str, str] | None, location: object) -> dict[str, bool]:
    """Return whether storage options allow each operation at a location: reading manifests and rows, writing."""
    assert options is not None
    place = str(location).removeprefix("s3://lake/")
    owner = store.client()
    for name in ("data/f", "_versions/f"):
        owner.put_object(Bucket=BUCKET, Key=f"{place}/{name}", Body=b"x")
    owner.close()
    client = store.client(
        *(options[name] for name in ("aws_access_key_id", "aws_secret_access_key", "aws_session_token"))
    )
    calls = {
        "manifests": lambda: client.get_object(Bucket=BUCKET, Key=f"{place}/_versions/f"),
        "rows": lambda: client.get_object(Bucket=BUCKET, Key=f"{place}/data/f"),
        "write": lambda: client.put_object(Bucket=BUCKET, Key=f"{place}/data/f", Body=b"y"),
    }
    outcomes = {}
    for name, call in calls.items():
        try:
            call()
            outcomes[name] = True
        except ClientError as error:
            outcomes[name] = error.response["Error"]["Code"] != "AccessDenied"
    client.close()
    return outcomes


@pytest.mark.parametrize("user, write", [("admin", True), ("ana", False)])
def test_storage_options_match_the_callers_privileges(
    store: ObjectStoreServer, node: DriverNode, user: str, write: bool
) -> None:
    """Readers' storage options allow reading, and those of users who read and write also writing. They contain the
    store's address, but no key of the catalog.
    """
    answer = describe(node, *DOCS, user=user)
    options = options_of(answer) or {}

    assert opens(store, options, answer["location"]) == {"manifests": True, "rows": True, "write": write}
    assert {
        name: value
        for name, value in options.items()
        if name not in {"aws_access_key_id", "aws_secret_access_key", "aws_session_token", "expires_at_millis"}
    } == {
        "aws_endpoint": store.uri,
        "aws_region": "us-east-1",
        "allow_http": "true",
    }
    assert int(options["expires_at_millis"]) > node.built.services.store.time.now_ms() + 3_000_000
    assert answer.headers["cache-control"] == "no-store"
    assert b'"key"' not in answer.body
    assert b'"secret"' not in answer.body


def test_writer_who_may_not_read_gets_no_options(store: ObjectStoreServer, node: DriverNode) -> None:
    """A user with MODIFY_TABLE alone describes the table without storage options: no pattern of directories of Lance
    separates manifests from rows.
    """
    requests = store.asked["sts"]
    answer = describe(node, *DOCS, user="ben")

    assert (answer.status, options_of(answer), b"aws_" in answer.body) == (200, None, False)
    assert store.asked["sts"] == requests


def test_options_open_one_table_alone(store: ObjectStoreServer, node: DriverNode) -> None:
    """Storage options do not allow access to other tables' locations, including one with the same prefix."""
    answer = describe(node, *DOCS)
    for other in (f"{answer['location']}2", "s3://lake/cloud/else"):
        assert not any(opens(store, options_of(answer), other).values())


def test_caller_without_describe_privilege_gets_no_options(node: DriverNode) -> None:
    """A user who may not describe the table gets the same refusal as without vending."""
    for user in ("cid", "nobody"):
        answer = describe(node, *DOCS, user=user)
        assert failure_of(answer) in ((403, 15), (404, 4))
        assert b"aws_" not in answer.body


def test_no_options_without_flag_or_role_or_for_remote_client(node: DriverNode) -> None:
    """No options are returned if the flag is off, to LanceDB's remote clients, and for catalogs without a role."""
    declare(node, "keys", "t")
    remote = {"x_lancedb_database": "cloud"}

    assert options_of(describe(node, *DOCS, body={"vend_credentials": False})) is None
    assert options_of(describe(node, "ml", "docs", **remote)) is None
    assert options_of(describe(node, "keys", "t", body={"vend_credentials": True})) is None
    assert "storage_options" not in declare(node, "keys", "t2", vend_credentials=True)


def test_table_creator_gets_write_options(store: ObjectStoreServer, node: DriverNode) -> None:
    """The answers to a declare and to a create with rows have options for the new table's location."""
    declared = declare(node, "cloud", "ml", "mine", user="cid")
    filled = node.done("POST", f"{table('cloud', 'ml', 'rows')}/create", arrow(), user="cid")

    for answer in (declared, filled):
        everything = {"manifests": True, "rows": True, "write": True}
        assert opens(store, answer["storage_options"], answer["location"]) == everything  # type: ignore[arg-type]


def test_unreachable_sts_returns_503_and_changes_nothing(store: ObjectStoreServer, node: DriverNode) -> None:
    """If STS is unreachable, requests for options are 503 with code 17 and change nothing. Other requests succeed."""
    VENDOR.of(node.built.services)._kept.clear()
    store.is_away = True
    try:
        refused = [
            describe(node, *DOCS),
            node.post(f"{table('cloud', 'ml', 'new')}/declare", {}),
            node.post(f"{table('cloud', 'ml', 'new')}/create", arrow()),
        ]
        plain = describe(node, *DOCS, body={"vend_credentials": False})
    finally:
        store.is_away = False

    assert [failure_of(answer) for answer in refused] == [(503, 17)] * 3
    assert plain.status == 200
    assert "new" not in node.done("GET", f"{space('cloud', 'ml')}/table/list")["tables"]


def test_directory_catalog_vends_no_storage_options(store: ObjectStoreServer, node: DriverNode) -> None:
    """A directory catalog vends no options, because its files may belong to other catalogs."""
    properties = {**store.properties, "lance-directory": "s3://lake/shown"}
    body = {"name": "shown", "type": "relational", "provider": "lakehouse-generic", "properties": properties}
    node.done("POST", f"{API}/lake/catalogs", body)
    owner = store.client()
    owner.put_object(Bucket=BUCKET, Key="shown/t.lance/_versions/x", Body=b"")
    owner.close()

    assert options_of(describe(node, "shown", "t")) is None
