# SPDX-License-Identifier: Apache-2.0
"""Storage of a catalog: encrypted secrets, key rotation, named storages of the settings, and the storage check."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from limnos.config.storage import StorageSection
from limnos.model.permits import upkeep_permit
from limnos.services.vending.credentials import VENDOR, CredentialRequest, IssuedCredentials
from limnos.store.sql import Sql
from tests.http.driver import API, OWN, DriverNode, grant, node_at
from tests.http.iceberg.wire import SCHEMA, space_path, table_path
from tests.objects import BUCKET, ObjectStoreServer, RequestFault, objects

pytestmark = pytest.mark.integration  # an object store is served
ROOT = "/iceberg/v1/lake.cloud"
TABLE = table_path("a", "t", root=ROOT)
KEYS = f"{OWN}/storage/keys"
CHECK = f"{OWN}/metalakes/lake/catalogs/cloud/storage/check"
SECRET = "Tr0ub4dor-and-3"
ASKED = {"x_iceberg_access_delegation": "vended-credentials"}


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStoreServer]:
    """An object store with a token service."""
    with objects() as object_store:
        yield object_store


@pytest.fixture
def storage(store: ObjectStoreServer) -> StorageSection:
    """Return settings that allow the object store and define it as a named storage."""
    store.is_away, store.is_lax, store.trouble = False, False, None
    named = {"locations": "s3://lake/named", **store.properties}
    return StorageSection(
        allowed_roots=("s3://lake/free",),
        allowed_endpoints=(store.uri,),
        timeout_s=60.0,
        named={"big": named, "ours": {**named, "metalakes": "pond, lake"}, "theirs": {**named, "metalakes": "pond"}},
    )


def make_catalog(node: DriverNode, name: str = "cloud", **properties: str) -> None:
    """Create an Iceberg catalog."""
    body = {"name": name, "type": "relational", "provider": "lakehouse-iceberg", "properties": properties}
    node.done("POST", f"{API}/lake/catalogs", body)


def make_table(node: DriverNode, root: str = ROOT) -> None:
    """Create the table `a.t`."""
    node.done("POST", f"{root}/namespaces", {"namespace": ["a"]})
    node.done("POST", f"{space_path('a', root=root)}/tables", {"name": "t", "schema": SCHEMA})


def owned(store: ObjectStoreServer) -> dict[str, str]:
    """Return properties of a catalog with its own keys; the store accepts any secret."""
    return {**store.properties, "s3.secret-access-key": SECRET, "warehouse": "s3://lake/free/w"}


def everything_in(data: Path) -> bytes:
    """Return the bytes of all files in the server's data directory."""
    return b"".join(each.read_bytes() for each in sorted(data.iterdir()) if each.is_file())


@pytest.mark.room("exchange")
def test_no_file_holds_a_secret(store: ObjectStoreServer, storage: StorageSection, tmp_path: Path) -> None:
    """Secrets of created, altered and imported catalogs are in no file in clear text. The key file is private and read
    at each start.
    """
    data = tmp_path / "data"
    with node_at(data, storage=storage) as node:
        make_catalog(node, **owned(store))
        make_catalog(node, "other", warehouse="s3://lake/free/o", uri=f"http://u:{SECRET}@h/x")
        node.done(
            "PUT",
            f"{API}/lake/catalogs/other",
            {"updates": [{"@type": "setProperty", "property": "token", "value": SECRET}]},
        )
        make_table(node)
        exported = node.get(f"{OWN}/metalakes/lake/export?format=json&secrets=true").body
        assert SECRET.encode() not in everything_in(data)
        assert b"AKIA" not in everything_in(data)
        properties = node.get(f"{API}/lake/catalogs/other").json()["catalog"]["properties"]
        assert (properties["token"], properties["uri"]) == ("******", "http://u:******@h/x")
        assert exported.count(SECRET.encode()) == 3
        assert b"limnos-sealed" not in exported
    assert (data / "secrets.key").stat().st_mode & 0o777 == 0o600

    with node_at(data, storage=storage) as node:
        assert node.get(TABLE, **ASKED).json()["storage-credentials"]
        (key,) = node.get(KEYS).json()["keys"]
    assert (key["seals"], key["catalogs"]) == (True, 2)
    assert SECRET.encode() not in everything_in(data)


