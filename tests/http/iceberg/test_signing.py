# SPDX-License-Identifier: Apache-2.0
"""Request signing over Iceberg REST: the needed privileges, the files that it covers, and an object store that verifies
the signatures.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

import pytest

from limnos.config.storage import StorageSection
from limnos.services.vending.credentials import VENDOR, CredentialRequest, CredentialVendor
from limnos.sources.vending import IssuedCredentials
from tests.http.driver import API, DriverAnswer, DriverNode, grant, node_at
from tests.http.iceberg.wire import SCHEMA, space_path, table_path
from tests.objects import BUCKET, ELSE, ObjectStoreServer, authorized

pytestmark = pytest.mark.integration  # an object store is served
ASKED = {"x_iceberg_access_delegation": "remote-signing"}
KINDS = ("narrow", "wide")
"""Two catalogs. One has a role, so the server signs with a table's vended credentials. The server signs for the other
one with the catalog's keys, which allow access to all locations.
"""
WHO = {"ana": "select_table", "ben": "modify_table", "eve": "select_table modify_table", "zoe": ""}


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStoreServer]:
    """An object store that verifies signatures and the rights of users, roles and sessions."""
    with authorized() as object_store:
        yield object_store


@pytest.fixture(scope="module")
def node(store: ObjectStoreServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DriverNode]:
    """A node with the tables `a.t` and `a.t2` in both catalogs; ana reads, ben writes, eve does both, zoe neither."""
    storage = StorageSection(allowed_roots=("s3://lake",), allowed_endpoints=(store.uri,), timeout_s=60.0)
    with node_at(tmp_path_factory.mktemp("signing") / "data", storage=storage) as running:
        for kind in KINDS:
            properties = {**store.properties, "warehouse": f"s3://lake/{kind}", "s3.remote-signing-enabled": "true"}
            if kind == "wide":
                del properties["s3-role-arn"]
            body = {"name": kind, "type": "relational", "provider": "lakehouse-iceberg", "properties": properties}
            running.done("POST", f"{API}/lake/catalogs", body)
            root = f"/iceberg/v1/lake.{kind}"
            running.done("POST", f"{root}/namespaces", {"namespace": ["a"]})
            for name in ("t", "t2"):
                table = {"name": name, "schema": SCHEMA, "location": f"s3://lake/{kind}/{name}"}
                running.done("POST", f"{space_path('a', root=root)}/tables", table)
            for user, rights in WHO.items():
                grant(running, user, f"use_catalog use_schema {rights}".strip(), kind="CATALOG", on=kind)
        yield running


def table(kind: str, name: str = "t") -> str:
    """Return a table's URL."""
    return table_path("a", name, root=f"/iceberg/v1/lake.{kind}")


def sign(
    node: DriverNode,
    store: ObjectStoreServer,
    kind: str,
    *,
    user: str = "eve",
    method: str = "GET",
    key: str = "data/f",
    **more: object,
) -> DriverAnswer:
    """Request a signature for a name below the table's location."""
    uri = more.pop("uri", f"{store.uri}/{BUCKET}/{kind}/t/{quote(key)}")
    body = {"region": "us-east-1", "uri": uri, "method": method, "headers": {}, **more}
    return node.post(f"{table(kind)}/sign", body, user=user)


