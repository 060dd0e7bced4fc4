# SPDX-License-Identifier: Apache-2.0
"""Restrictions over each protocol: the parts of a table that restricted users get, and the parts that no answer
contains.
"""

from __future__ import annotations

import json
from functools import reduce
from typing import cast

import pytest

from limnos.files import allow_everything
from limnos.formats.iceberg.read_restrictions import BoundRestrictions
from limnos.formats.scans.request import ScanRequest, ScanScope
from limnos.model.entities import MetadataDocument
from limnos.model.errors import PermissionDenied
from limnos.model.principals import Requester
from limnos.model.records import CatalogRecord
from limnos.services.iceberg.scans import ScanTarget, TableScan
from limnos.services.request.catalog_storage import CatalogStorage
from limnos.services.request.context import Context
from tests.http.driver import API, OWN, DriverAnswer, DriverNode, grant, metalake_copy
from tests.http.iceberg.wire import (
    SPACES,
    commit,
    make_space,
    make_table,
    make_view,
    metadata_of,
    point,
    replaced_by,
    set_properties,
    snapshot,
    space_path,
    table_path,
    view_path,
    view_version,
)

pytestmark = pytest.mark.slow

LAKE = f"{OWN}/metalakes/lake"
FIELDS = [
    {"id": 1, "name": "id", "required": True, "type": "long"},
    {"id": 2, "name": "city", "required": False, "type": "string"},
    {"id": 3, "name": "ssn", "required": True, "type": "string", "initial-default": "000", "write-default": "000"},
    {"id": 4, "name": "born", "required": False, "type": "date"},
]
SCHEMA = {"type": "struct", "fields": FIELDS, "identifier-field-ids": [1]}
SECRETS = ("secret-list", "999-99-9999", "secret-stats", "a-secret-watermark", "secret-place", "8,888")
RIGHTS = "use_catalog use_schema select_table modify_table create_table"


def of(name: str, *, kind: str = "TABLE", on: str = "main.a.t") -> str:
    """Return the URL of a restriction."""
    return f"{LAKE}/objects/{kind}/{on}/restrictions/{name}"


def restrict(
    node: DriverNode,
    name: str = "eu",
    *,
    kind: str = "TABLE",
    on: str = "main.a.t",
    user: str = "admin",
    **terms: object,
) -> DriverAnswer:
    """Set a restriction."""
    return node.put(of(name, kind=kind, on=on), terms, user=user)


def furnish(node: DriverNode) -> None:
    """Create a table with a snapshot, statistics and properties that contain values, and two users who may read and
    write the table.
    """
    make_space(node, "a")
    body = {
        "name": "t",
        "schema": SCHEMA,
        "properties": {
            "format-version": "3",
            "watermark": "a-secret-watermark",
            "write.data.path": "file:///tmp/secret-place",
        },
    }
    created = node.ask("POST", f"{space_path('a')}/tables", body)
    assert created.status in (200, 400), created.body
    if created.status == 400:  # no location is allowed
        body["properties"].pop("write.data.path")  # type: ignore[attr-defined]
        node.done("POST", f"{space_path('a')}/tables", body)
    location = metadata_of(node, "a", "t")["location"]
    one = snapshot(1, manifest_list=f"{location}/secret-list.avro")
    one["snapshot"] |= {
        "summary": {"operation": "append", "partitions.ssn=999-99-9999": "x", "total-records": "8,888"},
        "first-row-id": 0,
        "added-rows": 1,
    }  # type: ignore[operator]
    stats = {
        "snapshot-id": 100,
        "statistics-path": f"{location}/secret-stats.puffin",
        "file-size-in-bytes": 1,
        "file-footer-size-in-bytes": 1,
        "blob-metadata": [],
    }
    answer = commit(
        node, "a", "t", updates=[one, point(1), {"action": "set-statistics", "snapshot-id": 100, "statistics": stats}]
    )
    assert answer.status == 200, answer.body
    for user in ("bob", "ann"):
        grant(node, user, RIGHTS, kind="CATALOG", on="main")


