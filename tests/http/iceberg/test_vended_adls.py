# SPDX-License-Identifier: Apache-2.0
"""Vended Azure SAS tokens over Iceberg REST: limited to one table's directory and the caller's rights, cached while
valid, renewed, and tested by the storage check.
"""

from __future__ import annotations

import json
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, quote

import pytest
from pyiceberg.io.fsspec import FsspecFileIO

from limnos.config.settings import StorageSection
from tests.adls import ACCOUNT, CONTAINER, PLACE, SECRET, AdlsServer, adls
from tests.http.driver import API, OWN, DriverAnswer, DriverNode, grant, node_at
from tests.http.iceberg.wire import SCHEMA, space_path, table_path

pytestmark = pytest.mark.integration  # an object store is served
ROOT = "/iceberg/v1/lake.cloud"
TABLE = table_path("a", "t", root=ROOT)
ASKED = {"x_iceberg_access_delegation": "vended-credentials"}
HOST = f"{ACCOUNT}.dfs.core.windows.net"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdlsServer]:
    """An object store with an identity service."""
    with adls(tmp_path_factory.mktemp("adls")) as object_store:
        yield object_store


@pytest.fixture(autouse=True)
def _believed(store: AdlsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trust the identity service's certificate, and use its address."""
    store.away = 0
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(store.authority))
    monkeypatch.setenv("AZURE_AUTHORITY_HOST", f"https://{store.host}")
    monkeypatch.setenv("NO_PROXY", "localhost")


