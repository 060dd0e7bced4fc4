# SPDX-License-Identifier: Apache-2.0
"""Facts: the values that the view caches, and their invalidation by changes.

A fact is a key and an immutable value; an absence is a fact, too. Keys are made in `keys`. Each begins with the kind of
the fact, so one dictionary, one memory budget and one merge rule serve all kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from limnos.model.entities import ChangeRow, Listing, MetadataDocument, Node, OwnedRange
from limnos.model.kinds import ROOT_ID, Kind
from limnos.model.restrictions import CatalogRestrictions
from limnos.view import listings
from limnos.view.keys import (
    Key,
    all_roles_key,
    attached_key,
    document_key,
    groups_key,
    holders_key,
    listing_key,
    members_key,
    name_key,
    node_key,
    owner_key,
    principal_id_key,
    principal_key,
    principals_key,
    restrictions_key,
    role_key,
    roles_key,
    rules_key,
    token_key,
    tokens_key,
)

Value = object
"""The type of any fact's value. The key determines the type."""


def touched_keys(change: ChangeRow) -> list[Key]:
    """Return the keys of the facts that a change row identifies as altered, under the old and the new name (rule 4).

    `touches_value` detects the other facts that the change alters.
    """
    kind = change.kind
    if kind.is_node:
        return _touched_by_node(change)
    return TOUCHED[kind](change)


def _touched_by_node(change: ChangeRow) -> list[Key]:
    node_id, space, kind = change.node_id, change.name_space, change.kind
    if change.operation in ("attach", "detach"):
        return [attached_key(kind, change.object_id)]
    if change.operation in ("restrict", "unrestrict"):
        return [restrictions_key(change.zone)]
    if change.operation == "commit":
        return [document_key(node_id)]
    if change.operation == "own":
        listing: list[Key] = [] if change.old_parent is None else [listing_key(change.old_parent, space, kind)]
        return [owner_key(node_id), *listing]
    keys: list[Key] = [node_key(node_id)]
    if change.old_parent is not None and change.old_name is not None:
        keys += (name_key(change.old_parent, space, change.old_name), listing_key(change.old_parent, space, kind))
    if change.new_parent is not None and change.new_name is not None:
        keys += (name_key(change.new_parent, space, change.new_name), listing_key(change.new_parent, space, kind))
    if change.operation in ("create", "drop", "undrop"):
        keys += (owner_key(node_id), document_key(node_id))
    return keys


def _touched_by_token(change: ChangeRow) -> list[Key]:
    return [token_key(change.node_id), tokens_key(change.user_name), tokens_key(None)]


def _touched_by_job(change: ChangeRow) -> list[Key]:
    return [owner_key(change.node_id)]


def _touched_by_role(change: ChangeRow) -> list[Key]:
    if change.operation == "own":
        return [owner_key(change.node_id), all_roles_key(change.zone)]
    metalake_id, name = change.metalake_id, change.only_name
    keys: list[Key] = [rules_key(change.node_id), all_roles_key(metalake_id), owner_key(change.node_id)]
    if name is not None:
        keys.append(role_key(metalake_id, name))
    if change.operation == "drop":
        keys += [holders_key(metalake_id, kind) for kind in (Kind.USER, Kind.GROUP)]
    return keys


def _touched_by_principal(change: ChangeRow) -> list[Key]:
    user_id, kind = change.node_id, change.kind
    if change.operation in ("join", "leave"):
        return [groups_key(user_id), members_key(change.group_id)]
    if change.operation in ("give", "take"):
        return [roles_key(user_id), holders_key(change.zone, kind)]
    metalake_id, name = change.metalake_id, change.only_name or ""
    keys: list[Key] = [
        principal_key(metalake_id, kind, name),
        principal_id_key(user_id),
        principals_key(metalake_id, kind),
    ]
    if change.operation == "drop":
        keys += (roles_key(user_id), groups_key(user_id), members_key(user_id), holders_key(metalake_id, kind))
    return keys


