# SPDX-License-Identifier: Apache-2.0
"""The preview tab: rows as the reader may see them, with refusals and failures as messages on the page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.http.admin.catalog.test_previews import PreviewedTable
from tests.http.driver import OWN, grant
from tests.http.iceberg import wire
from tests.http.iceberg.test_restrictions import restrict
from tests.rooms.console.http.visitor import ConsoleVisitor, PageReader, text_of
from tests.rooms.lance.http.wire import declare, fill, make_space

pytestmark = pytest.mark.slow

TAB = "/console/o/table/lake/main/a/t?tab=preview"


@pytest.fixture
def table(tmp_path: Path) -> Iterator[PreviewedTable]:
    """A table of twenty rows that bob may read."""
    with wire.node_over(tmp_path) as node:
        yield PreviewedTable(node)


def test_rows_are_shown(table: PreviewedTable) -> None:
    """The preview has names, types and values. For an unrestricted user it mentions no restriction."""
    text = ConsoleVisitor(table.node).sign_in("bob").read(TAB).text

    for words in ("The first 20 rows", "card string", "0 Rome 1111-0000", "audit has a record"):
        assert words in text
    assert "masked" not in text


def test_restricted_reader_sees_masks(table: PreviewedTable) -> None:
    """Masked columns are marked, and the page contains none of their stored values."""
    assert restrict(table.node, filter="City = 'Rome'", masks={"card": "show-last-4"}).status == 200

    text = ConsoleVisitor(table.node).sign_in("bob").read(TAB).text

    assert "The first 10 rows" in text
    assert "card masked" in text
    assert "1111-" not in text
    assert "Oslo" not in text


def test_load_privilege_alone_shows_no_rows(table: PreviewedTable) -> None:
    """A user who may load the table but not read it gets the name of the missing privilege."""
    grant(table.node, "eve", "use_catalog use_schema modify_table", kind="CATALOG", on="main")

    text = ConsoleVisitor(table.node).sign_in("eve").read(TAB).text

    assert "not its rows" in text
    assert "SELECT_TABLE" in text
    assert "1111-" not in text


AS_BOB = "/console/seen-as/table/lake/main/a/t?as=bob"


def test_owner_sees_the_rows_as_a_restricted_user(table: PreviewedTable) -> None:
    """The page of restrictions shows the rows as another user sees them, with filter and masks, and says if no
    restriction applies to that user, or that the user may load the table and not read it. The preview is in the audit
    with both users.
    """
    grant(table.node, "carol", "use_catalog use_schema modify_table", kind="CATALOG", on="main")
    admin = ConsoleVisitor(table.node).sign_in()
    whole = admin.read(AS_BOB)
    assert restrict(table.node, filter="City = 'Rome'", masks={"card": "show-last-4"}).status == 200
    masked = admin.read(AS_BOB)

    assert "No restriction applies to bob" in whole.text
    assert "Oslo" in whole.text
    assert "main.a.t as bob sees it" in masked.text
    assert "card (masked)" in masked.text
    assert "1111-" not in masked.text
    assert "Oslo" not in masked.text
    assert "carol may not read this table" in admin.read(AS_BOB.replace("bob", "carol")).text
    assert masked.faults == []
    lines = table.node.done("GET", f"{OWN}/metalakes/lake/audit?limit=100")["lines"]
    assert any(each["user"] == "admin" and str(each.get("detail")).endswith("as user bob") for each in lines)


def test_preview_as_another_user_needs_the_rights_to_read_and_to_restrict(table: PreviewedTable) -> None:
    """A reader who may not restrict gets no rows of another user; nor does one who may restrict and not read, and one
    to whom a restriction applies.
    """
    node = table.node
    grant(node, "ana", "use_catalog use_schema", kind="CATALOG", on="main")
    grant(node, "ana", "manage_grants", kind="METALAKE", on="lake")
    ana = ConsoleVisitor(node).sign_in("ana")

    reader = ConsoleVisitor(node).sign_in("bob").read(AS_BOB.replace("bob", "ana"))
    manager = ana.read(AS_BOB)
    grant(node, "ana", "select_table", kind="CATALOG", on="main")
    both = ana.read(AS_BOB)
    assert restrict(node, masks={"card": "show-last-4"}).status == 200
    restricted = ana.read(AS_BOB)

    assert "1111-" not in reader.text
    assert "You may see this table, but not its rows" in reader.text
    assert "1111-" not in manager.text
    assert "1111-" in both.text
    assert "you see it only as yourself" in restricted.text
    assert "1111-" not in restricted.text


def test_failed_preview_is_503_with_advice(table: PreviewedTable) -> None:
    """A failed preview is answered with 503 and advice."""
    bob = ConsoleVisitor(table.node).sign_in("bob")
    table.workers.dies = True

    answer = bob.get(TAB)

    assert answer.status == 503
    page = PageReader(text_of(answer))
    assert "request fewer columns or rows" in page.text
    assert "Snapshots" in page.text
    assert "Try again" in page.text


def test_preview_of_a_lance_table_shows_typed_rows(table: PreviewedTable) -> None:
    """The preview of a Lance table has rows with their types. A table without data says so."""
    make_space(table.node, "lance", "s")
    fill(table.node, "lance", "s", "t")
    declare(table.node, "lance", "s", "empty")
    admin = ConsoleVisitor(table.node).sign_in()

    full, empty = (admin.read(f"/console/o/table/lake/lance/s/{name}?tab=preview").text for name in ("t", "empty"))

    for words in ("The first 3 rows", "text string", "2 a dog [1.0,0.0]"):
        assert words in full
    assert "no data yet" in empty
