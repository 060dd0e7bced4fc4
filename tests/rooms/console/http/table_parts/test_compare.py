# SPDX-License-Identifier: Apache-2.0
"""The comparison of two snapshots: columns matched by id, counts with differences."""

from __future__ import annotations

from limnos.rooms.console.http.table_metadata import FieldPart, SchemaPart, schema_changes
from tests.http.driver import DriverNode
from tests.http.iceberg import wire
from tests.rooms.console.http.conftest import commit_flights
from tests.rooms.console.http.visitor import ConsoleVisitor

TAB = "/console/o/table/lake/main/raw/flights?tab=snapshots"


def struct(*fields: FieldPart) -> dict[str, object]:
    """Return the type of a struct."""
    return {
        "type": "struct",
        "fields": [{"id": each.id, "name": each.name, "required": each.required, "type": each.type} for each in fields],
    }


def test_columns_are_compared_by_id_at_every_depth() -> None:
    """Renames, promotions, additions, drops and changes of nullability are shown; equal schemas have no differences."""
    before = SchemaPart(
        [
            FieldPart(id=1, name="id", type="int", required=True),
            FieldPart(id=2, name="place", type=struct(FieldPart(id=3, name="town", type="string"))),
            FieldPart(id=4, name="old", type="date"),
        ]
    )
    after = SchemaPart(
        [
            FieldPart(id=1, name="id", type="long", required=True),
            FieldPart(id=2, name="place", type=struct(FieldPart(id=3, name="city", type="string"))),
            FieldPart(id=5, name="new", type="time"),
        ]
    )

    assert schema_changes(before, after) == [
        "adds new time",
        "id int becomes id long",
        "town string becomes city string",
        "drops old",
    ]
    assert schema_changes(before, before) == []
    optional = SchemaPart([FieldPart(id=1, name="id", type="int"), *before.fields[1:]])
    assert schema_changes(before, optional) == ["id becomes optional"]


def test_two_snapshots_are_compared(lake: DriverNode) -> None:
    """The form selects two snapshots. The page has the counts of both, and their differences."""
    first, second = wire.snapshot(1), wire.snapshot(2, parent=1)
    first["snapshot"]["summary"] = {"operation": "append", "total-records": "1000", "total-data-files": "3"}
    second["snapshot"]["summary"] = {"operation": "append", "total-records": "1234", "total-data-files": "odd"}
    for each in (first, second):
        each["snapshot"]["schema-id"] = 0
    updates = [first, wire.point(1), second, wire.point(2)]
    commit_flights(lake, *updates)
    admin = ConsoleVisitor(lake).sign_in()

    plain = admin.read(TAB)
    page = admin.read(f"{TAB}&from=100&to=200")

    assert "Compare two snapshots" in plain.text
    assert "Difference" not in plain.text
    assert "Rows 1 000 1 234 +234" in page.text
    assert "Data files 3 ?" in page.text
    assert "The columns are the same" in page.text
    assert "Difference" not in admin.read(f"{TAB}&from=100&to=nothing").text
