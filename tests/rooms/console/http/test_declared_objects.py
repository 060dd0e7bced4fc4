# SPDX-License-Identifier: Apache-2.0
"""Pages of objects of declared kinds."""

from __future__ import annotations

import pytest

from limnos.model.declared_kinds import DECLARED, DeclaredKind
from tests.http.driver import OWN
from tests.rooms.console.http.visitor import ConsoleVisitor


@pytest.mark.parametrize("declared", DECLARED, ids=lambda each: each.kind.word)
def test_page_shows_the_own_fields_and_drops_the_object(admin: ConsoleVisitor, declared: DeclaredKind) -> None:
    """The page of an object shows its comment and own fields; its sheet drops it into the trash."""
    url = f"{OWN}/metalakes/lake/catalogs/main/{declared.plural}/raw"
    admin.node.done("POST", url, {"name": "x", "comment": "fine words", **declared.example})

    page = admin.read(f"/console/o/{declared.kind.word}/lake/main/raw/x")
    sheet = admin.read(f"/console/drop/{declared.kind.word}/lake/main/raw/x")

    for value in ("fine words", *declared.example.values()):
        assert (", ".join(value) if isinstance(value, list) else str(value)) in page.text
    assert "It is in the trash for" in sheet.text
