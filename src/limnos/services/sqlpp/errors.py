"""What statements over the tree are refused with: AsterixDB's numbers and words for what there is not, is already, or is in use.

May import `sqlpp`, `model` and `names`. Must not know how a refusal is found. Refusals of rights are the tree's own (`Forbidden`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from limnos.names.dataverse import DataverseName, check_object_name
from limnos.names.display import render as shown
from limnos.names.errors import InvalidName
from limnos.sqlpp import SqlppError, invalid_name
from limnos.sqlpp.errors import compilation

if TYPE_CHECKING:
    from limnos.names.path import Levels
    from limnos.sqlpp.errors import TextPosition
    from limnos.sqlpp.tree import DottedName

NO_DATASET_IN: Final = 1050
NO_DATAVERSE: Final = 1063
RESERVED: Final = ("Default", "Metadata", "asterix", "algebricks")
_UNKNOWN: Final = {
    "dataset": (1050, "dataset"), "index": (1083, "index"), "type": (1082, "datatype"), "synonym": (1116, "synonym"),
    "view": (1159, "view"), "function": (1081, "function"), "library": (1117, "library"),
}  # fmt: skip
_EXISTS: Final = {"dataset": 1072, "type": 1085, "synonym": 1131, "view": 1160, "function": 1123, "index": 1084}
_ARTICLES: Final = {"type": "datatype"}


def no_dataverse(dataverse: Levels, at: TextPosition | None) -> SqlppError:
    """There is no such dataverse."""
    return SqlppError(NO_DATAVERSE, f"Cannot find dataverse with name {shown(dataverse)}", at)


def dataverse_exists(dataverse: Levels, at: TextPosition | None) -> SqlppError:
    """It is there already."""
    return SqlppError(1071, f"A dataverse with this name {shown(dataverse)} already exists.", at)


def unknown_object(kind: str, path: Levels, *, at: TextPosition | None) -> SqlppError:
    """There is no such thing in a dataverse."""
    number, word = _UNKNOWN[kind]
    return SqlppError(number, f"Cannot find {word} with name {shown(path[-1:])} in dataverse {shown(path[:-1])}", at)


def no_dataset(path: Levels, at: TextPosition | None) -> SqlppError:
    """There is no such dataset to be changed."""
    return SqlppError(
        NO_DATASET_IN, f"Cannot find dataset with name {shown(path[-1:])} in dataverse {shown(path[:-1])}", at
    )


def object_exists(kind: str, path: Levels, *, at: TextPosition | None) -> SqlppError:
    """The name is taken."""
    word = _ARTICLES.get(kind, kind)
    told = f"A {word} with name {shown(path[-1:])} already exists in dataverse {shown(path[:-1])}"
    if kind == "type":
        told = f"A datatype with this name {shown(path[-1:])} already exists"
    if kind == "index":
        told = f"An index with this name {shown(path[-1:])} already exists"
    return SqlppError(_EXISTS[kind], told, at)


def in_use(kind: str, path: Levels, *, by: str, at: TextPosition | None) -> SqlppError:
    """Something else needs it."""
    return SqlppError(1148, f"Cannot drop {kind} {shown(path)} being used by {by}", at)


def dataverse_in_use(dataverse: Levels, *, what: str, by: str, at: TextPosition | None) -> SqlppError:
    """Something in a dataverse is needed outside of it, or was not made by SQL++."""
    return SqlppError(1147, f"Cannot drop dataverse: {shown(dataverse)}: {what} being used by {by}", at)


def invalid_operation(told: str, at: TextPosition | None) -> SqlppError:
    """What is asked for cannot be done to this."""
    return compilation(f"Invalid operation - {told}", at)


def check_dataverse(parts: Levels, at: TextPosition | None) -> None:
    """Refuse a name that no dataverse may have. Raises SqlppError with the part that is wrong, else with the whole."""
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
    return parts[0] if parts[0].startswith("^") else shown(parts)


def check_object(name: DottedName) -> None:
    """Refuse a name that nothing in a dataverse may have. Raises SqlppError."""
    if name.dataverse:
        check_dataverse(name.dataverse, name.at)
    check_name(name.last, name.at)


def check_name(name: str, at: TextPosition | None) -> None:
    """The same for a name by itself."""
    try:
        check_object_name(name)
    except InvalidName:
        raise invalid_name(name, at) from None
