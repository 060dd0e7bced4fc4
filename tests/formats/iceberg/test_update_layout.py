# SPDX-License-Identifier: Apache-2.0
"""Updates of schemas, partition specs and sort orders."""

from __future__ import annotations

import pytest

from limnos.formats.iceberg.json_types import Json
from limnos.model.errors import BadRequest
from tests.formats.iceberg.samples import commit, field, ids, order, partition, rows, schema, sort, spec, table

MORE = schema(field(1, "id", required=True), field(2, "name", "string"), field(3, "day", "date"), field(4, "x"))
ADD: Json = {"action": "add-schema", "schema": MORE}
LAST_SCHEMA: Json = {"action": "set-current-schema", "schema-id": -1}
LAST_SPEC: Json = {"action": "set-default-spec", "spec-id": -1}
LAST_ORDER: Json = {"action": "set-default-sort-order", "sort-order-id": -1}


def add_spec(*fields: Json, **more: object) -> Json:
    """Return an add-spec update."""
    return {"action": "add-spec", "spec": spec(*fields, **more)}


def add_order(*fields: Json) -> Json:
    """Return an add-sort-order update."""
    return {"action": "add-sort-order", "sort-order": order(*fields)}


def test_schema_is_added_and_made_current() -> None:
    """A new schema gets the next id, whatever the request says. It raises last-column-id to its highest field id."""
    add_schema = {**ADD, "schema": {**MORE, "schema-id": 77}, "last-column-id": 99}

    new = commit(table(), add_schema, LAST_SCHEMA)

    assert ids(new, "schemas", "schema-id") == [0, 1]
    assert (new["current-schema-id"], new["last-column-id"]) == (1, 4)


def test_known_schema_is_reused() -> None:
    """An equal existing schema is reused with its id, and -1 then refers to it."""
    base = commit(table(), ADD, LAST_SCHEMA)

    new = commit(base, {"action": "add-schema", "schema": schema()}, LAST_SCHEMA)

    assert ids(new, "schemas", "schema-id") == [0, 1]
    assert (new["current-schema-id"], new["last-column-id"]) == (0, 4)


def test_last_column_id_never_decreases() -> None:
    """Adding a schema with lower ids does not change last-column-id."""
    new = commit(table(), {"action": "add-schema", "schema": schema(field(1, "id"))}, LAST_SCHEMA)

    assert (new["current-schema-id"], new["last-column-id"]) == (1, 3)


def test_minus_one_is_the_last_added() -> None:
    """-1 refers to the schema added last, not to the one with the highest id."""
    base = commit(table(), ADD)

    new = commit(base, ADD, {"action": "add-schema", "schema": schema()}, LAST_SCHEMA)
    newest = commit(base, {"action": "add-schema", "schema": schema()}, ADD, LAST_SCHEMA)

    assert new is base
    assert newest["current-schema-id"] == 1


@pytest.mark.parametrize("update", [LAST_SCHEMA, LAST_SPEC, LAST_ORDER], ids=lambda update: str(update["action"]))
def test_minus_one_needs_an_addition(update: Json) -> None:
    """A -1 without an added object in the same request is refused."""
    with pytest.raises(BadRequest) as caught:
        commit(commit(table(), ADD), update)

    assert "Cannot set last added" in caught.value.message


@pytest.mark.parametrize(
    "update,text",
    [
        ({"action": "set-current-schema", "schema-id": 5}, "unknown schema: 5"),
        ({"action": "set-default-spec", "spec-id": 5}, "unknown spec: 5"),
        ({"action": "set-default-sort-order", "sort-order-id": 5}, "unknown sort order: 5"),
        ({"action": "set-current-schema", "schema-id": -2}, "unknown schema: -2"),
        ({"action": "remove-schemas", "schema-ids": [0]}, "Cannot remove the current schema"),
        ({"action": "remove-partition-specs", "spec-ids": [7, 0]}, "Cannot remove the default partition spec"),
        ({"action": "add-schema", "schema": schema(field(9, "g", "geometry"))}, "geometry is not supported until v3"),
        ({"action": "add-schema", "schema": schema(field(1, "a"), field(1, "b"))}, "field id 1 is used by both"),
        (add_spec(partition(9, "p")), "cannot find source column 9"),
        (add_spec(partition(2, "p", "day")), "cannot read 'name' of type string"),
        (add_spec(partition(1, "day", "bucket[4]")), "column 3 has that name"),
        (add_order(sort(9)), "cannot find source column 9"),
        (add_order(sort(2, "hour")), "cannot read 'name' of type string"),
    ],
    ids=str,
)
def test_bad_layout_is_refused(update: Json, text: str) -> None:
    """A layout update that breaks a rule is refused with its reason."""
    with pytest.raises(BadRequest) as caught:
        commit(table(), update)

    assert text in caught.value.message


