# SPDX-License-Identifier: Apache-2.0
"""Principal names in a metalake: creates users and groups whose names cannot be confused with existing names, and lists
stored names that violate the rules.

Must not know any wire format. `access.principal_names` has the rules. Existing names stay valid.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Final, NamedTuple

from limnos.access.principal_names import ascii_skeleton, check_new_name, look_alike, name_problem
from limnos.model.entities import Principal
from limnos.model.kinds import Kind
from limnos.model.privileges import escape_percent
from limnos.store.tx import Tx

INVALID_NAMES_MAX: Final = 100


def principal_create(
    tx: Tx, metalake_id: int, *, kind: Kind, name: str, external_id: str | None = None, enabled: bool = True
) -> Principal:
    """Insert a user or group.

    Raises AlreadyExists if the name is taken, BadRequest if the rules do not allow it, for example because it can be
    confused with another name of the metalake.
    """
    if ascii_skeleton(name) is not None:
        check_new_name(name, kind, known=tx.principals.names(metalake_id, kind))
    return tx.principals.create(metalake_id, kind, name, external_id=external_id, enabled=enabled)


class InvalidPrincipalName(NamedTuple):
    """A stored name that is not allowed for a new user, group or role: its metalake and kind, and the reason."""

    metalake: str
    kind: Kind
    name: str
    problem: str


def invalid_names(tx: Tx, *, admins: Collection[str]) -> list[InvalidPrincipalName]:
    """Return the first `INVALID_NAMES_MAX` stored names that are not allowed for new principals.

    Names of service admins are exempt.
    """
    everybody = tx.principals.everybody()
    names_by_kind = defaultdict(list)
    for metalake, kind, name in everybody:
        names_by_kind[metalake, kind].append(name)
    names: list[InvalidPrincipalName] = []
    for metalake, kind, name in everybody:
        if name in admins and kind is Kind.USER:
            continue
        other_names = (
            (*admins, *names_by_kind[metalake, kind]) if kind is not Kind.ROLE else names_by_kind[metalake, kind]
        )
        problem, twin = name_problem(name), look_alike(name, other_names)
        if problem is None and twin is not None:
            problem = f"it looks like {escape_percent(twin)}"
        if problem is not None:
            names.append(InvalidPrincipalName(metalake, kind, name, problem))
        if len(names) == INVALID_NAMES_MAX:
            break
    return names
