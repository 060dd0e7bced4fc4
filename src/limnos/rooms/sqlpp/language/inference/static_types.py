# SPDX-License-Identifier: Apache-2.0
"""Static types as AsterixDB's compiler infers them: a kind, the known fields of an object, the type of items.

Must not know expressions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec import Struct, structs

from limnos.rooms.sqlpp.language import tree
from limnos.rooms.sqlpp.language.stored import BUILT_IN
from limnos.rooms.sqlpp.language.values.model import Value, type_name

Kind = str
"""The name of a type as `type_name` returns it, or `any`."""


class StaticType(Struct, frozen=True, kw_only=True):
    """The static type of an expression.

    Args:
        kind: The name of the type; `any` if it depends on the values.
        fields: The fields of an object whose types are known, in order. The object may have further fields.
        item: The type of a collection's items; None for another kind.
        null: Whether the value may also be NULL.
        missing: Whether the value may also be MISSING.
    """

    kind: Kind
    fields: tuple[tuple[str, StaticType], ...] = ()
    item: StaticType | None = None
    null: bool = False
    missing: bool = False

    @property
    def is_known(self) -> bool:
        """Whether the type is known, so that a field of it is stored as a declared field; not `any` or MISSING."""
        return self.kind not in ("any", "missing")

    @property
    def is_optional(self) -> bool:
        """Whether the value may also be NULL or MISSING."""
        return self.null or self.missing

    @property
    def is_collection(self) -> bool:
        """Whether the values are arrays or multisets."""
        return self.item is not None

    def without_absence(self) -> StaticType:
        """Return the type of the values that are neither NULL nor MISSING."""
        return structs.replace(self, null=False, missing=False) if self.is_optional else self

    def optional(self, *, null: bool = True, missing: bool = True) -> StaticType:
        """Return the type of values that may also be NULL or MISSING; `any` stays `any`."""
        if self.kind == "any":
            return ANY
        return structs.replace(self, null=self.null or null, missing=self.missing or missing)

    def field(self, name: str) -> StaticType:
        """Return the type of an object's field; `any` if it is unknown."""
        return next((type_ for field_name, type_ in self.fields if field_name == name), ANY)


ANY: Final = StaticType(kind="any")
MISSING_TYPE: Final = StaticType(kind="missing")
NULL_TYPE: Final = StaticType(kind="null")
OBJECT: Final = StaticType(kind="object")
"""An object without known fields."""
WHOLE: Final = ("tinyint", "smallint", "integer", "bigint")
NUMBERS: Final = (*WHOLE, "float", "double")
"""The kinds of numbers, from the narrowest to the widest."""


def array_of(item: StaticType) -> StaticType:
    """Return the type of an array; if items may be NULL or MISSING, their type is `any`, as in AsterixDB."""
    return StaticType(kind="array", item=ANY if item.is_optional else item)


def bag_of(item: StaticType) -> StaticType:
    """Return the type of a multiset; if items may be NULL or MISSING, their type is `any`, as in AsterixDB."""
    return StaticType(kind="multiset", item=ANY if item.is_optional else item)


def object_type(fields: Iterable[tuple[str | None, StaticType]]) -> StaticType:
    """Return the type of an object constructor; a field without a constant name or a known type is omitted."""
    return StaticType(
        kind="object",
        fields=tuple(
            (name, type_.optional() if type_.is_optional else type_)
            for name, type_ in fields
            if name is not None and type_.is_known
        ),
    )


def type_of_items(type_: StaticType) -> StaticType:
    """Return the type of a collection's items; `any` for another type."""
    return ANY if type_.item is None else type_.item


def type_of_value(value: Value) -> StaticType:
    """Return the type of a constant; the types of its items and fields are unknown."""
    name = type_name(value)
    return StaticType(kind=name, item=ANY) if name in ("array", "multiset") else StaticType(kind=name)


def declared_type(type_: tree.TypeExpression) -> StaticType:
    """Convert a declared type to a static type. Names of user types have been replaced by their definitions."""
    match type_:
        case tree.RecordType(fields=fields):
            pairs = [(one.name, declared_type(one.type), one.optional) for one in fields]
            return StaticType(
                kind="object",
                fields=tuple((name, each.optional() if optional else each) for name, each, optional in pairs),
            )
        case tree.ArrayType(item=item):
            return array_of(declared_type(item))
        case tree.BagType(item=item):
            return bag_of(declared_type(item))
        case tree.NamedType(name=name):
            last = name.last.lower()
            return ANY if last == "any" else OBJECT if last == "object" else StaticType(kind=BUILT_IN.get(last, last))
        case _:
            return ANY


def common_type(types: Iterable[StaticType]) -> StaticType:
    """Return the narrowest common type of some types; `any` without a common type or without types."""
    result: StaticType | None = None
    for type_ in types:
        result = type_ if result is None else _common(result, type_)
    return ANY if result is None else result


def _common(left: StaticType, right: StaticType) -> StaticType:
    is_optional = left.is_optional or right.is_optional
    left, right = left.without_absence(), right.without_absence()
    if left == right:
        return left.optional() if is_optional else left
    for one, other in ((left, right), (right, left)):
        if one.kind in ("missing", "null"):
            return other.optional()
    if left.kind != right.kind or (left.kind != "object" and not left.is_collection):
        return ANY
    if left.kind == "object":
        result = StaticType(kind="object", fields=tuple(_common_fields(left, right)))
    else:
        result = (array_of if left.kind == "array" else bag_of)(_common(type_of_items(left), type_of_items(right)))
    return result.optional() if is_optional else result


def _common_fields(left: StaticType, right: StaticType) -> Iterable[tuple[str, StaticType]]:
    names = {name for name, _ in right.fields}
    for name, type_ in left.fields:
        if name in names:
            both = _common(type_, right.field(name))
            if both.kind != "any":
                yield name, both