def words(answer: DriverAnswer) -> str:
    """Return the message of a failure in any protocol's form."""
    body = answer.json()
    return str(body.get("message") or body["error"]["message"])


def closed(answer: DriverAnswer) -> None:
    """Check that a response is a refusal with the reason."""
    assert answer.status == 403, (answer.status, answer.body)
    assert "read-restricted-set-scan-planning-mode-to-server" in words(answer), words(answer)


@pytest.fixture
def shop(lake: DriverNode) -> DriverNode:
    """A node with the table of `furnish`, restricted for all users except ann and the table's owner."""
    furnish(lake)
    answer = restrict(
        lake,
        filter="city = 'EU' and born < '2020-01-01'",
        masks={"ssn": "replace-with-null"},
        **{"except": {"users": ["ann"]}},
    )
    assert answer.status == 200, answer.body
    return lake


def test_load_returns_columns_without_files_or_values(shop: DriverNode) -> None:
    """A restricted user gets columns, ids and times of snapshots, the restrictions and the planning mode: no file,
    summary, default or value.
    """
    answer = shop.get(table_path("a", "t"), user="bob", x_iceberg_access_delegation="vended-credentials")

    assert answer.status == 200, answer.body
    body, text = answer.json(), answer.body.decode()
    assert not [each for each in SECRETS if each in text]
    assert body["config"] == {"scan-planning-mode": "server"}
    assert "storage-credentials" not in body
    assert body["read-restrictions"] == {
        "required-row-filter": {
            "type": "and",
            "left": {"type": "eq", "left": {"type": "reference", "id": 2}, "right": {"type": "literal", "value": "EU"}},
            "right": {
                "type": "lt",
                "left": {"type": "reference", "id": 4},
                "right": {"type": "literal", "value": "2020-01-01"},
            },
        },
        "required-column-projections": [{"field-id": 3, "action": "replace-with-null"}],
    }
    metadata = body["metadata"]
    (one,) = metadata["snapshots"]
    assert (one["snapshot-id"], one["summary"]) == (100, {"operation": "append"})
    assert "read-restricted-set-scan-planning-mode-to-server" in one["manifest-list"]
    assert "read-restricted-set-scan-planning-mode-to-server" in body["metadata-location"]
    assert [(field["name"], field["required"]) for field in metadata["schemas"][0]["fields"]][2] == ("ssn", False)
    real = shop.done("GET", table_path("a", "t"))["metadata"]
    assert real["location"] not in text


def test_unrestricted_users_load_the_complete_table(shop: DriverNode) -> None:
    """The owner and excepted users load the table as before; restricted and unrestricted answers have different
    ETags.
    """
    bound = shop.get(table_path("a", "t"), user="bob")
    for user in ("admin", "ann"):
        answer = shop.get(table_path("a", "t"), user=user)
        assert "read-restrictions" not in answer.json()
        assert "secret-list" in answer.body.decode()
        assert answer.headers["etag"] != bound.headers["etag"]
        assert shop.ask("GET", table_path("a", "t"), user=user, if_none_match=bound.headers["etag"]).status == 200
    again = shop.ask("GET", table_path("a", "t"), user="bob", if_none_match=bound.headers["etag"])

    assert (again.status, again.body) == (304, b"")


def test_iceberg_rest_allows_only_plans_and_existence_checks(shop: DriverNode) -> None:
    """Over Iceberg REST, a restricted user may plan scans and test whether the table exists. Other requests are refused
    with the reason.
    """
    path = table_path("a", "t")
    closed(shop.get(f"{path}/credentials", user="bob"))
    closed(commit(shop, "a", "t", updates=[set_properties(k="v")], user="bob"))
    closed(
        shop.post(
            f"{SPACES.removesuffix('/namespaces')}/transactions/commit",
            {
                "table-changes": [
                    {
                        "identifier": {"namespace": ["a"], "name": "t"},
                        "requirements": [],
                        "updates": [set_properties(k="v")],
                    }
                ]
            },
            user="bob",
        )
    )
    rename = {"source": {"namespace": ["a"], "name": "t"}, "destination": {"namespace": ["a"], "name": "u"}}
    closed(shop.post(f"{SPACES.removesuffix('/namespaces')}/tables/rename", rename, user="bob"))

    assert shop.ask("HEAD", path, user="bob").status == 204
    assert "t" in str(shop.get(f"{space_path('a')}/tables", user="bob").json())
    assert shop.get(f"{path}?snapshots=refs", user="bob").status == 200


