# SPDX-License-Identifier: Apache-2.0
"""Catalogs over Gravitino REST."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from limnos.config.storage import StorageSection
from tests.http.driver import API, OWN, DriverAnswer, DriverNode, grant, node_at

ALL = f"{API}/lake/catalogs"
NEW = {"name": "side", "type": "RELATIONAL", "provider": "lakehouse-iceberg", "comment": "c", "properties": {}}


def error_fields(answer: DriverAnswer) -> tuple[int, object, object]:
    """Return status, code and type of a failure."""
    return answer.status, answer["code"], answer["type"]


def test_create_accepts_gravitino_backend_properties(node: DriverNode) -> None:
    """A created catalog has its type in lower case, and Gravitino's backend properties are accepted."""
    properties = {
        "catalog-backend": "jdbc",
        "warehouse": f"file://{node.data}/warehouse/w",
        "jdbc-password": "s",
    }

    catalog = node.done("POST", ALL, {**NEW, "properties": properties})["catalog"]

    assert (catalog["name"], catalog["type"], catalog["provider"], catalog["comment"]) == (
        "side",
        "relational",
        "lakehouse-iceberg",
        "c",
    )
    assert catalog["properties"] == {
        "catalog-backend": "jdbc",
        "warehouse": f"file://{node.data}/warehouse/w",
        "in-use": "true",
        "jdbc-password": "******",
    }


FOREIGN = [
    ({"catalog-backend": "hive", "uri": "thrift://h:9083"}, "provider hive, with the property metastore.uris"),
    ({"catalog-backend": "rest", "uri": "http://h:8181/iceberg"}, "provider iceberg-rest, with the same uri"),
    ({"catalog-backend": "REST"}, "provider iceberg-rest"),
    ({"catalog-backend": "jdbc", "uri": "jdbc:postgresql://h/d"}, "not stored there, but by this server"),
    ({"catalog-backend": "memory", "uri": "http://h"}, "not stored there, but by this server"),
    ({"catalog-backend": "nonsense"}, "catalog-backend=nonsense is unknown"),
]


@pytest.mark.parametrize("properties,words", FOREIGN)
def test_foreign_backend_is_refused(node: DriverNode, properties: dict[str, str], words: str) -> None:
    """Create, connection test and alter of a catalog with a foreign backend are refused. The message names the provider
    to use.
    """
    node.done("POST", ALL, NEW)
    body = {**NEW, "name": "other", "properties": properties}
    sets = [{"@type": "setProperty", "property": key, "value": value} for key, value in properties.items()]

    answers = [
        node.post(ALL, body),
        node.post(f"{ALL}/testConnection", body),
        node.put(f"{ALL}/side", {"updates": sets}),
    ]

    for answer in answers:
        assert error_fields(answer)[1:] == (1001, "IllegalArgumentException")
        assert words in answer["message"]
    assert [answer.status for answer in answers] == [
        400,
        200,
        400,
    ]  # a failed connection test has status 200
    assert node.get(f"{ALL}/other").status == 404
    assert "catalog-backend" not in node.get(f"{ALL}/side").json()["catalog"]["properties"]


@pytest.mark.parametrize("backend", ["jdbc", "memory"])
def test_gravitino_backend_becomes_a_native_catalog(node: DriverNode, backend: str) -> None:
    """A catalog with Gravitino's own backend becomes a native catalog. Later changes do not mention the backend."""
    node.done("POST", f"{ALL}/testConnection", {**NEW, "properties": {"catalog-backend": backend}})
    node.done("POST", ALL, {**NEW, "properties": {"catalog-backend": backend}})

    edit = {"updates": [{"@type": "setProperty", "property": "p", "value": "1"}]}
    catalog = node.done("PUT", f"{ALL}/side", edit)["catalog"]

    assert catalog["properties"]["catalog-backend"] == backend


