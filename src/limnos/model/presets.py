# SPDX-License-Identifier: Apache-2.0
"""Presets: the privileges that a reader, a writer or an administrator of an object needs.

The table is the only one: the server, the console and the command line read it. A preset has privileges for every kind
of object; those that an object of one kind cannot have are left out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Final, Literal

from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.model.privileges import BINDS, Privilege, escape_percent, is_bound

PresetName = Literal["reader", "writer", "admin"]

_READER: Final = (
    Privilege.USE_CATALOG,
    Privilege.USE_SCHEMA,
    Privilege.SELECT_TABLE,
    Privilege.SELECT_VIEW,
    Privilege.READ_FILESET,
    Privilege.CONSUME_TOPIC,
    Privilege.USE_MODEL,
    Privilege.EXECUTE_FUNCTION,
)
_WRITER: Final = (
    *_READER,
    Privilege.MODIFY_TABLE,
    Privilege.CREATE_TABLE,
    Privilege.CREATE_VIEW,
    Privilege.WRITE_FILESET,
    Privilege.CREATE_FILESET,
    Privilege.PRODUCE_TOPIC,
    Privilege.CREATE_TOPIC,
    Privilege.LINK_MODEL_VERSION,
    Privilege.REGISTER_MODEL,
    Privilege.MODIFY_FUNCTION,
    Privilege.REGISTER_FUNCTION,
)
PRESETS: Final[Mapping[PresetName, tuple[Privilege, ...]]] = MappingProxyType(
    {"reader": _READER, "writer": _WRITER, "admin": (*_WRITER, *(each for each in Privilege if each not in _WRITER))}
)
"""The privileges of each preset, the smallest preset first."""
WAY: Final = frozenset({Privilege.USE_CATALOG, Privilege.USE_SCHEMA})
"""The privileges that an object needs on its containers."""
_ASKED_FOR: Final[tuple[PresetName, ...]] = ("reader", "writer")
PRESET_KINDS: Final = tuple(kind for kind in Kind if kind in BINDS[Privilege.MANAGE_GRANTS])
"""The kinds of object that have presets: the metalake, and everything in its tree."""


def preset_privileges(preset: PresetName, kind: Kind, *, catalog_type: str | None = None) -> tuple[Privilege, ...]:
    """Return the privileges of a preset that an object of a kind, in a catalog of a type, can have itself."""
    return tuple([each for each in PRESETS[preset] if is_bound(each, kind, catalog_type=catalog_type)])


def helpful_preset(clauses: Collection[Collection[str]]) -> PresetName | None:
    """Return the smallest preset that users ask for and that gives a privilege of each clause of missing rights.

    None if none does, such as for ownership, whose clause has no privilege, or without any clause.
    """
    for preset in _ASKED_FOR:
        names = {each.name for each in PRESETS[preset]}
        if clauses and all(names.intersection(alternatives) for alternatives in clauses):
            return preset
    return None


def parse_preset(text: str) -> PresetName:
    """Parse the name of a preset. Raises BadRequest for another word."""
    preset = next((each for each in PRESETS if each == text), None)
    if preset is None:
        raise BadRequest(f"'{escape_percent(text[:50])}' is not a preset: use one of {', '.join(PRESETS)}")
    return preset
