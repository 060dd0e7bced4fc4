# SPDX-License-Identifier: Apache-2.0
"""Pages of tags and policies: lists, creation, attaching and detaching, and refusals."""

from __future__ import annotations

import pytest

from limnos.rooms.console.http.governance.policy_examples import POLICY_EXAMPLES, PolicyExample
from tests.http.driver import API, DriverNode, grant
from tests.rooms.console.http.conftest import NASTY
from tests.rooms.console.http.visitor import ConsoleVisitor, text_of

TAGS = f"{API}/lake/objects"
FLIGHTS = {"metalake": "lake", "kind": "table", "path": "main.raw.flights"}
MAINTENANCE = {"metalake": "lake", "name": "tidy", "type": "system_iceberg_compaction", "content": "{}"}


def tags_of(node: DriverNode, kind: str, name: str) -> list[str]:
    """Return the tags of an object."""
    return node.done("GET", f"{TAGS}/{kind}/{name}/tags")["names"]


def test_tag_is_made_attached_and_detached(admin: ConsoleVisitor) -> None:
    """A form creates a tag; its page attaches it to a table and lists the table, whose button detaches it."""
    created = admin.post("/console/tags/create", {"metalake": "lake", "name": "pii", "comment": NASTY})
    page = created.headers["location"].partition("?")[0]
    empty = admin.read(page)
    done = admin.post("/console/tag/attach", FLIGHTS | {"name": "pii", "change": "attach"})

    assert page == "/console/tag/lake/pii"
    assert "No object that you may see has this tag" in empty.text
    assert NASTY in empty.text
    assert "main.raw.flights has the tag pii" in admin.read(done.headers["location"]).text
    assert tags_of(admin.node, "table", "main.raw.flights") == ["pii"]
    listed = admin.read(page)
    assert "/console/o/table/lake/main/raw/flights" in listed.hrefs
    assert "pii" in admin.read("/console/tags").text
    admin.post("/console/tag/attach", FLIGHTS | {"name": "pii", "change": "detach"})
    assert tags_of(admin.node, "table", "main.raw.flights") == []


@pytest.mark.parametrize(
    "kind, path, spelled",
    [
        ("catalog", "main", "main"),
        ("namespace", "main.raw.nyc", "main.raw:nyc"),
        ("table", "main.raw.nyc.hops", "main.raw:nyc.hops"),
    ],
)
def test_tags_can_be_attached_at_every_depth(admin: ConsoleVisitor, kind: str, path: str, spelled: str) -> None:
    """A tag can be attached to objects at every depth of the tree."""
    admin.post("/console/tags/create", {"metalake": "lake", "name": "pii"})

    answer = admin.post(
        "/console/tag/attach", {"metalake": "lake", "name": "pii", "kind": kind, "path": path, "change": "attach"}
    )

    assert answer.status == 303, text_of(answer)
    assert tags_of(admin.node, "schema" if kind == "namespace" else kind, spelled) == ["pii"]


def test_column_gets_a_tag_with_a_value(admin: ConsoleVisitor) -> None:
    """A tag can be attached to a column, whose path ends with its name, with a value that the tag allows."""
    admin.post("/console/tags/create", {"metalake": "lake", "name": "level", "values": "high, low"})
    fields = {"metalake": "lake", "name": "level", "kind": "column", "path": "main.raw.flights.id", "change": "attach"}

    refused = admin.post("/console/tag/attach", fields | {"value": "middling"})
    answer = admin.post("/console/tag/attach", fields | {"value": "high"})

    assert refused.status == 400
    assert answer.status == 303
    assert "main.raw.flights.id" in admin.read("/console/tag/lake/level?value=high").text
    assert "main.raw.flights.id" not in admin.read("/console/tag/lake/level?value=low").text


def test_policy_is_made_attached_and_disabled(admin: ConsoleVisitor) -> None:
    """A policy has a type and content. Its page attaches it to a table, and its button disables it."""
    created = admin.post("/console/policies/create", MAINTENANCE)
    attached = admin.post("/console/policy/attach", FLIGHTS | {"name": "tidy", "change": "attach"})
    disabled = admin.post("/console/policy/enable", {"metalake": "lake", "name": "tidy", "enabled": "no"})

    assert created.status == attached.status == disabled.status == 303
    page = admin.read("/console/policy/lake/tidy")
    assert "disabled" in page.text
    assert "main.raw.flights" in page.text
    assert "compaction" in admin.read("/console/policies").text
    assert admin.node.done("GET", f"{API}/lake/policies/tidy")["policy"]["enabled"] is False