def test_list_returns_names_or_details(node: DriverNode) -> None:
    """A list has the names of the catalogs with their metalake. With `details`, in any letter case, it has whole
    catalogs.
    """
    node.done("POST", ALL, NEW)

    names, details = node.get(ALL), node.get(f"{ALL}?details=TRUE")

    assert names["identifiers"] == [{"namespace": ["lake"], "name": name} for name in ("lance", "main", "side")]
    names_with_providers = [(each["name"], each["provider"]) for each in details.json()["catalogs"]]
    assert names_with_providers == [
        ("lance", "lakehouse-generic"),
        ("main", "lakehouse-iceberg"),
        ("side", "lakehouse-iceberg"),
    ]


def test_list_has_only_usable_catalogs(node: DriverNode) -> None:
    """A member sees in the list only catalogs with a grant of USE_CATALOG."""
    node.done("POST", ALL, NEW)
    grant(node, "ana", "use_catalog", kind="catalog", on="side")

    answer = node.get(ALL, user="ana")

    assert [each["name"] for each in answer.json()["identifiers"]] == ["side"]


def test_refused_load_does_not_reveal_existence(node: DriverNode) -> None:
    """A member without USE_CATALOG gets the same 403 and body for a missing catalog."""
    node.done("POST", f"{API}/lake/users", {"name": "ana"})

    real, absent = node.get(f"{ALL}/main", user="ana"), node.get(f"{ALL}/none", user="ana")

    assert error_fields(real) == error_fields(absent) == (403, 1008, "ForbiddenException")
    assert real.body.replace(b"main", b"none") == absent.body
    assert "needs USE_CATALOG on main" in str(real["message"])


def test_missing_catalog_returns_404_to_permitted_users(node: DriverNode) -> None:
    """A missing catalog is 404 for users who could use it if it existed."""
    answer = node.get(f"{ALL}/none")

    assert error_fields(answer) == (404, 1003, "NoSuchCatalogException")
    assert answer["message"] == (
        "Failed to operate catalog(s) [none] operation [LOAD] under metalake [lake], "
        "reason [Catalog none does not exist in metalake lake]"
    )


def test_alter_applies_all_changes(node: DriverNode) -> None:
    """One alter request changes name, comment and properties."""
    updates = [
        {"@type": "rename", "newName": "prime"},
        {"@type": "updateComment", "newComment": "n"},
        {"@type": "removeProperty", "property": "warehouse"},
    ]

    changed = node.done("PUT", f"{ALL}/main", {"updates": updates})["catalog"]

    assert (changed["name"], changed["comment"], changed["properties"]) == ("prime", "n", {"in-use": "true"})
    assert node.get(f"{ALL}/main").status == 404


@pytest.mark.parametrize(
    "body",
    [
        {**NEW, "name": "a.b"},
        {**NEW, "name": "system"},
        {**NEW, "provider": "hive"},
        {**NEW, "provider": None},
        {**NEW, "type": "fileset"},
        {**NEW, "properties": {"warehouse": "what://x"}},
        {**NEW, "properties": {"in-use": "true"}},
        {**NEW, "properties": [1]},
        {"type": "relational"},
    ],
    ids=str,
)
@pytest.mark.room("connectors")
def test_bad_catalogs_are_400(node: DriverNode, body: object) -> None:
    """An invalid name, provider, type or property is 400 with code 1001, and nothing is created."""
    answer = node.post(ALL, body)

    assert error_fields(answer) == (400, 1001, "IllegalArgumentException")
    assert [each["name"] for each in node.get(ALL).json()["identifiers"]] == ["lance", "main"]


def test_existing_name_is_409(node: DriverNode) -> None:
    """A name in use is refused with 409 and code 1004."""
    answer = node.post(ALL, {**NEW, "name": "main"})

    assert error_fields(answer) == (409, 1004, "CatalogAlreadyExistsException")


def test_create_needs_create_catalog_privilege(node: DriverNode) -> None:
    """Creating a catalog needs CREATE_CATALOG, and the creator becomes the owner."""
    node.done("POST", f"{API}/lake/users", {"name": "ana"})

    refused = node.post(ALL, NEW, user="ana")
    grant(node, "ana", "create_catalog", kind="metalake", on="lake")
    node.done("POST", ALL, NEW, user="ana")

    assert error_fields(refused) == (403, 1008, "ForbiddenException")
    assert node.get(f"{API}/lake/owners/catalog/side")["owner"] == {"name": "ana", "type": "user"}


