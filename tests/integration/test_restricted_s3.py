# SPDX-License-Identifier: Apache-2.0
"""A restricted table on an object store with authorization: restricted users get credentials for their rewritten files,
from plans and from loads, and none for the table's files.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx2
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from botocore.exceptions import ClientError  # type: ignore[import-untyped]
from pyiceberg.catalog import load_catalog

from limnos.client import Client
from limnos.client.values import NamedPrincipals
from tests.integration.live import LiveServer, serving
from tests.objects import BUCKET, ObjectStoreServer, authorized

pytestmark = [
    pytest.mark.integration,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "city": ["Rome", "Oslo", "Rome"],
        "card": ["1111-2222", "3333-4444", "5555-6666"],
    }
)
VENDED, SIGNED = "vended-credentials", "remote-signing"
RIGHTS = ["USE_CATALOG", "USE_SCHEMA", "SELECT_TABLE", "MODIFY_TABLE", "CREATE_TABLE"]
Json = dict[str, Any]


class Reader:
    """A user of a restricted table, over HTTP and at the store."""

    def __init__(self, server: LiveServer, store: ObjectStoreServer, user: str) -> None:
        with Client(server.uri, token=server.token) as client:
            token = client.tokens.create(user=user).token
        self.http = httpx2.Client(base_url=server.uri, headers={"Authorization": f"Bearer {token}"}, timeout=300)
        self.store = store

    def ask(
        self,
        method: str,
        path: str = "",
        body: object = None,
        *,
        by: str = VENDED,
        catalog: str = "ice",
        table: str = "t",
    ) -> httpx2.Response:
        """Send a request about a table of `shop`, with the given access delegation."""
        at = f"/iceberg/v1/lake.{catalog}/namespaces/shop/tables/{table}{path}"
        return self.http.request(method, at, json=body, headers={"X-Iceberg-Access-Delegation": by})

    def planned(self, **arguments: object) -> Json:
        """Return a scan plan."""
        answer = self.ask("POST", "/plan", arguments)
        assert answer.status_code == 200, answer.text
        scan_plan: Json = answer.json()
        return scan_plan

    def loaded(self) -> Json:
        """Return the table as loaded with vended credentials."""
        answer = self.ask("GET")
        assert answer.status_code == 200, answer.text
        table: Json = answer.json()
        return table

    def outcome(self, plan: Json, verb: str, key: str, **more: object) -> Any:  # noqa: ANN401 - boto3 has no types
        """Return the store's result for the credentials of a plan or of a loaded table: an error code, or the
        content.
        """
        (entry,) = plan["storage-credentials"]
        config = entry["config"]
        client = self.store.client(
            config["s3.access-key-id"], config["s3.secret-access-key"], config["s3.session-token"]
        )
        named = {"Prefix": key} if verb == "list_objects_v2" else {"Key": key}
        try:
            return getattr(client, verb)(Bucket=BUCKET, **named, **more)
        except ClientError as error:
            return str(error.response["Error"]["Code"])
        finally:
            client.close()


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStoreServer]:
    """The object store."""
    with authorized() as object_store:
        yield object_store


@pytest.fixture(scope="module")
def server(store: ObjectStoreServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server with table `shop.t` in two catalogs: `ice` vends credentials and signs, `signs` only signs. The table is
    restricted for ana and, differently, for bob.
    """
    data = tmp_path_factory.mktemp("restricted") / "data"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LIMNOS__SERVER__REQUEST_TIMEOUT_S", "300")
        with (
            serving(data, "--allow-root", "s3://lake", "--allow-endpoint", store.uri) as running,
            Client(running.uri, token=running.token) as client,
        ):
            for user in ("ana", "bob"):
                client.users.add(user)
            client.roles.create("readers")
            for name in ("ice", "signs"):
                properties = {**store.properties, "warehouse": f"s3://lake/{name}", "s3.remote-signing-enabled": "true"}
                if name == "signs":
                    del properties["s3-role-arn"]
                client.catalogs.create(name, properties=properties)
                client.roles.allow("readers", RIGHTS, on=name, kind="catalog")
                keys = {key: value for key, value in store.properties.items() if key != "s3-role-arn"}
                owner = load_catalog(
                    name, type="rest", uri=f"{running.uri}/iceberg", warehouse=name, token=running.token, **keys
                )
                owner.create_namespace("shop")
                owner.create_table("shop.t", schema=ROWS.schema).append(ROWS)
                client.restrictions.set(
                    "a",
                    f"{name}.shop.t",
                    kind="table",
                    filter="city = 'Rome'",
                    masks={"card": "show-last-4"},
                    to=NamedPrincipals(users=("ana",)),
                )
                client.restrictions.set(
                    "b", f"{name}.shop.t", kind="table", filter="city = 'Oslo'", to=NamedPrincipals(users=("bob",))
                )
            for user in ("ana", "bob"):
                client.roles.grant_to_user(user, ["readers"])
            yield running