def test_version_3_accepts_new_types() -> None:
    """A version 3 table accepts types that version 2 refuses, also if the same request upgrades it."""
    add_schema: Json = {
        "action": "add-schema",
        "schema": schema(field(9, "g", "variant"), field(10, "t", "timestamp_ns")),
    }

    new = commit(table(2), {"action": "upgrade-format-version", "format-version": 3}, add_schema, LAST_SCHEMA)

    assert new["last-column-id"] == 10


def test_unused_schemas_and_specs_are_removed() -> None:
    """Unused schemas and specs are removed, and missing ids are ignored."""
    base = commit(table(), ADD, LAST_SCHEMA, add_spec(partition(4, "x")), LAST_SPEC)

    new = commit(
        base,
        {"action": "remove-schemas", "schema-ids": [0, 9]},
        {"action": "remove-partition-specs", "spec-ids": [0, 9]},
    )

    assert ids(new, "schemas", "schema-id") == [1]
    assert ids(new, "partition-specs", "spec-id") == [1]


def test_schema_that_breaks_the_default_spec_is_refused() -> None:
    """The current schema must have the columns of the default spec and sort order. One request may change both."""
    dropped: Json = {"action": "add-schema", "schema": schema(field(1, "id", required=True))}
    by_day = commit(table(), add_spec(partition(3, "d", "day")), LAST_SPEC)
    sorted_by_day = commit(table(), add_order(sort(3)), LAST_ORDER)

    for base in (by_day, sorted_by_day):
        with pytest.raises(BadRequest) as caught:
            commit(base, dropped, LAST_SCHEMA)

        assert "cannot find source column 3" in caught.value.message

    new = commit(by_day, dropped, LAST_SCHEMA, add_spec(), LAST_SPEC)

    assert (new["current-schema-id"], new["default-spec-id"]) == (1, 0)


def test_specs_bind_to_the_schema_of_the_same_request() -> None:
    """A spec may use a column that the same request adds and makes current."""
    new = commit(table(), ADD, LAST_SCHEMA, add_spec(partition(4, "by_x", "bucket[8]")), LAST_SPEC)

    assert rows(new, "partition-specs")[1] == {
        "spec-id": 1,
        "fields": [partition(4, "by_x", "bucket[8]", **{"field-id": 1000})],
    }
    assert (new["default-spec-id"], new["last-partition-id"]) == (1, 1000)


def test_compatible_spec_is_reused() -> None:
    """A spec with equal sources, transforms and names is reused with its id, whatever its field ids, and -1 refers to
    it.
    """
    base = commit(table(), add_spec(partition(1, "b", "bucket[4]", **{"field-id": 1000})), LAST_SPEC)
    base = commit(base, {"action": "set-default-spec", "spec-id": 0})

    new = commit(base, add_spec(partition(1, "b", "bucket[ 4 ]", **{"field-id": 1007}), **{"spec-id": 5}), LAST_SPEC)

    assert ids(new, "partition-specs", "spec-id") == [0, 1]
    assert (new["default-spec-id"], new["last-partition-id"]) == (1, 1000)


def test_other_name_makes_another_spec() -> None:
    """A spec with a different name is a new one, and reuses the field id of the same source and transform."""
    base = commit(table(), add_spec(partition(1, "b", "bucket[4]"), partition(3, "d", "day")))

    new = commit(base, add_spec(partition(3, "day_of", "day"), partition(3, "m", "month")))

    assert rows(new, "partition-specs")[2] == {
        "spec-id": 2,
        "fields": [
            partition(3, "day_of", "day", **{"field-id": 1001}),
            partition(3, "m", "month", **{"field-id": 1002}),
        ],
    }
    assert new["last-partition-id"] == 1002