def test_connection_test_creates_no_catalog(node: DriverNode) -> None:
    """A successful connection test returns code 0 and creates no catalog."""
    body = {**NEW, "properties": {"warehouse": f"file://{node.data}/warehouse/w"}}

    answer = node.post(f"{ALL}/testConnection", body)

    assert (answer.status, answer.json()) == (200, {"code": 0})
    assert node.get(f"{ALL}/side").status == 404


@pytest.mark.parametrize(
    "change, code, name",
    [
        ({"properties": {"warehouse": "what://x"}}, 1001, "IllegalArgumentException"),
        ({"provider": "hive"}, 1001, "IllegalArgumentException"),
        ({"name": "a.b"}, 1001, "IllegalArgumentException"),
        ({"name": "main"}, 1004, "CatalogAlreadyExistsException"),
    ],
    ids=str,
)
@pytest.mark.room("connectors")
def test_failed_connection_test_returns_200_with_error_body(
    node: DriverNode, change: dict[str, object], code: int, name: str
) -> None:
    """A failed connection test has status 200 and an error body, by which clients distinguish it from a refusal."""
    answer = node.post(f"{ALL}/testConnection", {**NEW, **change})

    assert error_fields(answer) == (200, code, name)


def test_connection_test_needs_the_privilege_to_create(node: DriverNode) -> None:
    """A connection test by a user without the privilege to create a catalog is refused with 403."""
    node.done("POST", f"{API}/lake/users", {"name": "ana"})

    answer = node.post(f"{ALL}/testConnection", NEW, user="ana")

    assert error_fields(answer) == (403, 1008, "ForbiddenException")


def test_existing_catalog_can_be_tested(node: DriverNode) -> None:
    """A connection test with an empty body tests the catalog's current properties, and one with `updates` the changed
    ones. Nothing is stored.
    """
    plain = node.post(f"{ALL}/main/testConnection")
    bad = node.post(
        f"{ALL}/main/testConnection",
        {"updates": [{"@type": "setProperty", "property": "warehouse", "value": "what://x"}]},
    )
    missing = node.post(f"{ALL}/none/testConnection")

    assert (plain.status, plain.json()) == (200, {"code": 0})
    assert error_fields(bad) == (200, 1001, "IllegalArgumentException")
    assert error_fields(missing) == (200, 1003, "NoSuchCatalogException")
    assert "what" not in node.get(f"{ALL}/main").json()["catalog"]["properties"]["warehouse"]


def test_requests_below_a_disabled_catalog_return_409(node: DriverNode) -> None:
    """Requests below a disabled catalog are refused with 409 and code 1009. The catalog itself can be loaded and
    enabled.
    """
    node.done("PATCH", f"{ALL}/main", {"inUse": False})

    below, itself = node.get(f"{ALL}/main/schemas"), node.get(f"{ALL}/main")
    node.done("PATCH", f"{ALL}/main", {"inUse": True})

    assert error_fields(below) == (409, 1009, "CatalogNotInUseException")
    assert itself.json()["catalog"]["properties"]["in-use"] == "false"
    assert node.get(f"{ALL}/main/schemas").status == 200


def test_disabled_state_is_hidden_from_users_without_rights(node: DriverNode) -> None:
    """Users without rights get the same refusal whether or not the catalog is disabled."""
    grant(node, "ana", "use_catalog", kind="CATALOG", on="main")
    grant(node, "eve", "create_tag", kind="METALAKE", on="lake")
    answers = {user: node.get(f"{ALL}/main/schemas", user=user) for user in ("ana", "eve")}
    node.done("PATCH", f"{ALL}/main", {"inUse": False})
    again = {user: node.get(f"{ALL}/main/schemas/none", user=user) for user in ("ana", "eve")}

    assert (answers["ana"].status, answers["eve"].status) == (200, 403)
    assert error_fields(again["ana"])[:2] == (409, 1009)
    assert (again["eve"].status, "disabled" in str(again["eve"]["message"])) == (403, False)


