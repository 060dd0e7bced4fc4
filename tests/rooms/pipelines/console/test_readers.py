# SPDX-License-Identifier: Apache-2.0
"""The confirmation page that drops a table or view: the objects that read it, and the link back."""

from __future__ import annotations

from tests.http.driver import DriverNode, grant
from tests.rooms.console.http.conftest import add_table
from tests.rooms.console.http.visitor import ConsoleVisitor
from tests.rooms.pipelines.console.test_lineage_graph import tell

DROP = "/console/drop/table/lake/main/raw/flights"
TABLE = "/console/o/table/lake/main/raw"


def test_readers_of_a_table_are_listed(lake: DriverNode, admin: ConsoleVisitor) -> None:
    """The page lists objects that read the table directly, but not its sources or later steps, and links back to the
    table.
    """
    for name in ("clean", "report"):
        add_table(lake, "raw", name)
    before = admin.read(DROP)
    tell(lake, ("files/2026.csv", "flights"), ("flights", "clean"), ("clean", "report"))

    page = admin.read(DROP)

    assert "Objects that read it" not in before.text
    assert "Objects that read it" in page.text
    assert f"{TABLE}/clean" in page.hrefs
    assert "2026.csv" not in page.text
    assert "main.raw.report" not in page.text
    assert ("post", DROP) in page.actions
    assert "Cancel" in page.text
    assert f"{TABLE}/flights" in page.hrefs


def test_hidden_readers_are_counted_without_names(lake: DriverNode) -> None:
    """Readers of the table that the caller may not load are counted without their names, as on the lineage page."""
    add_table(lake, "raw", "canary")
    tell(lake, ("flights", "canary"))
    grant(lake, "ana", "use_catalog use_schema", kind="CATALOG", on="main")
    grant(lake, "ana", "select_table", kind="TABLE", on="main.raw.flights")

    page = ConsoleVisitor(lake).sign_in("ana").read(DROP)

    assert "1 object reads it that you may not see" in page.text
    assert "canary" not in page.text


def test_confirmation_page_of_a_principal_links_back(lake: DriverNode, admin: ConsoleVisitor) -> None:
    """The confirmation page for a user, group or role links back to its page."""
    lake.done("POST", "/api/metalakes/lake/users", {"name": "ana"})
    page = admin.read("/console/people/drop/user/lake/ana")

    assert "Cancel" in page.text
    assert page.hrefs.count("/console/people/user/lake/ana") == 2