def test_gravitino_rest_shows_only_columns(shop: DriverNode) -> None:
    """Over Gravitino REST a restricted user sees columns only, and cannot alter, rename or drop the table or write
    statistics.
    """
    table = f"{API}/lake/catalogs/main/schemas/a/tables/t"
    response = shop.get(table, user="bob")

    assert response.status == 200, response.body
    assert not [each for each in SECRETS if each in response.body.decode()]
    assert [column["name"] for column in response.json()["table"]["columns"]] == ["id", "city", "ssn", "born"]
    closed(shop.get(f"{table}?privileges=modify_table", user="bob"))
    closed(shop.put(table, {"updates": [{"@type": "updateComment", "newComment": "x"}]}, user="bob"))
    closed(shop.get(f"{API}/lake/objects/table/main.a.t/statistics", user="bob"))
    closed(shop.get(f"{API}/lake/objects/column/main.a.t.ssn/statistics", user="bob"))
    closed(shop.get(f"{table}/partitions", user="bob"))
    credentials = shop.get(f"{API}/lake/objects/table/main.a.t/credentials", user="bob")
    assert credentials.json().get("credentials") == []


def test_own_api_is_refused_to_restricted_users(shop: DriverNode) -> None:
    """Lineage, reports, transactions and the restrictions themselves are refused to restricted users."""
    closed(shop.get(f"{LAKE}/lineage?path=main.a.t", user="bob"))
    body = {"operations": [{"do": "drop-table", "path": ["a", "t"]}]}

    assert shop.post(f"{LAKE}/catalogs/main/transactions", body, user="bob").status == 403
    for answer in (
        shop.get(of("eu").removesuffix("/eu"), user="bob"),
        restrict(shop, user="bob", masks={"city": "mask-alphanum"}),
        shop.delete(of("eu"), user="bob"),
    ):
        assert answer.status == 403


@pytest.mark.room("sqlpp")
def test_sqlpp_statement_over_a_restricted_table_is_refused(shop: DriverNode) -> None:
    """A SQL++ statement over a restricted table is refused with its name before any engine runs, and so is the
    connector route.
    """
    answer = shop.post("/query/service", {"statement": "select value t from a.t t"}, user="bob")

    assert answer.status == 403, answer.body
    assert "read-restricted-set-scan-planning-mode-to-server" in answer.body.decode()
    response = shop.get("/connector?dataverseName=a&datasetName=t", user="bob")
    assert response.status in (403, 404), response.body
    assert not [each for each in SECRETS if each in response.body.decode()]


def test_no_table_can_be_located_in_the_rewritten_files(shop: DriverNode) -> None:
    """No table can be located in the directory of rewritten files, because its owner could read them."""
    location = str(shop.done("GET", table_path("a", "t"))["metadata"]["location"]).rpartition("/")[0]
    body = {
        "name": "spy",
        "schema": SCHEMA,
        "location": f"{location}/restricted-reads/1/2",
        "properties": {"format-version": "3"},
    }
    answer = shop.post(f"{space_path('a')}/tables", body)

    assert answer.status == 400
    assert "reserved for rewritten files" in words(answer)


