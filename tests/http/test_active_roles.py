# SPDX-License-Identifier: Apache-2.0
"""The header that narrows a request to some of its caller's roles, over Gravitino, Iceberg and Lance REST."""

from __future__ import annotations

import pytest

from limnos.http.active_roles import active_roles_of
from limnos.model.errors import BadRequest
from tests.http.driver import API, DriverAnswer, DriverNode
from tests.http.iceberg.wire import make_space, make_table

LAKE = f"{API}/lake"
TABLES = f"{LAKE}/catalogs/main/schemas/s/tables"
ICEBERG = "/iceberg/v1/lake.main/namespaces/s/tables"
ROLES = {
    "looker": {"CATALOG main": "use_catalog", "SCHEMA main.s": "use_schema"},
    "reader": {"TABLE main.s.t": "select_table"},
    "writer": {"TABLE main.s.u": "modify_table"},
    "tagger": {"METALAKE lake": "create_tag"},
}
"""Ana's roles, and the privileges that each one grants."""


@pytest.fixture
def ana(node: DriverNode) -> DriverNode:
    """A node whose user ana has four roles, none of which is enough alone."""
    make_space(node, "s")
    for name in ("t", "u"):
        make_table(node, "s", name)
    node.done("POST", f"{LAKE}/users", {"name": "ana"})
    for role, rules in ROLES.items():
        objects = [
            {"fullName": on.split()[1], "type": on.split()[0], "privileges": [{"name": each, "condition": "allow"}]}
            for on, each in rules.items()
        ]
        node.done("POST", f"{LAKE}/roles", {"name": role, "properties": {}, "securableObjects": objects})
    node.done("PUT", f"{LAKE}/permissions/users/ana/grant", {"roleNames": list(ROLES)})
    return node


def ask(
    node: DriverNode, target: str, roles: str, *, method: str = "GET", body: object = None, user: str = "ana"
) -> DriverAnswer:
    """Send a request with the header."""
    return node.ask(method, target, body, user=user, X_Gravitino_Active_Roles=roles)


@pytest.mark.parametrize(
    "sent, means",
    [
        ("", None),
        ("  ", None),
        ("ALL", None),
        (" ALL ", None),
        ("NONE", set()),
        ("a", {"a"}),
        (" a ,b,a", {"a", "b"}),
        ("all", {"all"}),
        ("none", {"none"}),
        ("Prüfer", {"Prüfer"}),
    ],
)
def test_header_spacing_and_repeated_names_are_ignored(sent: str, means: set[str] | None) -> None:
    """Spaces around names and repeated names are ignored; only upper-case ALL and NONE are keywords."""
    assert active_roles_of(sent.encode()) == means


@pytest.mark.parametrize("sent", [b"a,", b",", b"a,,b", b"ALL,a", b"a,NONE", b"ALL,NONE", b"\xff"])
def test_malformed_header_is_refused(sent: bytes) -> None:
    """An empty entry, ALL or NONE with other names, and invalid text are refused."""
    with pytest.raises(BadRequest, match="X-Gravitino-Active-Roles"):
        active_roles_of(sent)


@pytest.mark.parametrize("target", [f"{TABLES}/t", f"{ICEBERG}/t"])
def test_load_needs_all_its_roles_in_the_header(ana: DriverNode, target: str) -> None:
    """A load is allowed only if the header names all roles that it needs, whatever was cached before."""
    rounds = ("ALL", "NONE", "looker", "reader", "looker,reader", "looker,writer", "")
    expected = [200, 403, 403, 403, 200, 403, 200]

    answers = [[ask(ana, target, roles).status for roles in rounds] for _ in range(3)]

    assert (ana.get(target, user="ana").status, answers) == (200, [expected] * 3)


def test_lists_and_writes_are_narrowed(ana: DriverNode) -> None:
    """A list has the objects that the named roles allow, and a write uses only their rights."""
    listed = {
        roles: [each["name"] for each in ask(ana, TABLES, roles).json()["identifiers"]]
        for roles in ("ALL", "looker", "looker,reader", "looker,writer", "looker,reader,writer")
    }
    commit = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"p": "v"}}]}
    writes = [
        ask(ana, f"{ICEBERG}/u", roles, method="POST", body=commit).status
        for roles in ("looker,reader", "looker", "looker,writer")
    ]
    tags = [ask(ana, f"{LAKE}/tags", roles, method="POST", body={"name": "n"}).status for roles in ("looker", "tagger")]

    assert listed == {
        "ALL": ["t", "u"],
        "looker": [],
        "looker,reader": ["t"],
        "looker,writer": ["u"],
        "looker,reader,writer": ["t", "u"],
    }
    assert (writes, tags) == ([403, 403, 200], [403, 200])


