# SPDX-License-Identifier: Apache-2.0
"""Policies over Gravitino REST: created, altered, enabled or disabled, attached to supported kinds of objects, and
inherited.
"""

from __future__ import annotations

import pytest

from tests.http.driver import API, DriverNode, grant
from tests.http.iceberg.wire import make_table
from tests.http.test_coverage import POLICY

LAKE = f"{API}/lake"
KEEP = f"{LAKE}/policies/keep"
TABLE = f"{LAKE}/objects/table/main.a.t/policies"
COMPACTION = {
    "policyType": "system_iceberg_compaction",
    "content": {"minDataFileMse": 1000, "rewriteOptions": {"a": "b"}},
}


@pytest.fixture
def policy_node(node: DriverNode) -> DriverNode:
    """A node with two policies and a table."""
    make_table(node, "a", "t")
    node.done("POST", f"{LAKE}/policies", {"name": "keep", "comment": "c", **POLICY})
    node.done("POST", f"{LAKE}/policies", {"name": "compact", "enabled": False, **COMPACTION})
    return node


def names(node: DriverNode, path: str) -> list[str]:
    """Return the names in a list."""
    listed_names = node.done("GET", path)["names"]
    assert isinstance(listed_names, list)
    return listed_names


def test_policy_lifecycle(policy_node: DriverNode) -> None:
    """A policy is returned as sent, listed, renamed, changed, disabled, enabled and dropped."""
    loaded = policy_node.done("GET", KEEP)["policy"]
    details = policy_node.done("GET", f"{LAKE}/policies?details=true")["policies"]
    content = {**POLICY["content"], "customRules": {"days": 9}}
    changes = [
        {"@type": "rename", "newName": "kept"},
        {"@type": "updateComment", "newComment": "d"},
        {"@type": "updateContent", "policyType": "custom", "newContent": content},
    ]
    altered = policy_node.done("PUT", KEEP, {"updates": changes})["policy"]
    off = policy_node.done("PATCH", f"{LAKE}/policies/kept", {"enable": False})
    state = policy_node.done("GET", f"{LAKE}/policies/kept")["policy"]["enabled"]
    dropped = [policy_node.done("DELETE", f"{LAKE}/policies/kept")["dropped"] for _ in range(2)]

    assert loaded.pop("audit")["creator"] == "admin"
    assert loaded == {"name": "keep", "comment": "c", "enabled": True, **POLICY}
    assert [(each["name"], each["enabled"]) for each in details] == [("compact", False), ("keep", True)]
    assert details[0]["content"] == COMPACTION["content"]
    assert (altered["name"], altered["comment"], altered["content"]) == ("kept", "d", content)
    assert off == {"code": 0}
    assert state is False
    assert dropped == [True, False]


def test_table_inherits_policies(policy_node: DriverNode) -> None:
    """A table's list has its own policies, then inherited ones, which are marked. A policy lists its objects."""
    on = policy_node.done("POST", TABLE, {"policiesToAdd": ["keep"]})["names"]
    policy_node.done("POST", f"{LAKE}/objects/schema/main.a/policies", {"policiesToAdd": ["compact", "keep"]})
    details = policy_node.done("GET", f"{TABLE}?details=true")["policies"]
    one = policy_node.done("GET", f"{TABLE}/compact")["policy"]
    objects = policy_node.done("GET", f"{KEEP}/objects")["metadataObjects"]
    again = policy_node.ask("POST", TABLE, {"policiesToAdd": ["keep"]})
    off = policy_node.done("POST", TABLE, {"policiesToRemove": ["keep", "compact"]})["names"]

    assert on == ["keep"]
    assert [(each["name"], each["inherited"]) for each in details] == [("keep", False), ("compact", True)]
    assert one["inherited"] is True
    assert sorted(each["fullName"] for each in objects) == ["main.a", "main.a.t"]
    assert (again.status, again.json()["type"]) == (409, "PolicyAlreadyAssociatedException")
    assert off == []
    assert names(policy_node, TABLE) == ["keep", "compact"]
    assert names(policy_node, f"{LAKE}/objects/catalog/main/policies") == []