@pytest.mark.parametrize("example", POLICY_EXAMPLES, ids=lambda each: each.policy_type)
def test_examples_of_policies_are_valid(admin: ConsoleVisitor, example: PolicyExample) -> None:
    """The page leads to a form for each policy type, maintenance types first. The example content on it is valid, and
    the policy's own form has all of it.
    """
    page = admin.read("/console/policies")
    link = f"/console/policies?metalake=lake&type={example.policy_type}"
    fields = MAINTENANCE | {"type": example.policy_type, "content": example.content}
    form = admin.read(link)

    assert f"{link}#form" in page.hrefs
    assert ("value", example.policy_type) in form.attributes
    assert example.content in page.text
    assert form.faults == []
    assert ConsoleVisitor(admin.node).sign_in().post("/console/policies/create", fields).status == 303


def test_a_policy_without_content_has_the_defaults(admin: ConsoleVisitor) -> None:
    """A maintenance policy with empty content is valid and has the defaults."""
    assert admin.post("/console/policies/create", MAINTENANCE | {"content": ""}).status == 303


@pytest.mark.parametrize("content", ["[]", "{", '{"minDataFileMse": -1}'])
def test_policies_with_wrong_content_are_refused(admin: ConsoleVisitor, content: str) -> None:
    """Policy content that is not a JSON object of the type's fields is refused."""
    assert admin.post("/console/policies/create", MAINTENANCE | {"content": content}).status == 400


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"metalake": "lake", "name": "pii", "change": "attach"},
        FLIGHTS | {"name": "pii"},
        FLIGHTS | {"name": "pii", "change": "attach", "kind": "user"},
        FLIGHTS | {"name": "pii", "change": "attach", "path": "main"},
    ],
)
def test_incomplete_forms_are_refused(admin: ConsoleVisitor, fields: dict[str, str]) -> None:
    """A form without object, known kind or known change is 400."""
    admin.post("/console/tags/create", {"metalake": "lake", "name": "pii"})

    assert admin.post("/console/tag/attach", fields).status == 400
    assert admin.post("/console/policy/attach", fields).status in {400, 404}
    assert admin.post("/console/tags/create", {}).status == 400
    assert admin.post("/console/policy/enable", {}).status == 400


@pytest.mark.parametrize("kind", ["tag", "policy"])
def test_hidden_tags_and_policies_are_not_listed(admin: ConsoleVisitor, kind: str) -> None:
    """Hidden tags and policies are in no list of a member, and their pages are refused."""
    node, plural = admin.node, {"tag": "tags", "policy": "policies"}[kind]
    admin.post(f"/console/{plural}/create", MAINTENANCE | {"name": "canary", "comment": "feathers"})
    node.done("POST", f"{API}/lake/users", {"name": "ana"})
    ana = ConsoleVisitor(node).sign_in("ana")

    assert "canary" not in ana.read(f"/console/{plural}").text
    answer = ana.get(f"/console/{kind}/lake/canary")
    assert answer.status == 403
    assert "feathers" not in text_of(answer)


