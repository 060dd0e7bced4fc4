# SPDX-License-Identifier: Apache-2.0
"""Client calls on tags with values, policies and functions: rows of `test_calls`."""

from __future__ import annotations

from collections.abc import Callable

from limnos.client import Client

M = "/api/metalakes/lake"
FUNCTIONS = f"{M}/catalogs/main/schemas/a/functions"
DEFINITION = {"parameters": [], "returnType": "integer", "impls": [{"language": "SQL", "runtime": "SPARK", "sql": "1"}]}
FUNCTION = {"name": "f", "functionType": "scalar", "deterministic": True, "definitions": [DEFINITION], "audit": {}}
CONTENT = {"customRules": {}, "supportedObjectTypes": ["TABLE"], "properties": {}}
POLICY = {"name": "keep", "policyType": "custom", "enabled": True, "content": CONTENT, "audit": {}}
TAG = {"name": "red", "comment": "c", "properties": {}, "audit": {}}
DROPPED = {"dropped": True}
LABELS: list[tuple[str, Callable[[Client], object], str, str, object, object]] = [
    ("tags", lambda c: c.tags.list()[0].name, "GET", f"{M}/tags?details=true", None, {"tags": [TAG]}),
    ("tag", lambda c: c.tags.get("red").comment, "GET", f"{M}/tags/red", None, {"tag": TAG}),
    (
        "tag-create",
        lambda c: c.tags.create("red", comment="c"),
        "POST",
        f"{M}/tags",
        {"name": "red", "comment": "c", "properties": {}},
        {"tag": TAG},
    ),
    ("tag-delete", lambda c: c.tags.delete("red"), "DELETE", f"{M}/tags/red", None, {"dropped": True}),
    (
        "tag-objects",
        lambda c: c.tags.objects("red")[0].full_name,
        "GET",
        f"{M}/tags/red/objects",
        None,
        {"metadataObjects": [{"fullName": "main.a", "type": "schema"}]},
    ),
    (
        "tag-create-with-values",
        lambda c: c.tags.create("red", allowed_values=["a"]).allowed_values,
        "POST",
        f"{M}/tags",
        {"name": "red", "properties": {}, "allowedValues": ["a"]},
        {"tag": {**TAG, "allowedValues": ["a"]}},
    ),
    (
        "tag-objects-of-a-value",
        lambda c: c.tags.objects("red", value="a b"),
        "GET",
        f"{M}/tags/red/objects?value=a%20b",
        None,
        {"metadataObjects": []},
    ),
    (
        "tag-values",
        lambda c: c.tags.change_values("main", kind="catalog", adds=[("red", "a")], removes=[("blue", "b")]),
        "POST",
        f"{M}/objects/catalog/main/tags",
        {"tagsToAdd": [{"name": "red", "value": "a"}], "tagsToRemove": [{"name": "blue", "value": "b"}]},
        {"names": ["red"]},
    ),
    ("functions", lambda c: c.functions.list("main.a"), "GET", FUNCTIONS, None, {"identifiers": [{"name": "f"}]}),
    (
        "function",
        lambda c: c.functions.get("main.a.f").definitions,
        "GET",
        f"{FUNCTIONS}/f",
        None,
        {"function": FUNCTION},
    ),
    (
        "function-register",
        lambda c: c.functions.register("main.a.f", [DEFINITION], deterministic=True),
        "POST",
        FUNCTIONS,
        {"name": "f", "functionType": "scalar", "deterministic": True, "definitions": [DEFINITION]},
        {"function": FUNCTION},
    ),
    ("function-delete", lambda c: c.functions.delete("main.a.f"), "DELETE", f"{FUNCTIONS}/f", None, DROPPED),
    ("policies", lambda c: c.policies.list(), "GET", f"{M}/policies?details=true", None, {"policies": [POLICY]}),
    ("policy", lambda c: c.policies.get("keep").content, "GET", f"{M}/policies/keep", None, {"policy": POLICY}),
    (
        "policy-create",
        lambda c: c.policies.create("keep", CONTENT),
        "POST",
        f"{M}/policies",
        {"name": "keep", "policyType": "custom", "content": CONTENT, "enabled": True},
        {"policy": POLICY},
    ),
    (
        "policy-off",
        lambda c: c.policies.enable("keep", enabled=False),
        "PATCH",
        f"{M}/policies/keep",
        {"enable": False},
        {"code": 0},
    ),
    ("policy-delete", lambda c: c.policies.delete("keep"), "DELETE", f"{M}/policies/keep", None, DROPPED),
    (
        "policy-objects",
        lambda c: c.policies.objects("keep"),
        "GET",
        f"{M}/policies/keep/objects",
        None,
        {"metadataObjects": []},
    ),
    (
        "policies-on",
        lambda c: c.policies.on("main.a", kind="namespace")[0].inherited,
        "GET",
        f"{M}/objects/schema/main.a/policies?details=true",
        None,
        {"policies": [{**POLICY, "inherited": True}]},
    ),
    (
        "policies-change",
        lambda c: c.policies.change("main", kind="catalog", adds=["keep"], removes=["other"]),
        "POST",
        f"{M}/objects/catalog/main/policies",
        {"policiesToAdd": ["keep"], "policiesToRemove": ["other"]},
        {"names": ["keep"]},
    ),
    (
        "tags-on",
        lambda c: c.tags.on("main.a", kind="namespace")[0].inherited,
        "GET",
        f"{M}/objects/schema/main.a/tags?details=true",
        None,
        {"tags": [{**TAG, "inherited": True}]},
    ),
    (
        "tags-change",
        lambda c: c.tags.change("main", kind="catalog", adds=["red"], removes=["blue"]),
        "POST",
        f"{M}/objects/catalog/main/tags",
        {"tagsToAdd": ["red"], "tagsToRemove": ["blue"]},
        {"names": ["red"]},
    ),
]
