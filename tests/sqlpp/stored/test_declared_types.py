"""Types as statements spell them."""

from __future__ import annotations

import pytest

from limnos.sqlpp import SqlppError, parse
from limnos.sqlpp.stored import (
    AnyType,
    ArrayType,
    BagType,
    FieldType,
    RecordType,
    Scalar,
    StorageForm,
    is_built_in,
    storage_form_of_record,
)
from limnos.sqlpp.tree import CreateType


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
