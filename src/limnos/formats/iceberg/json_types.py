# SPDX-License-Identifier: Apache-2.0
"""Typed access to JSON documents: a wrong type in a client's document raises `BadRequest` with the name of the field.

Must not know the meaning of documents. Every commit calls these functions many times, so messages are built only for
errors.
"""

from __future__ import annotations

from typing import TypeAlias

from limnos.model.errors import BadRequest

Json: TypeAlias = dict[str, object]

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1


def json_kind(value: object) -> str:
    """Return the JSON name of a value's type with its article, such as `an object`, for messages."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    for python_type, word in ((str, "a string"), (int, "an integer"), (float, "a fraction"), (list, "an array")):
        if isinstance(value, python_type):
            return word
    return "an object" if isinstance(value, dict) else type(value).__name__


def wrong_type_error(what: str, expected: str, value: object) -> BadRequest:
    """Return the error for a value of the wrong type."""
    return BadRequest(f"{what} must be {expected}, not {json_kind(value)}")


def preview_value(value: object) -> str:
    """Return a client's value as a string for messages, shortened to 120 characters."""
    text = str(value)
    return text if len(text) <= 120 else f"{text[:117]}..."


def hashable(value: object) -> object:
    """Return the value itself if it is hashable, else its `repr`, as a key for comparisons."""
    return repr(value) if isinstance(value, (dict, list)) else value


def without_nulls(doc: Json) -> Json:
    """Return an object without its null fields, which stand for absent ones: the object itself if it has none.

    Iceberg's Java library reads no null in most optional fields.
    """
    return {key: value for key, value in doc.items() if value is not None} if None in doc.values() else doc


def as_object(value: object, what: str) -> Json:
    """Return the value if it is a JSON object, else raise BadRequest with `what` as its name."""
    if isinstance(value, dict):
        return value
    raise wrong_type_error(what, "an object", value)


def as_list(value: object, what: str) -> list[object]:
    """Return the value if it is a JSON array, else raise BadRequest with `what` as its name."""
    if isinstance(value, list):
        return value
    raise wrong_type_error(what, "an array", value)


def as_string(value: object, what: str) -> str:
    """Return the value if it is a string, else raise BadRequest with `what` as its name."""
    if isinstance(value, str):
        return value
    raise wrong_type_error(what, "a string", value)


