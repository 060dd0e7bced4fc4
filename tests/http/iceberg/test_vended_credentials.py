# SPDX-License-Identifier: Apache-2.0
"""Vended S3 credentials over Iceberg REST: the needed rights, the locations and times for which they are valid, and
secrets that no answer contains.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from botocore.exceptions import ClientError  # type: ignore[import-untyped]

from limnos.config.storage import StorageSection
from limnos.model.permits import upkeep_permit
from limnos.model.storage_locations import LocationClaim, LocationKind
from limnos.services.vending.credentials import VENDOR
from limnos.store.sql import Sql
from limnos.store.tx import Tx
from tests.http.driver import API, DriverAnswer, DriverNode, grant, node_at
from tests.http.iceberg.wire import SCHEMA, creation, set_properties, space_path, table_path
from tests.objects import BUCKET, ObjectStoreServer, objects

pytestmark = pytest.mark.integration  # an object store is served
ROOT = "/iceberg/v1/lake.cloud"
TABLE = table_path("a", "t", root=ROOT)
SHOP = table_path("a", "t2", root=ROOT)
ASKED = {"x_iceberg_access_delegation": "vended-credentials"}
SECRETS = ("secret", "role/tables")


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStoreServer]:
    """An object store with a token service."""
    with objects() as object_store:
        yield object_store


@pytest.fixture
def node(store: ObjectStoreServer, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[DriverNode]:
    """A node with the tables `a.t` and `a.t2` in a catalog that vends credentials; ana reads, ben writes, eve does
    both.
    """
    store.is_away = False
    storage = StorageSection(allowed_roots=("s3://lake",), allowed_endpoints=(store.uri,), timeout_s=60.0)
    place = f"s3://lake/{re.sub('[^a-z0-9_]+', '-', request.node.name)}"  # files of another test are nobody's
    with node_at(tmp_path / "data", storage=storage) as running:
        make_catalog(running, "cloud", {**store.properties, "warehouse": place})
        running.done("POST", f"{ROOT}/namespaces", {"namespace": ["a"]})
        for name in ("t", "t2"):
            body = {"name": name, "schema": SCHEMA, "location": f"{place}/{name}"}
            running.done("POST", f"{space_path('a', root=ROOT)}/tables", body)
        use = "use_catalog use_schema"
        grant(running, "ana", f"{use} select_table", kind="CATALOG", on="cloud")
        grant(running, "ben", f"{use} modify_table", kind="CATALOG", on="cloud")
        grant(running, "eve", f"{use} select_table modify_table create_table", kind="CATALOG", on="cloud")
        yield running


def make_catalog(node: DriverNode, name: str, properties: dict[str, str]) -> None:
    """Create an Iceberg catalog."""
    body = {"name": name, "type": "relational", "provider": "lakehouse-iceberg", "properties": properties}
    node.done("POST", f"{API}/lake/catalogs", body)


def load(node: DriverNode, user: str = "admin", path: str = TABLE, **headers: str) -> DriverAnswer:
    """Load a table with a request for credentials."""
    return node.get(path, user=user, **ASKED, **headers)


def keys_of(answer: DriverAnswer) -> tuple[str, str, str]:
    """Return the credentials in an answer. They must be the same in its configuration and its list of credentials."""
    assert answer.status == 200, answer
    (entry,) = answer.json()["storage-credentials"]
    config = entry["config"]
    if "config" in answer.json():
        assert answer.json()["config"] == config
    return config["s3.access-key-id"], config["s3.secret-access-key"], config["s3.session-token"]


def outcome(client: Any, verb: str, key: str) -> str:  # noqa: ANN401 - boto3 has no types
    """Return the outcome of a request to the store: `ok` or its error."""
    calls = {
        "read": lambda: client.get_object(Bucket=BUCKET, Key=key),
        "write": lambda: client.put_object(Bucket=BUCKET, Key=key, Body=b"x"),
        "delete": lambda: client.delete_object(Bucket=BUCKET, Key=key),
        "list": lambda: client.list_objects_v2(Bucket=BUCKET, Prefix=key),
    }
    try:
        calls[verb]()
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return "ok"


def opened(store: ObjectStoreServer, answer: DriverAnswer, place: str) -> dict[str, str]:
    """Return the operations that an answer's credentials allow at a location: reading rows and metadata, writing,
    deleting, listing.
    """
    owner = store.client()
    for name in ("data/f", "metadata/f"):
        owner.put_object(Bucket=BUCKET, Key=f"{place}/{name}", Body=b"x")
    owner.close()
    client = store.client(*keys_of(answer))
    accesses = {
        "rows": ("read", "data/f"),
        "metadata": ("read", "metadata/f"),
        "write": ("write", "data/g"),
        "delete": ("delete", "data/g"),
        "list": ("list", "data/"),
    }
    outcomes = {what: outcome(client, verb, f"{place}/{name}") for what, (verb, name) in accesses.items()}
    client.close()
    return outcomes


def place_of(node: DriverNode, path: str = TABLE) -> str:
    """Return the location of a table in the bucket."""
    return str(node.get(path).json()["metadata"]["location"]).removeprefix("s3://lake/")


EVERYTHING = dict.fromkeys(("rows", "metadata", "write", "delete", "list"), "ok")
NOTHING = dict.fromkeys(EVERYTHING, "AccessDenied")
NO_WRITES = {"write": "AccessDenied", "delete": "AccessDenied"}


@pytest.mark.parametrize(
    "user, expected",
    [
        ("admin", EVERYTHING),
        ("eve", EVERYTHING),
        ("ana", EVERYTHING | NO_WRITES),
    ],
)
def test_credentials_match_the_callers_privileges(
    store: ObjectStoreServer, node: DriverNode, user: str, expected: dict[str, str]
) -> None:
    """Readers' credentials allow reading, and those of users who read and write also writing. Renewed credentials allow
    the same.
    """
    for answer in (load(node, user), node.get(f"{TABLE}/credentials", user=user)):
        assert opened(store, answer, place_of(node)) == expected
        assert answer.headers["cache-control"] == "no-store"


def test_writer_who_may_not_read_gets_no_credentials(store: ObjectStoreServer, node: DriverNode) -> None:
    """A user with MODIFY_TABLE alone loads and commits without credentials: metadata files contain values of rows, and
    the table's properties may send data files there. No request is sent to STS.
    """
    moved = {"action": "set-properties", "updates": {"a": "b"}}
    requests = store.asked["sts"]
    for path in (TABLE, f"{TABLE}/credentials"):
        answer = node.get(path, user="ben", **ASKED)
        assert (answer.status, b"s3." in answer.body) == (200, False)
        assert answer.json().get("storage-credentials", []) == []
    objects_path = f"{API}/lake/objects/table/cloud.a.t/credentials"
    assert node.get(objects_path, user="ben").json()["credentials"] == []
    assert node.post(TABLE, {"requirements": [], "updates": [moved]}, user="ben").status == 200
    assert store.asked["sts"] == requests

    grant(node, "ben", "select_table", kind="CATALOG", on="cloud")
    assert opened(store, load(node, "ben"), place_of(node)) == EVERYTHING


def test_credentials_open_one_table_alone(store: ObjectStoreServer, node: DriverNode) -> None:
    """Credentials allow access neither to locations with the same prefix nor to the catalog's warehouse, and cannot
    list names there.
    """
    answer, place = load(node), place_of(node)
    assert place_of(node, SHOP) == f"{place}2"

    assert opened(store, answer, f"{place}2") == NOTHING
    assert opened(store, answer, f"{place.rpartition('/')[0]}/else") == NOTHING
    client = store.client(*keys_of(answer))
    assert [outcome(client, "list", prefix) for prefix in ("", place, f"{place}2", f"{place}2/")] == [
        "AccessDenied"
    ] * 4
    assert [outcome(client, verb, place) for verb in ("read", "write")] == ["AccessDenied"] * 2
    client.close()


def test_expired_credentials_are_refused_by_the_store(store: ObjectStoreServer, node: DriverNode) -> None:
    """Expired credentials are refused by the store."""
    answer = load(node)
    store.end_all()

    assert opened(store, answer, place_of(node)) == NOTHING


def test_caller_without_table_privileges_gets_no_credentials(node: DriverNode) -> None:
    """Users without a right on the table are refused, by the load and by the credentials route."""
    grant(node, "cid", "use_catalog use_schema create_table", kind="CATALOG", on="cloud")

    for path in (TABLE, f"{TABLE}/credentials"):
        for user in ("cid", "nobody"):
            answer = node.get(path, user=user, **ASKED)
            assert answer.status in (403, 404), answer
            assert b"s3." not in answer.body


def test_no_credentials_are_returned_unless_requested(node: DriverNode) -> None:
    """Without the header, with signing requested, or in a catalog without a role, the answer has no credentials."""
    for headers in ({}, {"x_iceberg_access_delegation": "remote-signing"}):
        answer = node.get(TABLE, **headers)
        assert answer.json()["config"] == {}
        assert "storage-credentials" not in answer.json()
    node.done("POST", "/iceberg/v1/lake.main/namespaces", {"namespace": ["a"]})
    node.done("POST", "/iceberg/v1/lake.main/namespaces/a/tables", {"name": "t", "schema": SCHEMA})
    plain = "/iceberg/v1/lake.main/namespaces/a/tables/t"
    assert load(node, path=plain).json()["config"] == {}
    assert node.done("GET", f"{plain}/credentials") == {"storage-credentials": []}


def test_the_catalogs_own_keys_are_in_no_answer(store: ObjectStoreServer, node: DriverNode) -> None:
    """No answer has the catalog's secret, the role, or any key other than the session's."""
    staged = {"name": "s", "schema": SCHEMA, "stage-create": True}
    answers = [
        load(node),
        node.get(f"{TABLE}/credentials"),
        node.ask("POST", f"{space_path('a', root=ROOT)}/tables", staged, **ASKED),
    ]

    for answer in answers:
        text = answer.body.decode().replace("s3.secret-access-key", "").replace("s3.access-key-id", "")
        assert keys_of(answer)[0] != "key"
        assert not [secret for secret in SECRETS if secret in text]


def test_same_rights_share_credentials_and_others_do_not(store: ObjectStoreServer, node: DriverNode) -> None:
    """The server calls STS once for each table and set of rights. Requests with other rights or for other tables get
    other credentials.
    """
    before = store.asked["sts"]

    assert keys_of(load(node)) == keys_of(load(node, "eve")) == keys_of(load(node))
    assert len({keys_of(load(node, user)) for user in ("admin", "ana")}) == 2
    assert keys_of(load(node, path=SHOP)) != keys_of(load(node))
    assert store.asked["sts"] - before == 3


def test_etag_expires_with_the_credentials_of_its_answer(store: ObjectStoreServer, node: DriverNode) -> None:
    """The ETag of an answer with credentials is valid while they are, and never for users with other rights."""
    first = load(node)
    tag = first.headers["etag"]
    statuses = [load(node, user, if_none_match=tag).status for user in ("admin", "eve", "ana")]
    plain = node.get(TABLE).headers["etag"]
    VENDOR.of(node.built.services)._kept.clear()

    assert statuses == [304, 304, 200]
    assert tag != plain
    assert load(node, if_none_match=plain).status == 200
    assert load(node, if_none_match=tag).status == 200


def test_answers_with_credentials_are_not_cached(node: DriverNode) -> None:
    """Revokes and grants affect the next answer, and answers with credentials are not cached."""
    cache = node.built.application.response_cache
    for _ in range(3):
        load(node, "ana")
    assert not [each for each in (*cache._young.values(), *cache._old.values()) if b"session-token" in each.body]
    grant(node, "ana", "modify_table", kind="CATALOG", on="cloud")
    wider = keys_of(load(node, "ana"))

    assert wider == keys_of(load(node, "eve"))
    grant(node, "ana", "select_table", kind="CATALOG", on="cloud", condition="deny")
    assert b"s3." not in load(node, "ana").body


def test_unreachable_sts_returns_503_and_changes_nothing(store: ObjectStoreServer, node: DriverNode) -> None:
    """If STS is unreachable, requests for credentials are 503 and change nothing; other requests work."""
    store.is_away = True
    tables = f"{space_path('a', root=ROOT)}/tables"
    body = {"name": "new", "schema": SCHEMA}
    refused = [
        load(node),
        node.get(f"{TABLE}/credentials"),
        node.ask("POST", tables, body, **ASKED),
        node.ask("POST", tables, {**body, "stage-create": True}, **ASKED),
    ]

    assert [answer.status for answer in refused] == [503] * 4
    assert {answer.json()["error"]["type"] for answer in refused} == {"ServiceUnavailableException"}
    assert all("token service does not answer" in answer.json()["error"]["message"] for answer in refused)
    assert all("retry-after" in answer.headers for answer in refused)
    assert node.get(TABLE).status == 200
    assert node.ask("HEAD", f"{tables}/new").status == 404
    assert node.ask("POST", TABLE, {"updates": [set_properties(a="b")]}, **ASKED).status == 200


def test_valid_credentials_are_reused_while_sts_is_unreachable(store: ObjectStoreServer, node: DriverNode) -> None:
    """The server renews credentials after half of their lifetime, and uses the old ones further if the renewal
    fails.
    """
    first, vendor = keys_of(load(node)), VENDOR.of(node.built.services)
    (cache_key,) = vendor._kept
    issued, requested_at = vendor._kept[cache_key]
    vendor._kept[cache_key] = (issued._replace(expires_ms=vendor._time.now_ms() + 1_000_000), requested_at)
    store.is_away = True
    older = keys_of(load(node))
    store.is_away = False

    assert older == first
    assert keys_of(load(node)) != first


def test_table_creator_gets_credentials_also_when_staged(store: ObjectStoreServer, node: DriverNode) -> None:
    """The creator of a table gets credentials for its location, also between a staged create and its commit."""
    tables = f"{space_path('a', root=ROOT)}/tables"
    for body in ({"name": "made", "schema": SCHEMA}, {"name": "staged", "schema": SCHEMA, "stage-create": True}):
        answer = node.ask("POST", tables, body, user="eve", **ASKED)
        place = answer.json()["metadata"]["location"].removeprefix("s3://lake/")
        assert opened(store, answer, place) == EVERYTHING


@pytest.mark.parametrize("where", ["", "/below", "/.."])
def test_staged_table_gets_no_credentials_for_used_locations(node: DriverNode, where: str) -> None:
    """For a staged table at, in or above another table's location no credentials are issued before the commit."""
    place = f"s3://lake/{place_of(node)}{where}".replace("/t/..", "")
    body = {"name": "thief", "schema": SCHEMA, "stage-create": True, "location": place}
    answer = node.ask("POST", f"{space_path('a', root=ROOT)}/tables", body, user="eve", **ASKED)

    assert "storage-credentials" not in answer.json()
    assert b"session-token" not in answer.body


