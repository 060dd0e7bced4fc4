# SPDX-License-Identifier: Apache-2.0
"""Row filters of read restrictions: parsed from every notation in Iceberg's REST specification to one normal form.

Must not know users or rows. The normal form is JSON. `and` and `or` have `left` and `right`; `not` has `child`. A
comparison has a reference as `left` and a literal as `right`. Any other condition has its reference as `child`, and
`in` has `values`. A reference is `{"type": "reference", "name": …}`; on a table it also has the field's `id`, which
takes precedence over the name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from limnos.formats.iceberg.json_types import Json, as_list, as_object, preview_value, text_at
from limnos.formats.iceberg.literals import to_json_literal
from limnos.model.errors import BadRequest

CONDITIONS_MAX: Final = 200
DEPTH_MAX: Final = 100
VALUES_MAX: Final = 1_000
"""The maximum number of values of one `in`."""
TRUE: Final[Json] = {"type": "true"}
_FIXED: Final = ("true", "false")
_JOINED: Final = ("and", "or")
_UNARY: Final = ("is-null", "not-null", "is-nan", "not-nan")
_COMPARED: Final = ("eq", "not-eq", "lt", "lt-eq", "gt", "gt-eq")
_PREFIXED: Final = ("starts-with", "not-starts-with")
_AMONG: Final = ("in", "not-in")
_NOT_COMPARED: Final = frozenset(("binary", "fixed", "uuid", "variant", "geometry", "geography", "unknown"))
_HERE: Final = "Row filter"


class ConditionBudget:
    """Counts the conditions of a filter, of which at most `CONDITIONS_MAX` are allowed."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = CONDITIONS_MAX

    def take(self) -> None:
        """Count one condition of a filter. Raises BadRequest if there are too many."""
        self.left -= 1
        if self.left < 0:
            raise BadRequest(f"{_HERE}: more than {CONDITIONS_MAX} conditions: write a shorter one")


def filter_read(value: object) -> Json:
    """Convert a filter from any notation to the normal form, with column names or ids unchanged.

    Raises BadRequest for a malformed filter, or one with too many conditions or levels.
    """
    return _read(value, ConditionBudget(), depth=1)


def _read(value: object, budget: ConditionBudget, *, depth: int) -> Json:
    budget.take()
    if depth > DEPTH_MAX:
        raise BadRequest(f"{_HERE}: more than {DEPTH_MAX} levels: write it flatter")
    if isinstance(value, bool):
        return {"type": "true" if value else "false"}
    fields = as_object(value, _HERE)
    word = text_at(fields, "type", where=_HERE)
    if word in _FIXED:
        return {"type": word}
    if word in _JOINED:
        left, right = (_read(fields.get(side), budget, depth=depth + 1) for side in ("left", "right"))
        return {"type": word, "left": left, "right": right}
    if word == "not":
        return {"type": word, "child": _read(fields.get("child"), budget, depth=depth + 1)}
    return _condition(word, fields)


def _condition(word: str, fields: Json) -> Json:
    if word in _UNARY:
        return {"type": word, "child": _reference(fields.get("child", fields.get("term")))}
    left = _reference(fields.get("left", fields.get("child", fields.get("term"))))
    if word in _AMONG:
        values = as_list(fields.get("values", fields.get("right")), f"{_HERE}: the values of '{word}'")
        if not 0 < len(values) <= VALUES_MAX:
            raise BadRequest(f"{_HERE}: '{word}' takes 1 to {VALUES_MAX} values, not {len(values)}")
        return {"type": word, "child": left, "values": [_value(each) for each in values]}
    if word in _COMPARED or word in _PREFIXED:
        value = _value(fields.get("right", fields.get("value")))
        return {"type": word, "left": left, "right": {"type": "literal", "value": value}}
    filter_types = ", ".join((*_FIXED, *_JOINED, "not", *_UNARY, *_COMPARED, *_PREFIXED, *_AMONG))
    raise BadRequest(f"{_HERE}: there is no condition '{preview_value(word)}': use one of {filter_types}")