def test_drop_needs_an_empty_disabled_catalog_or_force(node: DriverNode) -> None:
    """Dropping an enabled catalog is refused with 1010, and one with schemas with 1005. `force` drops it; dropping a
    missing catalog returns `dropped: false`.
    """
    node.done("POST", f"{ALL}/main/schemas", {"name": "a"})

    in_use = node.delete(f"{ALL}/main")
    node.done("PATCH", f"{ALL}/main", {"inUse": False})
    not_empty = node.delete(f"{ALL}/main")
    answers = [node.delete(f"{ALL}/main?force=true").json() for _ in range(2)]

    assert error_fields(in_use) == (409, 1010, "CatalogInUseException")
    assert error_fields(not_empty) == (409, 1005, "NonEmptyCatalogException")
    assert answers == [{"code": 0, "dropped": True}, {"code": 0, "dropped": False}]


def test_non_boolean_query_flag_returns_400(node: DriverNode) -> None:
    """A query flag other than true or false, in any letter case, is refused with 400."""
    answer = node.delete(f"{ALL}/main?force=maybe")

    assert error_fields(answer) == (400, 1001, "IllegalArgumentException")


HIDDEN = {
    "s3-session-token": "T0psecret",
    "adls.sas-token.acct": "T0psecret",
    "GCS.Service-Account-Key": "T0psecret",
    "credential": "id:T0psecret",
    "uri": "https://ana:T0psecret@host/x?sig=T0psecret",
}


@pytest.fixture
def keeping(node: DriverNode) -> DriverNode:
    """A node whose catalog `main` has secrets and a private property; ana may use it, ben owns it."""
    updates = [{"@type": "setProperty", "property": key, "value": value} for key, value in HIDDEN.items()]
    updates += [{"@type": "setProperty", "property": "note", "value": "ours"}]
    node.done("PUT", f"{ALL}/main", {"updates": updates})
    grant(node, "ana", "use_catalog", kind="catalog", on="main")
    node.done("POST", f"{API}/lake/users", {"name": "ben"})
    node.done("PUT", f"{API}/lake/owners/CATALOG/main", {"name": "ben", "type": "USER"})
    return node


def test_no_answer_holds_a_secret(keeping: DriverNode) -> None:
    """No answer to readers or owners contains a secret: loads, lists and changes, over Gravitino and Iceberg REST."""
    change = {"updates": [{"@type": "setProperty", "property": "note", "value": "new"}]}
    answers = [
        ask
        for user in ("ana", "ben", "admin")
        for ask in (
            keeping.get(f"{ALL}/main", user=user),
            keeping.get(f"{ALL}?details=true", user=user),
            keeping.get("/iceberg/v1/config?warehouse=main", user=user),
            keeping.put(f"{ALL}/main", change, user=user),
        )
    ]

    assert [answer.status for answer in answers] == [200, 200, 200, 403, *[200] * 8]
    assert [answer.body for answer in answers if b"T0psecret" in answer.body] == []


def test_private_properties_are_hidden_from_readers(keeping: DriverNode) -> None:
    """Users of a catalog see its location but not its private properties; the owner sees all names, with masked
    secrets.
    """
    properties = {
        user: keeping.get(f"{ALL}/main", user=user).json()["catalog"]["properties"] for user in ("ana", "ben")
    }
    listed = {user: keeping.get(f"{ALL}?details=true", user=user).json()["catalogs"] for user in ("ana", "ben")}

    assert set(properties["ana"]) == {"warehouse", "uri", "in-use"}
    assert properties["ben"] == {
        **dict.fromkeys(HIDDEN, "******"),
        "uri": "https://ana:******@host/x?sig=******",
        "note": "ours",
        "in-use": "true",
        "warehouse": properties["ana"]["warehouse"],
    }
    assert {user: catalogs[0]["properties"] for user, catalogs in listed.items()} == properties