def sent(answer: DriverAnswer, method: str, data: bytes | None = None) -> int:
    """Return the store's answer to a request with the signature."""
    assert answer.status == 200, answer.body
    headers = {name: ", ".join(values) for name, values in answer.json()["headers"].items()}
    request = urllib.request.Request(answer.json()["uri"], data=data, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.parametrize("kind", KINDS)
def test_load_announces_request_signing_without_keys(node: DriverNode, kind: str) -> None:
    """A load announces request signing in the current and the former format, without keys. On request, vended
    credentials are returned instead if the catalog vends them. Users who may not read rows get neither.
    """
    answer = node.get(table(kind), user="ana", **ASKED)
    config = answer.json()["config"]

    assert config["s3.signer.endpoint"] == config["signer.endpoint"] == f"{table(kind).removeprefix('/iceberg/')}/sign"
    assert (config["s3.remote-signing-enabled"], config["s3.signer"]) == ("true", "S3V4RestSigner")
    assert answer.json()["remote-signing-config"] == {}
    assert not any("key" in name or "token" in name for name in config)
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["etag"] != node.get(table(kind), user="ana").headers["etag"]
    assert node.get(table(kind), user="ana").json()["config"] == {}
    both = node.get(table(kind), user="ana", x_iceberg_access_delegation="vended-credentials,remote-signing").json()
    assert ("storage-credentials" in both) == (kind == "narrow")
    assert ("remote-signing-config" in both) == (kind == "wide")
    assert node.get(table(kind), user="zoe", **ASKED).status == 403


@pytest.mark.parametrize("kind", KINDS)
def test_signed_requests_are_accepted_by_the_store(node: DriverNode, store: ObjectStoreServer, kind: str) -> None:
    """With signatures and without keys, a client can write, list, read, copy and delete objects, also with unusual
    names and in batches.
    """
    for key in ("data/f", "data/p=a%2Fb/ä +&.parquet"):
        assert sent(sign(node, store, kind, method="PUT", key=key), "PUT", b"x") == 200
        assert sent(sign(node, store, kind, key=key), "GET") == 200
    listed = sign(node, store, kind, uri=f"{store.uri}/{BUCKET}?list-type=2&prefix={kind}%2Ft%2Fdata%2F")
    assert sent(listed, "GET") == 200
    copied = sign(
        node, store, kind, method="PUT", key="data/g", headers={"x-amz-copy-source": [f"{BUCKET}/{kind}/t/data/f"]}
    )
    assert sent(copied, "PUT") == 200
    body = f"<Delete><Object><Key>{kind}/t/data/f</Key></Object><Object><Key>{kind}/t/data/g</Key></Object></Delete>"
    uri = f"{store.uri}/{BUCKET}?delete"
    several = sign(node, store, kind, method="POST", uri=uri, body=body, headers={"Content-Type": ["application/xml"]})
    assert several.status == 200
    (digest,) = several.json()["headers"]["X-Amz-Content-SHA256"]
    assert digest == sha256(body.encode()).hexdigest()  # so that the signature covers the body
    assert sent(several, "POST", body.encode()) == 200
    assert not {f"{kind}/t/data/f", f"{kind}/t/data/g"} & set(store.names(kind))
    assert sent(sign(node, store, kind, method="DELETE", key="data/p=a%2Fb/ä +&.parquet"), "DELETE") == 204


@pytest.mark.parametrize("kind", KINDS)
def test_signature_is_valid_for_one_object_and_method(node: DriverNode, store: ObjectStoreServer, kind: str) -> None:
    """A signature is valid only for its own object name and method."""
    answer = sign(node, store, kind)
    elsewhere = {**answer.json(), "uri": answer.json()["uri"].replace("/t/", "/t2/")}
    assert sent(DriverAnswer(200, {}, json.dumps(elsewhere).encode()), "GET") == 403
    assert sent(answer, "DELETE") == 403


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "user, reads, writes", [("ana", 200, 403), ("ben", 403, 403), ("eve", 200, 200), ("zoe", 403, 403)]
)
def test_signatures_need_the_right_to_read(
    node: DriverNode, store: ObjectStoreServer, kind: str, *, user: str, reads: int, writes: int
) -> None:
    """Signatures to read need SELECT_TABLE, and signatures to write MODIFY_TABLE as well. A user who may only write
    gets none, neither for the metadata directory nor for lists, and a load announces no signing.
    """
    listing = f"{store.uri}/{BUCKET}?prefix={kind}/t/data/"
    assert sign(node, store, kind, user=user).status == reads
    assert sign(node, store, kind, user=user, key="metadata/f").status == reads
    assert sign(node, store, kind, user=user, uri=listing).status == reads
    assert sign(node, store, kind, user=user, uri=f"{store.uri}/{BUCKET}?location").status == reads
    for method in ("PUT", "DELETE"):
        assert sign(node, store, kind, user=user, method=method).status == writes
    copied = {"x-amz-copy-source": [f"{BUCKET}/{kind}/t/data/f"]}
    assert sign(node, store, kind, user=user, method="PUT", headers=copied).status == max(reads, writes)
    announced = b"remote-signing" in node.get(table(kind), user=user, **ASKED).body
    assert announced == (reads == 200)