def test_key_rotation_reencrypts_all_secrets(store: ObjectStoreServer, storage: StorageSection, tmp_path: Path) -> None:
    """A rotation encrypts all secrets with a new key, also unencrypted ones of earlier releases, and changes nothing
    else.
    """
    data, none = tmp_path / "data", tmp_path / "none"
    none.touch(0o600)
    with node_at(data, storage=storage.model_copy(update={"key_file": str(none)})) as node:
        make_catalog(node, **owned(store))
        assert node.get(KEYS).json() == {"keys": [], "lacking": [], "plain": 1, "made_here": False}
        assert node.post(f"{KEYS}/rotate").status == 405
    assert SECRET.encode() in everything_in(data)

    with node_at(data, storage=storage) as node:
        make_table(node)
        (first,) = node.get(KEYS).json()["keys"]
        answer = node.post(f"{KEYS}/rotate").json()
        assert [(key["seals"], key["catalogs"]) for key in answer["keys"]] == [(False, 0), (True, 1)]
        assert (answer["sealed"], answer["plain"], answer["keys"][0]["id"]) == (1, 0, first["id"])
        again = node.post(f"{KEYS}/rotate").json()
        assert [key["catalogs"] for key in again["keys"]] == [0, 0, 1]
        assert node.get(TABLE, **ASKED).json()["storage-credentials"]
        assert (
            node.get(f"{API}/lake/catalogs/cloud").json()["catalog"]["properties"]["s3.secret-access-key"] == "******"
        )


def test_missing_key_fails_only_requests_that_need_its_secrets(
    store: ObjectStoreServer, storage: StorageSection, tmp_path: Path
) -> None:
    """If a key is missing, requests that need the catalog's secrets fail with the key's id, and other requests succeed.
    Setting the secrets again repairs the catalog.
    """
    data = tmp_path / "data"
    with node_at(data, storage=storage) as node:
        make_catalog(node, **owned(store))
        make_table(node)
    (data / "secrets.key").unlink()

    with capture_logs() as log_lines, node_at(data, storage=storage) as node:
        make_catalog(node, "fine", **{**owned(store), "warehouse": "s3://lake/free/f"})
        answer = node.get(KEYS).json()
        (lost,) = answer["lacking"]
        refused = node.get(TABLE, **ASKED)
        assert refused.status == 400
        assert lost["id"] in refused.body.decode()
        assert [(line["key"], line["catalogs"]) for line in log_lines if "key" in line] == [(lost["id"], 1)]
        assert node.get(TABLE).status == 200
        steps = node.post(CHECK).json()["steps"]
        assert lost["id"] in steps[0]["told"]
        make_table(node, "/iceberg/v1/lake.fine")
        updates = [
            {"@type": "setProperty", "property": name, "value": value}
            for name, value in owned(store).items()
            if "key" in name
        ]
        node.done("PUT", f"{API}/lake/catalogs/cloud", {"updates": updates})
        assert node.get(TABLE, **ASKED).json()["storage-credentials"]
        assert node.get(KEYS).json()["lacking"] == []


def test_catalog_uses_a_named_storage_without_showing_keys(
    store: ObjectStoreServer, storage: StorageSection, tmp_path: Path
) -> None:
    """Tables of a catalog with a named storage use its locations and keys, and vend credentials. No answer shows the
    keys, and the database does not contain them.
    """
    with node_at(tmp_path / "data", storage=storage) as node:
        make_catalog(node, warehouse="s3://lake/named/w", storage="ours")
        make_table(node)
        grant(node, "ana", "use_catalog use_schema select_table", kind="CATALOG", on="cloud")
        config = node.get(TABLE, user="ana", **ASKED).json()["storage-credentials"][0]["config"]
        assert config["s3.endpoint"] == store.uri
        properties = node.get(f"{API}/lake/catalogs/cloud").json()["catalog"]["properties"]
        assert properties == {
            "warehouse": "s3://lake/named/w",
            "storage": "ours",
            **{key: properties[key] for key in properties if key == "in-use"},
        }
        defaults = node.get("/iceberg/v1/config?warehouse=cloud", user="ana").json()["defaults"]
        assert defaults["s3.endpoint"] == store.uri
        assert "role" not in json.dumps(config)
        assert not any("secret" in key for key in defaults)
        assert store.uri.encode() not in everything_in(tmp_path / "data")
        assert node.delete(f"{TABLE}?purgeRequested=true").status == 204
        while node.runner.run(node.built.upkeep.run_one()):
            pass
    assert store.names("named/w") == []


