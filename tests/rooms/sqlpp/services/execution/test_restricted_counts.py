# SPDX-License-Identifier: Apache-2.0
"""Counts of ANALYZE are shown only to users to whom no read restriction applies, whatever binds the restriction."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.http.driver import API, DriverNode, grant
from tests.http.iceberg.test_restrictions import restrict
from tests.http.iceberg.wire import node_over
from tests.http.refusal_tables import own
from tests.rooms.sqlpp.http.wire import rows

SAMPLES = "select value i.DatasetName from Metadata.`Index` i where i.IndexStructure = 'SAMPLE'"
USERS = ("named", "in_group", "in_role", "except_role", "free", "owner", "admin")
RESTRICTIONS: dict[str, tuple[str, str, dict[str, object], set[str]]] = {
    "table, user": ("TABLE", "main.c.d", {"to": {"users": ["named"]}}, {"named"}),
    "table, group": ("TABLE", "main.c.d", {"to": {"groups": ["staff"]}}, {"in_group"}),
    "table, role": ("TABLE", "main.c.d", {"to": {"roles": ["limited"]}}, {"in_role"}),
    "table, all": ("TABLE", "main.c.d", {"except": {"roles": ["exempt"]}}, {"named", "in_group", "in_role", "free"}),
    "namespace": ("SCHEMA", "main.c", {"to": {"users": ["named", "free"]}}, {"named", "free"}),
}
"""Restrictions: the kind and name of the object, whom they bind, and who sees no counts."""


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DriverNode]:
    """A node with two analysed datasets, of which `c.d` gets restrictions and `e.f` none."""
    with node_over(tmp_path_factory.mktemp("counts")) as node:
        rows(node, "create dataverse c; create dataset c.d primary key (id: int); analyze dataset c.d")
        rows(node, "create dataverse e; create dataset e.f primary key (id: int); analyze dataset e.f")
        for user in USERS[:-1]:
            grant(node, user, "use_catalog use_schema select_table", kind="CATALOG", on="main")
        node.done("POST", f"{API}/lake/groups", {"name": "staff"})
        node.done("POST", "/api/limnos/v1/metalakes/lake/groups/staff/members", {"users": ["in_group"]})
        for role, user in (("limited", "in_role"), ("exempt", "except_role")):
            node.done("POST", f"{API}/lake/roles", {"name": role, "properties": {}, "securableObjects": []})
            node.done("PUT", f"{API}/lake/permissions/users/{user}/grant", {"roleNames": [role]})
        own(node, "owner", "TABLE", "main.c.d")
        yield node


@pytest.mark.parametrize("name", RESTRICTIONS)
def test_counts_are_hidden_exactly_from_restricted_users(counted: DriverNode, name: str) -> None:
    """A restricted user sees no counts of the dataset, and those of other datasets; everybody else sees both."""
    kind, on, terms, hidden = RESTRICTIONS[name]
    assert all(sorted(rows(counted, SAMPLES, user=user)) == ["d", "f"] for user in USERS)

    done = restrict(counted, "few", kind=kind, on=on, filter="id = 1", **terms)
    seen = {user: sorted(rows(counted, SAMPLES, user=user)) for user in USERS}
    counted.delete(f"/api/limnos/v1/metalakes/lake/objects/{kind}/{on}/restrictions/few")

    assert done.status == 200, done
    assert seen == {user: ["f"] if user in hidden else ["d", "f"] for user in USERS}