def test_requested_partition_field_ids_are_retained() -> None:
    """Field ids in the request are kept and raise last-partition-id. Missing ones are assigned after them."""
    new = commit(table(), add_spec(partition(3, "d", "day", **{"field-id": 1005}), partition(1, "b", "bucket[2]")))

    fields = rows(rows(new, "partition-specs")[1], "fields")

    assert [one["field-id"] for one in fields] == [1005, 1006]
    assert new["last-partition-id"] == 1006


def test_last_partition_id_never_decreases() -> None:
    """Adding a spec with low field ids does not change last-partition-id."""
    base = commit(table(), add_spec(partition(3, "d", "day", **{"field-id": 1005})))

    new = commit(base, add_spec(partition(1, "b", "bucket[2]", **{"field-id": 1001})))

    assert new["last-partition-id"] == 1005


def test_field_ids_stay_unique() -> None:
    """Two void fields of one source get different field ids, although an older spec has one to reuse."""
    base = commit(table(), add_spec(partition(3, "d", "void")))

    new = commit(base, add_spec(partition(3, "d", "void"), partition(3, "e", "void")))

    fields = rows(rows(new, "partition-specs")[2], "fields")
    assert [one["field-id"] for one in fields] == [1000, 1001]


def test_version_1_counts_fields_from_1000() -> None:
    """In version 1 the field ids of a spec must be consecutive from 1000. Missing ids are assigned so."""
    base = commit(table(1), add_spec(partition(3, "d", "day")), LAST_SPEC)

    new = commit(base, add_spec(partition(3, "d", "void"), partition(1, "b", "bucket[2]")), LAST_SPEC)
    with pytest.raises(BadRequest) as caught:
        commit(base, add_spec(partition(1, "b", "bucket[2]", **{"field-id": 1001})))

    assert new["partition-spec"] == [
        partition(3, "d", "void", **{"field-id": 1000}),
        partition(1, "b", "bucket[2]", **{"field-id": 1001}),
    ]
    assert "sequential IDs that are required in v1" in caught.value.message


def test_version_1_legacy_fields_follow_current_layout() -> None:
    """In version 1 the legacy fields always have the current schema and the default spec."""
    new = commit(table(1), ADD, LAST_SCHEMA, add_spec(partition(4, "x")), LAST_SPEC)

    assert new["schema"] == {**MORE, "schema-id": 1}
    assert new["partition-spec"] == [partition(4, "x", **{"field-id": 1000})]


def test_void_partition_outlives_its_column() -> None:
    """A column that the default spec reads by void only can be dropped."""
    base = commit(table(1), add_spec(partition(3, "d", "day")), LAST_SPEC)
    base = commit(base, add_spec(partition(3, "d", "void")), LAST_SPEC)

    new = commit(base, {"action": "add-schema", "schema": schema(field(1, "id"))}, LAST_SCHEMA)

    assert new["current-schema-id"] == 1


def test_sort_orders_count_from_1() -> None:
    """The unsorted order has id 0, other orders count from 1, and equal orders are reused. -1 then refers to the reused
    one.
    """
    base = commit(table(), add_order(sort(1)), LAST_ORDER)
    base = commit(base, add_order(sort(1, direction="desc")), LAST_ORDER)

    again = commit(base, add_order(sort(1)), LAST_ORDER)
    none = commit(base, add_order(), LAST_ORDER)

    assert ids(base, "sort-orders", "order-id") == [0, 1, 2]
    assert (base["default-sort-order-id"], again["default-sort-order-id"], none["default-sort-order-id"]) == (2, 1, 0)
    assert again["sort-orders"] == base["sort-orders"]


def test_unsorted_order_is_added_as_0() -> None:
    """A table that was created sorted gets the unsorted order with id 0."""
    base = table(write_order=order(sort(1)))

    new = commit(base, add_order(), LAST_ORDER)

    assert ids(new, "sort-orders", "order-id") == [1, 0]
    assert new["default-sort-order-id"] == 0
