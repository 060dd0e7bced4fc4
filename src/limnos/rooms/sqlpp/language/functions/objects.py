# SPDX-License-Identifier: Apache-2.0
"""Functions on objects, such as `object_put`.

Must not know plans. The result is NULL for a value that is not an object. A field whose value would be MISSING is
omitted.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from limnos.rooms.sqlpp.language.functions.collections import items
from limnos.rooms.sqlpp.language.functions.costs import compare_cost, linear_cost
from limnos.rooms.sqlpp.language.functions.numbers import to_integer
from limnos.rooms.sqlpp.language.functions.table import ANY_NUMBER, scalar
from limnos.rooms.sqlpp.language.values.model import MISSING, Value, object_of, type_name


@scalar("object_names", "get_object_field_names", least=1, cost=linear_cost)
def names(value: Value) -> Value:
    """Return the names of an object's fields; NULL for another value."""
    return tuple(value) if isinstance(value, dict) else None


@scalar("object_values", least=1, cost=linear_cost)
def values(value: Value) -> Value:
    """Return the values of an object's fields; NULL for another value."""
    return tuple(value.values()) if isinstance(value, dict) else None


@scalar("object_pairs", least=1, cost=linear_cost)
def pairs(value: Value) -> Value:
    """Return each field of an object as an object with `name` and `value`."""
    if not isinstance(value, dict):
        return None
    return tuple({"name": name, "value": item} for name, item in value.items())


@scalar("object_length", least=1, cost=linear_cost)
def length(value: Value) -> Value:
    """Return the count of fields."""
    return len(value) if isinstance(value, dict) else None


@scalar("object_add", least=3, strict=False, cost=linear_cost)
def add(value: Value, name: Value, added: Value, first: Value = None) -> Value:
    """Return the object with a field added; an existing field keeps its value.

    `first` is an array of names of fields that come first. Only `sqlpp.inference.field_order` passes it, never a user.
    """
    if not isinstance(value, dict) or not isinstance(name, str):
        return _unknown(value, name)
    return _move_first(value if name in value or added is MISSING else {**value, name: added}, first)


@scalar("object_put", least=3, strict=False, cost=linear_cost)
def put(value: Value, name: Value, added: Value, first: Value = None) -> Value:
    """Return the object with a field set, or removed if `added` is MISSING.

    `first` is an array of names of fields that come first. Only `sqlpp.inference.field_order` passes it, never a user.
    """
    if not isinstance(value, dict) or not isinstance(name, str):
        return _unknown(value, name)
    if added is MISSING:
        return _move_first({key: item for key, item in value.items() if key != name}, first)
    return _move_first({**value, name: added}, first)


def _move_first(value: dict[str, Value], first: Value) -> Value:
    """Return an object whose fields with the names in the array `first` come first, in the array's order."""
    if type(first) is not tuple:
        return value
    return {**{str(name): value[str(name)] for name in first if name in value}, **value}


@scalar("object_replace", least=3, strict=False, cost=compare_cost)
def replace(value: Value, old: Value, new: Value) -> Value:
    """Replace the values of fields that equal the old value."""
    if not isinstance(value, dict) or old is MISSING or old is None or new is MISSING:
        return _unknown(value, old, new)
    from limnos.rooms.sqlpp.language.values.comparison import equal  # noqa: PLC0415 - only needed here

    return {name: new if equal(item, old) is True else item for name, item in value.items()}


def _unknown(*values: Value) -> Value:
    return MISSING if MISSING in values else None


@scalar("object_remove", least=2, cost=linear_cost)
def remove(value: Value, name: Value) -> Value:
    """Return the object without the field of this name."""
    if not isinstance(value, dict) or not isinstance(name, str):
        return None
    return {key: item for key, item in value.items() if key != name}


@scalar("object_remove_fields", "record_remove_fields", least=2, cost=linear_cost)
def remove_fields(value: Value, unwanted: Value) -> Value:
    """Return the object without the named fields; an array of names is the path of a field in nested objects."""
    elements = items(unwanted)
    if not isinstance(value, dict) or elements is None:
        return None
    without: dict[str, Value] = value
    for one in elements:
        path = (one,) if isinstance(one, str) else items(one)
        if not path or not all(isinstance(name, str) for name in path):
            return None
        without = _without(without, tuple(str(name) for name in path))
    return without


def _without(value: dict[str, Value], path: tuple[str, ...]) -> dict[str, Value]:
    first, *rest = path
    if first not in value:
        return value
    if not rest:
        return {name: current for name, current in value.items() if name != first}
    inner = value[first]
    return {**value, first: _without(inner, tuple(rest))} if isinstance(inner, dict) else value


@scalar("object_rename", least=3, cost=linear_cost)
def rename(value: Value, old: Value, new: Value) -> Value:
    """Return the object with a field renamed; NULL if another field has the new name."""
    if not (isinstance(value, dict) and isinstance(old, str) and isinstance(new, str)):
        return None
    if old in value and new != old and new in value:
        return None
    return {new if key == old else key: item for key, item in value.items()}


@scalar("object_concat", "record_concat", "object_concat_strict", least=0, most=ANY_NUMBER, cost=linear_cost)
def concat(*values: Value) -> Value:
    """Merge the fields of all arguments, or of all objects in an array; of several fields with the same name the last
    wins. The fields of the last object come first, as in AsterixDB.
    """
    if len(values) == 1 and (listed := items(values[0])) is not None:
        values = tuple(listed)
        if MISSING in values:
            return MISSING
    if not values:
        return None
    fields: dict[str, Value] = {}
    for value in reversed(values):
        if not isinstance(value, dict):
            return None
        for name, item in value.items():
            fields.setdefault(name, item)
    return fields


