# SPDX-License-Identifier: Apache-2.0
"""Partition specs and transforms."""

from __future__ import annotations

import pytest

from limnos.formats.iceberg import partitioning
from limnos.formats.iceberg.json_types import Json
from limnos.formats.iceberg.schema import columns
from limnos.formats.iceberg.transforms import canonical_transform, parse_transform
from limnos.model.errors import BadRequest
from tests.formats.iceberg.samples import field, partition, schema, spec

ALL_TYPES: tuple[str, ...] = (
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "timestamp_ns",
)
ALL_TYPES += (
    "timestamptz_ns",
    "string",
    "uuid",
    "binary",
    "fixed[4]",
    "decimal(9, 2)",
    "variant",
    "geometry",
    "geography",
)
DATES = {"date", "timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"}
TAKES = {
    "identity": set(ALL_TYPES) - {"variant", "geometry", "geography"},
    "void": set(ALL_TYPES),
    "year": DATES,
    "month": DATES,
    "day": DATES,
    "hour": DATES - {"date"},
    "truncate[3]": {"int", "long", "decimal(9, 2)", "string", "binary"},
    "bucket[8]": DATES | {"int", "long", "decimal(9, 2)", "time", "string", "uuid", "fixed[4]", "binary"},
}


@pytest.mark.parametrize("text", TAKES)
def test_transform_accepts_exactly_its_column_types(text: str) -> None:
    """Each transform accepts exactly the column types that the specification lists for it."""
    fields = partitioning.spec_fields(spec(partition(1, "p", text)))

    accepted = {one for one in ALL_TYPES if _binds(fields, schema(field(1, "a", one)))}

    assert accepted == TAKES[text]


def _binds(fields: list[Json], table_schema: Json) -> bool:
    try:
        partitioning.check_binding(fields, columns(table_schema))
    except BadRequest:
        return False
    return True


def test_unfit_transform_names_column_and_type() -> None:
    """The refusal of a transform names the column and its type."""
    fields = partitioning.spec_fields(spec(partition(1, "p", "hour")))

    with pytest.raises(BadRequest) as caught:
        partitioning.check_binding(fields, columns(schema(field(1, "a", "date"))))

    assert "transform hour cannot read 'a' of type date" in caught.value.message


@pytest.mark.parametrize(
    "transform,known",
    [("bucket[ 016 ]", "bucket[16]"), ("DAY", "day"), ("Identity", "identity"), ("truncate[1]", "truncate[1]")],
)
def test_transform_has_one_spelling(transform: str, known: str) -> None:
    """Transforms are stored in a canonical spelling."""
    assert parse_transform(transform, where="w") == known


@pytest.mark.parametrize(
    "transform", ["", "years", "bucket", "bucket[0]", "bucket[-1]", "bucket[99999999999]", "zorder", "day[1]"]
)
def test_unknown_transform_is_refused(transform: str) -> None:
    """An unknown transform in a request is refused. A stored one is kept."""
    with pytest.raises(BadRequest) as caught:
        parse_transform(transform, where="w")

    assert caught.value.message.startswith("w: ")
    assert canonical_transform(transform) == transform


