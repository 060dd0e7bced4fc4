# SPDX-License-Identifier: Apache-2.0
"""GET /v1/config: the catalog that a warehouse names, and the configuration for clients."""

from __future__ import annotations

import pytest

from limnos.http.iceberg.protocol import CATALOG_ROUTES
from tests.http.driver import API, DriverNode, grant
from tests.http.iceberg.wire import error_of

CONFIG = "/iceberg/v1/config"


def make_catalog(node: DriverNode, name: str, **properties: str) -> None:
    """Create a catalog of the metalake `lake`."""
    dotted_properties = {key.replace("_", "."): value for key, value in properties.items()}
    body = {"name": name, "type": "RELATIONAL", "provider": "lakehouse-iceberg", "properties": dotted_properties}
    node.done("POST", f"{API}/lake/catalogs", body)


@pytest.mark.parametrize(
    "query",
    ["", "?warehouse=", "?warehouse=main", "?warehouse=lake/main", "?warehouse=lake%2Fmain", "?warehouse=lake.main"],
)
def test_all_warehouse_forms_select_the_same_catalog(node: DriverNode, query: str) -> None:
    """Without a warehouse, by the catalog's name, and by metalake and catalog, the same catalog is used."""
    answer = node.get(f"{CONFIG}{query}")

    assert answer.status == 200
    assert answer["overrides"] == {"prefix": "lake.main", "namespace-separator": "%1F"}


def test_prefix_leads_to_the_catalog(node: DriverNode) -> None:
    """Each catalog has its own prefix, which selects that catalog."""
    make_catalog(node, "other")

    prefix = node.get(f"{CONFIG}?warehouse=other").json()["overrides"]["prefix"]
    created = node.post(f"/iceberg/v1/{prefix}/namespaces", {"namespace": ["there"]})

    assert (prefix, created.status) == ("lake.other", 200)
    assert node.get("/iceberg/v1/namespaces")["namespaces"] == []
    assert node.get("/iceberg/v1/lake.other/namespaces")["namespaces"] == [["there"]]


def test_endpoints_are_complete(node: DriverNode) -> None:
    """Each route of a catalog is listed in the notation of clients, including HEAD, because clients use only listed
    routes.
    """
    endpoints = node.get(CONFIG)["endpoints"]

    assert endpoints == [f"{route.method} /v1{route.path}".replace("{plan}", "{plan-id}") for route in CATALOG_ROUTES]
    assert "HEAD /v1/{prefix}/namespaces/{namespace}/tables/{table}" in endpoints
    assert "POST /v1/{prefix}/namespaces/{namespace}/tables/{table}/metrics" in endpoints


@pytest.mark.parametrize("warehouse", ["nowhere", "lake/nowhere", "nolake/main"])
def test_missing_warehouse_returns_404(node: DriverNode, warehouse: str) -> None:
    """A missing warehouse is 404 with its own type, for every caller."""
    answers = [node.get(f"{CONFIG}?warehouse={warehouse}", user=user) for user in ("admin", "stranger")]

    assert [error_of(answer)[:2] for answer in answers] == [(404, "NoSuchWarehouseException")] * 2


@pytest.mark.parametrize("user", ["stranger", "member"])
@pytest.mark.parametrize("disabled", [False, True])
def test_hidden_warehouse_looks_like_a_missing_one(node: DriverNode, user: str, disabled: bool) -> None:
    """A catalog that the caller may not use is answered like a missing one, also if it is disabled."""
    node.done("POST", f"{API}/lake/users", {"name": "member"})
    node.done("PATCH", f"{API}/lake/catalogs/main", {"inUse": not disabled})

    hidden = error_of(node.get(f"{CONFIG}?warehouse=main", user=user))
    missing = error_of(node.get(f"{CONFIG}?warehouse=gone", user=user))

    assert hidden[0] == 404
    assert "or you lack USE_CATALOG on it" in hidden[2]
    assert hidden == (*missing[:2], missing[2].replace("gone", "main"))


def test_grant_of_use_catalog_applies_to_the_next_request(node: DriverNode) -> None:
    """USE_CATALOG is enough to configure the catalog, from the next request on."""
    before = node.get(CONFIG, user="ana")
    grant(node, "ana", "use_catalog", kind="CATALOG", on="main")
    after = node.get(CONFIG, user="ana")

    assert (before.status, after.status) == (404, 200)


def test_disabled_warehouse_returns_403_to_its_users(node: DriverNode) -> None:
    """Users of a disabled catalog get 403 with the reason, until it is enabled."""
    node.done("PATCH", f"{API}/lake/catalogs/main", {"inUse": False})

    refused = error_of(node.get(CONFIG))
    node.done("PATCH", f"{API}/lake/catalogs/main", {"inUse": True})

    assert refused == (403, "ForbiddenException", "Catalog main is disabled: enable it first")
    assert node.get(CONFIG).status == 200


@pytest.mark.parametrize("warehouse", ["a.b.c", "a/b/c", "%FF", "%2", "/", "lake/", "/main", "system", "x%00"])
def test_malformed_warehouse_returns_400(node: DriverNode, warehouse: str) -> None:
    """A warehouse that is not a valid name is refused with 400 and the reason."""
    answer = node.get(f"{CONFIG}?warehouse={warehouse}")

    assert error_of(answer)[:2] == (400, "IllegalArgumentException")


def test_clients_get_endpoint_and_region_but_no_keys(node: DriverNode) -> None:
    """Clients get the endpoint and region of an object store as defaults, but neither keys nor other properties."""
    make_catalog(node, "remote", s3_endpoint="https://s3.eu-west-1.amazonaws.com", s3_region="here", s3_secret="x")

    defaults = node.get(f"{CONFIG}?warehouse=remote")["defaults"]

    assert defaults == {"s3.endpoint": "https://s3.eu-west-1.amazonaws.com", "s3.region": "here"}


def test_lance_catalog_as_warehouse_is_refused(node: DriverNode) -> None:
    """A Lance catalog as warehouse is refused, and the message names its format."""
    answer = node.get("/iceberg/v1/config?warehouse=lance")

    assert error_of(answer)[:2] == (400, "IllegalArgumentException")
    assert "Catalog lance contains Lance tables" in error_of(answer)[2]
