# SPDX-License-Identifier: Apache-2.0
"""Edits of Iceberg tables: who may not change a table learns nothing from an edit that changes nothing."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

import pytest

from limnos.model.errors import NotFound, PermissionDenied
from limnos.model.kinds import Kind
from limnos.model.privileges import Privilege
from limnos.services.iceberg.table_evolution import column_describe, table_edit
from limnos.services.request.property_edits import PropertyEdits
from tests.inprocess import ADMIN, MAIN
from tests.services.conftest import ServiceDesk

PATH = ("a", "t")


def edits(desk: ServiceDesk, user: str) -> list[Coroutine[Any, Any, object]]:
    """Return edits of which none changes the table: no property is there, and a column is as it was."""
    nothing = PropertyEdits(removes=("no such property",), clears_comment=True)
    return [
        table_edit(desk.ctx(user), MAIN, path=PATH, edits=nothing),
        column_describe(desk.ctx(user), MAIN, path=PATH, field_id=1, text=""),
        column_describe(desk.ctx(user), MAIN, path=PATH, field_id=99, text="x"),
    ]


def test_edits_that_change_nothing_need_modify_table(desk: ServiceDesk) -> None:
    """A reader of a table is refused, whether the edit would change the table or not: a column that does not exist is
    not distinguished from one that does. A writer is answered.
    """
    desk.namespace("a")
    desk.table(*PATH)
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG, Privilege.USE_SCHEMA, Privilege.SELECT_TABLE)
    for edit in edits(desk, "ana"):
        with pytest.raises(PermissionDenied):
            desk.run(edit)

    desk.allow("ana", Kind.TABLE, "main.a.t", Privilege.MODIFY_TABLE)
    for user in ("ana", ADMIN):
        same, described, missing = edits(desk, user)
        desk.run(same)
        desk.run(described)
        with pytest.raises(NotFound):
            desk.run(missing)