@pytest.mark.parametrize(
    "properties, message",
    [
        ({"storage": "none", "warehouse": "s3://lake/named/w"}, "Storage 'none' is not defined on this server"),
        (
            {"storage": "theirs", "warehouse": "s3://lake/named/w"},
            "Storage 'theirs' is not defined on this server for metalake lake",
        ),
        (
            {"storage": "big", "warehouse": "s3://lake/named/w", "s3.endpoint": "https://s3.amazonaws.com"},
            "leave out property 's3.endpoint'",
        ),
        (
            {"storage": "big", "warehouse": "s3://lake/named/w", "s3-access-key-id": "x"},
            "leave out property 's3-access-key-id'",
        ),
        ({"storage": "big", "warehouse": "s3://lake/free/w"}, "not below a root"),
        ({"storage": "big", "warehouse": "s3://lake/named-else/w"}, "not below a root"),
        (
            {"storage": "big", "warehouse": "s3://lake/named/w", "allowed-locations": "s3://lake/free"},
            "not below a root",
        ),
    ],
)
def test_catalog_cannot_override_a_named_storage(
    storage: StorageSection, tmp_path: Path, properties: dict[str, str], message: str
) -> None:
    """A catalog cannot override properties of a named storage, at its creation or later."""
    with node_at(tmp_path / "data", storage=storage) as node:
        body = {"name": "bent", "type": "relational", "provider": "lakehouse-iceberg", "properties": properties}
        refused = node.post(f"{API}/lake/catalogs", body)
        assert (refused.status, message in refused.body.decode()) == (400, True), refused.body
        make_catalog(node, "plain", warehouse="s3://lake/named/w", storage="big")
        updates = [{"@type": "setProperty", "property": key, "value": value} for key, value in properties.items()]
        refused = node.ask("PUT", f"{API}/lake/catalogs/plain", {"updates": updates})
        assert (refused.status, message in refused.body.decode()) == (400, True), refused.body


def test_undefined_named_storage_is_reported_by_name(
    store: ObjectStoreServer, storage: StorageSection, tmp_path: Path
) -> None:
    """If the settings no longer define a catalog's named storage, requests for its files are refused with the storage's
    name.
    """
    with node_at(tmp_path / "data", storage=storage) as node:
        make_catalog(node, warehouse="s3://lake/named/w", storage="big")
    less = storage.model_copy(update={"named": {}, "allowed_roots": ("s3://lake",)})
    with node_at(tmp_path / "data", storage=less) as node:
        node.done("POST", f"{ROOT}/namespaces", {"namespace": ["a"]})
        refused = node.post(f"{space_path('a', root=ROOT)}/tables", {"name": "t", "schema": SCHEMA})
        assert (refused.status, "names storage 'big'" in refused.body.decode()) == (400, True), refused.body


def outcomes(node: DriverNode) -> dict[str, str]:
    """Return the outcome of each step of a check."""
    answer = node.post(CHECK)
    assert answer.status == 200, answer.body
    return {step["name"]: step["outcome"] for step in answer.json()["steps"]}


def test_check_tests_keys_vended_credentials_and_isolation(
    store: ObjectStoreServer, storage: StorageSection, tmp_path: Path
) -> None:
    """A check tests the catalog's keys and vended credentials, tests that the latter cannot access another location,
    and leaves no files.
    """
    with node_at(tmp_path / "data", storage=storage) as node:
        make_catalog(node, **owned(store))
        step_outcomes = outcomes(node)
        assert set(step_outcomes.values()) == {"passed"}
        own = {"write", "list", "read", "delete", "vend"}
        assert set(step_outcomes) == own | {
            f"vended {word}{more}" for word in own - {"vend"} for more in ("", " beside")
        }
        assert not any("limnos-check" in name for name in store.names("free"))