@pytest.mark.parametrize("kind", ["tag", "policy"])
def test_attaching_a_tag_needs_privileges_on_tag_and_table(admin: ConsoleVisitor, kind: str) -> None:
    """Attaching a tag needs privileges on both the tag and the table; a user with only one of them is refused."""
    node, plural = admin.node, {"tag": "tags", "policy": "policies"}[kind]
    custom = {"type": "custom", "content": '{"supportedObjectTypes": ["TABLE"]}'}
    admin.post(f"/console/{plural}/create", MAINTENANCE | custom | {"name": "pii"})
    node.done("POST", f"{API}/lake/users", {"name": "both"})
    grant(node, "applies", f"apply_{kind}", kind=kind, on="pii")
    grant(node, "loads", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    fields = FLIGHTS | {"name": "pii", "change": "attach"}

    for user in ("applies", "loads", "both", "stranger"):
        assert ConsoleVisitor(node).sign_in(user).post(f"/console/{kind}/attach", fields).status in {403, 404}, user
    assert node.done("GET", f"{TAGS}/table/main.raw.flights/{plural}")["names"] == []
    grant(node, "both", f"apply_{kind}", kind=kind, on="pii")
    grant(node, "both", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    assert ConsoleVisitor(node).sign_in("both").post(f"/console/{kind}/attach", fields).status == 303


def test_attaching_a_tag_with_a_value_needs_the_same_right(admin: ConsoleVisitor) -> None:
    """Attaching a tag with a value needs the same right."""
    admin.post("/console/tags/create", {"metalake": "lake", "name": "level"})
    grant(admin.node, "ana", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    fields = FLIGHTS | {"name": "level", "change": "attach", "value": "high"}

    refused = ConsoleVisitor(admin.node).sign_in("ana").post("/console/tag/attach", fields)
    grant(admin.node, "ana", "apply_tag", kind="tag", on="level")

    assert refused.status in {403, 404}
    assert ConsoleVisitor(admin.node).sign_in("ana").post("/console/tag/attach", fields).status == 303


@pytest.mark.parametrize("kind", ["tag", "policy"])
def test_creating_tags_and_disabling_policies_need_privileges(admin: ConsoleVisitor, kind: str) -> None:
    """Members may not create tags. A user who may apply a policy may not disable it."""
    node, plural = admin.node, {"tag": "tags", "policy": "policies"}[kind]
    admin.post("/console/policies/create", MAINTENANCE)
    grant(node, "ana", "apply_policy", kind="policy", on="tidy")
    ana = ConsoleVisitor(node).sign_in("ana")

    assert ana.post(f"/console/{plural}/create", MAINTENANCE | {"name": "own"}).status == 403
    assert ana.read("/console/policy/lake/tidy").text
    assert ana.post("/console/policy/enable", {"metalake": "lake", "name": "tidy", "enabled": "no"}).status == 403
    assert node.done("GET", f"{API}/lake/policies/tidy")["policy"]["enabled"] is True


def test_maintenance_policy_needs_the_right_to_maintain(admin: ConsoleVisitor) -> None:
    """Attaching a maintenance policy also needs the right to maintain the table."""
    node = admin.node
    admin.post("/console/policies/create", MAINTENANCE)
    grant(node, "ana", "apply_policy", kind="policy", on="tidy")
    grant(node, "ana", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    fields = FLIGHTS | {"name": "tidy", "change": "attach"}

    refused = ConsoleVisitor(node).sign_in("ana").post("/console/policy/attach", fields)
    grant(node, "ana", "modify_table", kind="CATALOG", on="main")

    assert refused.status == 403
    assert ConsoleVisitor(node).sign_in("ana").post("/console/policy/attach", fields).status == 303


def content_in(node: DriverNode, name: str = "tidy") -> dict:
    """Return the content of a policy."""
    return node.done("GET", f"{API}/lake/policies/{name}")["policy"]["content"]


def test_fields_of_a_form_are_the_content_of_a_policy(admin: ConsoleVisitor) -> None:
    """Numbers, lists and flags of the form become the content; empty fields are left out; the policy's page shows the
    values and changes them.
    """
    fields = {
        "metalake": "lake",
        "name": "tidy",
        "comment": "nightly",
        "type": "system_iceberg_table_maintenance",
        "content.compact": "no",
        "content.manifests": "",
        "content.targetFileSizeBytes": "134217728",
        "content.quietHours": "22:00-06:00 UTC, 12:00-13:00 UTC",
    }
    refused = admin.post("/console/policies/create", fields | {"content.targetFileSizeBytes": "big"})
    assert refused.status == 400
    assert 'value="big"' in text_of(refused)

    assert admin.post("/console/policies/create", fields).status == 303
    content = content_in(admin.node)
    page = admin.read("/console/policy/lake/tidy")
    assert ("value", "22:00-06:00 UTC, 12:00-13:00 UTC") in page.attributes
    assert page.faults == []
    answer = admin.post(
        "/console/policy/content", fields | {"comment": "", "content.targetFileSizeBytes": "", "content.compact": "yes"}
    )

    assert content["compact"] is False
    assert content["targetFileSizeBytes"] == 134217728
    assert content["quietHours"] == ["22:00-06:00 UTC", "12:00-13:00 UTC"]
    assert answer.status == 303
    assert "targetFileSizeBytes" not in content_in(admin.node)
    assert content_in(admin.node).get("compact", True) is True
    assert "nightly" not in admin.read("/console/policy/lake/tidy").text


def test_content_with_unknown_fields_of_the_form_is_json(admin: ConsoleVisitor) -> None:
    """A policy whose content has a field that the form lacks is edited as JSON, which keeps the field."""
    content = '{"minDeleteFileNumber": 5, "rewriteOptions": {"rewrite-all": "true"}}'
    admin.post("/console/policies/create", MAINTENANCE | {"content": content})

    page = text_of(admin.get("/console/policy/lake/tidy"))

    assert '<textarea name="content"' in page
    assert "rewrite-all" in page


def test_only_who_may_change_a_policy_changes_its_content(admin: ConsoleVisitor) -> None:
    """Who may apply a policy, but does not own it, is refused; nothing changes."""
    admin.post("/console/policies/create", MAINTENANCE)
    before = content_in(admin.node)
    grant(admin.node, "ana", "apply_policy", kind="POLICY", on="tidy")
    grant(admin.node, "ana", "create_policy", kind="METALAKE", on="lake")
    fields = {"metalake": "lake", "name": "tidy", "type": MAINTENANCE["type"], "content.minDeleteFileNumber": "9"}

    ana = ConsoleVisitor(admin.node).sign_in("ana")
    assert ana.post("/console/policy/content", fields).status == 403
    assert ana.post("/console/policy/content", {"metalake": "lake"}).status == 400
    assert content_in(admin.node) == before
    assert admin.post("/console/policy/content", fields).status == 303
    assert content_in(admin.node)["minDeleteFileNumber"] == 9
