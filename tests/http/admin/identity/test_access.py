# SPDX-License-Identifier: Apache-2.0
"""Access over the admin API: explained decisions, access lists, and the effects of planned changes."""

from __future__ import annotations

import re

import pytest

from tests.http.driver import API, OWN, DriverNode, grant

pytestmark = pytest.mark.slow

SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "id", "type": "long", "required": False}]}
EXPLAIN = f"{OWN}/metalakes/lake/access/explain"
ACCESS = f"{OWN}/metalakes/lake/access"
ICEBERG = "/iceberg/v1/lake.main"
SCHEMAS = f"{API}/lake/catalogs/main/schemas"


def test_permission_is_explained_by_role_and_privilege(node: DriverNode) -> None:
    """An allowed decision has the privilege, object, role and revisions, and no suggestions."""
    role = grant(node, "ana", "use_catalog", kind="catalog", on="main")

    explanation = node.done("POST", EXPLAIN, {"action": "catalog_load", "path": ["main"]}, user="ana")

    (factor,) = explanation["decision"]["factors"]
    assert explanation["decision"]["allowed"] is True
    assert (factor["kind"], factor["privilege"], factor["role"]) == ("allow", "USE_CATALOG", role)
    assert factor["object"]["name"] == "main"
    assert explanation["decision"]["revision"]
    assert explanation["suggestions"] == []


def test_refusal_comes_with_suggestions(node: DriverNode) -> None:
    """The explanation of a refused decision is answered with 200 and suggests the grants that would allow it."""
    node.done("POST", f"{API}/lake/users", {"name": "ana"})

    explanation = node.done("POST", EXPLAIN, {"action": "catalog-load", "path": ["main"]}, user="ana")

    assert explanation["decision"]["allowed"] is False
    assert explanation["decision"]["message"].startswith("User 'ana' is not authorized")
    assert explanation["suggestions"] == ["Grant USE_CATALOG on catalog main to a role of ana."]


def test_explaining_another_users_access_needs_manage_grants(node: DriverNode) -> None:
    """Explaining another user's access needs MANAGE_GRANTS or ownership of the metalake."""
    grant(node, "ana", "use_catalog", kind="catalog", on="main")
    question = {"action": "catalog_load", "path": ["main"], "user": "admin"}

    refused = node.post(EXPLAIN, question, user="ana")
    explanation = node.done("POST", EXPLAIN, {**question, "user": "ana"})

    assert (refused.status, refused.json()["error"]["code"]) == (403, "forbidden")
    assert (explanation["decision"]["user"], explanation["decision"]["allowed"]) == ("ana", True)


@pytest.mark.parametrize(
    "real, absent, action",
    [
        (["main"], ["zone"], "catalog_load"),
        (["main", "a"], ["main", "z"], "namespace_load"),
        (["main", "a", "b"], ["zone", "a", "b"], "namespace_load"),
    ],
    ids=str,
)
def test_hidden_and_missing_objects_get_the_same_explanation(
    node: DriverNode, real: list[str], absent: list[str], action: str
) -> None:
    """A hidden object and a missing one get the same explanation."""
    node.done("POST", SCHEMAS, {"name": "a:b"})
    node.done("POST", f"{API}/lake/users", {"name": "ana"})

    first, second = (node.post(EXPLAIN, {"action": action, "path": path}, user="ana") for path in (real, absent))

    assert first.status == second.status == 200
    assert first.body.replace(".".join(real).encode(), b"X").replace(real[0].encode(), b"C") == second.body.replace(
        ".".join(absent).encode(), b"X"
    ).replace(absent[0].encode(), b"C")


def test_empty_path_selects_the_metalake(node: DriverNode) -> None:
    """Without a path the object is the metalake."""
    explanation = node.done("POST", EXPLAIN, {"action": "catalog_create"})

    assert explanation["decision"]["allowed"] is True
    assert explanation["decision"]["target"]["kind"] == "metalake"


@pytest.mark.parametrize(
    "question",
    [
        {"action": "fly", "path": ["main"]},
        {"action": "table_load", "path": ["main"]},
        {"action": "catalog_load", "path": ["main"], "kind": "planet"},
        {"action": "catalog_load", "path": [""]},
        {"path": ["main"]},
        {"action": "catalog_load", "path": "main"},
    ],
    ids=str,
)
def test_invalid_actions_and_paths_are_400(node: DriverNode, question: object) -> None:
    """An unknown action, an action that does not apply to the kind of object, or a malformed path is 400."""
    assert node.post(EXPLAIN, question).status == 400