def _reference(value: object) -> Json:
    if isinstance(value, str) and value:
        return {"type": "reference", "name": value}
    fields = as_object(value, f"{_HERE}: the subject of a condition")
    name, field_id = fields.get("name", fields.get("term")), fields.get("id")
    if fields.get("type") == "reference" and isinstance(field_id, int) and not isinstance(field_id, bool):
        return {"type": "reference", "id": field_id}
    if fields.get("type") == "reference" and isinstance(name, str) and name:
        return {"type": "reference", "name": name}
    raise BadRequest(f"{_HERE}: the subject of a condition must be a column, by name or id, not {preview_value(value)}")


def _value(value: object) -> object:
    """Return the value of a literal, which may be wrapped in an object of type `literal`.

    Raises BadRequest for a value other than a string, a boolean or a finite number.
    """
    if isinstance(value, dict) and value.get("type") == "literal":
        value = value.get("value")
    if isinstance(value, float) and not math.isfinite(value):
        raise BadRequest(f"{_HERE}: a value must be finite: use is-nan for NaN")
    if isinstance(value, (str, int, float)):
        return value
    raise BadRequest(f"{_HERE}: a value must be a string, a number or a boolean, not {preview_value(value)}")


def read_stored_filter(value: object) -> Json:
    """Convert a stored filter to the normal form; references keep their names.

    Raises BadRequest for a malformed filter.
    """
    names: dict[int, str] = {}
    for each in references(as_object(value, _HERE)):
        if isinstance(each.get("id"), int) and isinstance(each.get("name"), str):
            names[int(str(each["id"]))] = str(each["name"])

    def add_name(reference: Json) -> Json:
        name = names.get(int(str(reference["id"]))) if "id" in reference else None
        return reference if name is None else {**reference, "name": name}

    return with_references(filter_read(value), add_name)


def references(filter_: Json) -> Iterator[Json]:
    """Yield every reference of a filter in normal form."""
    for side in ("left", "right", "child"):
        part = filter_.get(side)
        if isinstance(part, dict):
            if part.get("type") == "reference":
                yield part
            elif part.get("type") != "literal":
                yield from references(part)


def with_references(filter_: Json, change: Callable[[Json], Json]) -> Json:
    """Return the filter with `change` applied to every reference."""
    changed_filter = dict(filter_)
    for side in ("left", "right", "child"):
        part = changed_filter.get(side)
        if isinstance(part, dict) and part.get("type") == "reference":
            changed_filter[side] = change(part)
        elif isinstance(part, dict) and part.get("type") != "literal":
            changed_filter[side] = with_references(part, change)
    return changed_filter


def check_filter(filter_: Json, types: Mapping[int, str]) -> Json:
    """Return a filter over field ids with its values in Iceberg's JSON form for the columns' types.

    Raises BadRequest if a condition does not fit its column's type.
    """
    word = str(filter_["type"])
    if word in _FIXED:
        return filter_
    if word in (*_JOINED, "not"):
        sides = ("child",) if word == "not" else ("left", "right")
        return {"type": word, **{side: check_filter(as_object(filter_[side], _HERE), types) for side in sides}}
    reference = as_object(filter_.get("left", filter_.get("child")), _HERE)
    name, kind = str(reference.get("name")), types[int(str(reference["id"]))]
    _check_fit(word, kind, name=name)
    if word in _UNARY:
        return filter_
    if word in _AMONG:
        values = [
            to_json_literal(each, kind, about=f"{_HERE}: column {name}") for each in as_list(filter_["values"], _HERE)
        ]
        return {**filter_, "values": values}
    value = to_json_literal(as_object(filter_["right"], _HERE)["value"], kind, about=f"{_HERE}: column {name}")
    return {**filter_, "right": {"type": "literal", "value": value}}


def _check_fit(word: str, kind: str, *, name: str) -> None:
    family = kind.partition("[")[0].partition("(")[0]
    if word in ("is-null", "not-null"):
        return
    if word in ("is-nan", "not-nan"):
        fits = family in ("float", "double")
    elif word in _PREFIXED:
        fits = family == "string"
    else:
        fits = family not in _NOT_COMPARED
    if not fits:
        raise BadRequest(f"{_HERE}: '{word}' does not apply to column {name}, which is {kind}")
