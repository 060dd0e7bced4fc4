# SPDX-License-Identifier: Apache-2.0
"""Vended Google tokens over Iceberg REST: limited to one table's location and the caller's rights, cached while valid,
renewed, and checked.
"""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from limnos.config.settings import StorageSection
from tests.gcs import BUCKET, GcsServer, gcs
from tests.http.driver import API, OWN, DriverAnswer, DriverNode, grant, node_at
from tests.http.iceberg.wire import SCHEMA, space_path, table_path

pytestmark = pytest.mark.integration  # an object store is served
ROOT = "/iceberg/v1/lake.cloud"
TABLE = table_path("a", "t", root=ROOT)
ASKED = {"x_iceberg_access_delegation": "vended-credentials"}


@pytest.fixture(scope="module")
def store() -> Iterator[GcsServer]:
    """An object store with a token service."""
    with gcs() as object_store:
        yield object_store


@pytest.fixture
def node(store: GcsServer, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[DriverNode]:
    """A node with the tables `a.t` and `a.t2` in a catalog that vends tokens; ana reads, ben writes, eve does both."""
    store.away = 0
    storage = StorageSection(allowed_roots=("gs://lake",), allowed_endpoints=(store.uri,), timeout_s=60.0)
    place = f"gs://lake/{re.sub('[^a-z0-9_]+', '-', request.node.name)}"  # files of another test are nobody's
    with node_at(tmp_path / "data", storage=storage) as running:
        body = {
            "name": "cloud",
            "type": "relational",
            "provider": "lakehouse-iceberg",
            "properties": {**store.properties, "warehouse": place},
        }
        running.done("POST", f"{API}/lake/catalogs", body)
        running.done("POST", f"{ROOT}/namespaces", {"namespace": ["a"]})
        for name in ("t", "t2"):
            table = {"name": name, "schema": SCHEMA, "location": f"{place}/{name}"}
            running.done("POST", f"{space_path('a', root=ROOT)}/tables", table)
        use = "use_catalog use_schema"
        for user, rights in (("ana", "select_table"), ("ben", "modify_table"), ("eve", "select_table modify_table")):
            grant(running, user, f"{use} {rights}", kind="CATALOG", on="cloud")
        grant(running, "nan", use, kind="CATALOG", on="cloud")
        yield running


def load(node: DriverNode, user: str = "admin", path: str = TABLE) -> DriverAnswer:
    """Load a table with a request for credentials."""
    return node.get(path, user=user, **ASKED)


def token_of(answer: DriverAnswer) -> str:
    """Return the token in an answer. It must be the same in its configuration and its list of credentials."""
    assert answer.status == 200, answer
    (entry,) = answer.json()["storage-credentials"]
    assert answer.json().get("config", entry["config"]) == entry["config"]
    return str(entry["config"]["gcs.oauth2.token"])


def asks(store: GcsServer, token: str, method: str, path: str, data: bytes | None = None) -> int:
    """Send a request to the store with a token."""
    kind = 'multipart/related; boundary="==0=="'
    request = urllib.request.Request(
        f"{store.uri}{path}", data, {"authorization": f"Bearer {token}", "content-type": kind}, method=method
    )
    try:
        with urllib.request.urlopen(request) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def opened(store: GcsServer, token: str, place: str) -> dict[str, bool]:
    """Return whether a token allows each operation at a location: reading rows and metadata, writing, deleting,
    listing.
    """
    for name in ("data/f", "metadata/f"):
        store.files[f"{place}/{name}"] = b"x"

    def at(name: str) -> str:
        return f"/storage/v1/b/{BUCKET}/o/{quote(f'{place}/{name}', safe='')}"

    written = b"--==0==\n\n" + json.dumps({"name": f"{place}/data/g"}).encode() + b"\n--==0==\n\nx\n--==0==--"
    return {
        "rows": asks(store, token, "GET", at("data/f")) == 200,
        "metadata": asks(store, token, "GET", at("metadata/f")) == 200,
        "write": asks(store, token, "POST", f"/upload/storage/v1/b/{BUCKET}/o?uploadType=multipart", written) == 200,
        "delete": asks(store, token, "DELETE", at("data/f")) == 200,
        "list": asks(store, token, "GET", f"/storage/v1/b/{BUCKET}/o?prefix={place}/data/") == 200,
    }


def place_of(node: DriverNode, path: str = TABLE) -> str:
    """Return the location of a table in the bucket."""
    return str(node.get(path).json()["metadata"]["location"]).removeprefix("gs://lake/")


EVERYTHING = dict.fromkeys(("rows", "metadata", "write", "delete", "list"), True)
NOTHING = dict.fromkeys(EVERYTHING, False)


@pytest.mark.parametrize(
    "user, expected",
    [
        ("eve", EVERYTHING),
        ("ana", EVERYTHING | {"write": False, "delete": False}),
    ],
)
def test_tokens_match_the_callers_privileges(
    store: GcsServer, node: DriverNode, user: str, expected: dict[str, bool]
) -> None:
    """Readers' tokens allow reading, and those of users who read and write also writing. Renewed tokens allow the same,
    and no token allows access to other locations.
    """
    place = place_of(node)
    for answer in (load(node, user), node.get(f"{TABLE}/credentials", user=user)):
        assert opened(store, token_of(answer), place) == expected
        assert opened(store, token_of(answer), f"{place}2") == NOTHING  # its name has the same prefix
        assert opened(store, token_of(answer), f"{place.rpartition('/')[0]}/else") == NOTHING
        assert answer.headers["cache-control"] == "no-store"


def test_caller_without_table_privileges_gets_no_token(store: GcsServer, node: DriverNode) -> None:
    """A user of the catalog without rights on the table gets no token over any route, and one who may only write loads
    the table without a token. No answer has the account's key or token.
    """
    before = store.exchanges
    for path in (TABLE, f"{TABLE}/credentials"):
        answer = node.get(path, user="ben", **ASKED)
        assert (answer.status, b"gcs.oauth2" in answer.body) == (200, False)
    assert [each.status for each in (load(node, "nan"), node.get(f"{TABLE}/credentials", user="nan"))] in (
        [403, 403],
        [404, 404],
    )
    assert store.exchanges == before

    bodies = [
        load(node).body.decode(),
        node.get(f"{API}/lake/catalogs/cloud").body.decode(),
        node.get(f"{ROOT}/../config?warehouse=lake/cloud").body.decode(),
    ]
    own = [token for token, rules in store.tokens.items() if rules is None]
    assert not [each for each in bodies if "PRIVATE KEY" in each or any(f'"{token}"' in each for token in own)]


def test_equal_requests_share_a_renewable_token(store: GcsServer, node: DriverNode) -> None:
    """Equal requests share a token, which has its expiry and renewal URL, also over Gravitino REST."""
    first, again = token_of(load(node, "ana")), token_of(node.get(f"{TABLE}/credentials", user="ana"))
    assert first == again
    config = load(node, "ana").json()["config"]
    assert config["gcs.oauth2.refresh-credentials-endpoint"] == "v1/lake.cloud/namespaces/a/tables/t/credentials"
    assert int(config["gcs.oauth2.token-expires-at"]) > 1_700_000_000_000
    assert (config["gcs.project-id"], config["gcs.service.host"]) == ("project", store.uri)
    assert not [key for key in config if key.startswith("s3.")]
    (credential,) = node.get(f"{API}/lake/objects/table/cloud.a.t/credentials", user="ana").json()["credentials"]
    assert (credential["credentialType"], credential["credentialInfo"]) == ("gcs-token", {"token": first})


@pytest.mark.parametrize("away, word", [(503, "does not answer"), (400, "refused by its token service")])
def test_token_service_failure_only_affects_vending(store: GcsServer, node: DriverNode, away: int, word: str) -> None:
    """If the token service is unreachable or refuses, the message says what to check; loads without credentials
    work.
    """
    store.away = away
    answer = load(node, "eve")
    assert (answer.status, word in answer.body.decode()) == (503, True)
    assert "invalid_grant" not in answer.body.decode()
    assert node.get(TABLE, user="eve").status == 200
    store.away = 0
    assert token_of(load(node, "eve"))


def test_storage_check_tests_the_vended_token(store: GcsServer, node: DriverNode) -> None:
    """`storage check` tests access with the account's key and with a vended token, which must not allow access to other
    locations.
    """
    report = node.done("POST", f"{OWN}/metalakes/lake/catalogs/cloud/storage/check")
    steps = {each["name"]: each["outcome"] for each in report["steps"]}

    assert set(steps.values()) == {"passed"}, report
    assert {"vend", "vended write", "vended read beside", "vended delete beside"} <= set(steps)
    assert not [key for key in store.files if "limnos-check" in key]


def test_unsafe_gcs_account_properties_are_refused(store: GcsServer, node: DriverNode) -> None:
    """Addresses that are not allowed, the account of the environment, and malformed keys are refused."""
    place = {"warehouse": "gs://lake/bad"}
    for properties, word in (
        ({**store.properties, "gcs.token-service-endpoint": "http://127.0.0.1:1"}, "allow-endpoint"),
        ({"gcs.token-service-endpoint": store.uri, "gcs.vended-credentials-enabled": "true"}, "environment"),
        ({"gcs.service-account-key": "{}"}, "service account"),
    ):
        body = {
            "name": "bad",
            "type": "relational",
            "provider": "lakehouse-iceberg",
            "properties": {**place, **properties},
        }
        answer = node.post(f"{API}/lake/catalogs", body)
        assert (answer.status, word in answer.body.decode()) == (400, True), answer.body.decode()
