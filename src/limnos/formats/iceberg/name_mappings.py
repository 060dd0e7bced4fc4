# SPDX-License-Identifier: Apache-2.0
"""Name mappings, the table property `schema.name-mapping.default`: which column a name in a file without field ids is.

Must not know tables or commits. Readers parse the property when they open such a file, so a malformed one makes the
rows unreadable. Source: Iceberg specification, "Column Projection" and "Name Mapping Serialization".
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from limnos.formats.iceberg.json_types import INT_MAX, Json, as_objects, objects_at, optional_integer_at, strings_at
from limnos.formats.iceberg.schema import DEPTH_MAX, NAME_MAX
from limnos.model.errors import BadRequest

NAME_MAPPING: Final = "schema.name-mapping.default"
_WHERE: Final = f"Property '{NAME_MAPPING}'"
_CHARACTERS_MAX: Final = 4_000_000
"""The maximum length of all names with those of their parents: each name is combined with each name of its parent."""
_INTEGER: Final = re.compile(r"-?[0-9]{1,10}")


class _Names:
    """The names and field ids of a mapping so far."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self.ids: set[int | None] = set()
        """None for a field without an id: Iceberg's Java library reads no mapping with two of them."""
        self.characters = 0

    def add_field(self, field: Json, prefixes: list[str], *, where: str) -> list[str]:
        """Add a field below the names of its parent, and return its own names with them. Raises BadRequest for a name
        or an id that another field has, and for the second field without an id.
        """
        field_id = optional_integer_at(field, "field-id", where=where, low=-INT_MAX - 1, high=INT_MAX)
        if field_id in self.ids:
            text = "no field-id, too; leave both out" if field_id is None else f"field-id {field_id}, too"
            raise BadRequest(f"{where}: another field has {text}")
        self.ids.add(field_id)
        own_names = dict.fromkeys(strings_at(field, "names", where=where))
        names = []
        for prefix in prefixes:
            for name in own_names:
                self._add_name(prefix + name, where)
                names.append(f"{prefix}{name}.")
        return names

    def _add_name(self, name: str, where: str) -> None:
        self.characters += len(name) + 1
        if self.characters > _CHARACTERS_MAX:
            raise BadRequest(f"{where}: all names together have more than {_CHARACTERS_MAX} characters")
        if name in self.names:
            raise BadRequest(f"{where}: another field has the name '{name[:NAME_MAX]}', too")
        self.names.add(name)


def check_name_mapping(text: str) -> None:
    """Check the value of a table's name mapping. Raises BadRequest if a reader of files could not use it."""
    _add_fields(_Names(), as_objects(_decode_json(text), _WHERE), prefixes=[""], depth=1)


def correct_name_mapping(text: str) -> str | None:
    """Return a name mapping that says the same in the form that all readers know; None for an empty one. One that
    cannot be corrected without losing something is returned unchanged.
    """
    if not text.strip():
        return None
    try:
        check_name_mapping(text)
    except BadRequest:
        try:
            return msgspec.json.encode(_correct_fields(_decode_json(text), depth=1)).decode()
        except BadRequest:
            pass
    return text


def _decode_json(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise BadRequest(f"{_WHERE} is not valid JSON: {error}; remove it, or set it to a name mapping") from None


def _add_fields(names: _Names, fields: list[Json], *, prefixes: list[str], depth: int) -> None:
    for index, one in enumerate(fields):
        where = f"{_WHERE}, level {depth}, field {index}"
        field_names = names.add_field(one, prefixes, where=where)
        if "fields" not in one:
            continue
        if depth >= DEPTH_MAX:
            raise BadRequest(f"{where}: a mapping has at most {DEPTH_MAX} levels")
        if any(len(each) > NAME_MAX for each in field_names):
            raise BadRequest(f"{where}: the name of a field with others in it has at most {NAME_MAX} characters")
        _add_fields(names, objects_at(one, "fields", where=where), prefixes=field_names, depth=depth + 1)


def _correct_fields(fields: object, *, depth: int) -> list[Json]:
    """Return fields with ids that are integers, with names, and without nulls. Raises BadRequest if a part is not even
    similar to a name mapping.
    """
    if depth > DEPTH_MAX:
        raise BadRequest(f"{_WHERE} has more than {DEPTH_MAX} levels")
    results = []
    for field in as_objects(fields, _WHERE):
        result = {key: value for key, value in field.items() if value is not None}
        result.setdefault("names", [])
        field_id = result.get("field-id")
        if (isinstance(field_id, str) and _INTEGER.fullmatch(field_id)) or (
            isinstance(field_id, float) and field_id.is_integer()
        ):
            result["field-id"] = int(field_id)
        if "fields" in result:
            result["fields"] = _correct_fields(result["fields"], depth=depth + 1)
        results.append(result)
    return results
