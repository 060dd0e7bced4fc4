# SPDX-License-Identifier: Apache-2.0
"""SQL++ errors of statements over the tree, with AsterixDB's numbers and messages: missing, existing and used objects.

Missing rights are the tree's own error (`PermissionDenied`).
"""

from __future__ import annotations

from typing import Final

from limnos.names.dataverse import DataverseName, check_object_name
from limnos.names.display import render as display_name
from limnos.names.errors import InvalidName
from limnos.names.path import Levels
from limnos.rooms.sqlpp.language import SqlppError, invalid_name
from limnos.rooms.sqlpp.language.errors import TextPosition, compilation
from limnos.rooms.sqlpp.language.tree import DottedName

NO_DATASET_IN: Final = 1050
NO_DATAVERSE: Final = 1063
RESERVED: Final = ("Default", "Metadata", "asterix", "algebricks")
_UNKNOWN: Final = {
    "dataset": (1050, "dataset"),
    "index": (1083, "index"),
    "type": (1082, "datatype"),
    "synonym": (1116, "synonym"),
    "view": (1159, "view"),
    "function": (1081, "function"),
    "library": (1117, "library"),
}
_EXISTS: Final = {"dataset": 1072, "type": 1085, "synonym": 1131, "view": 1160, "function": 1123, "index": 1084}
_ARTICLES: Final = {"type": "datatype"}


def no_dataverse(dataverse: Levels, at: TextPosition | None) -> SqlppError:
    """Return the error for a missing dataverse, or for a name that is invalid for a dataverse in AsterixDB."""
    return _invalid_dataverse(dataverse, at) or SqlppError(
        NO_DATAVERSE, f"Cannot find dataverse with name {display_name(dataverse)}", at
    )


def _invalid_dataverse(dataverse: Levels, at: TextPosition | None) -> SqlppError | None:
    wrong = next((part for part in dataverse if not part or part[0].isspace() or "/" in part), None)
    return None if wrong is None else invalid_name(wrong, at)


def dataverse_exists(dataverse: Levels, at: TextPosition | None) -> SqlppError:
    """Return the error for creating a dataverse that exists."""
    return SqlppError(1071, f"A dataverse with this name {display_name(dataverse)} already exists.", at)


def unknown_object(kind: str, path: Levels, *, at: TextPosition | None) -> SqlppError:
    """Return the error for an object that is missing in a dataverse."""
    number, word = _UNKNOWN[kind]
    return _invalid_dataverse(path[:-1], at) or SqlppError(
        number, f"Cannot find {word} with name {display_name(path[-1:])} in dataverse {display_name(path[:-1])}", at
    )


def no_dataset(path: Levels, at: TextPosition | None) -> SqlppError:
    """Return the error for a missing dataset that a statement changes."""
    return _invalid_dataverse(path[:-1], at) or SqlppError(
        NO_DATASET_IN,
        f"Cannot find dataset with name {display_name(path[-1:])} in dataverse {display_name(path[:-1])}",
        at,
    )


def object_exists(kind: str, path: Levels, *, at: TextPosition | None) -> SqlppError:
    """Return the error for creating an object whose name is taken in the dataverse."""
    word = _ARTICLES.get(kind, kind)
    text = f"A {word} with name {display_name(path[-1:])} already exists in dataverse {display_name(path[:-1])}"
    if kind == "type":
        text = f"A datatype with this name {display_name(path[-1:])} already exists"
    if kind == "index":
        text = f"An index with this name {display_name(path[-1:])} already exists"
    return SqlppError(_EXISTS[kind], text, at)


def in_use(kind: str, name: str, *, by: str, at: TextPosition | None) -> SqlppError:
    """Return the error for dropping an object on which the object `by` depends. `name` is displayed unchanged."""
    return SqlppError(1148, f"Cannot drop {kind} {name} being used by {by}", at)


def dataverse_in_use(dataverse: Levels, *, what: str, by: str, at: TextPosition | None) -> SqlppError:
    """Return the error for dropping a dataverse with objects that are used outside of it, or that SQL++ did not
    create.
    """
    return SqlppError(1147, f"Cannot drop dataverse: {display_name(dataverse)}: {what} being used by {by}", at)


def invalid_operation(text: str, at: TextPosition | None) -> SqlppError:
    """Return the error for an operation that the object does not support."""
    return compilation(f"Invalid operation - {text}", at)


def check_dataverse(parts: Levels, at: TextPosition | None) -> None:
    """Check a dataverse's name. Raises SqlppError, whose message has the invalid part."""
    try:
        DataverseName.create(parts)
    except InvalidName:
        raise invalid_name(_wrong_part(parts), at) from None


def _wrong_part(parts: Levels) -> str:
    for part in parts:
        try:
            check_object_name(part)
        except InvalidName:
            return part
    return parts[0] if parts[0].startswith("^") else display_name(parts)


def check_object(name: DottedName) -> None:
    """Check the name of an object in a dataverse, and the dataverse if one is named. Raises SqlppError."""
    if name.dataverse:
        check_dataverse(name.dataverse, name.at)
    check_name(name.last, name.at)


def check_name(name: str, at: TextPosition | None) -> None:
    """Check an unqualified name. Raises SqlppError for an invalid name."""
    try:
        check_object_name(name)
    except InvalidName:
        raise invalid_name(name, at) from None
