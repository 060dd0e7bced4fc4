# SPDX-License-Identifier: Apache-2.0
"""Name mappings of restricted tables: files without field ids are read by names that a writer of the table chooses, so
restricted users do not read them.
"""

from __future__ import annotations

import json
from typing import cast

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from limnos.services.request import offloaded_work
from limnos.services.request.concurrency.previews import PREVIEW_OFFLOADER
from tests.http.admin.catalog.test_previews import PREVIEW, Workers
from tests.http.driver import DriverNode, grant
from tests.http.iceberg import wire
from tests.http.iceberg.test_restricted_plans import ROWS, RestrictedTable
from tests.http.iceberg.test_restrictions import restrict, words
from tests.iceberg_manifests import data_file

pytestmark = pytest.mark.slow

RESTRICTION = {"filter": "City = 'Rome'", "masks": {"card": "show-last-4"}, "to": {"users": ["bob"]}}
NOTE = {"id": 6, "name": "note", "required": False, "type": "string"}


class ImportedTable(RestrictedTable):
    """A restricted table whose files have no field ids, as another program wrote them."""

    def __init__(self, node: DriverNode) -> None:
        super().__init__(node, manifests=1, files=1)
        PREVIEW_OFFLOADER.put(node.built.services, Workers())
        assert restrict(node, **RESTRICTION).status == 200
        grant(node, "mod", "use_catalog use_schema modify_table", kind="CATALOG", on="main")
        schema = cast("list[dict[str, object]]", wire.metadata_of(node, "a", "t")["schemas"])[0]
        fields = [*cast("list[object]", schema["fields"]), NOTE]
        self.change(
            {"action": "add-schema", "schema": {"type": "struct", "fields": fields, "schema-id": 9}},
            {"action": "set-current-schema", "schema-id": -1},
        )

    def file(self, name: str) -> dict[str, object]:
        """Write a data file without field ids. Returns its manifest entry."""
        at = wire.local(self.write(name, b""))
        pq.write_table(pa.Table.from_pylist([{key: row[key] for key in ("id", "City", "card")} for row in ROWS]), at)
        location = f"{self.location}/metadata/{name}"
        return data_file(location, file_size_in_bytes=at.stat().st_size, record_count=len(ROWS))

    def change(self, *updates: object) -> None:
        """Commit updates as a user who may only modify the table."""
        answer = wire.commit(self.node, "a", "t", updates=list(updates), user="mod")
        assert answer.status == 200, answer.body

    def map_names(self, **names: list[str]) -> None:
        """Set the name mapping: the names in files of each column, by the column's name."""
        ids = {"id": 1, "City": 2, "card": 3, "note": 6}
        mapping = [{"field-id": number, "names": names.get(name, [name])} for name, number in ids.items()]
        self.change({"action": "set-properties", "updates": {"schema.name-mapping.default": json.dumps(mapping)}})


@pytest.fixture
def imported(lake: DriverNode) -> ImportedTable:
    """The table, with a filter on `City` and a mask on `card` for bob."""
    return ImportedTable(lake)


MAPPINGS: dict[str, dict[str, list[str]]] = {
    "honest": {},
    "masked values in another column": {"card": ["none"], "note": ["card"]},
    "another column in the filter": {"City": ["none"], "note": ["City"]},
}
CLOSED = [(406, False), (405, False)]
"""The statuses of a plan and of a preview, and whether they show a masked value."""


@pytest.mark.parametrize("document_bytes_max", [10, 1 << 20])
@pytest.mark.parametrize("mapping", MAPPINGS)
def test_files_without_field_ids_are_closed_to_restricted_users(
    imported: ImportedTable, monkeypatch: pytest.MonkeyPatch, mapping: str, document_bytes_max: int
) -> None:
    """Plans and previews of restricted users read no file without field ids, whatever the name mapping and the
    restriction: also one whose mask has no column any more. Unrestricted users preview it.
    """
    monkeypatch.setattr(offloaded_work, "DOCUMENT_BYTES_MAX", document_bytes_max)
    imported.map_names(**MAPPINGS[mapping])
    node = imported.node

    def answers() -> list[tuple[int, bool]]:
        both = imported.seen(), node.get(f"{PREVIEW}?table=a.t&rows=100", user="bob")
        return [(each.status, b"1111-0000" in each.body) for each in both]

    restricted = answers()
    message = words(imported.seen())
    assert restrict(node, **{**RESTRICTION, "filter": "City is null"}).status == 200
    by_null = answers()
    whole = node.get(f"{PREVIEW}?table=a.t&rows=100")

    assert (restricted, by_null) == (CLOSED, CLOSED)
    assert "no field ids" in message
    assert len(whole.json()["rows"]) == len(ROWS)


def test_restriction_without_a_column_closes_files_without_field_ids(imported: ImportedTable) -> None:
    """A mask of the namespace whose column a writer has dropped still closes these files."""
    node = imported.node
    imported.map_names(**MAPPINGS["masked values in another column"])
    node.done("DELETE", "/api/limnos/v1/metalakes/lake/objects/TABLE/main.a.t/restrictions/eu")
    terms = {"masks": {"number": "replace-with-null"}, "to": {"users": ["bob"]}}
    assert restrict(node, "ns", kind="SCHEMA", on="main.a", **terms).status == 200

    assert [imported.seen().status, node.get(f"{PREVIEW}?table=a.t&rows=9", user="bob").status] == [406, 405]
    assert imported.plan().status == 200


def test_files_with_field_ids_are_read_whatever_the_name_mapping(lake: DriverNode) -> None:
    """A name mapping changes nothing of files with field ids."""
    table = RestrictedTable(lake, manifests=1, files=1)
    mapping = json.dumps([{"field-id": 1, "names": ["card"]}])
    update = {"action": "set-properties", "updates": {"schema.name-mapping.default": mapping}}
    assert wire.commit(lake, "a", "t", updates=[update]).status == 200

    rows = table.rows(table.seen())

    assert {row["City"] for row in rows} == {"Rome"}
    assert not [row for row in rows if "1111" in str(row)]