def test_masked_secret_as_value_is_refused(keeping: DriverNode) -> None:
    """An alter that sets a property to a masked secret is refused and changes nothing."""
    change = {"updates": [{"@type": "setProperty", "property": "credential", "value": "******"}]}
    body = {**NEW, "properties": {"credential": "******"}}

    answers = [
        keeping.put(f"{ALL}/main", change),
        keeping.post(ALL, body),
        keeping.post(f"{ALL}/main/testConnection", change),
    ]

    assert [answer.json()["code"] for answer in answers] == [1001] * 3
    assert all("send the secret itself" in str(answer["message"]) for answer in answers)


OUTSIDE = [
    {"warehouse": "file:///etc"},
    {"warehouse": "file:///"},
    {"warehouse": "/"},
    {"warehouse": "{data}"},
    {"warehouse": "{data}/keys"},
    {"allowed-locations": "s3://b/k"},
    {"allowed-locations": "{data}/warehouse/x, file:///"},
    {"allowed-locations": "{data}/limnos.db"},
    {"warehouse": "{data}/warehouse/" + "d/" * 70},
]


@pytest.mark.parametrize("properties", OUTSIDE, ids=str)
def test_location_outside_the_allowed_roots_is_refused(node: DriverNode, properties: dict[str, str]) -> None:
    """A catalog with locations outside of the server's allowed roots cannot be created, altered or tested."""
    stated = {key: value.format(data=node.data) for key, value in properties.items()}
    updates = [{"@type": "setProperty", "property": key, "value": value} for key, value in stated.items()]
    before = node.get(f"{ALL}/main").json()

    answers = [
        node.post(ALL, {**NEW, "properties": stated}),
        node.put(f"{ALL}/main", {"updates": updates}),
        node.post(f"{ALL}/testConnection", {**NEW, "properties": stated}),
        node.post(f"{ALL}/main/testConnection", {"updates": updates}),
    ]

    assert [answer["code"] for answer in answers] == [1001] * 4
    assert node.get(f"{ALL}/main").json() == before
    assert node.get(f"{ALL}/side").status == 404


def test_refused_location_names_the_flag_that_allows_it(node: DriverNode) -> None:
    """The refusal of a location names the flag that allows it."""
    answer = node.post(ALL, {**NEW, "properties": {"warehouse": "s3a://b/k/"}})

    assert "--allow-root s3://b/k (setting storage.allowed_roots)" in str(answer["message"])


@pytest.mark.parametrize("name", ["s3.endpoint", "s3-endpoint"])
def test_endpoint_outside_the_allowed_list_is_not_contacted(fresh: Callable[[str], Path], name: str) -> None:
    """The server does not connect to an endpoint that is not allowed, and the answer does not depend on whether a
    server listens there.
    """
    with socket.create_server(("127.0.0.1", 0)) as listening, socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        ports = [each.getsockname()[1] for each in (listening, closed)]
        with node_at(fresh("data"), storage=StorageSection(allowed_roots=("s3://",))) as node:
            for port in ports:
                stated = {"warehouse": "s3://b/w", name: f"http://127.0.0.1:{port}", "s3.region": "x"}
                updates = [{"@type": "setProperty", "property": key, "value": value} for key, value in stated.items()]
                answers = [
                    node.post(ALL, {**NEW, "properties": stated}),
                    node.post(f"{ALL}/testConnection", {**NEW, "properties": stated}),
                    node.put(f"{ALL}/main", {"updates": updates}),
                    node.post(f"{ALL}/main/testConnection", {"updates": updates}),
                ]

                assert [answer["code"] for answer in answers] == [1001] * 4
                assert all(f"--allow-endpoint http://127.0.0.1:{port}" in str(answer["message"]) for answer in answers)
        listening.settimeout(0)
        with pytest.raises(BlockingIOError):
            listening.accept()