@pytest.fixture(params=["by_key"])
def node(store: AdlsServer, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[DriverNode]:
    """A node with the tables `a.t` and `a.t2` in a catalog that vends signatures; ana reads, ben writes, eve does
    both.
    """
    storage = StorageSection(allowed_roots=(PLACE,), allowed_endpoints=(f"https://{store.host}",), timeout_s=60.0)
    place = f"{PLACE}/{re.sub('[^a-z0-9_]+', '-', request.node.name)}/{request.param}"  # nobody's files
    with node_at(tmp_path / "data", storage=storage) as running:
        properties = {**getattr(store, request.param), "warehouse": place}
        body = {"name": "cloud", "type": "relational", "provider": "lakehouse-iceberg", "properties": properties}
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
    """Return the SAS token in an answer. It must be the same in its configuration and its list of credentials."""
    assert answer.status == 200, answer
    (entry,) = answer.json()["storage-credentials"]
    assert answer.json().get("config", entry["config"]) == entry["config"]
    return str(entry["config"][f"adls.sas-token.{HOST}"])


def asks(store: AdlsServer, token: str, method: str, path: str, data: bytes | None = None) -> bool:
    """Send a request to the store with a SAS token. Returns whether it succeeded."""
    sign = "&" if "?" in path else "?"
    url = f"https://{store.host}/{CONTAINER}{path}{sign}{token}"
    request = urllib.request.Request(url, data, {"x-ms-blob-type": "BlockBlob"}, method=method)
    try:
        with urllib.request.urlopen(request, context=ssl.create_default_context(cafile=str(store.authority))):
            return True
    except urllib.error.HTTPError as error:
        error.close()
        if error.code != 403:
            raise
        return False


def opened(store: AdlsServer, token: str, place: str) -> dict[str, bool]:
    """Return whether a SAS token allows each operation at a location: reading rows and metadata, writing, deleting,
    listing.
    """
    for name in ("data/f", "metadata/f"):
        store.files[f"{place}/{name}"] = b"x"
    at = f"/{quote(place)}"
    return {
        "rows": asks(store, token, "GET", f"{at}/data/f"),
        "metadata": asks(store, token, "GET", f"{at}/metadata/f"),
        "write": asks(store, token, "PUT", f"{at}/data/g", b"x"),
        "delete": asks(store, token, "DELETE", f"{at}/data/f"),
        "list": asks(store, token, "GET", f"?restype=container&comp=list&prefix={quote(place)}/data/"),
    }


def place_of(node: DriverNode, path: str = TABLE) -> str:
    """Return the location of a table in the container."""
    return str(node.get(path).json()["metadata"]["location"]).removeprefix(f"{PLACE}/")


EVERYTHING = dict.fromkeys(("rows", "metadata", "write", "delete", "list"), True)
NOTHING = dict.fromkeys(EVERYTHING, False)


BOTH = pytest.mark.parametrize("node", ["by_key", "by_program"], indirect=True)
"""Run each test with the account's key, and with a service principal of the account."""


@BOTH
@pytest.mark.parametrize(
    "user, expected", [("eve", EVERYTHING), ("ana", EVERYTHING | {"write": False, "delete": False})]
)
def test_sas_tokens_match_the_callers_privileges(
    store: AdlsServer, node: DriverNode, user: str, expected: dict[str, bool]
) -> None:
    """Readers' tokens allow reading, and writers' tokens also writing. A renewed token allows the same, and no token
    allows access to other locations.
    """
    place = place_of(node)
    for answer in (load(node, user), node.get(f"{TABLE}/credentials", user=user)):
        assert opened(store, token_of(answer), place) == expected
        assert opened(store, token_of(answer), f"{place}2") == NOTHING  # its name has the same prefix
        assert opened(store, token_of(answer), f"{place.rpartition('/')[0]}/else") == NOTHING
        assert answer.headers["cache-control"] == "no-store"


def test_caller_without_read_privilege_gets_no_sas_token(store: AdlsServer, node: DriverNode) -> None:
    """A user who may only write loads the table without a token, and one without rights is refused. No answer has the
    account's secrets.
    """
    lent = store.lent
    for path in (TABLE, f"{TABLE}/credentials"):
        assert node.get(path, user="nan", **ASKED).status in (403, 404)
        answer = node.get(path, user="ben", **ASKED)
        assert (answer.status, b"adls.sas-token" in answer.body) == (200, False)
    assert store.lent == lent

    bodies = [load(node).body.decode(), node.get(f"{API}/lake/catalogs/cloud").body.decode()]
    assert not [each for each in bodies if store.key in each or SECRET in each or store.lent_key in each]


def test_equal_requests_share_a_renewable_sas_token(store: AdlsServer, node: DriverNode) -> None:
    """Equal requests share a token, which has its expiry and renewal URL, also over Gravitino REST."""
    first, again = token_of(load(node, "ana")), token_of(node.get(f"{TABLE}/credentials", user="ana"))
    assert first == again
    config = load(node, "ana").json()["config"]
    assert config["adls.refresh-credentials-endpoint"] == "v1/lake.cloud/namespaces/a/tables/t/credentials"
    words = {key: values[0] for key, values in parse_qs(first).items()}
    assert (words["sr"], words["sp"], words["sdd"]) == ("d", "rl", "3")
    assert int(config[f"adls.sas-token-expires-at-ms.{HOST}"]) > 1_700_000_000_000
    assert config["adls.account-host"] == store.host
    assert not [key for key in config if not key.startswith("adls.")]
    (credential,) = node.get(f"{API}/lake/objects/table/cloud.a.t/credentials", user="ana").json()["credentials"]
    assert credential["credentialType"] == "adls-token"
    assert credential["credentialInfo"] == {"adls-sas-token": first, "azure-storage-account-name": ACCOUNT}


@BOTH
def test_storage_check_tests_the_vended_sas_token(store: AdlsServer, node: DriverNode) -> None:
    """`storage check` tests access as the account and with a vended token, which must not allow access to other
    locations.
    """
    report = node.done("POST", f"{OWN}/metalakes/lake/catalogs/cloud/storage/check")
    steps = {each["name"]: each["outcome"] for each in report["steps"]}

    assert set(steps.values()) == {"passed"}, report
    assert {"vend", "vended write", "vended read beside", "vended delete beside"} <= set(steps)
    assert not [key for key in store.files if "limnos-check" in key]


def test_pyiceberg_reads_and_writes_with_a_sas_token_only(store: AdlsServer, node: DriverNode) -> None:
    """PyIceberg can read and write with only the vended token of the table's answer, within the caller's rights."""
    loaded, beside = load(node, "eve").json(), node.get(table_path("a", "t2", root=ROOT)).json()
    mine, hers = (FsspecFileIO(load(node, user).json()["config"]) for user in ("eve", "ana"))
    fresh = f"{loaded['metadata']['location']}/data/fresh"
    with mine.new_output(fresh).create() as stream:
        stream.write(b"rows")
    with hers.new_input(fresh).open() as rows, hers.new_input(loaded["metadata-location"]).open() as metadata:
        assert rows.read() == b"rows"
        assert json.loads(metadata.read())["table-uuid"] == loaded["metadata"]["table-uuid"]

    with pytest.raises(Exception, match=r"403|Forbidden|AuthorizationPermissionMismatch"):
        hers.new_input(beside["metadata-location"]).open().read()
    with (
        pytest.raises(Exception, match=r"403|Forbidden|AuthorizationPermissionMismatch"),
        hers.new_output(f"{fresh}2").create() as stream,
    ):
        stream.write(b"rows")
    assert [name for name in store.files if name.endswith("fresh2")] == []


@pytest.mark.parametrize("node", ["by_program"], indirect=True)
@pytest.mark.parametrize("away, word", [(503, "does not answer"), (400, "refused by Azure")])
def test_identity_service_failure_only_affects_vending(
    store: AdlsServer, node: DriverNode, away: int, word: str
) -> None:
    """If the identity service is unreachable or refuses, the message says what to check; loads without credentials
    work.
    """
    store.away = away
    answer = load(node, "eve")
    assert (answer.status, word in answer.body.decode()) == (503, True), answer.body
    assert SECRET not in answer.body.decode()
    assert node.get(TABLE, user="eve").status == 200
    store.away = 0
    assert token_of(load(node, "eve"))


def test_unsafe_adls_account_properties_are_refused(store: AdlsServer, node: DriverNode) -> None:
    """Addresses that are not allowed, the environment's identity, incomplete identities and malformed keys are
    refused.
    """
    on = {"adls.vended-credentials-enabled": "true"}
    for properties, word in (
        ({**store.by_key, "adls.account-host": "localhost:1"}, "allow-endpoint"),
        ({**store.by_key, "adls.account-host": f"{store.host}/@evil.example"}, "allow-endpoint"),
        ({**on, "adls.account-host": store.host}, "environment"),
        ({**on, "adls.client-id": "x"}, "go together"),
        ({"adls.account-key": "no key"}, "not an account key"),
    ):
        body = {
            "name": "bad",
            "type": "relational",
            "provider": "lakehouse-iceberg",
            "properties": {"warehouse": f"{PLACE}/bad", **properties},
        }
        answer = node.post(f"{API}/lake/catalogs", body)
        assert (answer.status, word in answer.body.decode()) == (400, True), answer.body.decode()