def _reader(node: DriverNode) -> str:
    """Create namespace `a` with a table that ana may read. Returns ana's role."""
    node.done("POST", f"{ICEBERG}/namespaces", {"namespace": ["a"]})
    node.done("POST", f"{ICEBERG}/namespaces/a/tables", {"name": "t", "schema": {"type": "struct", "fields": []}})
    grant(node, "ana", "use_catalog", kind="catalog", on="main")
    grant(node, "ana", "use_schema", kind="schema", on="main.a")
    return grant(node, "ana", "select_table", kind="table", on="main.a.t")


def test_holders_and_rules_are_listed(node: DriverNode) -> None:
    """A user with MANAGE_GRANTS can list the users who may read a table, with the rules that allow it; a reader
    cannot.
    """
    role = _reader(node)

    page = node.done("GET", f"{ACCESS}/holders?path=main.a.t&limit=1")
    rest = node.done("GET", f"{ACCESS}/holders?path=main.a.t&after={page['after']}&action=table_scan")
    rules = node.done("GET", f"{ACCESS}/rules?path=main.a.t")

    assert [each["user"] for each in page["holders"]] == ["admin"]
    assert page["asked"] == ["read", "write", "drop", "grant"]
    (ana,) = rest["holders"]
    assert {each["role"] for each in ana["may"]["table_scan"]} >= {role}
    assert {(each["role"], each["privilege"], each["inherited"]) for each in rules["rules"]} >= {
        (role, "SELECT_TABLE", False)
    }
    for name in ("holders", "rules"):
        assert node.ask("GET", f"{ACCESS}/{name}?path=main.a.t", user="ana").status == 403


@pytest.mark.parametrize(
    "query, note",
    [
        ("holders?path=main.a.typo", "There is no table main.a.typo"),
        ("holders?path=mian.a.t", "There is no catalog mian"),
        ("reach?path=main.b", "There is no namespace main.b"),
        ("reach?path=main.b&user=ana", "There is no namespace main.b"),
        ("reach?path=main&user=nobody", "There is no user nobody in this metalake"),
    ],
)
def test_lists_of_missing_objects_and_users_say_so(node: DriverNode, query: str, note: str) -> None:
    """Lists about an object or a user that does not exist have a note; a caller who may not know it gets none."""
    _reader(node)

    assert [each.partition(":")[0] for each in node.done("GET", f"{ACCESS}/{query}")["notes"]] == [note]
    hidden = node.ask("GET", f"{ACCESS}/{query}", user="ana")
    assert hidden.status == 403 or hidden.json()["notes"] == []
    for known in ("holders?path=main.a.t", "reach?path=main.a&user=ana"):
        assert node.done("GET", f"{ACCESS}/{known}")["notes"] == []


def test_owner_of_a_catalog_learns_that_a_namespace_is_missing(node: DriverNode) -> None:
    """Who may grant on a catalog without managing grants in the metalake learns that a namespace does not exist."""
    _reader(node)
    node.done("POST", f"{API}/lake/users", {"name": "cleo"})
    node.done("PUT", f"{API}/lake/owners/catalog/main", {"name": "cleo", "type": "USER"})

    notes = node.done("GET", f"{ACCESS}/reach?path=main.b", user="cleo")["notes"]

    assert [each.partition(":")[0] for each in notes] == ["There is no namespace main.b"]


def test_owner_who_may_grant_lists_holders_without_loading_the_table(node: DriverNode) -> None:
    """The owner of a table who may not use the catalog may grant on the table, and so list its holders; the path alone
    tells its kind.
    """
    _reader(node)
    grant(node, "kim", "use_schema", kind="schema", on="main.a")
    node.done("PUT", f"{API}/lake/owners/TABLE/main.a.t", {"name": "kim", "type": "USER"})
    table = "/iceberg/v1/lake.main/namespaces/a/tables/t"

    assert node.get(table, user="kim").status == 403
    assert "ana" in {each["user"] for each in node.get(f"{ACCESS}/holders?path=main.a.t", user="kim")["holders"]}


def test_listing_another_users_access_needs_manage_grants(node: DriverNode) -> None:
    """Users may list their own access; listing another user's needs the right to manage grants."""
    _reader(node)

    own = node.done("GET", f"{ACCESS}/reach?path=main.a", user="ana")

    assert own["counts"] == {"read": {"namespace": 1, "table": 1}}
    assert [each["path"] for each in own["objects"]] == [["main", "a"], ["main", "a", "t"]]
    assert node.done("GET", f"{ACCESS}/reach?path=main.a&user=ana")["counts"] == own["counts"]
    assert node.ask("GET", f"{ACCESS}/reach?path=main&user=admin", user="ana").status == 403


