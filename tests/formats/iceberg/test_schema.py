# SPDX-License-Identifier: Apache-2.0
"""Schemas: validation, columns, equality and assignment of ids."""

from __future__ import annotations

import pytest

from limnos.formats.iceberg import schema as schemas
from limnos.formats.iceberg.json_types import Json
from limnos.formats.iceberg.schema import (
    COLUMNS_MAX,
    DEPTH_MAX,
    NAME_MAX,
    check_version,
    columns,
    content_of,
    same_schema,
    with_fresh_ids,
)
from limnos.model.errors import BadRequest
from tests.formats.iceberg.samples import field, schema

LIST: Json = {"type": "list", "element-id": 11, "element": "string", "element-required": False}
MAP: Json = {"type": "map", "key-id": 12, "key": "string", "value-id": 13, "value": "long", "value-required": True}
STRUCT: Json = {"type": "struct", "fields": [field(21, "x", "double", required=True), field(22, "y", LIST)]}


def test_nested_columns_have_dotted_names_and_parents() -> None:
    """Nested fields have dotted names, their parent, and a flag for whether all of their ancestors are structs."""
    nested_schema = schema(field(1, "id", required=True), field(2, "point", STRUCT), field(3, "tags", MAP))

    schema_columns = columns(nested_schema)

    assert {c.id: (c.name, c.parent, c.by_struct) for c in schema_columns.by_id.values()} == {
        1: ("id", None, True),
        2: ("point", None, True),
        21: ("point.x", 2, True),
        22: ("point.y", 2, True),
        11: ("point.y.element", 22, False),
        3: ("tags", None, True),
        12: ("tags.key", 3, False),
        13: ("tags.value", 3, False),
    }
    assert schema_columns.highest_id == 22
    assert schema_columns.by_name["point.y.element"].id == 11


