# SPDX-License-Identifier: Apache-2.0
"""Restrictions and schema evolution: renamed, dropped and added columns stay restricted, or the table is closed."""

from __future__ import annotations

import pytest

from tests.http.driver import DriverAnswer, DriverNode, grant
from tests.http.iceberg.test_restrictions import restrict, words
from tests.http.iceberg.wire import ROOT, commit, make_space, metadata_of, space_path, table_path

pytestmark = pytest.mark.slow

Field = dict[str, object]
FIELDS: list[Field] = [
    {"id": 1, "name": "id", "required": False, "type": "long"},
    {"id": 2, "name": "card", "required": False, "type": "string"},
    {"id": 3, "name": "region", "required": False, "type": "string"},
]
NAMED_REGION: Field = {
    "id": 4,
    "name": "region",
    "required": False,
    "type": "string",
    "initial-default": "EU",
    "write-default": "EU",
}


def furnish(node: DriverNode) -> None:
    """Create a table of format 3, a reader and a writer; the writer is not restricted."""
    make_space(node, "a")
    body = {"name": "t", "schema": {"type": "struct", "fields": FIELDS}, "properties": {"format-version": "3"}}
    node.done("POST", f"{space_path('a')}/tables", body)
    grant(node, "bob", "use_catalog use_schema select_table", kind="CATALOG", on="main")
    grant(node, "mod", "use_catalog use_schema modify_table", kind="CATALOG", on="main")


@pytest.fixture
def shop(lake: DriverNode) -> DriverNode:
    """A node with the table of `furnish`, and a filter and a mask on its namespace for one reader."""
    furnish(lake)
    answer = restrict(
        lake,
        "m",
        kind="SCHEMA",
        on="main.a",
        filter="region = 'EU'",
        masks={"CARD": "replace-with-null"},
        to={"users": ["bob"]},
    )
    assert answer.status == 200, answer.body
    return lake


def evolve(node: DriverNode, *fields: Field, then: tuple[object, ...] = ()) -> None:
    """Commit a schema with these columns, as a user who may only modify the table."""
    schema = {"type": "struct", "fields": list(fields), "schema-id": 100}
    updates = [{"action": "add-schema", "schema": schema}, {"action": "set-current-schema", "schema-id": -1}, *then]
    answer = commit(node, "a", "t", updates=updates, user="mod")
    assert answer.status == 200, answer.body


def load(node: DriverNode) -> DriverAnswer:
    """Load the table as the restricted reader."""
    return node.get(table_path("a", "t"), user="bob")


def restrictions_of(node: DriverNode) -> tuple[object, dict[int, str]]:
    """Return the field id that the reader's filter uses, and the masks by field id."""
    answer = load(node)
    assert answer.status == 200, answer.body
    restrictions = answer.json()["read-restrictions"]
    masks = {each["field-id"]: each["action"] for each in restrictions.get("required-column-projections", [])}
    return restrictions["required-row-filter"]["left"]["id"], masks


def renamed(number: int, name: str) -> list[Field]:
    """Return the columns with one of them renamed."""
    return [{**each, "name": name} if each["id"] == number else each for each in FIELDS]


def test_renamed_columns_of_a_restricted_namespace_stay_restricted(shop: DriverNode) -> None:
    """The mask and the filter of a namespace follow a column that a writer renames."""
    assert restrictions_of(shop) == (3, {2: "replace-with-null"})

    evolve(shop, *[{**each, "name": f"x{each['name']}"} for each in FIELDS])

    assert restrictions_of(shop) == (3, {2: "replace-with-null"})


def test_removed_schemas_do_not_lift_a_mask(shop: DriverNode) -> None:
    """A writer who also removes the former schemas from the metadata lifts no mask."""
    first = metadata_of(shop, "a", "t")["current-schema-id"]
    evolve(shop, *renamed(2, "other"), then=({"action": "remove-schemas", "schema-ids": [first]},))

    assert len(metadata_of(shop, "a", "t")["schemas"]) == 1
    assert restrictions_of(shop)[1] == {2: "replace-with-null"}


def test_new_column_of_a_masked_name_is_masked_too(shop: DriverNode) -> None:
    """After a rename, both the renamed column and a new one of the masked name are masked."""
    evolve(shop, *renamed(2, "other"))
    evolve(shop, *renamed(2, "other"), {"id": 4, "name": "Card", "required": False, "type": "string"})

    assert restrictions_of(shop)[1] == {2: "replace-with-null", 4: "replace-with-null"}


@pytest.mark.parametrize("steps", [1, 2])
def test_default_of_a_new_column_does_not_pass_a_filter(shop: DriverNode, steps: int) -> None:
    """A new column with the name and a default that the filter accepts closes the table to restricted users."""
    if steps == 2:
        evolve(shop, *renamed(3, "other"))
    evolve(shop, *renamed(3, "other"), NAMED_REGION)

    answer = load(shop)

    assert answer.status == 403, answer.body
    assert "more than one column" in words(answer)


def test_dropped_and_added_column_closes_the_table(shop: DriverNode) -> None:
    """A filter's column that was dropped, and added again with a default, closes the table."""
    evolve(shop, *FIELDS[:2])
    closed = load(shop)
    evolve(shop, *FIELDS[:2], NAMED_REGION)

    assert (closed.status, load(shop).status) == (403, 403)


def test_setting_a_restriction_again_forgets_former_columns(shop: DriverNode) -> None:
    """Whoever may restrict opens the closed table by setting the restriction again: it means the current columns."""
    evolve(shop, *renamed(3, "other"), NAMED_REGION)
    assert load(shop).status == 403

    restrict(shop, "m", kind="SCHEMA", on="main.a", filter="region = 'EU'", to={"users": ["bob"]})

    assert restrictions_of(shop) == (4, {})