@pytest.mark.parametrize(
    "trouble, step, action",
    [
        (("PUT", "limnos-check"), "write", "s3:PutObject"),
        (("GET", "^lake/?$"), "list", "s3:ListBucket"),
        (("GET", "own/probe$"), "read", "s3:GetObject"),
        (("DELETE", "limnos-check"), "delete", "s3:DeleteObject"),
    ],
)
def test_check_reports_the_missing_policy_statements(  # noqa: PLR0917 - of pytest
    store: ObjectStoreServer, storage: StorageSection, tmp_path: Path, trouble: tuple[str, str], step: str, action: str
) -> None:
    """Each step that the store refuses is reported with the policy statement that would allow it."""
    with node_at(tmp_path / "data", storage=storage) as node:
        make_catalog(node, **{key: value for key, value in owned(store).items() if "role" not in key})
        store.trouble = RequestFault(method=trouble[0], pattern=trouble[1], status="403 Forbidden")
        answer = node.post(CHECK).json()
        store.trouble = None
    steps_by_name = {each["name"]: each for each in answer["steps"]}
    assert (answer["passed"], steps_by_name[step]["outcome"], steps_by_name["vend"]["outcome"]) == (
        False,
        "failed",
        "not tried",
    )
    statement = json.loads(steps_by_name[step]["statement"])
    assert action in statement["Action"]
    assert statement["Resource"] == (f"arn:aws:s3:::{BUCKET}" if step == "list" else f"arn:aws:s3:::{BUCKET}/free/w/*")


def test_check_fails_if_vended_credentials_are_not_isolated(
    store: ObjectStoreServer, storage: StorageSection, tmp_path: Path
) -> None:
    """The check fails if vended credentials can access other locations in the object store."""
    with node_at(tmp_path / "data", storage=storage) as node:
        make_catalog(node, **owned(store))
        store.is_lax = True
        step_outcomes = outcomes(node)
    assert {name for name, outcome in step_outcomes.items() if outcome == "failed"} == {
        f"vended {word} beside" for word in ("read", "list", "write", "delete")
    }


@pytest.mark.parametrize("method, word", [("GET", "read"), ("DELETE", "delete")])
def test_other_failure_beside_the_location_is_no_refusal(
    store: ObjectStoreServer, storage: StorageSection, tmp_path: Path, method: str, word: str
) -> None:
    """If the store fails at another location for another reason than missing rights, the check does not count that as
    isolation: the step fails.
    """
    with node_at(tmp_path / "data", storage=storage) as node:
        make_catalog(node, **owned(store))
        store.trouble = RequestFault(method=method, pattern="own-beside/probe$", status="400 Bad Request")
        step_outcomes = outcomes(node)
        store.trouble = None

    assert step_outcomes[f"vended {word} beside"] == "failed"


