# SPDX-License-Identifier: Apache-2.0
"""The console's first page: the latest changes, with similar changes in one line."""

from __future__ import annotations

from tests.http.driver import API, DriverNode, grant
from tests.rooms.console.http.conftest import ICEBERG
from tests.rooms.console.http.visitor import ConsoleVisitor

LAKE = f"{API}/lake"


def test_many_changes_of_roles_are_one_line(admin: ConsoleVisitor) -> None:
    """Thirty creates of roles are one line, so that changes of tables stay on the page."""
    for number in range(30):
        admin.node.done("POST", f"{LAKE}/roles", {"name": f"role{number:02}", "properties": {}, "securableObjects": []})

    text = admin.read("/console/").text

    assert "role29, role28, role27 and 27 more" in text
    assert "created (30 times)" in text
    assert "main.raw.flights" in text


def test_changes_of_one_table_are_one_line(admin: ConsoleVisitor) -> None:
    """Successive changes of a table by one user are one line. Changes by another user are a separate line."""
    node = admin.node
    grant(node, "ana", "use_catalog use_schema", kind="CATALOG", on="main")
    grant(node, "ana", "modify_table select_table", kind="TABLE", on="main.raw.flights")
    body = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "1"}}]}
    for value, user in (("1", "admin"), ("2", "admin"), ("3", "admin"), ("4", "ana")):
        body["updates"][0]["updates"]["a"] = value
        node.done("POST", f"{ICEBERG}/namespaces/raw/tables/flights", body, user=user)

    page = admin.read("/console/")

    assert page.text.count("main.raw.flights") == 3  # its creation, three commits by admin, and a commit by ana
    assert "new version (3 times)" in page.text


def test_a_hidden_change_is_neither_named_nor_counted(lake: DriverNode) -> None:
    """A user's list of changes contains no hidden object."""
    grant(lake, "ana", "use_catalog use_schema", kind="CATALOG", on="main")
    grant(lake, "ana", "select_table", kind="TABLE", on="main.raw.flights")
    lake.done("POST", f"{LAKE}/roles", {"name": "secret", "properties": {}, "securableObjects": []})
    ana = ConsoleVisitor(lake).sign_in("ana")

    text = ana.read("/console/").text

    assert "main.raw.flights" in text
    assert "hops" not in text
    assert "secret" not in text


def test_an_empty_lake_has_first_steps(node: DriverNode) -> None:
    """A lake without a table says how to begin, for those who may with a link; the steps go with the first object."""
    admin = ConsoleVisitor(node).sign_in()
    grant(node, "ana", "use_catalog", kind="CATALOG", on="main")
    form = "/console/create-namespace/catalog/lake/main"

    first = admin.read("/console/")
    other = ConsoleVisitor(node).sign_in("ana").read("/console/")
    assert "Begin here" in first.text
    assert form in first.hrefs
    assert first.faults == []
    assert "Ask an owner of the catalog main" in other.text
    assert form not in other.hrefs
    admin.post(form, {"name": "shop", "comment": ""})

    assert "Begin here" not in admin.read("/console/").text
