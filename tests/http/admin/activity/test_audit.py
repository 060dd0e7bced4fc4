# SPDX-License-Identifier: Apache-2.0
"""The audit of a path: who was given access to an object, and who lost it, with the privileges."""

from __future__ import annotations

import pytest

from limnos.store.identity import roles
from tests.http.driver import API, OWN, DriverNode, grant
from tests.http.iceberg.wire import SCHEMA

AUDIT = f"{OWN}/metalakes/lake/audit"
RULES = {"privileges": [{"name": "select_table", "condition": "allow"}]}
TABLE = "main.raw.t"


@pytest.fixture(name="lake")
def make_lake(node: DriverNode) -> DriverNode:
    """Return a node with the table main.raw.t, the user ana, and the role r, which has no privileges."""
    node.done("POST", f"{API}/lake/catalogs/main/schemas", {"name": "raw"})
    node.done("POST", "/iceberg/v1/lake.main/namespaces/raw/tables", {"name": "t", "schema": SCHEMA})
    node.done("POST", f"{API}/lake/users", {"name": "ana"})
    node.done("POST", f"{API}/lake/roles", {"name": "r", "properties": {}, "securableObjects": []})
    return node


def changes(node: DriverNode, query: str) -> list[tuple[str, str, str]]:
    """Return change, path and detail of the records of a query, oldest first."""
    lines = node.done("GET", f"{AUDIT}?after=0&{query}")["lines"]
    return [(each["change"] or "", each["object"]["path"], each["detail"] or "") for each in lines]


def test_path_of_a_table_has_its_grants_and_revocations(lake: DriverNode) -> None:
    """A grant on a table and its revocation are records of the table, with the privilege and the role."""
    for verb in ("grant", "revoke"):
        lake.done("PUT", f"{API}/lake/permissions/roles/r/table/{TABLE}/{verb}", RULES)

    assert changes(lake, f"path={TABLE}")[1:] == [
        ("grant", TABLE, f"role r: allow SELECT_TABLE on table {TABLE}"),
        ("revoke", TABLE, f"role r: no longer allow SELECT_TABLE on table {TABLE}"),
    ]
    assert changes(lake, f"path={TABLE}&action=revoke") == changes(lake, f"path={TABLE}")[2:]


def test_preset_without_effect_has_a_record_of_what_it_was_for(lake: DriverNode) -> None:
    """A refused preset, and a repeated one that changes nothing, say which preset, on what and for whom."""
    presets = f"{OWN}/metalakes/lake/access/presets"
    body = {"change": "grant", "preset": "reader", "kind": "table", "path": TABLE.split("."), "user": "ana"}
    refusal = lake.ask("POST", presets, body, user="ana")
    lake.done("POST", presets, body)
    lake.done("POST", presets, body)

    records = lake.done("GET", f"{AUDIT}?after=0&path={TABLE}&action=privilege_grant")["lines"]

    text = f"grant preset reader on table {TABLE} to user ana"
    assert refusal.status == 403
    assert {(each["outcome"], each["detail"]) for each in records} == {
        ("refused", f"{text}: forbidden"),
        ("done", f"role user:ana: allow SELECT_TABLE on table {TABLE}"),
        ("done", f"{text}: nothing to change"),
    }


def test_exact_paths_are_repeated(lake: DriverNode) -> None:
    """`exact` is sent for each of several objects, whose own records are answered; more than 100 are refused."""
    above = changes(lake, "exact=main&exact=main.raw&action=create")
    many = lake.get(f"{AUDIT}?" + "&".join(f"exact=main.n{number}" for number in range(101)))
    path_twice = lake.get(f"{AUDIT}?path=main&path=main.raw")

    assert [path for _, path, _ in above] == ["main", "main.raw"]
    assert changes(lake, "exact=") == changes(lake, "")
    assert (many.status, path_twice.status) == (400, 400)
    assert "exact may be sent 100 times, not 101" in many.json()["error"]["message"]