def test_plan_without_support_for_restrictions_is_refused() -> None:
    """If the code that plans scans does not support restrictions, a restricted user's plan is refused."""
    document = MetadataDocument(node_id=1, version=1, uuid="", location="file:///t", metadata_location="", body=b"{}")
    place = CatalogStorage(
        catalog=CatalogRecord(type="", provider="", comment="", properties={}, in_use=True),
        warehouse="",
        roots=(),
        home=None,
        allowed=allow_everything(),
    )
    scanned = ScanTarget(
        requester=Requester("bob", 1),
        document=document,
        place=place,
        request=ScanRequest(),
        bound=BoundRestrictions(None, {}),
    )

    with pytest.raises(PermissionDenied, match="read-restricted-set-scan-planning-mode-to-server"):
        TableScan(cast("Context", None), scanned, aim=cast("ScanScope", None))


def test_plans_need_the_right_to_read(shop: DriverNode) -> None:
    """A user who may write a table but not read it cannot plan scans of it. A restriction gives no right to read."""
    grant(shop, "wim", "use_catalog use_schema modify_table", kind="CATALOG", on="main")
    plan = f"{table_path('a', 't')}/plan"

    assert shop.post(plan, {}, user="wim").status == 403
    assert shop.get(table_path("a", "t"), user="wim").status == 403
    grant(shop, "nell", "use_catalog", kind="CATALOG", on="main")
    assert shop.post(plan, {}, user="nell").status == 403


def test_views_lift_no_restriction(shop: DriverNode) -> None:
    """A view of an unrestricted author gives a restricted user no rights on the table, and a restricted author's view
    gives no rights to any user.
    """
    version = view_version("select * from a.t")
    make_view(shop, "v", "mine", version=version)
    make_space(shop, "w")
    grant(shop, "eve", "use_catalog use_schema select_view", kind="CATALOG", on="main")
    through = f"{table_path('a', 't')}?referenced-by=v%1Fmine"

    refused = shop.get(through, user="eve")
    assert refused.status == 403
    assert "eve is restricted" in words(refused)
    bound = shop.get(through, user="bob")
    assert "read-restrictions" in bound.json()
    shop.done("POST", view_path("v", "mine"), replaced_by(version))


def test_restriction_changes_apply_to_the_next_load(lake: DriverNode) -> None:
    """Setting, replacing and removing a restriction, and changed memberships, affect the next load, also if answers are
    cached.
    """
    furnish(lake)
    path = table_path("a", "t")
    assert "read-restrictions" not in lake.get(path, user="bob").json()
    assert restrict(lake, filter="city = 'EU'", **{"except": {"groups": []}}).status == 200
    assert "read-restrictions" in lake.get(path, user="bob").json()
    lake.done("POST", f"{API}/lake/groups", {"name": "auditors"})
    assert restrict(lake, filter="city = 'EU'", **{"except": {"groups": ["auditors"]}}).status == 200
    assert "read-restrictions" in lake.get(path, user="bob").json()
    lake.done("POST", f"{LAKE}/groups/auditors/members", {"users": ["bob"]})
    assert "read-restrictions" not in lake.get(path, user="bob").json()
    lake.done("DELETE", f"{LAKE}/groups/auditors/members/bob")
    assert "read-restrictions" in lake.get(path, user="bob").json()

    assert lake.done("DELETE", of("eu")) == {"removed": True}
    assert "read-restrictions" not in lake.get(path, user="bob").json()
    assert lake.done("DELETE", of("eu")) == {"removed": False}