def test_masks_of_a_table_bind_to_the_name_too(lake: DriverNode) -> None:
    """A table's own mask applies to its column after a rename, and to a new column of the name."""
    furnish(lake)
    restrict(lake, masks={"card": "replace-with-null"}, filter="id > 0", to={"users": ["bob"]})
    evolve(lake, *renamed(2, "other"), {"id": 4, "name": "card", "required": False, "type": "string"})

    assert restrictions_of(lake) == (1, {2: "replace-with-null", 4: "replace-with-null"})

    evolve(lake, *renamed(2, "other"), {"id": 4, "name": "third", "required": False, "type": "string"})

    assert restrictions_of(lake) == (1, {2: "replace-with-null", 4: "replace-with-null"})


def _mask(node: DriverNode) -> None:
    answer = restrict(
        node,
        "m",
        kind="SCHEMA",
        on="main.a",
        masks={"card": "replace-with-null"},
        filter="id > 0",
        to={"users": ["bob"]},
    )
    assert answer.status == 200, answer.body


@pytest.mark.parametrize("forgets", [False, True])
def test_dropped_column_that_returns_under_another_name_is_masked(lake: DriverNode, *, forgets: bool) -> None:
    """A column that gets the field id of a column that was dropped before the restriction was set has its values in
    older files: it is masked, also if a commit leaves only schemas with an earlier name of it.
    """
    furnish(lake)
    if forgets:
        evolve(lake, *renamed(2, "early"))
        evolve(lake, *FIELDS)
    first = metadata_of(lake, "a", "t")["current-schema-id"]
    removal = ({"action": "remove-schemas", "schema-ids": [first]},) if forgets else ()
    evolve(lake, FIELDS[0], FIELDS[2], then=removal)
    restrict(lake, "m", kind="SCHEMA", on="main.a", masks={"card": "replace-with-null"}, to={"users": ["bob"]})
    evolve(lake, FIELDS[0], FIELDS[2], {**FIELDS[1], "name": "note"})
    evolve(lake, FIELDS[0], FIELDS[2], {**FIELDS[1], "name": "memo"}, {**FIELDS[1], "name": "free", "id": 4})

    restrictions = load(lake).json()["read-restrictions"]

    assert [each["field-id"] for each in restrictions["required-column-projections"]] == [2]


def test_returning_field_id_of_an_unknown_name_closes_a_filter(lake: DriverNode) -> None:
    """A column with the field id of a former column of an unknown name may be the filter's column: the table is
    closed.
    """
    furnish(lake)
    first = metadata_of(lake, "a", "t")["current-schema-id"]
    evolve(lake, *FIELDS[:2], then=({"action": "remove-schemas", "schema-ids": [first]},))
    _mask(lake)
    assert load(lake).status == 200
    evolve(lake, *FIELDS[:2], {**FIELDS[2], "name": "note"})

    assert load(lake).status == 403


def test_nested_field_that_moves_to_the_top_is_masked(lake: DriverNode) -> None:
    """A column that takes the field id of a field of a masked column is masked, too."""
    make_space(lake, "a")
    person = {"type": "struct", "fields": [{"id": 3, "name": "number", "required": False, "type": "string"}]}
    fields: list[Field] = [FIELDS[0], {"id": 2, "name": "card", "required": False, "type": person}]
    lake.done("POST", f"{space_path('a')}/tables", {"name": "t", "schema": {"type": "struct", "fields": fields}})
    for user, right in (("bob", "select_table"), ("mod", "modify_table")):
        grant(lake, user, f"use_catalog use_schema {right}", kind="CATALOG", on="main")
    restrict(lake, "m", kind="SCHEMA", on="main.a", masks={"card": "replace-with-null"}, to={"users": ["bob"]})
    evolve(lake, FIELDS[0], {"id": 3, "name": "note", "required": False, "type": "string"})

    restrictions = load(lake).json()["read-restrictions"]

    assert [each["field-id"] for each in restrictions["required-column-projections"]] == [3]


def test_transaction_of_several_operations_renames_no_mask_away(shop: DriverNode) -> None:
    """A commit over several tables, and one over the transactions API, add the former columns too."""
    schema = {"type": "struct", "fields": renamed(2, "other"), "schema-id": 100}
    updates = [{"action": "add-schema", "schema": schema}, {"action": "set-current-schema", "schema-id": -1}]
    change = {"identifier": {"namespace": ["a"], "name": "t"}, "requirements": [], "updates": updates}
    answer = shop.ask("POST", f"{ROOT}/transactions/commit", {"table-changes": [change]}, user="mod")

    assert answer.status == 204, answer.body
    assert restrictions_of(shop)[1] == {2: "replace-with-null"}


def test_overwriting_registration_renames_no_mask_away(shop: DriverNode) -> None:
    """A table that is pointed at other metadata stays masked by the column's former name."""
    evolve(shop, *renamed(2, "other"))
    location = shop.get(table_path("a", "t")).json()["metadata-location"]
    restrict(shop, "m", kind="SCHEMA", on="main.a", masks={"other": "replace-with-null"}, to={"users": ["bob"]})
    evolve(shop, *renamed(2, "card"))
    restrict(shop, "m", kind="SCHEMA", on="main.a", masks={"card": "replace-with-null"}, filter="id > 0")
    shop.done("POST", f"{space_path('a')}/register", {"name": "t", "metadata-location": location, "overwrite": True})

    assert metadata_of(shop, "a", "t")["schemas"][-1]["fields"][1]["name"] in ("other", "card")
    assert restrictions_of(shop)[1] == {2: "replace-with-null"}
