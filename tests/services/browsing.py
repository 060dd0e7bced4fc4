# SPDX-License-Identifier: Apache-2.0
"""A reference model of list results (decision record 0132): it computes from the rows of a store what each list
contains.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from limnos.model.kinds import Kind
from limnos.model.privileges import Privilege

Query = Callable[..., list[tuple[Any, ...]]]
SHOWING = (
    Privilege.USE_SCHEMA,
    Privilege.SELECT_TABLE,
    Privilege.MODIFY_TABLE,
    Privilege.SELECT_VIEW,
    Privilege.READ_FILESET,
    Privilege.WRITE_FILESET,
    Privilege.CONSUME_TOPIC,
    Privilege.PRODUCE_TOPIC,
    Privilege.USE_MODEL,
    Privilege.EXECUTE_FUNCTION,
    Privilege.MODIFY_FUNCTION,
)


class BrowsingModel:
    """A user's lists in one metalake, computed from all rows of the store without any code of the product."""

    def __init__(self, query: Query, user: str) -> None:
        self.nodes = {
            row[0]: (row[1], row[2], row[3])
            for row in query("SELECT id, parent_id, kind, name FROM node WHERE deleted = 0")
        }
        owners = dict(query("SELECT object_id, principal_id FROM owner"))
        (user_id,) = query("SELECT id FROM principal WHERE name = ? AND deleted = 0", user)[0]
        me = {user_id, *(row[0] for row in query("SELECT group_id FROM group_member WHERE user_id = ?", user_id))}
        roles = {row[1] for row in query("SELECT principal_id, role_id FROM role_member") if row[0] in me}
        alive = {row[0] for row in query("SELECT id FROM role WHERE deleted = 0")}
        self.rules = {
            (row[1], row[2], bool(row[3]))
            for row in query("SELECT role_id, object_id, privilege, allowed FROM access_grant")
            if row[0] in roles & alive
        }
        self.mine = {each for each, owner in owners.items() if owner in me}
        self.names = self._names()

    def chain(self, node_id: int) -> list[int]:
        """Return the object and its ancestors up to the metalake."""
        ancestors = []
        while node_id in self.nodes:
            ancestors.append(node_id)
            node_id = self.nodes[node_id][0]
        return ancestors

    def kind(self, node_id: int) -> int:
        """Return the number of the object's kind."""
        number: int = self.nodes[node_id][1]
        return number

    def denied(self, node_id: int, privilege: Privilege) -> bool:
        """Return whether the user is denied a privilege on an object or an ancestor."""
        return any((each, privilege, False) in self.rules for each in self.chain(node_id))

    def allowed(self, node_id: int, privilege: Privilege) -> bool:
        """Return whether a privilege is granted to the user on the object or an ancestor and denied on none of them."""
        allowed = any((each, privilege, True) in self.rules for each in self.chain(node_id))
        return allowed and not self.denied(node_id, privilege)

    def is_entry(self, node_id: int) -> bool:
        """Return whether the user may use an object in a catalog, by a privilege on it or by owning it."""
        if self.denied(node_id, Privilege.USE_CATALOG):
            return False
        if node_id in self.mine and self.kind(node_id) == Kind.NAMESPACE:
            return True
        if self.denied(node_id, Privilege.USE_SCHEMA):
            return False
        return node_id in self.mine or any(
            (node_id, each, True) in self.rules and not self.denied(node_id, each) for each in SHOWING
        )

    def _names(self) -> set[int]:
        visible_ids: set[int] = set()
        for node_id in self.nodes:
            inside = [each for each in self.chain(node_id) if self.kind(each) not in (Kind.METALAKE, Kind.CATALOG)]
            if inside and self.is_entry(node_id):
                above = self.chain(node_id)[0 if self.kind(node_id) == Kind.NAMESPACE else 1 :]
                visible_ids.update(each for each in above if self.kind(each) in (Kind.NAMESPACE, Kind.CATALOG))
        return visible_ids

    def may_use(self, catalog_id: int) -> bool:
        """Return whether the user may load a catalog."""
        return self.allowed(catalog_id, Privilege.USE_CATALOG) or not self.mine.isdisjoint(self.chain(catalog_id))

    def sees(self, namespace_id: int) -> bool:
        """Return whether the user's privileges make a namespace visible in a list."""
        return self.allowed(namespace_id, Privilege.USE_SCHEMA) or not self.mine.isdisjoint(self.chain(namespace_id))

    def children(self, parent_id: int, kind: Kind) -> list[tuple[str, int]]:
        """Return the direct children of a container, by name."""
        return sorted(
            (name, each) for each, (parent, of, name) in self.nodes.items() if (parent, of) == (parent_id, kind)
        )

    def catalogs(self) -> list[str]:
        """Return the visible catalogs."""
        (metalake,) = [each for each in self.nodes if self.kind(each) == Kind.METALAKE]
        catalogs = self.children(metalake, Kind.CATALOG)
        return [name for name, each in catalogs if self.may_use(each) or each in self.names]

    def containers(self) -> dict[tuple[str, ...], int]:
        """Return all catalogs and namespaces, by path."""
        ids_by_path = {}
        for node_id in self.nodes:
            if self.kind(node_id) in (Kind.CATALOG, Kind.NAMESPACE):
                path = [self.nodes[each][2] for each in self.chain(node_id)]
                ids_by_path[tuple(reversed(path[:-1]))] = node_id
        return ids_by_path

    def namespaces(self, parent_id: int) -> list[str] | None:
        """Return the list of a container's namespaces; None if it is refused."""
        catalog = self.chain(parent_id)[-2]
        if not self.may_use(catalog):
            is_root = parent_id == catalog
            if catalog not in self.names or not (is_root or parent_id in self.names or self.sees(parent_id)):
                return None
        namespaces = self.children(parent_id, Kind.NAMESPACE)
        return [name for name, each in namespaces if self.sees(each) or each in self.names]

    def dataverses(self, catalog: str) -> set[tuple[str, ...]]:
        """Return the dataverses of a catalog that these lists contain."""
        containers, paths = self.containers(), set()
        todo = [(catalog,)]
        while todo:
            path = todo.pop()
            below = [(*path, name) for name in self.namespaces(containers[path]) or ()]
            paths.update(below)
            todo += below
        return paths
