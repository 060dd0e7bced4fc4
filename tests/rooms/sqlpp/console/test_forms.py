# SPDX-License-Identifier: Apache-2.0
"""The worksheet's form: a reload repeats no change, each change must be allowed again, and the empty form has a sample
statement.
"""

from __future__ import annotations

import re

import pytest

from limnos.rooms.sqlpp.services import worksheet as service
from tests.http.driver import API, DriverNode, grant
from tests.rooms.console.http.visitor import ConsoleVisitor, PageReader, text_of

PAGE = "/console/worksheet"
ALREADY = "The server has already executed these statements"
CREATE = "CREATE DATAVERSE made;"
DROP = "DROP DATAVERSE made;"


def change(visitor: ConsoleVisitor, text: str, own_id: str, **fields: str) -> str:
    """Run a text in the mode that allows changes, with the given form id. Returns the page's HTML."""
    answer = visitor.post(PAGE, {"text": text, "mode": "change", "id": own_id, **fields})
    assert answer.status == 200, text_of(answer)
    return text_of(answer)


def is_made(visitor: ConsoleVisitor) -> bool:
    """Return whether the dataverse of `CREATE` exists."""
    return visitor.get("/console/o/namespace/lake/main/made").status == 200


def test_reload_does_not_repeat_a_change(admin: ConsoleVisitor) -> None:
    """The second POST of a form executes nothing, and keeps text and mode; its page has a form with another id."""
    change(admin, CREATE, "one")
    change(admin, DROP, "two")
    page = change(admin, CREATE, "one", view="csv")

    assert ALREADY in page
    assert CREATE in page
    assert '<option value="change" selected>' in page
    assert "Results" not in PageReader(page).text
    assert not is_made(admin)
    (own_id,) = set(re.findall(r'name="id" value="([^"]+)"', page))
    assert ALREADY not in change(admin, CREATE, own_id)
    assert is_made(admin)


def test_reload_repeats_reads_and_invalid_statements(admin: ConsoleVisitor) -> None:
    """A form whose statements only read, or are wrong, is executed again at each reload."""
    assert admin.post(PAGE, {"text": "CREATE DATAVRSE made;", "mode": "change", "id": "one"}).status == 400
    change(admin, "SELECT VALUE 1;", "one")

    assert "1 result in" in change(admin, "SELECT VALUE 1;", "one")
    assert ALREADY not in change(admin, CREATE, "one")
    assert is_made(admin)


def test_form_ids_are_per_user_and_limited(lake: DriverNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """A form id counts for one user only, and a node forgets the oldest ids beyond a limit."""
    monkeypatch.setattr(service, "CHANGE_IDS_MAX", 2)
    grant(lake, "ana", "use_catalog use_schema create_schema", kind="CATALOG", on="main")
    admin, ana = ConsoleVisitor(lake).sign_in(), ConsoleVisitor(lake).sign_in("ana")

    assert ALREADY not in change(admin, "CREATE DATAVERSE a;", "one")
    assert ALREADY not in change(ana, "CREATE DATAVERSE b;", "one")
    assert ALREADY in change(admin, "CREATE DATAVERSE c;", "one")
    assert ALREADY not in change(admin, "CREATE DATAVERSE c;", "two")
    assert ALREADY not in change(admin, "CREATE DATAVERSE d;", "one")


def test_form_returns_to_read_only_mode_after_a_change(admin: ConsoleVisitor) -> None:
    """After a change the form selects the mode that only reads, and the page says that the statements were executed."""
    page = change(admin, CREATE, "one")

    assert '<option value="read" selected>' in page
    assert "The statements were executed." in page


def test_sample_query_names_a_visible_or_fictitious_table(lake: DriverNode) -> None:
    """The empty field suggests a query over a table that the user may see, or over a fictitious one."""
    lake.done("POST", f"{API}/lake/users", {"name": "ana"})
    admin, ana = (ConsoleVisitor(lake).sign_in(user).read(PAGE) for user in ("admin", "ana"))

    assert ("placeholder", "SELECT VALUE t FROM `raw`.flights AS t LIMIT 10;") in admin.attributes
    assert ("placeholder", "SELECT VALUE t FROM sales.europe.orders AS t LIMIT 10;") in ana.attributes