@pytest.mark.parametrize("name", ["*", "a?", "${aws:username}", "t*", "a$b"])
def test_location_with_policy_wildcards_gets_no_credentials(node: DriverNode, name: str) -> None:
    """A table at a location with a wildcard or a policy variable gets no credentials, but can be used without."""
    place = f"s3://lake/{place_of(node).rpartition('/')[0]}/{name}"
    body = {"name": "wild", "schema": SCHEMA, "location": place}
    answer = node.ask("POST", f"{space_path('a', root=ROOT)}/tables", body, user="eve", **ASKED)

    assert answer.status == (400 if "?" in name else 200), answer
    assert b"session-token" not in answer.body


def test_table_loaded_through_a_view_gets_no_credentials(node: DriverNode) -> None:
    """A user who may load a table only through a view gets its metadata without credentials."""
    version = {
        "version-id": 1,
        "timestamp-ms": 1,
        "schema-id": 0,
        "summary": {},
        "default-namespace": ["a"],
        "representations": [{"type": "sql", "dialect": "spark", "sql": "select * from a.t"}],
    }
    body = {"name": "v", "schema": SCHEMA, "view-version": version, "properties": {}}
    node.done("POST", f"{space_path('a', root=ROOT)}/views", body)
    grant(node, "dan", "use_catalog use_schema select_view", kind="CATALOG", on="cloud")
    answer = load(node, "dan", f"{TABLE}?referenced-by=a%1Fv")
    renewed = node.get(f"{TABLE}/credentials?referenced-by=a%1Fv", user="dan")

    assert answer.status == 200
    assert answer.json()["config"] == {}
    assert (renewed.status, renewed.json()) == (200, {"storage-credentials": []})
    assert load(node, "dan").status == 403