def test_credentials_are_not_vended_if_the_right_is_lost_meanwhile(
    store: ObjectStoreServer, storage: StorageSection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the caller loses the right to read the table while the token service issues credentials, the answer has
    none.
    """
    with node_at(tmp_path / "data", storage=storage) as node:
        make_catalog(node, **owned(store))
        make_table(node)
        grant(node, "ana", "use_catalog use_schema", kind="CATALOG", on="cloud")
        role = grant(node, "ana", "select_table", kind="TABLE", on="cloud.a.t")
        vendor = VENDOR.of(node.built.services)
        issue, is_revoked = vendor.issue_credentials, []

        async def revoke_then_issue(request: CredentialRequest) -> IssuedCredentials:
            if not is_revoked:
                is_revoked.append(await node.answer("DELETE", f"{API}/lake/roles/{role}"))
            return await issue(request)

        monkeypatch.setattr(vendor, "issue_credentials", revoke_then_issue)
        answer = node.get(f"{TABLE}/credentials", user="ana", **ASKED)

    assert [each.status for each in is_revoked] == [200]
    assert answer.json()["storage-credentials"] == []


def test_check_reports_an_unreachable_token_service(
    store: ObjectStoreServer, storage: StorageSection, tmp_path: Path
) -> None:
    """If the token service is unreachable, the check still reports the steps that need no vended credentials."""
    with node_at(tmp_path / "data", storage=storage) as node:
        make_catalog(node, **owned(store))
        store.is_away = True
        step_outcomes = outcomes(node)
    assert step_outcomes == {
        "write": "passed",
        "list": "passed",
        "read": "passed",
        "vend": "failed",
        "delete": "not tried",
    }
    store.is_away = False


def test_check_of_local_files_reports_an_unwritable_warehouse(tmp_path: Path) -> None:
    """Local files need no credentials. The check leaves no directory, and an unwritable warehouse is reported."""
    with node_at(tmp_path / "data") as node:
        path = CHECK.replace("cloud", "main")
        answer = node.post(path).json()
        assert [(step["name"], step["outcome"]) for step in answer["steps"]] == [
            ("write", "passed"),
            ("list", "passed"),
            ("read", "passed"),
            ("vend", "not tried"),
            ("delete", "passed"),
        ]
        left = [each for each in (tmp_path / "data" / "warehouse").rglob("*") if "limnos-check" in str(each)]
        assert left == []
        model = {"name": "models", "type": "model", "properties": {}}
        node.done("POST", f"{API}/lake/catalogs", model)
        assert node.post(CHECK.replace("cloud", "models")).status == 400


ONLY_PROD = {"metalakes": "prod", "locations": "s3://lake/named", "s3.region": "us-east-1"}


def takes_storage(node: DriverNode, metalake: str) -> bool:
    """Return whether a new catalog of a metalake may name the storage `prods`, and drop the catalog again."""
    body = {
        "name": "c",
        "type": "FILESET",
        "provider": "fileset",
        "properties": {"storage": "prods", "location": "s3://lake/named/x"},
    }
    answer = node.post(f"{API}/{metalake}/catalogs", body)
    if answer.status == 200:
        assert node.delete(f"{API}/{metalake}/catalogs/c?force=true").status == 200
    else:
        assert f"is not defined on this server for metalake {metalake}" in answer.body.decode()
    return answer.status == 200


def rename(node: DriverNode, metalake: str, name: str) -> None:
    """Rename a metalake."""
    node.done("PUT", f"{API}/{metalake}", {"updates": [{"@type": "rename", "newName": name}]})


def test_renamed_metalake_takes_no_storage_of_a_free_name(tmp_path: Path) -> None:
    """A storage for a metalake that does not exist yet is not for one that takes its name by a rename, also not after a
    restart. It is for the metalake that is created under the name.
    """
    storage = StorageSection(named={"prods": ONLY_PROD})
    with node_at(tmp_path / "data", storage=storage) as node:
        node.done("POST", API, {"name": "beta"})
        rename(node, "beta", "prod")
        assert takes_storage(node, "prod") is False
    with node_at(tmp_path / "data", storage=storage) as node:
        assert takes_storage(node, "prod") is False
        rename(node, "prod", "beta")
        node.done("POST", API, {"name": "prod"})
        assert takes_storage(node, "prod") is True
        assert takes_storage(node, "beta") is False


def test_renamed_metalake_keeps_its_storages(tmp_path: Path) -> None:
    """A renamed metalake keeps the storages that the settings give to its first name, and another one that is created
    under, or renamed to, that name gets none, also after a restart. It gets them once the former one is dropped and it
    is created anew.
    """
    storage = StorageSection(named={"prods": ONLY_PROD})
    with node_at(tmp_path / "data", storage=storage) as node:
        node.done("POST", API, {"name": "prod"})
        rename(node, "prod", "former")
        node.done("POST", API, {"name": "prod"})
        assert [takes_storage(node, each) for each in ("former", "prod")] == [True, False]
    with node_at(tmp_path / "data", storage=storage) as node:
        assert [takes_storage(node, each) for each in ("former", "prod")] == [True, False]
        assert node.delete(f"{API}/former?force=true").status == 200
        assert takes_storage(node, "prod") is False
        assert node.delete(f"{API}/prod?force=true").status == 200
        node.done("POST", API, {"name": "prod"})
        assert takes_storage(node, "prod") is True


def test_metalake_of_an_earlier_release_counts_by_its_name(tmp_path: Path) -> None:
    """A metalake that an earlier release created counts by the name that it has at the first start of this one."""
    storage = StorageSection(named={"prods": ONLY_PROD})
    with node_at(tmp_path / "data", storage=storage) as node:
        node.done("POST", API, {"name": "prod"})
        forget = Sql("DELETE FROM setting_name")
        node.runner.run(node.built.services.store.submit(upkeep_permit("test"), lambda tx: tx.count(forget, {})))
        assert takes_storage(node, "prod") is False
    with node_at(tmp_path / "data", storage=storage) as node:
        rename(node, "prod", "former")
        assert takes_storage(node, "former") is True
