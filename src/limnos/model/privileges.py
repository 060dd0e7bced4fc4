# SPDX-License-Identifier: Apache-2.0
"""The 32 privileges, the kinds of object they can be granted on, and their spelling.

Must not know access rules (`access.policy` does) or wire formats. Codes are stored: never change or reuse one. Names
and bindings are Gravitino's, so that its clients can name every privilege.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, IntEnum
from types import MappingProxyType
from typing import Final

from limnos.model.errors import IllegalPrivilege
from limnos.model.kind_table import KIND_TABLE, row_of
from limnos.model.kinds import CONTAINERS, NAMESPACE_OBJECTS, Kind, ZoneKind


class Privilege(IntEnum):
    """One right that a role can allow or deny on an object."""

    CREATE_CATALOG = 1
    USE_CATALOG = 2
    CREATE_SCHEMA = 3
    USE_SCHEMA = 4
    CREATE_TABLE = 5
    SELECT_TABLE = 6
    MODIFY_TABLE = 7
    CREATE_VIEW = 8
    SELECT_VIEW = 9
    CREATE_FILESET = 10
    READ_FILESET = 11
    WRITE_FILESET = 12
    CREATE_TOPIC = 13
    CONSUME_TOPIC = 14
    PRODUCE_TOPIC = 15
    REGISTER_MODEL = 16
    USE_MODEL = 17
    LINK_MODEL_VERSION = 18
    REGISTER_FUNCTION = 19
    EXECUTE_FUNCTION = 20
    MODIFY_FUNCTION = 21
    MANAGE_USERS = 22
    MANAGE_GROUPS = 23
    CREATE_ROLE = 24
    MANAGE_GRANTS = 25
    CREATE_TAG = 26
    APPLY_TAG = 27
    CREATE_POLICY = 28
    APPLY_POLICY = 29
    REGISTER_JOB_TEMPLATE = 30
    USE_JOB_TEMPLATE = 31
    RUN_JOB = 32

    @property
    def word(self) -> str:
        """The name in lower case, as JSON spells it: `select_table`."""
        return self.name.lower()


class GrantCondition(Enum):
    """The effect of a grant, allow or deny; the value is its spelling in JSON."""

    ALLOW = "allow"
    DENY = "deny"


ALIASES: Final[Mapping[str, Privilege]] = MappingProxyType(
    {"create_model": Privilege.REGISTER_MODEL, "create_model_version": Privilege.LINK_MODEL_VERSION}
)
"""Deprecated words that old clients still send. The server never sends them."""

_BY_WORD: Final[Mapping[str, Privilege]] = {**{p.word: p for p in Privilege}, **ALIASES}

_CONTAINERS: Final = frozenset(CONTAINERS)
_METALAKE: Final = frozenset({Kind.METALAKE})


def _bindings() -> dict[Privilege, frozenset[Kind]]:
    p = Privilege
    binds = {
        p.CREATE_CATALOG: _METALAKE,
        p.USE_CATALOG: frozenset({Kind.METALAKE, Kind.CATALOG}),
        p.MANAGE_GRANTS: _CONTAINERS | frozenset(NAMESPACE_OBJECTS),
    }
    creates = (p.CREATE_SCHEMA, p.USE_SCHEMA, p.CREATE_TABLE, p.CREATE_VIEW, p.CREATE_FILESET, p.CREATE_TOPIC)
    binds |= dict.fromkeys((*creates, p.REGISTER_MODEL, p.REGISTER_FUNCTION), _CONTAINERS)
    for kind, row in KIND_TABLE.items():
        above = _METALAKE if kind.home is ZoneKind.METALAKE else _CONTAINERS
        binds |= dict.fromkeys((p[word.upper()] for word in row.privileges or ()), above | {kind})
    metalake_privileges = (p.MANAGE_USERS, p.MANAGE_GROUPS, p.CREATE_ROLE, p.CREATE_TAG, p.CREATE_POLICY)
    binds |= dict.fromkeys((*metalake_privileges, p.REGISTER_JOB_TEMPLATE, p.RUN_JOB), _METALAKE)
    return binds


BINDS: Final[Mapping[Privilege, frozenset[Kind]]] = MappingProxyType(_bindings())
"""The kinds of object on which each privilege may be granted."""

_CATALOG_TYPES: Final[Mapping[Privilege, str]] = {
    Privilege.CREATE_TABLE: "relational",
    Privilege.SELECT_TABLE: "relational",
    Privilege.MODIFY_TABLE: "relational",
    Privilege.CREATE_FILESET: "fileset",
    Privilege.READ_FILESET: "fileset",
    Privilege.WRITE_FILESET: "fileset",
    Privilege.CREATE_TOPIC: "messaging",
    Privilege.CONSUME_TOPIC: "messaging",
    Privilege.PRODUCE_TOPIC: "messaging",
    Privilege.REGISTER_MODEL: "model",
    Privilege.USE_MODEL: "model",
    Privilege.LINK_MODEL_VERSION: "model",
}
_TYPE_WORDS: Final[Mapping[str, str]] = {"file": "fileset", "stream": "messaging", "ml": "model"}
"""The catalog types of stored records, with Gravitino's words for them."""