@pytest.mark.parametrize("removed_setting", ["root", "endpoint"])
def test_stored_root_or_endpoint_no_longer_allowed_is_refused(
    fresh: Callable[[str], Path], removed_setting: str
) -> None:
    """If the server no longer allows a catalog's root or endpoint, requests that need it are refused and no connection
    is made.
    """
    data, outside = fresh("data"), fresh("outside")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        endpoint = f"http://127.0.0.1:{listening.getsockname()[1]}"
        once = {
            "root": {"warehouse": f"file://{outside}/w"},
            "endpoint": {
                "warehouse": "s3://b/w",
                "s3.endpoint": endpoint,
                "s3.access-key-id": "k",
                "s3.secret-access-key": "s",
            },
        }[removed_setting]
        with node_at(
            data, storage=StorageSection(allowed_roots=("s3://", str(outside)), allowed_endpoints=(endpoint,))
        ) as node:
            node.done("POST", ALL, {**NEW, "properties": once})

        with node_at(data, storage=StorageSection(allowed_roots=("s3://",))) as node:
            node.done("POST", "/iceberg/v1/lake.side/namespaces", {"namespace": ["a"]})
            table_body = {"name": "t", "schema": {"type": "struct", "fields": []}}
            refused = node.post("/iceberg/v1/lake.side/namespaces/a/tables", table_body)
            tested = node.post(f"{ALL}/side/testConnection", {"updates": []})

        assert (refused.status, tested["code"]) == (400, 1001)
        assert f"--allow-{removed_setting}" in refused.body.decode()
        assert list(outside.rglob("*.json")) == []
        listening.settimeout(0)
        with pytest.raises(BlockingIOError):
            listening.accept()


@pytest.mark.parametrize("is_shared", [False, True])
def test_user_without_ownership_disables_a_catalog_by_setting(node: DriverNode, is_shared: bool) -> None:
    """A user with USE_CATALOG disables a catalog only with `access.catalog_enable = users`; other users never do."""
    grant(node, "ana", "use_catalog", kind="catalog", on="main")
    node.done("POST", f"{API}/lake/users", {"name": "ben"})
    node.built.services.rules = node.built.services.rules._replace(users_enable_catalogs=is_shared)
    statuses = [node.patch(f"{API}/lake/catalogs/main", {"inUse": False}, user=user).status for user in ("ben", "ana")]

    assert statuses == [403, 200 if is_shared else 403]


def test_former_name_of_the_fileset_provider_is_accepted(node: DriverNode) -> None:
    """Clients from before Gravitino 1.0 send `hadoop`; the catalog is one of provider `fileset`."""
    created = node.done("POST", ALL, {**NEW, "type": "fileset", "provider": "hadoop"})["catalog"]
    refused = node.post(ALL, {**NEW, "name": "other", "provider": "hadoop"})

    assert (created["type"], created["provider"]) == ("fileset", "fileset")
    assert error_fields(refused) == (400, 1001, "IllegalArgumentException")


def test_missing_provider_is_named_in_words(node: DriverNode) -> None:
    """A catalog of the type RELATIONAL has no default provider, and the message says what to send."""
    message = node.post(ALL, {**NEW, "provider": None}).json()["message"]

    assert "Catalog side needs a provider: use one of lakehouse-iceberg" in message
    assert "None" not in message


@pytest.mark.parametrize(
    "path, first, later",
    [
        (ALL, 8, 1),
        (f"{ALL}/main/schemas", 14, 0),
        ("/iceberg/v1/lake.main/namespaces", 14, 0),
    ],
)
def test_first_list_of_containers_costs_few_statements(node: DriverNode, path: str, first: int, later: int) -> None:
    """A node that has cached nothing of a user answers the user's first list of containers with few statements, for a
    user with groups who sees one namespace; the second list only checks whether something changed.
    """
    node.done("POST", f"{ALL}/main/schemas", {"name": "a"})
    node.done("POST", ALL, NEW)
    grant(node, "ana", "use_schema", kind="schema", on="main.a")
    node.done("POST", f"{API}/lake/groups", {"name": "crew"})
    node.done("POST", f"{OWN}/metalakes/lake/groups/crew/members", {"users": ["ana"]})
    with node_at(node.data) as other:
        store = other.built.services.store
        before = store.statements
        answer = other.get(path, user="ana")
        between = store.statements

        assert answer.status == 200, answer.body
        assert between - before == first
        assert other.get(path, user="ana").body == answer.body
        assert store.statements - between == later