def as_integer(value: object, what: str, *, low: int = -LONG_MAX - 1, high: int = LONG_MAX) -> int:
    """Return the value if it is an integer between `low` and `high` (inclusive), else raise BadRequest.

    Booleans and fractions are not integers, and `what` names the value in the message.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise wrong_type_error(what, "an integer", value)
    if not low <= value <= high:
        raise BadRequest(f"{what} must be between {low} and {high}, not {preview_value(value)}")
    return value


def _field(key: str, where: str) -> str:
    return f"{where}: field '{key}'"


def _require_value(doc: Json, key: str, where: str) -> object:
    value = doc.get(key)
    if value is None:
        raise BadRequest(f"{_field(key, where)} is required")
    return value


def object_at(doc: Json, key: str, *, where: str) -> Json:
    """Return the object in a required field.

    Raises BadRequest if it is missing or not an object; `where` names the document.
    """
    value = doc.get(key)
    return value if isinstance(value, dict) else as_object(_require_value(doc, key, where), _field(key, where))


def list_at(doc: Json, key: str, *, where: str) -> list[object]:
    """Return the array in a required field. Raises BadRequest if it is missing or not an array."""
    value = doc.get(key)
    return value if isinstance(value, list) else as_list(_require_value(doc, key, where), _field(key, where))


def objects_at(doc: Json, key: str, *, where: str) -> list[Json]:
    """Return the array of objects in a required field (not a copy). Raises BadRequest otherwise."""
    value = doc.get(key)
    items = value if isinstance(value, list) else list_at(doc, key, where=where)
    for item in items:
        if not isinstance(item, dict):
            return as_objects(items, _field(key, where))
    return items  # type: ignore[return-value]  # every element was just checked


def as_objects(value: object, what: str) -> list[Json]:
    """Return the value if it is an array of objects (not a copy), else raise BadRequest with `what` as its name."""
    items = value if isinstance(value, list) else as_list(value, what)
    for position, item in enumerate(items):
        if not isinstance(item, dict):
            raise wrong_type_error(f"{what}, element {position}", "an object", item)
    return items  # type: ignore[return-value]  # every element was just checked


def string_at(doc: Json, key: str, *, where: str) -> str:
    """Return the string in a required field. Raises BadRequest if it is missing or not a string."""
    value = doc.get(key)
    return value if isinstance(value, str) else as_string(_require_value(doc, key, where), _field(key, where))


def text_at(doc: Json, key: str, *, where: str) -> str:
    """Return the non-empty string in a required field. Raises BadRequest otherwise."""
    value = doc.get(key)
    text = value if isinstance(value, str) else string_at(doc, key, where=where)
    if not text:
        raise BadRequest(f"{_field(key, where)} must not be empty")
    return text


def optional_string_at(doc: Json, key: str, *, where: str) -> str | None:
    """Return the string in a field; None if it is missing or null. Raises BadRequest for another type."""
    value = doc.get(key)
    return None if value is None else as_string(value, _field(key, where))


def integer_at(doc: Json, key: str, *, where: str, low: int = -LONG_MAX - 1, high: int = LONG_MAX) -> int:
    """Return the integer in a required field, between `low` and `high` (inclusive). Raises BadRequest otherwise."""
    value = doc.get(key)
    if type(value) is int and low <= value <= high:
        return value
    return as_integer(_require_value(doc, key, where), _field(key, where), low=low, high=high)


def optional_integer_at(
    doc: Json, key: str, *, where: str, low: int = -LONG_MAX - 1, high: int = LONG_MAX
) -> int | None:
    """Return the integer in a field; None if it is missing or null.

    Raises BadRequest for another type, or a value that is not between `low` and `high` (inclusive).
    """
    return None if doc.get(key) is None else integer_at(doc, key, where=where, low=low, high=high)


def boolean_at(doc: Json, key: str, *, where: str) -> bool:
    """Return the boolean in a required field. Raises BadRequest if it is missing or not a boolean."""
    value = _require_value(doc, key, where)
    if isinstance(value, bool):
        return value
    raise wrong_type_error(_field(key, where), "a boolean", value)


def integers_at(doc: Json, key: str, *, where: str) -> list[int]:
    """Return the array of integers in a required field. Raises BadRequest otherwise."""
    what = _field(key, where)
    return [
        as_integer(item, f"{what}, element {i}")
        for i, item in enumerate(as_list(_require_value(doc, key, where), what))
    ]


def strings_at(doc: Json, key: str, *, where: str) -> list[str]:
    """Return the array of strings in a required field. Raises BadRequest otherwise."""
    what = _field(key, where)
    return [
        as_string(item, f"{what}, element {i}") for i, item in enumerate(as_list(_require_value(doc, key, where), what))
    ]


def as_string_map(value: object, what: str) -> dict[str, str]:
    """Return the value if it is an object whose values are all strings (not a copy), else raise BadRequest."""
    items = value if isinstance(value, dict) else as_object(value, what)
    for key, item in items.items():
        if not isinstance(item, str):
            raise wrong_type_error(f"{what}, key '{preview_value(key)}'", "a string", item)
    return items  # type: ignore[return-value]  # every value was just checked


def string_map_at(doc: Json, key: str, *, where: str) -> dict[str, str]:
    """Return the object in a required field, whose values must all be strings. Raises BadRequest otherwise."""
    value = doc.get(key)
    if isinstance(value, dict):
        for item in value.values():
            if not isinstance(item, str):
                break
        else:
            return value
    return as_string_map(_require_value(doc, key, where) if value is None else value, _field(key, where))