def test_removal_of_a_missing_restriction_is_recorded_as_failed(lake: DriverNode) -> None:
    """An admin who may remove restrictions gets a record that nothing was removed; a caller without the right gets a
    refused one; a removal that removes has a record as done.
    """
    url = f"{OWN}/metalakes/lake/objects/TABLE/{TABLE}/restrictions"
    lake.done("PUT", f"{url}/eu", {"filter": "id > 1", "to": {"users": ["ana"]}})

    answers = [
        lake.ask("DELETE", f"{url}/nope"),
        lake.ask("DELETE", f"{url}/nope", user="ana"),
        lake.ask("DELETE", f"{url}/eu"),
    ]

    assert [(each.status, each.json().get("removed")) for each in answers] == [(200, False), (403, None), (200, True)]
    lines = [
        lake.done("GET", f"{AUDIT}?request={each.headers['x-request-id']}")["lines"][0]  # type: ignore[index]
        for each in answers
    ]
    assert [(each["user"], each["outcome"]) for each in lines] == [
        ("admin", "failed"),
        ("ana", "refused"),
        ("admin", "done"),
    ]
    assert lines[0]["detail"] == "there is no restriction nope: nothing was removed"


def test_preset_is_recorded_for_each_object(lake: DriverNode) -> None:
    """The grants of a preset are records of the table, its namespace and its catalog."""
    body = {"change": "grant", "preset": "reader", "kind": "table", "path": ["main", "raw", "t"], "user": "ana"}
    lake.done("POST", f"{OWN}/metalakes/lake/access/presets", body)

    records = changes(lake, "path=main&action=grant")
    assert [(change, path) for change, path, _ in records] == [
        ("grant", TABLE),
        ("grant", "main.raw"),
        ("grant", "main"),
    ]
    assert all(detail.startswith("role user:ana") for _, _, detail in records)


def test_grant_matches_assignments_and_refusals(lake: DriverNode) -> None:
    """The action `grant` finds the assignment of a role, and a grant that was refused; `revoke` finds neither."""
    grant(lake, "ben", "use_catalog", kind="catalog", on="main")
    lake.done("PUT", f"{API}/lake/permissions/users/ana/grant", {"roleNames": ["r"]})
    assert lake.ask("PUT", f"{API}/lake/permissions/roles/r/table/{TABLE}/grant", RULES, user="ben").status == 403

    records = lake.done("GET", f"{AUDIT}?after=0&action=grant")["lines"]

    assert "give" in {each["change"] for each in records}
    assert [(each["user"], each["object"]["path"]) for each in records if each["outcome"] == "refused"] == [
        ("ben", TABLE)
    ]
    assert changes(lake, "action=revoke") == []


def test_restriction_is_recorded_in_words(lake: DriverNode) -> None:
    """The record of a restriction has its filter as SQL, its masks, and the names of whom it applies to."""
    url = f"{OWN}/metalakes/lake/objects/table/{TABLE}/restrictions/pii"
    body = {
        "filter": "id > 5",
        "masks": {"id": "replace-with-null"},
        "to": {"users": ["ana"]},
        "except": {"roles": ["r"]},
    }
    lake.done("PUT", url, body)
    lake.done("PUT", url, {"masks": body["masks"]})
    lake.done("DELETE", url)

    terms = "restriction pii: rows where id > 5, id masked by replace-with-null, for user ana, except role r"
    assert changes(lake, f"path={TABLE}&action=restriction") == [
        ("restrict", TABLE, terms),
        ("restrict", TABLE, "restriction pii: id masked by replace-with-null, for everybody"),
        ("unrestrict", TABLE, "restriction pii"),
    ]


def test_role_with_grants_is_recorded_for_each_object(lake: DriverNode) -> None:
    """A role that is created, overridden or dropped has a record for each object that it gives or takes."""
    objects = [
        {"fullName": on, "type": kind, "privileges": [{"name": name, "condition": "allow"}]}
        for on, kind, name in ((TABLE, "table", "select_table"), ("main", "catalog", "use_catalog"))
    ]
    lake.done("POST", f"{API}/lake/roles", {"name": "s", "properties": {}, "securableObjects": objects})
    modify = [{**objects[0], "privileges": [{"name": "modify_table", "condition": "allow"}]}]
    lake.done("PUT", f"{API}/lake/permissions/roles/s/", {"overrides": modify})
    lake.done("DELETE", f"{API}/lake/roles/s")

    assert changes(lake, f"path={TABLE}&action=access") == [
        ("grant", TABLE, f"role s: allow SELECT_TABLE on table {TABLE}"),
        ("revoke", TABLE, f"role s: no longer allow SELECT_TABLE on table {TABLE}"),
        ("grant", TABLE, f"role s: allow MODIFY_TABLE on table {TABLE}"),
        ("revoke", TABLE, f"role s: no longer allow MODIFY_TABLE on table {TABLE}"),
    ]
    assert ("revoke", "main", "role s: no longer allow USE_CATALOG on catalog main") in changes(lake, "path=main")