def test_revoke_what_if_counts_users_and_changes_nothing(node: DriverNode) -> None:
    """The what-if request returns the number of users and objects that a revoke would affect, and changes nothing."""
    role = _reader(node)
    body = {
        "change": "revoke",
        "role": role,
        "kind": "table",
        "path": ["main", "a", "t"],
        "privileges": [{"name": "select_table"}],
    }

    effect = node.done("POST", f"{ACCESS}/what-if", body)

    assert effect["lines"] == [
        {"level": "read", "kind": "table", "gains": False, "users": 1, "objects": 1, "names": ["ana"]}
    ]
    assert node.done("GET", f"{ACCESS}/reach?path=main.a", user="ana")["counts"]["read"]["table"] == 1
    assert node.ask("POST", f"{ACCESS}/what-if", body, user="ana").status == 403
    assigned = {"change": "unassign", "roles": [role], "user": "ana"}
    assert node.done("POST", f"{ACCESS}/what-if", assigned)["losing"] == 1


@pytest.mark.parametrize(
    "query",
    ["?path=main&limit=0", "?path=main&limit=9999", "?kind=hat", "?path=main.a.t&action=fly", "?path=a&kind=metalake"],
)
def test_invalid_numbers_kinds_and_actions_are_400(node: DriverNode, query: str) -> None:
    """Invalid numbers, and unknown kinds and actions, are 400."""
    assert node.ask("GET", f"{ACCESS}/holders{query}").status == 400


@pytest.mark.parametrize(
    "body",
    [
        {"change": "grant"},
        {"change": "hat"},
        {"change": "assign", "roles": []},
        {"change": "assign", "roles": ["r"], "user": "ana", "group": "g"},
    ],
)
def test_incomplete_what_if_request_is_refused(node: DriverNode, body: dict[str, object]) -> None:
    """A what-if request needs either a role, an object and privileges, or roles and one holder."""
    assert node.ask("POST", f"{ACCESS}/what-if", body).status == 400


HIDDEN_AND_MISSING = (("main.a", "main.n"), ("main.a.t", "main.a.n"), ("main.a.t", "main.n.t"), ("main", "none"))


@pytest.mark.parametrize("hidden, missing", HIDDEN_AND_MISSING)
@pytest.mark.parametrize("route", ["reach", "holders", "rules"])
@pytest.mark.parametrize("kind", ["", "&kind=schema", "&kind=table"])
def test_hidden_objects_get_the_answers_of_missing_ones(
    node: DriverNode, route: str, kind: str, hidden: str, missing: str
) -> None:
    """A user without a right on an object gets the same answer as about a missing one, whatever kind it has."""
    _reader(node)
    node.ask("POST", f"{API}/lake/users", {"name": "eve"})
    answers = [node.ask("GET", f"{ACCESS}/{route}?path={path}{kind}", user="eve") for path in (hidden, missing)]

    texts = [str(answer.json()).replace(path, "") for answer, path in zip(answers, (hidden, missing), strict=True)]
    assert answers[0].status == answers[1].status
    assert without_ids(texts[0]) == without_ids(texts[1])


def without_ids(text: str) -> str:
    """Return the text of an answer without ids of requests and objects."""
    return re.sub(r"'(request_id|id)': [^,}]+|[0-9a-f]{16,}", "", text)


def test_user_who_may_not_lift_a_restriction_is_no_holder_of_renames(node: DriverNode) -> None:
    """A user whom a restriction excepts may write to the table, and not rename it: that would leave the restriction.
    Holders, differences and the user's own request agree.
    """
    node.done("POST", f"{ICEBERG}/namespaces", {"namespace": ["a"]})
    schema = {"type": "struct", "fields": [{"id": 1, "name": "city", "type": "string", "required": False}]}
    node.done("POST", f"{ICEBERG}/namespaces/a/tables", {"name": "t", "schema": schema})
    for user, right in (("ana", "select_table"), ("kim", "modify_table")):
        role = grant(node, user, "use_catalog", kind="catalog", on="main")
        grant(node, user, "use_schema", kind="schema", on="main.a")
        grant(node, user, right, kind="table", on="main.a.t")
    url = f"{OWN}/metalakes/lake/objects/table/main.a.t/restrictions/eu"
    node.done("PUT", url, {"filter": "city = 'EU'", "except": {"roles": [role]}})

    renamers = node.done("GET", f"{ACCESS}/holders?path=main.a.t&action=table_rename")["holders"]
    (table,) = node.done("GET", f"{ACCESS}/diff?user=kim&other=ana&path=main.a.t")["objects"]
    body = {"source": {"namespace": ["a"], "name": "t"}, "destination": {"namespace": ["a"], "name": "u"}}

    assert "kim" not in [each["user"] for each in renamers]
    assert "table_commit" in table["user"]["actions"]
    assert "table_rename" not in table["user"]["actions"]
    assert table["other"]["restrictions"] == ["eu"]
    assert node.ask("POST", f"{ICEBERG}/tables/rename", body, user="kim").status == 403