def test_fast_parsing_equals_general_parsing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fast parsing of common fields gives the same columns and ids as the general one."""
    request_schema = schema(
        field(1, "id", required=True),
        field(4, "price", "decimal(9,2)", doc="in cents"),
        field(2, "point", STRUCT),
        field(3, "tags", MAP),
        field(5, "at", "timestamp_ns"),
        field(6, "n", "int", **{"write-default": 1}),
        field(7, "odd", "long", note="kept"),
    )
    quick, quick_ids = columns(request_schema), with_fresh_ids(request_schema)
    monkeypatch.setattr(schemas, "_ordinary", lambda *_, **__: None)

    assert columns(request_schema) == quick
    assert with_fresh_ids(request_schema) == quick_ids
    assert [column.name for column in quick.newer] == ["at", "n"]


BAD: dict[str, tuple[Json, str]] = {
    "no type": ({"fields": []}, "'type'"),
    "not a struct": ({"type": "list"}, "'type'"),
    "no fields": ({"type": "struct"}, "'fields' is required"),
    "fields no array": ({"type": "struct", "fields": {}}, "'fields' must be an array"),
    "field no object": ({"type": "struct", "fields": ["a"]}, "element 0 must be an object"),
    "no id": (schema({"name": "a", "required": False, "type": "long"}), "'id' is required"),
    "id is text": (schema({"id": "1", "name": "a", "required": False, "type": "long"}), "'id' must be an integer"),
    "id is boolean": (schema({"id": True, "name": "a", "required": False, "type": "long"}), "'id' must be an integer"),
    "id negative": (schema(field(-1, "a")), "between 0 and"),
    "id too big": (schema(field(2**31, "a")), "between 0 and"),
    "no name": (schema({"id": 1, "required": False, "type": "long"}), "'name' is required"),
    "empty name": (schema(field(1, "")), "'name' must not be empty"),
    "no required": (schema({"id": 1, "name": "a", "type": "long"}), "'required' is required"),
    "required is text": (schema({"id": 1, "name": "a", "type": "long", "required": "no"}), "must be a boolean"),
    "no type in field": (schema({"id": 1, "name": "a", "required": False}), "its type is required"),
    "type is number": (schema(field(1, "a", 5)), "not an integer"),
    "unknown type": (schema(field(1, "a", "varchar")), "field 'a': Unknown type 'varchar'"),
    "bare list": (schema(field(1, "a", "list")), "not a string"),
    "unknown nested type": (schema(field(1, "a", {"type": "set"})), "an object of type set"),
    "nested type missing": (schema(field(1, "a", {"type": ["list"]})), "an object of type"),
    "list without id": (schema(field(1, "a", {**LIST, "element-id": None})), "'element-id' is required"),
    "list without element": (schema(field(1, "a", {**LIST, "element": None})), "'a.element': its type is required"),
    "list without required": (schema(field(1, "a", {**LIST, "element-required": None})), "'element-required'"),
    "map without value": (schema(field(1, "a", {**MAP, "value": None})), "'a.value': its type is required"),
    "struct without fields": (schema(field(1, "a", {"type": "struct"})), "struct 'a': field 'fields'"),
    "doc is number": (schema(field(1, "a", doc=5)), "'doc' must be a string"),
    "id twice": (schema(field(1, "a"), field(1, "b")), "id 1 is used by both 'a' and 'b'"),
    "id twice, nested": (schema(field(11, "a"), field(2, "b", LIST)), "id 11 is used by both 'a' and 'b.element'"),
    "name twice": (schema(field(1, "a"), field(2, "a")), "more than one field is named 'a'"),
    "dotted name twice": (schema(field(1, "point.x"), field(2, "point", STRUCT)), "named 'point.x'"),
    "unknown required": (schema(field(1, "a", "unknown", required=True)), "must be optional"),
    "default of variant": (schema(field(1, "a", "variant", **{"write-default": "x"})), "only have null"),
    "default of wrong type": (schema(field(1, "a", "int", **{"initial-default": "x"})), "not a value of type int"),
    "default true for int": (schema(field(1, "a", "int", **{"initial-default": True})), "not a value of type int"),
    "default of a list": (schema(field(1, "a", LIST, **{"write-default": []})), "type list can only have null"),
    "identifiers no array": (schema(**{"identifier-field-ids": 1}), "must be an array"),
    "identifier unknown": (schema(**{"identifier-field-ids": [9]}), "there is no such field"),
    "identifier optional": (schema(**{"identifier-field-ids": [2]}), "'name' is optional"),
    "identifier nested type": (schema(field(2, "p", STRUCT), **{"identifier-field-ids": [2]}), "not a primitive"),
    "identifier variant": (
        schema(field(2, "p", "variant", required=True), **{"identifier-field-ids": [2]}),
        "not a primitive",
    ),
    "identifier in list": (schema(field(2, "p", LIST), **{"identifier-field-ids": [11]}), "inside a list"),
    "identifier double": (schema(field(2, "p", STRUCT, required=True), **{"identifier-field-ids": [21]}), "a double"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_schema_is_refused(name: str) -> None:
    """A schema that breaks a rule is refused with a message that names the field."""
    bad_schema, text = BAD[name]

    with pytest.raises(BadRequest) as caught:
        columns(bad_schema)

    assert text in caught.value.message


def test_identifier_below_optional_struct_is_refused() -> None:
    """An identifier field below an optional struct is refused."""
    inner = {"type": "struct", "fields": [field(5, "x", required=True)]}
    bad_schema = schema(field(1, "outer", inner), **{"identifier-field-ids": [5]})

    with pytest.raises(BadRequest) as caught:
        columns(bad_schema)

    assert "'outer' is optional" in caught.value.message


def test_deep_nesting_is_refused() -> None:
    """A schema that is nested too deeply is refused before it exhausts the stack."""
    nested: object = "long"
    for number in range(5_000):
        nested = {"type": "list", "element-id": number + 2, "element": nested, "element-required": False}

    with pytest.raises(BadRequest) as caught:
        columns(schema(field(1, "a", nested)))

    assert "levels of nesting" in caught.value.message


@pytest.mark.parametrize(
    "type_value", ["timestamp_ns", "timestamptz_ns", "variant", "unknown", "geometry", "geography(OGC:CRS84, karney)"]
)
def test_new_types_need_version_3(type_value: str) -> None:
    """The types of format version 3 are refused in older tables, at every depth, and accepted in version 3."""
    schema_columns = columns(schema(field(1, "a", {**LIST, "element": type_value})))

    check_version(schema_columns, 3)
    with pytest.raises(BadRequest) as caught:
        check_version(schema_columns, 2)

    assert f"a.element: {type_value} is not supported until v3" in caught.value.message


@pytest.mark.parametrize("key", ["initial-default", "write-default"])
def test_defaults_need_version_3(key: str) -> None:
    """Default values are refused before format version 3. A null default counts as none."""
    schema_columns = columns(schema(field(1, "a", **{key: 5}), field(2, "b", **{key: None})))

    check_version(schema_columns, 3)
    with pytest.raises(BadRequest) as caught:
        check_version(schema_columns, 2)

    assert "a: non-null default values are not supported until v3" in caught.value.message
    assert "b:" not in caught.value.message


@pytest.mark.parametrize(
    "type_value,value",
    [
        ("boolean", True),
        ("int", 1),
        ("double", 1.5),
        ("float", 2),
        ("string", "x"),
        ("date", "2026-01-01"),
        ("decimal(9, 2)", "1.25"),
        ("binary", "00ff"),
    ],
)
def test_default_has_the_form_of_its_type(type_value: object, value: object) -> None:
    """A default in the JSON form of its type is accepted."""
    schema_columns = columns(schema(field(1, "a", type_value, **{"initial-default": value})))

    assert schema_columns.by_id[1].has_default


def test_equal_schemas_are_the_same() -> None:
    """Schemas are equal regardless of schema ids, null entries, spelling of types and order of identifier fields."""
    one = schema(field(1, "a", "decimal(9,2)", required=True), field(2, "b", LIST, required=True))
    one |= {"schema-id": 4, "identifier-field-ids": []}
    other = schema(field(1, "a", "decimal(9, 2)", required=True, doc=None), field(2, "b", LIST, required=True))

    assert same_schema(one, other)
    assert same_schema(one, one)


@pytest.mark.parametrize(
    "other",
    [
        schema(field(1, "a")),
        schema(field(1, "a"), field(3, "b", LIST)),
        schema(field(1, "a"), field(2, "c", LIST)),
        schema(field(1, "a"), field(2, "b", {**LIST, "element": "long"})),
        schema(field(1, "a", required=True), field(2, "b", LIST)),
        schema(field(1, "a", doc="text"), field(2, "b", LIST)),
        schema(field(1, "a", **{"write-default": 1}), field(2, "b", LIST)),
        schema(field(2, "b", LIST), field(1, "a")),
        schema(field(1, "a"), field(2, "b", LIST), **{"identifier-field-ids": [1]}),
    ],
)
def test_other_schemas_differ(other: Json) -> None:
    """Any other difference makes schemas unequal."""
    assert not same_schema(schema(field(1, "a"), field(2, "b", LIST)), other)


def test_unknown_fields_named_type_are_not_parsed_as_types() -> None:
    """Unknown fields and default values may be named `type` or `value` without being interpreted as types."""
    one = schema(field(1, "a", value="odd"), field(2, "b", "string", **{"write-default": "decimal(9,2)"}))
    other = schema(field(1, "a", value="odd"), field(2, "b", "string", **{"write-default": "decimal(9, 2)"}, doc=None))

    assert not same_schema(one, other)


def test_fresh_ids_are_assigned_level_by_level() -> None:
    """All fields of a struct get ids before their nested fields, and identifier fields refer to the new ids."""
    nested = schema(field(50, "p", STRUCT), field(40, "m", MAP), field(30, "id", required=True), color="red")
    request_schema = {**nested, "schema-id": 7, "identifier-field-ids": [30]}

    fresh, ids = with_fresh_ids(request_schema)

    assert {c.name: c.id for c in columns(fresh).by_id.values()} == {
        "p": 1,
        "m": 2,
        "id": 3,
        "p.x": 4,
        "p.y": 5,
        "p.y.element": 6,
        "m.key": 7,
        "m.value": 8,
    }
    assert (fresh["schema-id"], fresh["identifier-field-ids"], fresh["color"]) == (0, [3], "red")
    assert (ids.last, ids.renumbered[30], ids.renumbered[11]) == (8, 3, 6)
    assert request_schema["schema-id"] == 7


@pytest.mark.parametrize(
    "wide",
    [
        schema(*[field(number, f"c{number}") for number in range(1, COLUMNS_MAX + 2)]),
        schema(field(1, "x" * NAME_MAX, {"type": "struct", "fields": [field(2, "y")]})),
    ],
    ids=["too many fields", "too long a name to repeat"],
)
def test_oversized_schema_is_refused(wide: Json) -> None:
    """A schema with more fields than the limit, or whose nested names would be too long in total, is refused with the
    limit.
    """
    with pytest.raises(BadRequest) as caught:
        columns(wide)

    assert str(COLUMNS_MAX) in caught.value.message or str(NAME_MAX) in caught.value.message


def test_repeated_identifier_field_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """An identifier field that is listed a thousand times is checked once, because each check walks up to the root."""
    looked: list[int] = []
    problem_of = schemas._identifier_problem

    def look(schema_columns: schemas.SchemaColumns, field_id: int) -> str | None:
        looked.append(field_id)
        return problem_of(schema_columns, field_id)

    monkeypatch.setattr(schemas, "_identifier_problem", look)

    columns(schema(field(1, "x", required=True), **{"identifier-field-ids": [1] * 1_000}))

    assert looked == [1]


def test_refusal_names_only_some_of_many_problems() -> None:
    """The refusal of a schema with thousands of invalid fields names only some of them."""
    many = columns(schema(*[field(number, f"c{number}", "timestamp_ns") for number in range(1, 5_000)]))

    with pytest.raises(BadRequest) as caught:
        check_version(many, 2)

    assert len(caught.value.message) < 2_000


def test_deepest_schemas_are_compared() -> None:
    """Two schemas of the maximal depth are compared without a stack overflow."""
    one, other = (
        schema(nested(DEPTH_MAX - 1, field(500, "x", spelling))) for spelling in ("decimal(9,2)", "decimal(9, 2)")
    )

    assert same_schema(one, other)
    assert content_of(one) == content_of(other)


def nested(levels: int, inner: Json) -> Json:
    """Return a field nested below this many structs."""
    for number in range(1, levels):
        inner = field(number, "s", {"type": "struct", "fields": [inner]})
    return inner