def test_namespace_restrictions_are_combined_with_table_restrictions(lake: DriverNode) -> None:
    """Filters of a namespace and a table are combined, and the stricter of two masks applies. Restrictions of the
    namespace also apply to a table's owner.
    """
    furnish(lake)
    assert (
        restrict(
            lake,
            "in-eu",
            kind="SCHEMA",
            on="main.a",
            filter="CITY = 'EU'",
            masks={"SSN": "show-last-4", "nothing-of-the-kind": "replace-with-null"},
        ).status
        == 200
    )
    assert restrict(lake, filter="born is not null", masks={"ssn": "show-first-4"}).status == 200
    restrictions = lake.get(table_path("a", "t"), user="bob").json()["read-restrictions"]

    assert restrictions["required-column-projections"] == [{"field-id": 3, "action": "mask-to-fixed-value"}]
    assert restrictions["required-row-filter"]["type"] == "and"
    body = {"name": "own", "schema": SCHEMA, "properties": {"format-version": "3"}}
    lake.done("POST", f"{space_path('a')}/tables", body, user="bob")
    assert "read-restrictions" in lake.get(table_path("a", "own"), user="bob").json()
    moves = {"source": {"namespace": ["a"], "name": "own"}, "destination": {"namespace": ["b"], "name": "own"}}
    make_space(lake, "b")
    for answer in (
        lake.delete(table_path("a", "own"), user="bob"),
        lake.post(f"{table_path('a', 'own')}/unregister", user="bob"),
        lake.post(f"{SPACES.removesuffix('/namespaces')}/tables/rename", moves, user="bob"),
    ):
        closed(answer)


def test_move_does_not_remove_namespace_restrictions(lake: DriverNode) -> None:
    """A restricted user cannot move the table out of the restricted namespace. A move keeps the table's own
    restrictions and adds those of the target.
    """
    furnish(lake)
    make_space(lake, "b")
    assert restrict(lake, "own", filter="city = 'EU'").status == 200
    rename = {"source": {"namespace": ["a"], "name": "t"}, "destination": {"namespace": ["b"], "name": "t"}}
    assert restrict(lake, "there", kind="SCHEMA", on="main.b", masks={"ssn": "replace-with-null"}).status == 200
    assert lake.post(f"{SPACES.removesuffix('/namespaces')}/tables/rename", rename).status == 204

    restrictions = lake.get(table_path("b", "t"), user="bob").json()["read-restrictions"]
    assert set(restrictions) == {"required-row-filter", "required-column-projections"}
    assert lake.delete(table_path("b", "t")).status == 204
    trash = lake.done("GET", f"{LAKE}/catalogs/main/trash")["trash"]
    lake.done("POST", f"{LAKE}/catalogs/main/trash/{trash[0]['id']}/undrop", {})
    assert set(lake.get(table_path("b", "t"), user="bob").json()["read-restrictions"]) == set(restrictions)


def test_restriction_follows_renamed_column_and_blocks_if_dropped(lake: DriverNode) -> None:
    """A renamed column stays masked. If a restricted column is dropped, the table cannot be read until the restriction
    is set again.
    """
    furnish(lake)
    assert restrict(lake, filter="city = 'EU'", masks={"ssn": "show-last-4"}).status == 200
    renamed = [{**field, "name": "number"} if field["id"] == 3 else field for field in FIELDS]
    assert commit(lake, "a", "t", updates=_schema(renamed)).status == 200
    loaded = lake.get(table_path("a", "t"), user="bob").json()
    assert loaded["read-restrictions"]["required-column-projections"] == [{"field-id": 3, "action": "show-last-4"}]
    assert "initial-default" not in json.dumps(loaded["metadata"])
    dropped = [field for field in renamed if field["id"] != 3]
    assert commit(lake, "a", "t", updates=_schema(dropped)).status == 200

    refused = lake.get(table_path("a", "t"), user="bob")
    assert refused.status == 403
    assert "limnos set restriction eu" in words(refused)
    assert lake.get(table_path("a", "t")).status == 200
    assert restrict(lake, filter="city = 'EU'").status == 200
    assert lake.get(table_path("a", "t"), user="bob").status == 200


def _schema(fields: list[dict]) -> list[dict]:
    added = {"action": "add-schema", "schema": {"type": "struct", "fields": fields}, "last-column-id": 4}
    return [added, {"action": "set-current-schema", "schema-id": -1}]