def test_missing_privileges_of_a_preset_are_listed(node: DriverNode) -> None:
    """What ana lacks to write a table is listed for an administrator and for herself; an unknown preset is 400."""
    _reader(node)

    lack = node.done("GET", f"{ACCESS}/missing?path=main.a.t&user=ana&preset=writer")

    assert lack["missing"] == [
        {"privilege": "MODIFY_TABLE", "object": {"kind": "table", "name": "main.a.t"}, "denials": []}
    ]
    assert node.done("GET", f"{ACCESS}/missing?path=main.a.t&preset=writer", user="ana") == lack
    assert node.done("GET", f"{ACCESS}/missing?path=main.a.t&preset=reader", user="ana")["missing"] == []
    assert node.ask("GET", f"{ACCESS}/missing?path=main.a.t&preset=king").status == 400
    assert node.ask("GET", f"{ACCESS}/diff?path=main.a.t&user=ana").status == 400


def test_restricted_read_is_explained_by_its_privileges(node: DriverNode) -> None:
    """A read that nothing but a restriction prevents is refused, with the privileges by which the visible part is read
    and with the exception that would open the rest. Without these privileges only they are named.
    """
    node.done("POST", SCHEMAS, {"name": "raw", "comment": None, "properties": {}})
    node.done("POST", f"{ICEBERG}/namespaces/raw/tables", {"name": "t", "schema": SCHEMA})
    grant(node, "ana", "use_catalog use_schema select_table", kind="catalog", on="main")
    grant(node, "ben", "use_catalog", kind="catalog", on="main")
    path = f"{OWN}/metalakes/lake/objects/TABLE/main.raw.t/restrictions/r"
    node.done("PUT", path, {"masks": {"id": "replace-with-null"}})
    question = {"action": "table_read", "path": ["main", "raw", "t"]}

    restricted, refused = (node.done("POST", EXPLAIN, question | {"user": user}) for user in ("ana", "ben"))

    visible, privileges, exception = restricted["suggestions"]
    assert visible.startswith("Restricted: reads are planned by the server. ana reads the rows and columns that")
    assert "SELECT_TABLE on main" in privileges
    assert exception == "For all rows and columns: except ana from restriction r of table main.raw.t."
    assert not any("leaves" in line for line in refused["suggestions"])


def test_no_visible_part_is_explained_to_a_user_who_may_only_write(node: DriverNode) -> None:
    """A write that nothing but a restriction prevents is refused without a word about rows that the user may read."""
    node.done("POST", SCHEMAS, {"name": "raw", "comment": None, "properties": {}})
    node.done("POST", f"{ICEBERG}/namespaces/raw/tables", {"name": "t", "schema": SCHEMA})
    grant(node, "ana", "use_catalog use_schema modify_table", kind="catalog", on="main")
    path = f"{OWN}/metalakes/lake/objects/TABLE/main.raw.t/restrictions/r"
    node.done("PUT", path, {"masks": {"id": "replace-with-null"}})

    question = {"action": "table_commit", "path": ["main", "raw", "t"], "user": "ana"}
    explanation = node.done("POST", EXPLAIN, question)

    assert {each["kind"] for each in explanation["decision"]["factors"]} == {"restricted"}
    assert not any("leaves" in line for line in explanation["suggestions"])


def test_known_objects_of_a_path_are_named_without_a_refusal(node: DriverNode) -> None:
    """The objects at a path have kind and owner; a user without rights on them gets none, and no refusal, as for a
    missing path.
    """
    node.done("POST", SCHEMAS, {"name": "raw"})
    node.done("POST", f"{ICEBERG}/namespaces/raw/tables", {"name": "t", "schema": SCHEMA})
    node.done("POST", f"{API}/lake/users", {"name": "ana"})

    known = node.done("GET", f"{ACCESS}/objects?path=main.raw.t")
    hidden = node.done("GET", f"{ACCESS}/objects?path=main.raw.t", user="ana")
    missing = node.done("GET", f"{ACCESS}/objects?path=main.raw.none")
    catalog = node.done("GET", f"{ACCESS}/objects?path=main")

    assert known == {"objects": [{"kind": "table", "owner": {"kind": "user", "name": "admin"}}], "complete": True}
    assert hidden == missing == {"objects": [], "complete": True}
    assert [each["kind"] for each in catalog["objects"]] == ["catalog"]
    assert node.get(f"{ACCESS}/objects").status == 400
