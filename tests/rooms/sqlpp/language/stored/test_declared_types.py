# SPDX-License-Identifier: Apache-2.0
"""Types as statements spell them."""

from __future__ import annotations

import pytest

from limnos.rooms.sqlpp.language import SqlppError, parse
from limnos.rooms.sqlpp.language.stored import (
    AnyType,
    ArrayType,
    BagType,
    FieldType,
    RecordType,
    Scalar,
    StorageForm,
    columns,
    has_open,
    is_built_in,
    open_paths,
    storage_form_of_record,
)
from limnos.rooms.sqlpp.language.tree import CreateType


def spelled(text: str) -> StorageForm:
    """Return the form of a type's text."""
    (parsed,) = parse(f"create type t as {text}")
    assert isinstance(parsed.statement, CreateType)
    return storage_form_of_record(parsed.statement.type, (("id",),))


def test_every_kind_of_type_is_resolved() -> None:
    """Built-in types in any case and under all names, arrays, multisets, nested records, optional fields."""
    assert spelled("closed { id: INT, f: int32?, a: [ { x: {{ datetime }} } ], w: `any` }") == StorageForm(
        RecordType(
            (
                FieldType("id", Scalar("bigint")),
                FieldType("f", Scalar("integer"), optional=True),
                FieldType("a", ArrayType(RecordType((FieldType("x", BagType(Scalar("datetime"))),)))),
                FieldType("w", AnyType()),
            ),
            open=False,
        ),
        (("id",),),
    )


@pytest.mark.parametrize("name", ["MyType", "a.int"])
def test_unknown_type_error_has_its_position(name: str) -> None:
    """The error for an unknown type has its position."""
    with pytest.raises(SqlppError, match=rf"ASX1082: .*{name} \(in line 1, at column 24\)"):
        spelled(f"{{ id: {name} }}")


def test_built_in_type_names_are_reserved() -> None:
    """Names of built-in types cannot be used for new types."""
    assert is_built_in("Int8")
    assert not is_built_in("emp")


def test_names_that_engines_cannot_read_have_no_columns() -> None:
    """Top-level names that Iceberg reserves, and all but one of the names that differ by case alone, are stored in the
    open part. Of those a key's has the column, else the first one.
    """
    form = spelled(
        "closed { ID: int, id: int, _file: int, _File: int?, _open: int?, _OPEN: int?, "
        "s: [{ a: int?, A: int?, _file: int? }]? }"
    )

    assert [field.name for field in form.type.fields if field.in_open_part] == ["ID", "_file", "_File", "_OPEN"]
    assert list(open_paths(form.type)) == ["ID", "_file", "_File", "_OPEN", "s.element.A"]
    assert [field.name for field in columns(form.type)] == ["id", "s"]
    assert has_open(form.type)