def test_owner_tag_and_policy_are_records_of_the_object(lake: DriverNode) -> None:
    """A new owner is recorded with the former one; a tag or policy that is attached is a record of its object."""
    on = f"{API}/lake/objects/table/{TABLE}"
    lake.done("PUT", f"{API}/lake/owners/TABLE/{TABLE}", {"name": "ana", "type": "USER"})
    lake.done("POST", f"{API}/lake/tags", {"name": "gold"})
    lake.done("POST", f"{on}/tags", {"tagsToAdd": ["gold"]})
    lake.done("POST", f"{API}/lake/objects/column/{TABLE}.id/tags", {"tagsToAdd": ["gold"]})
    content = {"customRules": {"a": 1}, "supportedObjectTypes": ["TABLE"]}
    policy = {"name": "keep", "policyType": "custom", "enabled": True, "content": content}
    lake.done("POST", f"{API}/lake/policies", policy)
    lake.done("POST", f"{on}/policies", {"policiesToAdd": ["keep"]})
    lake.done("POST", f"{on}/policies", {"policiesToRemove": ["keep"]})

    assert changes(lake, f"path={TABLE}")[1:] == [
        ("own", TABLE, "owner user ana, before user admin"),
        ("attach", TABLE, "tag gold"),
        ("attach", TABLE, "tag gold, column id"),
        ("attach", TABLE, "policy keep"),
        ("detach", TABLE, "policy keep"),
    ]
    assert [change for change, _, _ in changes(lake, f"path={TABLE}&action=attachment")] == ["attach"] * 3 + ["detach"]


def test_grants_on_many_objects_are_recorded_up_to_a_number(lake: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A role with grants on more objects than have records of their own has one more record, with the others."""
    monkeypatch.setattr(roles, "RECORDED_MAX", 1)
    objects = [
        {"fullName": on, "type": kind, "privileges": [{"name": "use_schema", "condition": "allow"}]}
        for on, kind in (("main", "catalog"), ("main.raw", "schema"), ("lake", "metalake"))
    ]
    lake.done("POST", f"{API}/lake/roles", {"name": "s", "properties": {}, "securableObjects": objects})

    (first, rest) = changes(lake, "action=grant")
    assert first[2].count("USE_SCHEMA") == 1
    assert (rest[1], rest[2].count("USE_SCHEMA")) == ("s", 2)


@pytest.mark.parametrize(
    "word, near",
    [("grants", "grant"), ("delete", "drop"), ("select", "read"), ("changes", "change"), ("load-tabel", "load-table")],
)
def test_unknown_action_is_refused_with_the_words_that_exist(lake: DriverNode, word: str, near: str) -> None:
    """An action that nothing has is bad input: the message has the nearest word, the families and the changes."""
    refused = lake.ask("GET", f"{AUDIT}?action={word}")

    message = refused.json()["error"]["message"]
    assert refused.status == 400
    assert f"There is no action '{word}': did you mean {near}?" in message
    assert "Families of actions are grant, revoke, owner, restriction" in message
    assert "changes are create, alter" in message


@pytest.mark.parametrize("word", ["unprotect", "membership", "read", "metalake_import", "list-tables", "cancelling"])
def test_known_action_without_records_is_an_empty_answer(lake: DriverNode, word: str) -> None:
    """Families, changes, actions and operations of protocols that nobody did yet are no bad input."""
    assert lake.done("GET", f"{AUDIT}?action={word}")["lines"] == []


def test_following_page_of_an_unknown_action_is_empty(lake: DriverNode) -> None:
    """A reader who continues after a record gets an empty page, whatever the action."""
    assert lake.done("GET", f"{AUDIT}?after=999999&action=former-operation")["lines"] == []