@pytest.fixture(scope="module")
def ana(server: LiveServer, store: ObjectStoreServer) -> Iterator[Reader]:
    """Ana."""
    reader = Reader(server, store, "ana")
    yield reader
    reader.http.close()


@pytest.fixture(scope="module")
def bob(server: LiveServer, store: ObjectStoreServer) -> Iterator[Reader]:
    """Bob."""
    reader = Reader(server, store, "bob")
    yield reader
    reader.http.close()


def _own(store: ObjectStoreServer, catalog: str = "ice") -> list[str]:
    """Return the names of all files of the table: metadata, manifest lists, a manifest, data."""
    own_names = [name for name in store.names(f"{catalog}/") if "restricted-reads" not in name]
    assert len(own_names) >= 5
    return own_names


def _files(plan: Json) -> list[str]:
    return [each["data-file"]["file-path"].removeprefix(f"s3://{BUCKET}/") for each in plan["file-scan-tasks"]]


def test_a_plans_credentials_read_its_files(ana: Reader) -> None:
    """The plan's credentials, which are for the directory of its files, read the rewritten files."""
    plan = ana.planned()
    (file,) = _files(plan)
    data = ana.outcome(plan, "get_object", file)["Body"].read()

    assert pq.read_table(io.BytesIO(data)).to_pylist() == [
        {"id": 1, "city": "Rome", "card": "xxxxx2222"},
        {"id": 3, "city": "Rome", "card": "xxxxx6666"},
    ]
    assert file.startswith(plan["storage-credentials"][0]["prefix"].removeprefix(f"s3://{BUCKET}/"))
    assert "/restricted-reads/" in file


@pytest.mark.parametrize("source", ["plan", "load"])
def test_credentials_allow_no_other_files_and_no_writes(
    ana: Reader, bob: Reader, store: ObjectStoreServer, source: str
) -> None:
    """The credentials of a plan and of a load open neither the table's own files nor files rewritten for other users,
    and allow no writes.
    """
    scan_plan, others = ana.planned(), _files(bob.planned())
    plan = scan_plan if source == "plan" else ana.loaded()
    (own,) = _files(scan_plan)
    table = _own(store)

    reads = {ana.outcome(plan, "get_object", name) for name in (*table, *others)}
    lists = {
        ana.outcome(plan, "list_objects_v2", place)
        for place in ("", "ice/", table[0].rpartition("/")[0], others[0].rpartition("/")[0])
    }
    writes = {ana.outcome(plan, "put_object", name, Body=b"x") for name in (own, f"{own}2", table[0])}
    deletes = {ana.outcome(plan, "delete_object", name) for name in (own, table[0])}
    assert (reads, lists, writes, deletes) == ({"AccessDenied"},) * 2 + ({"AccessDenied"},) * 2


@pytest.mark.parametrize("by", [VENDED, SIGNED])
@pytest.mark.parametrize("catalog", ["ice", "signs"])
def test_restricted_user_gets_no_table_credentials_or_signatures(
    ana: Reader, store: ObjectStoreServer, catalog: str, by: str
) -> None:
    """Loading returns at most credentials for rewritten files, refreshing is refused, and no request is signed, for the
    table's files and for the rewritten ones.
    """
    loaded = ana.ask("GET", by=by, catalog=catalog)
    assert loaded.status_code == 200
    assert loaded.json()["config"]["scan-planning-mode"] == "server"
    if (catalog, by) == ("ice", VENDED):
        assert "/restricted-reads/" in loaded.json()["storage-credentials"][0]["prefix"]
    else:
        assert set(loaded.json()["config"]) == {"scan-planning-mode"}
        assert "storage-credentials" not in loaded.json()
    assert ana.ask("GET", "/credentials", by=by, catalog=catalog).status_code == 403
    plan = ana.ask("POST", "/plan", {}, by=by, catalog=catalog).json()

    assert ("storage-credentials" in plan) == (catalog == "ice" and by == VENDED)
    for name in (*_own(store, catalog), *_files(plan)):
        uri = f"{store.uri}/{BUCKET}/{quote(name)}"
        body = {"method": "GET", "region": "us-east-1", "uri": uri, "headers": {}, "provider": "s3"}
        answer = ana.ask("POST", "/sign", body, by=by, catalog=catalog)
        assert answer.status_code == 403, answer.text