@pytest.mark.parametrize(
    "terms,why",
    [
        ({}, "needs a filter, a mask or both"),
        ({"filter": "nosuch = 1"}, "has no column nosuch"),
        ({"filter": "city > 5"}, "is string"),
        ({"filter": "id = 'x'"}, "is long"),
        ({"filter": "born < 'yesterday'"}, "is date"),
        ({"filter": "city ="}, "not a condition"),
        (
            {
                "filter": reduce(
                    lambda inner, _: {"type": "not", "child": inner}, range(150), {"type": "is-null", "term": "id"}
                )
            },
            "levels",
        ),
        ({"filter": "id = 1 or " * 300 + "id = 2"}, ""),
        ({"filter": "x" * 5000}, "4096 characters"),
        (
            {"filter": {"type": "eq", "left": {"type": "transform", "transform": "year", "term": "born"}, "right": 1}},
            "must be a column",
        ),
        ({"filter": {"type": "like", "term": "city", "value": "x"}}, "there is no condition"),
        ({"filter": {"type": "in", "term": "id", "values": []}}, "1 to 1000 values"),
        ({"filter": {"type": "in", "term": "id", "values": list(range(1001))}}, "1 to 1000 values"),
        ({"filter": {"type": "is-nan", "term": "city"}}, "does not apply"),
        ({"filter": {"type": "eq", "term": "id", "value": None}}, "a value must be"),
        ({"filter": {"type": "eq", "term": {"type": "reference", "id": 9}, "value": 1}}, "no field 9"),
        ({"filter": 5}, "object"),
        ({"masks": {"ssn": "hide"}}, "There is no mask"),
        ({"masks": {"id": "show-last-4"}}, "does not fit"),
        ({"masks": {"nosuch": "replace-with-null"}}, "has no column"),
        ({"masks": {"a.b": "replace-with-null"}}, "nested fields"),
        ({"masks": {"ssn": "show-last-4"}, "to": {"users": ["nobody-here"]}}, "does not exist"),
        ({"masks": {"ssn": "show-last-4"}, "to": {"roles": [f"r{i}" for i in range(101)]}}, "at most 100"),
        ({"masks": {"ssn": "show-last-4"}, "who": {}}, "unknown field"),
    ],
)
def test_invalid_restriction_is_refused(lake: DriverNode, terms: dict, why: str) -> None:
    """An unknown column, a mask that does not fit its type, or a filter that is too long or deep is refused with the
    reason.
    """
    furnish(lake)
    answer = restrict(lake, **terms)

    assert answer.status in (400, 404), (answer.status, answer.body)
    assert why in words(answer), words(answer)
    assert lake.done("GET", of("x").removesuffix("/x"))["restrictions"] == []


def test_owners_and_grant_managers_can_manage_restrictions(shop: DriverNode) -> None:
    """Owners and grant managers can set, list and remove restrictions. A list has their users and objects."""
    grant(shop, "gus", "use_catalog use_schema manage_grants", kind="CATALOG", on="main")

    assert restrict(shop, "more", user="ann", masks={"city": "mask-alphanum"}).status == 403
    assert restrict(shop, "more", user="gus", masks={"city": "mask-alphanum"}, to={"users": ["bob"]}).status == 200
    assert (
        restrict(shop, "all", kind="SCHEMA", on="main.a", user="gus", masks={"city": "replace-with-null"}).status == 200
    )
    restrictions = shop.get(of("x").removesuffix("/x"), user="gus").json()["restrictions"]
    assert [(each["name"], each["on"]["name"]) for each in restrictions] == [
        ("eu", "main.a.t"),
        ("more", "main.a.t"),
        ("all", "main.a"),
    ]
    assert restrictions[0]["except"]["users"] == ["ann"]
    assert restrictions[1]["to"]["users"] == ["bob"]
    assert restrictions[1]["masks"] == {"city": "mask-alphanum"}
    assert shop.delete(of("more"), user="gus").json() == {"removed": True}


