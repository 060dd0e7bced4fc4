# SPDX-License-Identifier: Apache-2.0
"""The audit of a path: who was given access to an object, and who lost it, with the privileges."""

from __future__ import annotations

import pytest

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
        ("grant", TABLE, f"allow SELECT_TABLE on table {TABLE}, role r"),
        ("revoke", TABLE, f"no longer allow SELECT_TABLE on table {TABLE}, role r"),
    ]
    assert changes(lake, f"path={TABLE}&action=revoke") == changes(lake, f"path={TABLE}")[2:]


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
    assert all(detail.endswith("role user:ana") for _, _, detail in records)


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


def test_restriction_names_its_masks(lake: DriverNode) -> None:
    """The record of a restriction says which columns it masks, and how."""
    url = f"{OWN}/metalakes/lake/objects/table/{TABLE}/restrictions/pii"
    body = {"masks": {"id": "replace-with-null"}}
    lake.done("PUT", url, body)

    assert changes(lake, f"path={TABLE}")[-1] == ("restrict", TABLE, "restriction pii: id masked by replace-with-null")