def test_table_outside_the_roots_gets_no_credentials(store: ObjectStoreServer, node: DriverNode) -> None:
    """A table outside of the catalog's narrowed roots gets no credentials."""
    keys_of(load(node))
    edit = {"@type": "setProperty", "property": "warehouse", "value": "s3://lake/elsewhere"}
    node.done("PUT", f"{API}/lake/catalogs/cloud", {"updates": [edit]})

    assert load(node).json()["config"] == {}


@pytest.mark.parametrize(
    "name, value, words",
    [
        ("s3-role-arn", "tables", "write a role as"),
        ("s3.role-arn", "arn:aws:iam::1:role/a b", "write a role as"),
        ("s3-token-expire-in-secs", "60", "from 900 to 43200"),
        ("s3-token-expire-in-secs", "1h", "from 900 to 43200"),
        ("s3-external-id", "a b", "2 to 1224"),
        ("s3-token-service-endpoint", "http://169.254.169.254", "does not connect to"),
    ],
)
def test_properties_of_a_role_are_checked(node: DriverNode, name: str, value: str, words: str) -> None:
    """Setting an invalid role, or an address that is not allowed, is refused."""
    edit = {"@type": "setProperty", "property": name, "value": value}
    answer = node.put(f"{API}/lake/catalogs/cloud", {"updates": [edit]})

    assert answer.status == 400, answer
    assert words in answer.json()["message"]