@pytest.mark.parametrize("kind", KINDS)
def test_requests_outside_the_table_location_are_not_signed(
    node: DriverNode, store: ObjectStoreServer, kind: str
) -> None:
    """Requests outside of the table's location are not signed: locations with the same prefix, parents, other catalogs,
    buckets and stores.
    """
    other = KINDS[kind == KINDS[0]]
    refused = [
        f"{store.uri}/{BUCKET}/{kind}/t2/data/f",
        f"{store.uri}/{BUCKET}/{kind}/t",
        f"{store.uri}/{BUCKET}/{kind}/t2",
        f"{store.uri}/{BUCKET}/{other}/t/f",
        f"{store.uri}/{ELSE}/{kind}/t/f",
        f"{store.uri}/{BUCKET}/{kind}/t/%2e%2e/t2/f",
        f"{store.uri}/{BUCKET}?prefix={kind}/t",
        f"{store.uri}/{BUCKET}?prefix=",
        f"{store.uri}/{BUCKET}?prefix={kind}/t2/",
        f"{store.uri}/{BUCKET}",
        f"https://{BUCKET}.s3.amazonaws.com/{kind}/t/f",
        f"{store.uri}/{ELSE}?location",
        f"{store.uri}/{BUCKET[:-1]}?location",
    ]
    for uri in refused:
        assert sign(node, store, kind, uri=uri).status in (400, 403), uri
    assert sign(node, store, kind, uri=f"{store.uri}/{BUCKET}?location").status == 200
    beside = {"x-amz-copy-source": [f"{BUCKET}/{kind}/t2/data/f"]}
    assert sign(node, store, kind, method="PUT", headers=beside).status == 403
    body = f"<Delete><Object><Key>{kind}/t/a</Key></Object><Object><Key>{kind}/t2/a</Key></Object></Delete>"
    assert sign(node, store, kind, method="POST", uri=f"{store.uri}/{BUCKET}?delete", body=body).status == 403


def test_no_signature_is_issued_after_revoke_or_drop(node: DriverNode, store: ObjectStoreServer) -> None:
    """After a revoke or a drop of the table no signature is issued."""
    grant(node, "tim", "use_catalog use_schema select_table", kind="CATALOG", on="wide")
    assert sign(node, store, "wide", user="tim").status == 200
    node.ask("PATCH", "/api/limnos/v1/metalakes/lake/users/tim", {"enabled": False})
    assert sign(node, store, "wide", user="tim").status == 403
    refusal = node.post(f"{table('wide', 'gone')}/sign", {"region": "r", "uri": "u", "method": "GET", "headers": {}})
    assert refusal.status == 404


@pytest.mark.parametrize("delegation", ["vended-credentials", "remote-signing"])
def test_rights_lost_while_sts_answers_give_no_access(
    node: DriverNode, store: ObjectStoreServer, monkeypatch: pytest.MonkeyPatch, delegation: str
) -> None:
    """A user who loses the rights on a table while the server waits for STS gets neither keys nor a signature."""
    user, target = f"uma_{delegation.partition('-')[0]}", table("narrow")
    role = grant(node, user, "use_catalog use_schema select_table", kind="CATALOG", on="narrow")
    vendor, revokes = CredentialVendor(timeout_s=60.0, time=node.built.services.store.time), []
    issue = vendor.issue_credentials

    async def issue_and_revoke(request: CredentialRequest) -> IssuedCredentials:
        result = await issue(request)
        revoke = f"{API}/lake/permissions/users/{user}/revoke"
        revokes.append((await node.answer("PUT", revoke, {"roleNames": [role]})).status)
        return result

    monkeypatch.setattr(vendor, "issue_credentials", issue_and_revoke)
    earlier = VENDOR.of(node.built.services)
    VENDOR.put(node.built.services, vendor)
    if delegation == "remote-signing":
        answer = sign(node, store, "narrow", user=user)
    else:
        answer = node.get(target, user=user, x_iceberg_access_delegation=delegation)
    VENDOR.put(node.built.services, earlier)

    assert revokes == [200]
    assert b"secret-access-key" not in answer.body
    assert b"Signature" not in answer.body
    assert delegation != "remote-signing" or answer.status in {403, 503}


def test_catalog_without_signing_announces_and_issues_none(
    node: DriverNode, store: ObjectStoreServer, tmp_path: Path
) -> None:
    """A catalog without request signing announces none and issues no signatures."""
    properties = {**store.properties, "warehouse": "s3://lake/silent"}
    body = {"name": "silent", "type": "relational", "provider": "lakehouse-iceberg", "properties": properties}
    node.done("POST", f"{API}/lake/catalogs", body)
    node.done("POST", "/iceberg/v1/lake.silent/namespaces", {"namespace": ["a"]})
    table_body = {"name": "t", "schema": SCHEMA}
    node.done("POST", "/iceberg/v1/lake.silent/namespaces/a/tables", table_body)

    assert node.get(table("silent"), **ASKED).json()["config"] == {}
    refused = sign(node, store, "silent", user="admin")
    assert (refused.status, "does not sign requests" in refused.body.decode()) == (400, True)


def test_only_s3_requests_are_signed(node: DriverNode, store: ObjectStoreServer) -> None:
    """The field `provider` of the specification is read: only requests to S3 are signed."""
    assert sign(node, store, "wide", provider="gcs").status == 406