def test_pyiceberg_reads_with_the_credentials_of_a_load(server: LiveServer, ana: Reader) -> None:
    """PyIceberg, which ignores a plan's credentials, reads the rewritten files with those that came with the table; an
    entity tag is not current after they have changed.
    """
    token = ana.http.headers["Authorization"].removeprefix("Bearer ")
    catalog = load_catalog("ice", type="rest", uri=f"{server.uri}/iceberg", warehouse="ice", token=token)
    rows = catalog.load_table("shop.t").scan().to_arrow().to_pylist()

    assert rows == [
        {"id": 1, "city": "Rome", "card": "xxxxx2222"},
        {"id": 3, "city": "Rome", "card": "xxxxx6666"},
    ]
    plain, vended = (ana.ask("GET", by=by).headers["etag"] for by in ("", VENDED))
    assert plain != vended


def test_salted_plans_are_read_with_the_credentials_of_a_load(
    server: LiveServer, ana: Reader, store: ObjectStoreServer
) -> None:
    """The credentials of a load open the directories of plans with a salt of their own, too."""
    only = NamedPrincipals(users=("ana",))
    with Client(server.uri, token=server.token) as client:
        client.restrictions.set("s", "ice.shop.t", kind="table", masks={"card": "sha-256-query-local"}, to=only)
        try:
            (file,) = _files(ana.planned())
            data = ana.outcome(ana.loaded(), "get_object", file)["Body"].read()
        finally:
            client.restrictions.remove("s", "ice.shop.t", kind="table")

    assert pq.read_table(io.BytesIO(data)).column_names == ["id", "city", "card"]
    assert ana.outcome(ana.loaded(), "get_object", file) == "AccessDenied"


def test_keys_of_the_catalog_are_in_no_answer(ana: Reader, store: ObjectStoreServer) -> None:
    """No answer to a restricted user contains the catalog's keys, its role, or a name of the table's files."""
    answers = [
        ana.ask("GET"),
        ana.ask("POST", "/plan", {}),
        ana.ask("GET", "/credentials"),
        ana.ask("POST", "/plan", {"stats-fields": ["id", "city", "card"]}),
    ]
    own = [name.rpartition("/")[2] for name in _own(store)]

    for answer in answers:
        assert not [each for each in (*store.keys, "role/tables", *own) if each in answer.text]


def test_expired_plan_credentials_are_refused(ana: Reader, store: ObjectStoreServer) -> None:
    """Expired credentials of a plan open nothing; the next plan has new ones for the same file."""
    plan = ana.planned()
    store.end_all()
    (file,) = _files(plan)

    assert ana.outcome(plan, "get_object", file) != 200
    assert isinstance(ana.outcome(plan, "get_object", file), str)


def test_restricted_user_cannot_create_at_restricted_locations(ana: Reader, store: ObjectStoreServer) -> None:
    """A restricted user cannot create or stage a table at, in or above the restricted table's location or the directory
    of rewritten files, because it would get credentials for them.
    """
    data = next(name for name in _own(store) if name.endswith(".parquet"))
    table = data.rpartition("/data/")[0]
    aside = _files(ana.planned())[0].rpartition("/")[0]
    fields = [{"id": 1, "name": "id", "required": False, "type": "long"}]
    for place in (table, f"{table}/data", table.rpartition("/")[0], "ice", aside, "ice/restricted-reads"):
        for staged in (True, False):
            schema = {"type": "struct", "fields": fields}
            body = {"name": "spy", "schema": schema, "location": f"s3://{BUCKET}/{place}", "stage-create": staged}
            at = "/iceberg/v1/lake.ice/namespaces/shop/tables"
            answer = ana.http.post(at, json=body, headers={"X-Iceberg-Access-Delegation": VENDED})

            assert staged or answer.status_code in (400, 409), (place, answer.text)
            assert "s3.access-key-id" not in answer.text, (place, answer.text)