def test_role_refused_by_sts_refers_caller_to_catalog_owner(
    store: ObjectStoreServer, node: DriverNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If STS refuses the role, its message is only in the log. The answer says that the catalog's owner must check
    the role.
    """

    def refuse(*_: object, **__: object) -> object:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "arn:aws:iam::1:user/x may not"}}, "AssumeRole")

    monkeypatch.setattr("limnos.sources.credentials._client", lambda _: type("C", (), {"assume_role": refuse}))
    answer = load(node)

    assert answer.status == 503
    assert "refused by its token service (AccessDenied): its owner checks s3-role-arn" in answer.body.decode()
    assert "user/x" not in answer.body.decode()


def test_location_over_another_metalakes_root_gets_no_credentials(node: DriverNode) -> None:
    """Where roots of two metalakes overlap, neither tables nor staged creates get credentials, whoever made the
    catalogs.
    """
    node.done("POST", API, {"name": "pond"})
    body = {"name": "far", "type": "relational", "provider": "lakehouse-iceberg", "properties": {}}
    node.done("POST", f"{API}/pond/catalogs", body)
    root = f"s3://{BUCKET}/{place_of(node).rpartition('/')[0]}"
    body = {"name": "late", "schema": SCHEMA, "location": f"{root}/late", "stage-create": True}

    def given() -> list[bool]:
        staged = node.ask("POST", f"{space_path('a', root=ROOT)}/tables", body, **ASKED)
        answers = [load(node), node.get(f"{TABLE}/credentials"), staged]
        assert [each.status for each in answers[:2]] == [200] * 2
        return [bool(each.json().get("storage-credentials")) for each in answers]

    before = given()
    services = node.built.services
    far = Sql("SELECT id FROM node WHERE name = 'far'")

    def overlap(tx: Tx) -> None:
        ((catalog_id,),) = tx.rows(far, {})
        tx.places.put(
            LocationClaim(
                kind=LocationKind.ALLOWED_LOCATION, owner_id=catalog_id, catalog_id=catalog_id, metalake_id=0
            ),
            root,
        )

    node.runner.run(services.store.submit(upkeep_permit("t"), overlap))

    assert (before, given()) == ([True] * 3, [False] * 3)


def staged(node: DriverNode, user: str, location: str, *, name: str = "late", **headers: str) -> DriverAnswer:
    """Stage the creation of a table at a location, with a request for credentials."""
    body = {"name": name, "schema": SCHEMA, "location": location, "stage-create": True}
    return node.ask("POST", f"{space_path('a', root=ROOT)}/tables", body, user=user, **(headers or ASKED))


def made(node: DriverNode, user: str, location: str, *, name: str = "made") -> DriverAnswer:
    """Create a table at a location."""
    body = {"name": name, "schema": SCHEMA, "location": location}
    return node.ask("POST", f"{space_path('a', root=ROOT)}/tables", body, user=user, **ASKED)


def is_given(answer: DriverAnswer) -> bool:
    """Return whether an answer has credentials."""
    assert answer.status == 200, answer
    return bool(answer.json().get("storage-credentials"))


def pass_hours(node: DriverNode, hours: float) -> None:
    """Let the ends of claims come nearer, as if time had passed."""
    statement = Sql(
        f"UPDATE place SET since = since - {hours * 3_600_000:.0f}, keys_until = keys_until - {hours * 3_600_000:.0f}"
    )
    node.runner.run(node.built.services.store.submit(upkeep_permit("t"), lambda tx: tx.count(statement, {})))


@pytest.mark.parametrize("delegation", [ASKED, {"x_iceberg_access_delegation": "remote-signing"}])
def test_staged_create_claims_its_location_while_credentials_live(node: DriverNode, delegation: dict[str, str]) -> None:
    """While the credentials of a staged create may live, others can neither stage nor create anything at, above or
    below its location. The stager's own commit takes it over. Afterwards it is free.
    """
    at = f"s3://lake/{place_of(node).rpartition('/')[0]}/staged"
    grant(node, "pat", "use_catalog use_schema create_table", kind="CATALOG", on="cloud")
    first = staged(node, "eve", f"{at}/x", **delegation)
    places = (f"{at}/x", at, f"{at}/x/y", f"{at}/%78", f"{at}//x")
    others = [how(node, "pat", place).status for place in places for how in (staged, made)]
    again = staged(node, "eve", f"{at}/x", **delegation)
    pass_hours(node, 1.1)
    late = made(node, "pat", f"{at}/x/y", name="late")

    assert (first.status, is_given(first), others) == (200, delegation == ASKED, [400] * 10)
    assert (again.status, late.status, staged(node, "eve", f"{at}/x", name="later").status) == (200, 200, 400)


def test_commit_of_a_staged_create_takes_over_its_claim(node: DriverNode, store: ObjectStoreServer) -> None:
    """A table that a commit creates at its staged location gets credentials, also for files written before the
    commit; another user cannot commit there.
    """
    at = f"s3://lake/{place_of(node).rpartition('/')[0]}/taken"
    for name, asks in (("late", ASKED), ("other", {"x_iceberg_access_delegation": "none"})):
        location = f"{at}/{name}"
        staged(node, "eve", location, name=name, **asks)
        owner = store.client()
        owner.put_object(Bucket=BUCKET, Key=f"{location.removeprefix('s3://lake/')}/data/f", Body=b"x")
        owner.close()
        body = {"requirements": [{"type": "assert-create"}], "updates": creation(location)}
        theirs = node.post(table_path("a", f"{name}2", root=ROOT), body)
        own = node.ask("POST", table_path("a", name, root=ROOT), body, user="eve")

        assert (theirs.status, own.status) == (400, 200), (theirs, own)
        assert is_given(load(node, "eve", table_path("a", name, root=ROOT)))


def test_unclaimed_files_are_not_opened_by_credentials(node: DriverNode, store: ObjectStoreServer) -> None:
    """A directory with files that nobody has claimed is opened by no create, staged create, `set-location`, data path
    or register. A new directory is.
    """
    home = place_of(node).rpartition("/")[0]
    owner = store.client()
    for name in ("landing", "landing2", "landing3", "landing4", "landing5", "landing6"):
        owner.put_object(Bucket=BUCKET, Key=f"{home}/{name}/customers.csv", Body=b"x")
    own = json.loads(json.dumps(node.get(TABLE).json()["metadata"])) | {"location": f"s3://lake/{home}/landing6"}
    own["table-uuid"] = str(uuid4())
    owner.put_object(Bucket=BUCKET, Key=f"{place_of(node)}/metadata/x.metadata.json", Body=json.dumps(own).encode())
    owner.close()

    def moved(location: str, path: str = TABLE) -> DriverAnswer:
        update = {"action": "set-location", "location": f"s3://lake/{home}/{location}"}
        assert node.post(path, {"requirements": [], "updates": [update]}, user="eve").status == 200
        return load(node, "eve", path)

    sends = {"action": "set-properties", "updates": {"write.data.path": f"s3://lake/{home}/landing4"}}
    assert node.post(SHOP, {"requirements": [], "updates": [sends]}).status == 200
    unsends = {"action": "remove-properties", "removals": ["write.data.path"]}
    assert node.post(SHOP, {"requirements": [], "updates": [unsends]}).status == 200
    body = {"name": "registered", "metadata-location": f"s3://lake/{place_of(node)}/metadata/x.metadata.json"}
    registered = node.post(f"{space_path('a', root=ROOT)}/register", body)
    closed = {
        "create": made(node, "eve", f"s3://lake/{home}/landing"),
        "load": load(node, "eve", table_path("a", "made", root=ROOT)),
        "staged": staged(node, "eve", f"s3://lake/{home}/landing2"),
        "moved": moved("landing3"),
        "moved to a data path": moved("landing4", SHOP),
        "registered": load(node, "eve", table_path("a", "registered", root=ROOT)),
    }
    fresh = {"moved": moved("new"), "made": made(node, "eve", f"s3://lake/{home}/new2", name="fresh")}

    assert registered.status == 200, registered
    assert {name: is_given(each) for name, each in closed.items()} == dict.fromkeys(closed, False)
    assert {name: is_given(each) for name, each in fresh.items()} == dict.fromkeys(fresh, True)


@pytest.mark.parametrize("how", ["purged", "unregistered"])
def test_ended_table_keeps_its_location_while_its_credentials_live(node: DriverNode, how: str) -> None:
    """After a purge or an unregister only the user who ended the table may use its location while its credentials may
    live. Then everybody may.
    """
    at = f"s3://lake/{place_of(node).rpartition('/')[0]}/gone"
    grant(node, "pat", "use_catalog use_schema create_table", kind="CATALOG", on="cloud")
    assert is_given(made(node, "eve", at))
    path = table_path("a", "made", root=ROOT)
    if how == "purged":
        assert node.delete(f"{path}?purgeRequested=true", user="eve").status == 204
        while node.runner.run(node.built.upkeep.run_one()):
            pass
    else:
        answer = node.ask("POST", f"{path}/unregister", {}, user="eve")
        assert answer.status == 200, answer
    early = [made(node, "pat", place, name="pats").status for place in (at, f"{at}/x", at.rpartition("/")[0])]
    pass_hours(node, 1.1)
    late = made(node, "pat", at, name="pats")

    assert early == [400] * 3
    assert (late.status, is_given(late)) == (200, how == "purged")