def test_explain_names_the_restriction(shop: DriverNode) -> None:
    """`access explain` names the restriction that refuses an operation, with advice."""
    body = {"action": "table_read", "path": ["main", "a", "t"], "user": "bob"}
    explanation = shop.done("POST", f"{LAKE}/access/explain", body)

    assert explanation["decision"]["allowed"] is False
    assert explanation["decision"]["factors"][0]["kind"] == "restricted"
    assert "restriction eu leaves" in explanation["suggestions"][0]
    body["action"] = "table_scan"
    assert shop.done("POST", f"{LAKE}/access/explain", body)["decision"]["allowed"] is True


def test_other_formats_are_refused(lake: DriverNode) -> None:
    """Restrictions apply to Iceberg tables only; catalogs of other formats refuse them."""
    body = {
        "name": "vectors",
        "type": "RELATIONAL",
        "provider": "lakehouse-generic",
        "comment": "",
        "properties": {"location": f"file://{lake.data}/warehouse/lance"},
    }
    lake.done("POST", f"{API}/lake/catalogs", body)
    lake.done("POST", f"{API}/lake/catalogs/vectors/schemas", {"name": "s"})

    answer = restrict(lake, kind="SCHEMA", on="vectors.s", masks={"x": "replace-with-null"})
    assert answer.status == 400
    assert "Lance" in words(answer)


def test_role_excepts_holders_only_while_active(lake: DriverNode) -> None:
    """A role excepts its holders from a restriction only while it is active. A restriction to a role binds its holders
    also while the role is inactive.
    """
    furnish(lake)
    roles = lake.done("GET", f"{API}/lake/users/bob")["user"]["roles"]
    extra = grant(lake, "bob", "select_table", kind="TABLE", on="main.a.t")
    assert restrict(lake, filter="city = 'EU'", **{"except": {"roles": [extra]}}).status == 200
    path = table_path("a", "t")
    assert "read-restrictions" not in lake.get(path, user="bob").json()
    headers = {"x_gravitino_active_roles": roles[0]}

    narrowed = lake.ask("GET", path, user="bob", **headers)
    assert narrowed.status == 200, narrowed.body
    assert "read-restrictions" in narrowed.json()
    assert restrict(lake, filter="city = 'EU'", to={"roles": [extra]}).status == 200
    for sent in ({}, headers):
        bound = lake.ask("GET", path, user="bob", **sent)
        assert bound.status == 200, bound.body
        assert "read-restrictions" in bound.json(), sent
        assert not [each for each in SECRETS if each in bound.body.decode()], sent
        closed(lake.ask("GET", f"{path}/credentials", user="bob", **sent))
    assert "read-restrictions" not in lake.get(path, user="ann").json()


def test_several_restrictions_of_a_table_are_listed(lake: DriverNode) -> None:
    """Several restrictions of one table can be set, and all are listed."""
    make_table(lake, "a", "t")
    for number in range(3):
        assert restrict(lake, f"r{number}", filter=f"id > {number}").status == 200
    restrictions = lake.done("GET", of("x").removesuffix("/x"))["restrictions"]

    assert [each["name"] for each in restrictions] == ["r0", "r1", "r2"]


@pytest.mark.room("exchange")
def test_restrictions_can_be_exported_and_imported(lake: DriverNode) -> None:
    """An export contains restrictions; an import sets them with the new ids of users and objects, without unknown
    users.
    """
    make_space(lake, "a")
    for user in ("bob", "gone"):
        lake.done("POST", f"{API}/lake/users", {"name": user})
    terms = {"to": {"users": ["bob"]}, "except": {"users": ["gone"]}}
    answer = restrict(lake, kind="SCHEMA", on="main.a", filter="city = 'EU'", masks={"ssn": "show-last-4"}, **terms)
    assert answer.status == 200, answer.body
    lake.done("DELETE", f"{API}/lake/users/gone")
    metalake_copy(lake, "copy")
    path = f"{OWN}/metalakes/{{}}/objects/SCHEMA/main.a/restrictions"
    before, after = (lake.done("GET", path.format(metalake))["restrictions"] for metalake in ("lake", "copy"))

    assert after == before
    assert after[0]["to"] == {"users": ["bob"], "groups": [], "roles": []}