def parse_privilege(text: str) -> Privilege:
    """Parse a privilege's name, in any case, including the two deprecated aliases.

    Raises IllegalPrivilege for an unknown name, with the known names in the message.
    """
    privilege = _BY_WORD.get(text.strip().lower())
    if privilege is None:
        privilege_names = ", ".join(p.name for p in Privilege)
        raise IllegalPrivilege(f"Unknown privilege '{escape_percent(text)}'; use one of {privilege_names}")
    return privilege


def parse_condition(text: str) -> GrantCondition:
    """Parse `allow` or `deny`, in any case. Raises IllegalPrivilege for any other string."""
    try:
        return GrantCondition(text.strip().lower())
    except ValueError:
        raise IllegalPrivilege(f"Unknown condition '{escape_percent(text)}'; use ALLOW or DENY") from None


def is_bound(privilege: Privilege, kind: Kind, *, catalog_type: str | None) -> bool:
    """Return whether a privilege can be granted on a kind of object in a catalog of that type, as `check_binding`."""
    return kind in BINDS[privilege] and _type_needed(privilege, kind, catalog_type=catalog_type) is None


def _type_needed(privilege: Privilege, kind: Kind, *, catalog_type: str | None) -> str | None:
    """Return the type of catalog that a privilege needs if the object's catalog has another type, else None."""
    expected = _CATALOG_TYPES.get(privilege)
    if expected is None or catalog_type is None or kind not in (Kind.CATALOG, Kind.NAMESPACE):
        return None
    text = catalog_type.lower()
    return None if _TYPE_WORDS.get(text, text) == expected else expected


def check_binding(privilege: Privilege, kind: Kind, catalog_type: str | None) -> None:
    """Check that a privilege can be granted on a kind of object and in a catalog of that type.

    Raises IllegalPrivilege otherwise. `catalog_type` is the type of the object's catalog: Gravitino's word
    (`relational`, `fileset`, `messaging`, `model`) or that of the stored record; None for objects outside catalogs.
    """
    if kind not in BINDS[privilege]:
        fits = " or ".join(kind_word(k) for k in sorted(BINDS[privilege]))
        raise IllegalPrivilege(f"Privilege {privilege.name} cannot be granted on a {kind_word(kind)}, only on {fits}")
    expected = _type_needed(privilege, kind, catalog_type=catalog_type)
    if expected is not None:
        raise IllegalPrivilege(
            f"Privilege {privilege.name} cannot be granted on a {kind_word(kind)} of a "
            f"{escape_percent((catalog_type or '').lower())} catalog, only of a {expected} catalog"
        )


def check_conditions(entries: Iterable[tuple[Privilege, GrantCondition]], name: str) -> None:
    """Check that no privilege is both allowed and denied on the object called `name`.

    Raises IllegalPrivilege otherwise.
    """
    conditions_by_privilege: dict[Privilege, GrantCondition] = {}
    for privilege, condition in entries:
        if conditions_by_privilege.setdefault(privilege, condition) is not condition:
            raise IllegalPrivilege(
                f"Privilege {privilege.name} is both allowed and denied on {escape_percent(name)}; keep one"
            )


def kind_word(kind: Kind) -> str:
    """Return Gravitino's word for a kind, in capitals: a namespace is a SCHEMA."""
    return (row_of(kind).gravitino or kind.word).upper()


def escape_percent(text: str) -> str:
    """Double the percent signs in a string for an error message, since clients with printf-style formatting fail on a
    single percent sign.
    """
    return text.replace("%", "%%")
