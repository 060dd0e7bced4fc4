# SPDX-License-Identifier: Apache-2.0
"""Reads of facts from the store by their keys, several facts of one kind with one statement.

Must not know which changes invalidate a fact (`facts`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from limnos.model.entities import ClockRow, Node
from limnos.model.kinds import ROOT_ID, Kind
from limnos.model.restrictions import CatalogRestrictions
from limnos.store.identity import principals, restrictions, roles, tokens
from limnos.store.objects import attachments, documents, node_reads, owners
from limnos.store.objects.node_ancestors import ContainersRead, NodeRow, containers_read, nodes_read
from limnos.store.sql import Load
from limnos.view import listings
from limnos.view.facts import Value
from limnos.view.keys import (
    Key,
    Space,
    block_key,
    groups_key,
    listing_key,
    name_key,
    node_key,
    owned_key,
    owner_key,
    principal_id_key,
    principal_key,
    restrictions_key,
    roles_key,
    rules_key,
    zones_of_key,
)

OVER_ZONES: Final = frozenset({"containers", "nodes", "owned", "restrictions"})
"""Kinds of requests of which one statement reads those of many zones."""
ROLES_AT_ONCE: Final = 256
"""The maximum number of roles per read. Other requests run between two reads."""


class LoadedFacts(NamedTuple):
    """Facts that a load read.

    - `values`: the facts by key.
    - `zones`: the zones of facts that no requested key states.
    - `clocks`: clocks of zones, which were read in the same snapshot.
    """

    values: dict[Key, Value]
    zones: dict[Key, int]
    clocks: list[ClockRow]


_READS: dict[str, Callable[..., Load[Value]]] = {
    "node": node_reads.node_read,
    "owner": owners.owner_read,
    "zones of": node_reads.zones_of_read,
    "document": documents.document_read,
    "listing": node_reads.listing_read,
    "block": node_reads.block_read,
    "principal": principals.principal_read,
    "principal id": principals.principal_by_id_read,
    "principals": principals.principals_read,
    "groups": principals.groups_of_read,
    "members": principals.members_read,
    "roles": roles.roles_of_read,
    "role": roles.role_read,
    "rules": roles.role_rules_read,
    "rules end": roles.rules_end_read,
    "rules part": roles.rules_part_read,
    "holders": roles.holders_read,
    "all roles": roles.roles_read,
    "roles on": lambda object_id, _: roles.roles_on_read(object_id),
    "attached": attachments.attached_read,
    "restrictions": restrictions.restrictions_read,
    "token": tokens.token_read,
    "tokens": tokens.tokens_read,
}

_MANY: dict[str, Callable[[list[int]], Load[Mapping[int, Value]]]] = {
    "roles": roles.roles_of_many_read,
    "rules": roles.many_rules_read,
    "document": documents.documents_read,
    "owner": owners.owners_read,
    "principal id": principals.principals_by_id_read,
    "restrictions": restrictions.many_restrictions_read,
}
"""Reads of several facts of one kind in one statement, by the ids in their keys."""


def read_facts(keys: tuple[Key, ...]) -> Load[LoadedFacts]:
    """Read facts by their keys. The result may have more facts than requested, such as the node with its name.

    `span`, `nodes`, `member` and `path` keys each stand for several facts, and do not appear in the result themselves.
    """
    loaded_facts = LoadedFacts({}, {}, [])
    for key in keys:
        if key[0] == "containers":
            yield from _containers_facts(loaded_facts, key)
    results = loaded_facts.values
    for fact, read in _MANY.items():
        many = [key for key in keys if key[0] == fact]
        if len(many) > 1:
            values = yield from read([key[1] for key in many])
            results.update((key, values[key[1]]) for key in many if key[1] in values)
    results.update((yield from _names_facts(keys)))
    results.update((yield from _owned_facts([key for key in keys if key[0] == "owned"])))
    yield from _nodes_facts(loaded_facts, [key for key in keys if key[0] == "nodes"])
    for key in keys:
        if key in results or key[0] in ("owned", "nodes"):
            continue
        if key[0] == "path" and len(key[2]) == 1 and name_key(key[1], *key[2][0]) in results:
            continue
        if key[0] == "span":
            results.update((yield from _span_facts(key[1:4], (key[4], key[5]), limit=key[6])))
        elif key[0] == "member":
            facts = yield from _member_facts(key[1], key[2])
            results.update(facts)
            loaded_facts.zones.update(dict.fromkeys(facts, key[1]))
        elif key[0] == "path":
            results.update((yield from _path_facts(key[1], key[2])))
        elif key[0] == "name":
            results.update((yield from _path_facts(key[1], ((key[2], key[3]),))))
        else:
            results[key] = yield from _READS[key[0]](*key[1:])
    return loaded_facts


def _names_facts(keys: tuple[Key, ...]) -> Load[dict[Key, Value]]:
    """Read several children of one parent with one statement, for `name` keys and for paths of one name."""
    groups: dict[tuple[int, str], list[str]] = {}
    for key in keys:
        if key[0] == "name":
            groups.setdefault(key[1:3], []).append(key[3])
        elif key[0] == "path" and len(key[2]) == 1:
            ((space, name),) = key[2]
            groups.setdefault((key[1], space), []).append(name)
    results: dict[Key, Value] = {}
    for (parent_id, space), names in groups.items():
        if len(names) > 1:
            results.update((name_key(parent_id, space, name), None) for name in names)
            for node in (yield from node_reads.named_children_read(parent_id, space, names=names)):
                results |= {name_key(parent_id, space, node.name): node.id, node_key(node.id): node}
    return results


def _owned_facts(keys: list[Key]) -> Load[dict[Key, Value]]:
    """Read owned objects with one statement for all zones, and for all principals of which none was read yet."""
    results: dict[Key, Value] = {}
    groups: dict[tuple[int, int], list[Key]] = {}
    for key in keys:
        groups.setdefault((key[3], key[2] if key[3] else 0), []).append(key)
    for (after, _), group in groups.items():
        zones, principal_ids = {key[1] for key in group}, {key[2] for key in group}
        ranges = yield from owners.owned_read(principal_ids, zones=zones, after=after)
        results.update((key, ranges[key[1:3]]) for key in group if key[1:3] in ranges)
    return results


def _path_facts(parent_id: int, names: tuple[tuple[str, str], ...]) -> Load[dict[Key, Value]]:
    results: dict[Key, Value] = {}
    rows: list[Node | None] = yield from node_reads.path_read(parent_id, names)
    for (space, name), node in zip(names, rows, strict=True):
        results[name_key(parent_id, space, name)] = None if node is None else node.id
        if node is None:
            break
        results[node_key(node.id)] = node
        parent_id = node.id
    return results


def _nodes_facts(loaded: LoadedFacts, keys: list[Key]) -> Load[None]:
    """Read the nodes of `nodes` keys of all zones with one statement, and add them to the facts."""
    if not keys:
        return
    zone_of = {node_id: key[1] for key in keys for node_id in key[2]}
    for node_id, zone in zone_of.items():
        loaded.values[node_key(node_id)], loaded.zones[node_key(node_id)] = None, zone
    rows = yield from nodes_read(sorted(zone_of))
    _add_nodes(loaded, rows, zones=frozenset(zone_of.values()))
    for row in rows:
        if zone_of.get(row.node.id, row.node.zone) != row.node.zone:
            loaded.values.pop(node_key(row.node.id), None)  # its zone's clock may be unknown


def _add_nodes(loaded: LoadedFacts, rows: Iterable[NodeRow], *, zones: frozenset[int]) -> None:
    """Add the nodes of some zones, and their owners, to the facts."""
    for node, owner_id, is_live in rows:
        if node.zone in zones:
            for key, value in ((node_key(node.id), node if is_live else None), (owner_key(node.id), owner_id)):
                loaded.values[key], loaded.zones[key] = value, node.zone


def _containers_facts(loaded: LoadedFacts, key: Key) -> Load[None]:
    """Read the catalogs of a metalake, nodes, owned nodes and their ancestors with one statement, and add them to the
    facts.
    """
    _, metalake_id, principal_ids, node_ids = key
    read = yield from containers_read(metalake_id, principal_ids, node_ids=(*node_ids, metalake_id))
    loaded.clocks.extend(read.clocks)
    catalog_ids = [clock.zone for clock in read.clocks]
    _add_nodes(loaded, read.rows, zones=frozenset((ROOT_ID, metalake_id, *catalog_ids)))
    facts: dict[Key, tuple[Value, int]] = {key: (True, metalake_id)}
    catalogs = sorted(
        (row.node.name, row.node.id, row.owner_id) for row in read.rows if row.node.id in set(catalog_ids)
    )
    if read.has_all_catalogs:
        facts[listing_key(metalake_id, "catalog", Kind.CATALOG)] = (node_reads.listing_of(catalogs), metalake_id)
    for name, catalog_id, _ in catalogs:
        facts[name_key(metalake_id, "catalog", name)] = (catalog_id, metalake_id)
    for catalog_id in read.unrestricted:
        facts[restrictions_key(catalog_id)] = (CatalogRestrictions({}, ()), catalog_id)
    if read.has_all_owned:
        for zone, principal_id, value in _owned_ranges(read, principal_ids, zones=catalog_ids):
            facts[owned_key(zone, principal_id, after=0)] = (value, zone)
    zone_of = {row.node.id: row.node.zone for row in read.rows}
    zones_of = {node_id: zone_of[node_id] for node_id in node_ids if node_id in zone_of}
    facts[zones_of_key(node_ids)] = (zones_of, metalake_id)
    loaded.values.update((fact, value) for fact, (value, _) in facts.items())
    loaded.zones.update((fact, zone) for fact, (_, zone) in facts.items())


def _owned_ranges(
    read: ContainersRead, principal_ids: tuple[int, ...], *, zones: list[int]
) -> Iterable[tuple[int, int, Value]]:
    owned_rows = [
        (owner_id, node.id, node.zone, node.parent_id, node.kind)
        for node, owner_id, is_live in read.rows
        if is_live and owner_id in principal_ids
    ]
    ranges = owners.owned_ranges(owned_rows, principal_ids, zones=zones, is_last=True)
    return [(zone, principal_id, value) for (zone, principal_id), value in ranges.items()]


def _member_facts(metalake_id: int, name: str) -> Load[dict[Key, Value]]:
    """Read a user, the user's groups, the roles of all of them, and the grants of the roles unless there are many."""
    user, groups = yield from principals.member_read(metalake_id, name)
    results: dict[Key, Value] = {principal_key(metalake_id, Kind.USER, name): user}
    if user is None:
        return results
    results[groups_key(user.id)] = tuple([group.id for group in groups])
    results.update((principal_id_key(group.id), group) for group in groups)
    role_ids = yield from roles.roles_of_many_read([user.id, *(group.id for group in groups)])
    results.update((roles_key(principal_id), ids) for principal_id, ids in role_ids.items())
    distinct = {role_id for ids in role_ids.values() for role_id in ids}
    if 0 < len(distinct) <= ROLES_AT_ONCE:
        rules = yield from roles.many_rules_read(sorted(distinct))
        results.update((rules_key(role_id), value) for role_id, value in rules.items())
    return results


def _span_facts(space: Space, ends: tuple[str, str], *, limit: int) -> Load[dict[Key, Value]]:
    """Read a range of a listing as blocks of `listings.BLOCK` names, at most `limit` names in all.

    Names beyond the limit are not in the result; the next request continues from there.
    """
    (after, until), results = ends, dict[Key, Value]()
    rows = yield from node_reads.span_read(*space, after=after, until=until, limit=limit)
    size = listings.BLOCK
    for begin in range(0, len(rows) or 1, size):
        part = rows[begin : begin + size]
        is_last = begin + size >= len(rows) and len(rows) < limit
        end = until if is_last else part[-1][0]
        results[block_key(space, after, end)] = node_reads.listing_of(part)
        after = end
    return results