BAD: dict[str, tuple[Json, str]] = {
    "no fields": ({}, "'fields' is required"),
    "no name": (spec({"source-id": 1, "transform": "day"}), "'name' is required"),
    "no source": (spec({"name": "p", "transform": "day"}), "'source-id' is required"),
    "no transform": (spec({"name": "p", "source-id": 1}), "'transform' is required"),
    "transform is number": (spec(partition(1, "p", 5)), "'transform' must be a string"),
    "field id is text": (spec(partition(1, "p", **{"field-id": "1000"})), "'field-id' must be an integer"),
    "name twice": (spec(partition(1, "p"), partition(2, "p")), "name p is used more than once"),
    "field id twice": (
        spec(partition(1, "p", **{"field-id": 1000}), partition(2, "q", **{"field-id": 1000})),
        "field id 1000 is used more than once",
    ),
    "same twice": (spec(partition(1, "p", "day"), partition(1, "q", "day")), "source and transform 1 day"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_spec_is_refused(name: str) -> None:
    """A spec that breaks a rule is refused with a message that names the field."""
    bad_spec, text = BAD[name]

    with pytest.raises(BadRequest) as caught:
        partitioning.spec_fields(bad_spec)

    assert text in caught.value.message


NESTED: Json = {"type": "list", "element-id": 8, "element": "long", "element-required": True}
UNBOUND: dict[str, tuple[Json, str]] = {
    "missing column": (partition(99, "p"), "cannot find source column 99"),
    "list": (partition(7, "p"), "'tags' must be a primitive"),
    "inside a list": (partition(8, "p"), "'tags.element' must be a primitive"),
}


@pytest.mark.parametrize("name", UNBOUND)
def test_partition_without_valid_source_column_is_refused(name: str) -> None:
    """A partition field needs a primitive source column outside of lists and maps."""
    unbound_field, text = UNBOUND[name]
    table_columns = columns(schema(field(1, "id"), field(2, "name", "string"), field(7, "tags", NESTED)))

    with pytest.raises(BadRequest) as caught:
        partitioning.check_binding(partitioning.spec_fields(spec(unbound_field)), table_columns)

    assert text in caught.value.message


def test_identity_partition_may_have_name_of_its_column() -> None:
    """An identity partition may have its column's name, and a void one may outlive its column."""
    fields = partitioning.spec_fields(spec(partition(1, "id"), partition(99, "gone", "void")))

    partitioning.check_binding(fields, columns(schema()))
    partitioning.check_readable(fields, columns(schema()))

    assert partitioning.is_sequential(partitioning.with_field_ids(fields, lambda one: 1000 + fields.index(one)))


ITEM: Json = {"type": "struct", "fields": [field(9, "x")]}
ITEMS: Json = {"type": "list", "element-id": 8, "element": ITEM, "element-required": True}
VALUES: Json = {"type": "map", "key-id": 10, "key": "string", "value-id": 8, "value": ITEM, "value-required": True}


@pytest.mark.parametrize(
    "fields,name",
    [
        ([field(7, "p")], "p"),
        ([field(7, "p", ITEM)], "p.x"),
        ([field(7, "p", ITEMS)], "p.element.x"),
        ([field(7, "p", ITEMS)], "p.x"),
        ([field(7, "p", VALUES)], "p.x"),
    ],
    ids=["column", "field of a struct", "full name in a list", "short name in a list", "short name in a map"],
)
@pytest.mark.parametrize("transform", ["identity", "bucket[4]", "void"])
def test_partition_field_with_the_name_of_another_column_is_refused(
    fields: list[Json], name: str, transform: str
) -> None:
    """Iceberg's Java library cannot read a table in which a partition field has the name of another column."""
    chosen = partitioning.spec_fields(spec(partition(1, name, transform)))
    partitioning.check_readable(chosen, columns(schema(field(1, "id"), field(2, "other"))))

    with pytest.raises(BadRequest, match=r"column [79] has that name and is not its source"):
        partitioning.check_readable(chosen, columns(schema(field(1, "id"), *fields)))


def test_partition_field_with_dropped_source_is_accepted() -> None:
    """A former spec whose source column was dropped does not reserve its name."""
    partitioning.check_readable(
        partitioning.spec_fields(spec(partition(99, "name"))), columns(schema(field(2, "name", "string")))
    )


@pytest.mark.parametrize(
    "transform,type_value",
    [("day", "string"), ("bucket[4]", ITEM), ("truncate[3]", "date"), ("identity", "variant"), ("bucket[4]", "double")],
)
def test_former_spec_that_cannot_read_a_new_type_is_refused(transform: str, type_value: object) -> None:
    """A column of a replaced table may get another type, but Java reads no spec of it that does not fit."""
    fields = partitioning.spec_fields(spec(partition(1, "p", transform)))

    with pytest.raises(BadRequest, match="cannot read column 'a' with its new type"):
        partitioning.check_readable(fields, columns(schema(field(1, "a", type_value))))


@pytest.mark.parametrize("transform,type_value", [("void", ITEM), ("identity", ITEM), ("identity", "string")])
def test_former_spec_that_fits_a_new_type_is_accepted(transform: str, type_value: object) -> None:
    """Readers take `void` and `identity` of a struct."""
    fields = partitioning.spec_fields(spec(partition(1, "p", transform)))

    partitioning.check_readable(fields, columns(schema(field(1, "a", type_value))))