def test_tag_object_lists_are_limited_to_named_roles(ana: DriverNode) -> None:
    """A list of a tag's objects has only objects that the named roles allow."""
    ana.done("POST", f"{LAKE}/tags", {"name": "red"})
    ana.done("POST", f"{LAKE}/objects/table/main.s.t/tags", {"tagsToAdd": ["red"]})
    ana.done("PUT", f"{LAKE}/owners/tag/red", {"name": "ana", "type": "USER"})

    lists = [ask(ana, f"{LAKE}/tags/red/objects", roles)["metadataObjects"] for roles in ("looker", "looker,reader")]

    assert lists == [[], [{"fullName": "main.s.t", "type": "table"}]]


def test_denials_and_ownership_ignore_the_header(ana: DriverNode) -> None:
    """A denial of a role that the header does not name still applies. Ownership needs no role."""
    denied = {"privileges": [{"name": "select_table", "condition": "deny"}]}
    ana.done("PUT", f"{LAKE}/permissions/roles/tagger/TABLE/main.s.t/grant", denied)
    refused = ask(ana, f"{TABLES}/t", "looker,reader").status
    ana.done("PUT", f"{LAKE}/owners/catalog/main", {"name": "ana", "type": "USER"})

    assert (refused, ask(ana, f"{TABLES}/u", "NONE").status) == (403, 200)


def test_unheld_role_is_refused_like_a_missing_one(ana: DriverNode) -> None:
    """A role that the user does not have is refused like a missing one."""
    ana.done("POST", f"{LAKE}/roles", {"name": "secret", "properties": {}, "securableObjects": []})

    existing, missing = (ask(ana, f"{TABLES}/t", f"looker,{name}") for name in ("secret", "absent"))

    assert (existing.status, existing["code"], existing["type"]) == (403, 1008, "ForbiddenException")
    assert existing["message"] == missing["message"].replace("absent", "secret")
    assert "does not hold the role secret" in str(existing["message"])


def test_revoked_role_is_refused_immediately(ana: DriverNode) -> None:
    """A revoked role is refused at the next request."""
    before = ask(ana, f"{TABLES}/t", "looker,reader").status
    ana.done("PUT", f"{LAKE}/permissions/users/ana/revoke", {"roleNames": ["reader"]})

    assert (before, ask(ana, f"{TABLES}/t", "looker,reader").status) == (200, 403)


def test_unknown_user_gets_the_same_refusal_as_without_header(ana: DriverNode) -> None:
    """A user who is not in the metalake gets the same refusal as without the header."""
    plain, narrowed = ana.get(f"{TABLES}/t", user="bob"), ask(ana, f"{TABLES}/t", "looker", user="bob")

    assert (plain.status, narrowed.status, narrowed["message"]) == (403, 403, plain["message"])


def test_requests_that_need_no_role_are_allowed(ana: DriverNode) -> None:
    """Requests that need no role are allowed: those of service admins, of members for the metalake, and for health."""
    created_status = ask(ana, API, "NONE", method="POST", body={"name": "pond"}, user="admin").status

    assert (created_status, ask(ana, LAKE, "NONE").status, ask(ana, "/api/health", "a,").status) == (200, 200, 200)


@pytest.mark.room("lance")
def test_malformed_header_is_refused_in_each_protocols_format(ana: DriverNode) -> None:
    """Gravitino, Iceberg and Lance REST refuse a malformed header with 400 in their own error format. The own API
    refuses every such header, because it does not support it.
    """
    gravitino, iceberg, lance = (
        ask(ana, target, "looker,") for target in (f"{TABLES}/t", f"{ICEBERG}/t", "/lance/v1/namespace/main/list")
    )
    own = ask(ana, "/api/limnos/v1/tokens", "looker")

    assert [each.status for each in (gravitino, iceberg, lance, own)] == [400] * 4
    assert (gravitino["code"], gravitino["type"]) == (1001, "IllegalArgumentException")
    assert iceberg["error"]["type"] == "IllegalArgumentException"
    assert "not served at this address" in own.body.decode()


@pytest.mark.room("sqlpp")
def test_header_is_refused_by_the_query_service(ana: DriverNode) -> None:
    """SQL++ refuses every such header, because it does not support it."""
    answer = ask(ana, "/query/service", "looker")

    assert (answer.status, "not served at this address" in answer.body.decode()) == (400, True)


def test_header_has_no_effect_without_access_control(open_node: DriverNode) -> None:
    """With access control off the header has no effect."""
    assert ask(open_node, f"{LAKE}/catalogs", "absent", user="admin").status == 200
