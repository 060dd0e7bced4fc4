# SPDX-License-Identifier: Apache-2.0
"""A small metalake for tests of access: two levels of namespaces, and one object of every kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from limnos.model.decisions import ChainLink, SecurableChain
from limnos.model.kinds import NAMESPACE_OBJECTS, Kind
from limnos.model.principals import HeldRole, RoleRules, Subject
from limnos.model.privileges import Privilege

LAKE, MAIN, OUTER, INNER, TARGET = 1, 2, 3, 4, 5
TEMPLATE = 7
USER, GROUP, OTHER, ROLE = 100, 200, 300, 400

METALAKE_CHAIN: SecurableChain = (ChainLink(LAKE, Kind.METALAKE, "lake"),)
CATALOG_CHAIN: SecurableChain = (ChainLink(MAIN, Kind.CATALOG, "main"), *METALAKE_CHAIN)
OUTER_CHAIN: SecurableChain = (ChainLink(OUTER, Kind.NAMESPACE, "a"), *CATALOG_CHAIN)
INNER_CHAIN: SecurableChain = (ChainLink(INNER, Kind.NAMESPACE, "b"), *OUTER_CHAIN)
TABLE_CHAIN: SecurableChain = (ChainLink(TARGET, Kind.TABLE, "t"), *INNER_CHAIN)

CONTAINERS = {Kind.METALAKE: METALAKE_CHAIN, Kind.CATALOG: CATALOG_CHAIN, Kind.NAMESPACE: INNER_CHAIN}


def chain_for(kind: Kind, target: int = TARGET) -> SecurableChain:
    """Return the ancestors of the world's object of a kind.

    `target` is the id of objects that are neither container nor column.
    """
    if kind in CONTAINERS:
        return CONTAINERS[kind]
    if kind is Kind.COLUMN:
        return (ChainLink(6, kind, "col"), *TABLE_CHAIN)
    if kind is Kind.JOB:
        return (ChainLink(target, kind, "t"), ChainLink(TEMPLATE, Kind.JOB_TEMPLATE, "p"), *METALAKE_CHAIN)
    return (ChainLink(target, kind, "t"), *(INNER_CHAIN if kind in NAMESPACE_OBJECTS else METALAKE_CHAIN))


def role(
    allow: Iterable[tuple[Privilege, int]] = (),
    deny: Iterable[tuple[Privilege, int]] = (),
    *,
    id: int = ROLE,
    name: str = "r",
    via: str | None = None,
) -> HeldRole:
    """Return a role that the user holds, with the given allowed and denied rules."""
    return HeldRole(RoleRules.of(id, name, allow=allow, deny=deny), via)


def member(*roles: HeldRole, groups: Iterable[int] = ()) -> Subject:
    """Return the user `u` of the metalake, with the roles."""
    return Subject.of(USER, "u", groups=groups, group_names=("g",) if groups else (), roles=roles)


def allowed(*rules: tuple[Privilege, int], deny: Iterable[tuple[Privilege, int]] = ()) -> Subject:
    """Return the user `u` with one role that allows the rules."""
    return member(role(rules, deny))


def nobody(_link: ChainLink) -> int | None:
    """Look up an owner: no object has one."""
    return None


def owned_by(owners: Mapping[int, int]) -> Callable[[ChainLink], int | None]:
    """Look up an owner in a map from object id to owner."""
    return lambda link: owners.get(link.id)