@scalar("object_merge", "record_merge", "object_transform", least=2, cost=linear_cost)
def merge(value: Value, other: Value) -> Value:
    """Return the fields of both objects. Of two fields with the same name the first object's value is returned; nested
    objects are merged.
    """
    if not isinstance(value, dict) or not isinstance(other, dict):
        return None
    fields = dict(value)
    waiting: list[tuple[dict[str, Value], dict[str, Value]]] = [(fields, other)]
    while waiting:
        into, source = waiting.pop()
        for name, item in source.items():
            mine = into.get(name, MISSING)
            if mine is MISSING:
                into[name] = item
            elif isinstance(mine, dict) and isinstance(item, dict):
                copied = dict(mine)
                into[name] = copied
                waiting.append((copied, item))
    return fields


@scalar("object_unwrap", least=1, cost=linear_cost)
def unwrap(value: Value) -> Value:
    """Return the value of the only field of an object."""
    return next(iter(value.values())) if isinstance(value, dict) and len(value) == 1 else None


@scalar("object_add_fields", "record_add_fields", least=2, cost=linear_cost)
def add_fields(value: Value, added: Value) -> Value:
    """Return the object with fields added, given as objects with `field-name` and `field-value`; existing fields stay
    unchanged.
    """
    elements = items(added)
    if not isinstance(value, dict) or elements is None:
        return None
    more = []
    for one in elements:
        name = one.get("field-name") if isinstance(one, dict) else None
        if not isinstance(one, dict) or not isinstance(name, str):
            return None
        more.append((name, one.get("field-value", MISSING)))
    return object_of([*value.items(), *more])


@scalar(
    "closed_object_constructor", "open_object_constructor", least=0, most=ANY_NUMBER, strict=False, cost=linear_cost
)
def construct(*parts: Value) -> Value:
    """Return an object from alternating field names and values; NULL if a name is not a string."""
    fields = [(name, value) for name, value in zip(parts[::2], parts[1::2], strict=False) if isinstance(name, str)]
    return object_of(fields) if len(fields) * 2 == len(parts) else None


@scalar("field_access_by_index", least=2, cost=linear_cost)
def field_by_index(value: Value, at: Value) -> Value:
    """Return the value of a field by its 0-based position; MISSING beyond the last field."""
    place = to_integer(at)
    if not isinstance(value, dict) or place is None or place < 0:
        return None
    return tuple(value.values())[place] if place < len(value) else MISSING


@scalar("get_object_field_value", least=2, cost=linear_cost)
def field_value(value: Value, name: Value) -> Value:
    """Return the value of a field; MISSING if there is no such field."""
    return value.get(name, MISSING) if isinstance(value, dict) and isinstance(name, str) else None


@scalar("pairs", least=1, cost=linear_cost)
def nested_pairs(value: Value) -> Value:
    """Return the name and the value of each field at any depth. An item of a collection has the name of the enclosing
    field.

    NULL for a value that is neither an object nor a collection.
    """
    if not isinstance(value, dict) and items(value) is None:
        return None
    named: list[Value] = []
    waiting: list[tuple[str | None, Value]] = [(None, value)]
    while waiting:
        name, one = waiting.pop()
        if name is not None:
            named.append((name, one))
        if isinstance(one, dict):
            waiting.extend(reversed(one.items()))
        else:
            waiting.extend((name, item) for item in reversed(items(one) or ()))
    return tuple(named)


@scalar("get_object_fields", least=1, cost=linear_cost)
def fields(value: Value, declared: Value = None) -> Value:
    """Describe each field: its name, its type, whether it is undeclared, and the fields or items nested in it.

    `declared` is the object's declared type as JSON. Only `sqlpp.field_types` passes it, never a user.
    """
    if not isinstance(value, dict):
        return None
    return _fields(value, _decode_type(declared) if isinstance(declared, str) else None)


@lru_cache(256)
def _decode_type(text: str) -> object:
    return msgspec.json.decode(text)


def _fields(value: dict[str, Value], declared: object) -> tuple[Value, ...]:
    is_typed = isinstance(declared, dict) and "fields" in declared
    declared_fields = declared["fields"] if isinstance(declared, dict) and is_typed else {}
    results: list[Value] = []
    for name in dict.fromkeys((*declared_fields, *value)):
        is_open = declared == "open" or (is_typed and name not in declared_fields)
        type_ = "open" if is_open else declared_fields.get(name)
        item = value.get(name)
        parts = _describe_type(item, type_)
        results.append({"field-name": name, "field-type": parts.pop("field-type"), "is-open": is_open, **parts})
    return tuple(results)


def _describe_type(value: Value, declared: object) -> dict[str, Value]:
    """Describe the type of a value, with nested fields or items; for NULL and an absent value, the declared type."""
    word = declared["type"] if value is None and isinstance(declared, dict) else type_name(value)
    typed: dict[str, Value] = {"field-type": word}
    if isinstance(value, dict):
        typed["nested"] = _fields(value, declared)
    elif (elements := items(value)) is not None:
        item = declared.get("item") if isinstance(declared, dict) else declared
        typed["list"] = tuple(_describe_type(each, item) for each in elements)
    return typed