@pytest.mark.parametrize(
    "method, path, body, says",
    [
        (
            "POST",
            f"{LAKE}/policies",
            {"name": "n", "policyType": "privilege_request", "content": {}},
            "custom, system_iceberg_compaction",
        ),
        (
            "POST",
            f"{LAKE}/policies",
            {"name": "n", "policyType": "custom", "content": {"supportedObjectTypes": []}},
            "must name one or more",
        ),
        (
            "POST",
            f"{LAKE}/policies",
            {"name": "n", "policyType": "custom", "content": {"supportedObjectTypes": ["ROLE"]}},
            ", not ROLE",
        ),
        (
            "POST",
            f"{LAKE}/policies",
            {"name": "n", "policyType": "custom", "content": {"days": 7}},
            "does not fit the policy's type",
        ),
        ("POST", f"{LAKE}/policies", {"name": "n", **COMPACTION, "content": {"minDataFileMse": -1}}, "is negative"),
        (
            "PUT",
            KEEP,
            {"updates": [{"@type": "updateContent", "newContent": {}, "policyType": COMPACTION["policyType"]}]},
            "cannot become one of",
        ),
        (
            "PUT",
            KEEP,
            {
                "updates": [
                    {
                        "@type": "updateContent",
                        "policyType": "custom",
                        "newContent": {"supportedObjectTypes": ["TABLE"]},
                    }
                ]
            },
            "cannot change",
        ),
        ("POST", TABLE, {}, "policiesToAdd, policiesToRemove or both"),
        ("POST", TABLE, {"policiesToAdd": [" "]}, "is empty"),
        ("POST", f"{LAKE}/objects/metalake/lake/policies", {"policiesToAdd": ["keep"]}, "cannot have policies"),
    ],
)
def test_invalid_policy_is_refused_with_advice(
    policy_node: DriverNode, method: str, path: str, body: object, says: str
) -> None:
    """Empty content and unsupported objects are refused with advice."""
    answer = policy_node.ask(method, path, body)

    assert answer.status == 400
    assert says in answer.json()["message"]


def test_policy_cannot_be_attached_to_an_unsupported_kind(policy_node: DriverNode) -> None:
    """A policy for tables cannot be attached to a view. Nothing of such a request is carried out."""
    policy_node.done(
        "POST",
        f"{API}/lake/catalogs/main/schemas/a/functions",
        {
            "name": "f",
            "functionType": "scalar",
            "deterministic": True,
            "definitions": [{"returnType": "long", "impls": [{"language": "SQL", "runtime": "SPARK", "sql": "1"}]}],
        },
    )
    path = f"{LAKE}/objects/function/main.a.f/policies"
    answer = policy_node.ask("POST", path, {"policiesToAdd": ["keep"]})

    assert (answer.status, answer.json()["type"]) == (400, "IllegalMetadataObjectException")
    assert "is for CATALOG, SCHEMA, TABLE" in answer.json()["message"]
    assert names(policy_node, path) == []


@pytest.mark.parametrize(
    "path", [TABLE, f"{LAKE}/objects/schema/main.a/policies", f"{LAKE}/objects/catalog/main/policies"]
)
def test_attaching_a_maintenance_policy_needs_the_modify_privilege(policy_node: DriverNode, path: str) -> None:
    """Attaching a maintenance policy needs the privilege to change the object, because the policy acts with its owner's
    rights.
    """
    grant(policy_node, "mallory", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    grant(policy_node, "mallory", "apply_policy", kind="METALAKE", on="lake")

    custom = policy_node.ask("POST", path, {"policiesToAdd": ["keep"]}, user="mallory")
    attach = policy_node.ask("POST", path, {"policiesToAdd": ["compact"]}, user="mallory")
    by_owner = policy_node.ask("POST", path, {"policiesToAdd": ["compact"]})
    detach = policy_node.ask("POST", path, {"policiesToRemove": ["compact"]}, user="mallory")

    assert [each.status for each in (custom, attach, by_owner, detach)] == [200, 403, 200, 403]
    assert sorted(names(policy_node, path)) == ["compact", "keep"]