TOUCHED: Final[Mapping[Kind, Callable[[ChangeRow], list[Key]]]] = {
    Kind.TOKEN: _touched_by_token,
    Kind.JOB: _touched_by_job,
    Kind.ROLE: _touched_by_role,
    Kind.USER: _touched_by_principal,
    Kind.GROUP: _touched_by_principal,
}
"""For each kind without a row in `node`: the function that returns the keys which a change of such an object
touches.
"""


WIDE = frozenset({"roles on", "roles", "groups", "members", "rules part"})
"""Kinds of facts that a change can touch without naming their key. `touches_value` decides about each cached one."""


RANGE_FACTS = WIDE | {"block", "owned"}
"""Kinds of facts for which `touches_value` decides whether a late merge is allowed.

Cached blocks follow changes otherwise.
"""


def touches_value(change: ChangeRow, key: Key, value: Value) -> bool:
    """Return whether a change invalidates a fact although the change row does not name its key.

    For example, dropping a role affects the roles of every user who holds it.
    """
    fact, kind = key[0], change.kind
    if fact == "block":
        return listings.touches_block(change, key)
    if fact == "owned":
        return isinstance(value, OwnedRange) and touches_owned(change, key, value=value)
    if fact == "roles on":
        return kind is Kind.ROLE
    if fact == "rules part":
        return kind is Kind.ROLE and change.node_id == key[1] and _touches_part(change, key[2])
    if change.operation != "drop" or not isinstance(value, tuple):
        return False
    if fact == "members":
        return kind is Kind.USER and change.old_name in value
    return kind is {"roles": Kind.ROLE, "groups": Kind.GROUP}.get(fact) and change.node_id in value


def _touches_part(change: ChangeRow, span: tuple[int, int]) -> bool:
    """Return whether a change of a role affects its grants on objects with ids in `span` (first excluded, last
    included).

    A change that names no object affects all parts.
    """
    if change.operation == "own":
        return False
    return change.operation != "alter" or change.object_id == ROOT_ID or span[0] < change.object_id <= span[1]


OWNED_BY = frozenset({"create", "drop", "move", "own", "undrop"})
"""Operations that can change in which parents a principal owns objects."""


def touches_owned(change: ChangeRow, key: Key, *, value: OwnedRange) -> bool:
    """Return whether a change of a node may alter the parents in which a principal owns objects.

    A change row does not name the former owner. So the removal of an object from any parent in the fact invalidates it.
    """
    node_id = change.node_id
    if change.zone != key[1] or change.operation not in OWNED_BY or not change.kind.is_node or node_id <= key[3]:
        return False
    if value.last is not None and node_id > value.last:
        return False
    if change.owner_id == key[2]:
        return change.kind is Kind.NAMESPACE or change.operation == "own" or change.new_parent not in value.parents
    if change.kind is Kind.NAMESPACE:
        return node_id in value.namespaces and change.operation in ("drop", "own")
    return change.old_parent in value.parents and change.old_parent != change.new_parent


def size_of(key: Key, value: Value) -> int:
    """Estimate the memory that a fact uses, in bytes."""
    base = 200
    for part in key:
        if isinstance(part, str):
            base += len(part)
    if isinstance(value, tuple):  # first, because most facts are tuples
        return base + 120 * len(value) + (100 * len(value[1]) if len(value) > 1 and isinstance(value[1], tuple) else 0)
    if isinstance(value, MetadataDocument):
        return base + 300 + len(value.body)
    if isinstance(value, Listing):
        return base + 100 * len(value.names)
    if isinstance(value, CatalogRestrictions):
        return base + value.size
    if isinstance(value, OwnedRange):
        return base + 80 * (len(value.parents) + len(value.namespaces))
    if isinstance(value, dict):
        return base + 120 * len(value)
    return base + (400 if isinstance(value, Node) else 0)
