# SPDX-License-Identifier: Apache-2.0
"""Random lakes: users, groups, roles, grants, denials, owners, restrictions, disabled and moved objects.

Everything is made by requests to a node, as users make it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

from limnos.model.kinds import Kind
from limnos.model.privileges import Privilege, is_bound
from tests.http.driver import API, OWN
from tests.http.iceberg.wire import make_table, make_view

if TYPE_CHECKING:
    import random

    from tests.http.driver import DriverNode

LAKE: Final = f"{API}/lake"
OWN_LAKE: Final = f"{OWN}/metalakes/lake"
ODD_NAMES: Final = ("ana", "bø b", "o'neil", "c.d", "per%cent", "x (disabled)", "Ana", "e f")
USES: Final = (Privilege.USE_CATALOG, Privilege.USE_SCHEMA, Privilege.SELECT_TABLE, Privilege.MODIFY_TABLE)
TYPES: Final = {"main": "relational", "lance": "relational", "off": "relational", "files": "fileset", "ml": "model"}
FILTER: Final = {"masks": {"id": "replace-with-null"}}


class LakeObject(NamedTuple):
    """An object of a lake: its kind, and its path from the catalog down."""

    kind: Kind
    path: tuple[str, ...]

    @property
    def full_name(self) -> str:
        """The name as Gravitino spells it: levels of namespaces joined by colons."""
        if self.kind is Kind.METALAKE:
            return "lake"
        catalog, *levels = self.path
        if not levels:
            return catalog
        leaf = [] if self.kind is Kind.NAMESPACE else [levels.pop()]
        return ".".join([catalog, *([":".join(levels)] if levels else []), *leaf])


class RandomLake:
    """A lake made from a random number generator: its users, roles and objects."""

    def __init__(self, node: DriverNode, drawn: random.Random, *, users: int) -> None:
        self.node = node
        self.drawn = drawn
        self.users = [*ODD_NAMES[:users], *(f"u{number}" for number in range(users - len(ODD_NAMES)))]
        self.groups = ["north", "south", "empty"]
        self.roles = [f"r{number}" for number in range(max(4, users // 2))]
        self.objects = [LakeObject(Kind.METALAKE, ())]
        self.disabled: set[str] = set()

    def build(self) -> RandomLake:
        """Make the lake."""
        self._make_objects()
        self._make_principals()
        for role in self.roles:
            self._make_role(role)
        for each in self.drawn.sample(self.objects[1:], 5):
            self._make_owner(each)
        self._restrict()
        self._move()
        self._remake()
        self._disable()
        return self

    def _make_objects(self) -> None:
        for catalog, of_type in TYPES.items():
            if catalog not in ("main", "lance"):  # a new lake has these two
                body = {"name": catalog, "type": of_type, "properties": {}}
                if of_type == "relational":
                    body["provider"] = "lakehouse-iceberg"
                self.node.done("POST", f"{LAKE}/catalogs", body)
            self.objects.append(LakeObject(Kind.CATALOG, (catalog,)))
        for space in (("a",), ("a", "deep"), ("a", "deep", "er"), ("b",), ("odd name",)):
            self.objects.append(LakeObject(Kind.NAMESPACE, ("main", *space)))
            for table in ("t", "u") if len(space) < 3 else ("t",):
                make_table(self.node, *space, table)
                self.objects.append(LakeObject(Kind.TABLE, ("main", *space, table)))
        for levels in (("a", "v"), ("a", "deep", "v")):
            make_view(self.node, *levels)
            self.objects.append(LakeObject(Kind.VIEW, ("main", *levels)))
        for catalog, kind in (("off", Kind.TABLE), ("files", Kind.FILESET), ("ml", Kind.MODEL)):
            schemas = f"{LAKE}/catalogs/{catalog}/schemas"
            self.node.done("POST", schemas, {"name": "raw"})
            self.objects.append(LakeObject(Kind.NAMESPACE, (catalog, "raw")))
            if kind is not Kind.TABLE:
                self.node.done("POST", f"{schemas}/raw/{kind.word}s", {"name": "x"})
                self.objects.append(LakeObject(kind, (catalog, "raw", "x")))

    def _make_principals(self) -> None:
        for user in self.users:
            self.node.done("POST", f"{LAKE}/users", {"name": user})
        for group in self.groups:
            self.node.done("POST", f"{LAKE}/groups", {"name": group})
            if group != "empty":
                members = self.drawn.sample(self.users, max(2, len(self.users) // 4))
                self.node.done("POST", f"{OWN_LAKE}/groups/{group}/members", {"users": members})

    def _make_role(self, role: str) -> None:
        self.node.done("POST", f"{LAKE}/roles", {"name": role, "properties": {}, "securableObjects": []})
        outer = [each for each in self.objects if len(each.path) < 3]
        for each in [*self.drawn.sample(outer, 2), *self.drawn.sample(self.objects, 2)]:
            self.grant(role, each)
        for user in self.drawn.sample(self.users, max(1, len(self.users) // 5)):
            self.assign(role, user)
        if self.drawn.random() < 0.3:
            group = self.drawn.choice(self.groups)
            self.node.done("PUT", f"{LAKE}/permissions/groups/{group}/grant", {"roleNames": [role]})

    def draw_privileges(self, on: LakeObject) -> list[dict[str, str]]:
        """Return random privileges that an object can have, some of them denied."""
        of_type = TYPES[on.path[0]] if on.path else None
        fitting = [each for each in Privilege if is_bound(each, on.kind, catalog_type=of_type)]
        likely = [each for each in USES if each in fitting]
        chosen = {*self.drawn.sample(fitting, min(2, len(fitting))), *self.drawn.sample(likely, min(3, len(likely)))}
        return [
            {"name": each.name, "condition": "deny" if self.drawn.random() < 0.1 else "allow"}
            for each in sorted(chosen)
        ]

    def grant(self, role: str, on: LakeObject, privileges: list[dict[str, str]] | None = None) -> int:
        """Grant privileges on an object to a role. Returns the status: some denials are refused beside grants."""
        chosen = self.draw_privileges(on) if privileges is None else privileges
        path = f"{LAKE}/permissions/roles/{quote(role)}/{on.kind.word}/{quote(on.full_name)}/grant"
        path = path.replace("/namespace/", "/schema/")
        return self.node.ask("PUT", path, {"privileges": chosen}).status

    def assign(self, role: str, user: str) -> None:
        """Assign a role to a user."""
        self.node.done("PUT", f"{LAKE}/permissions/users/{quote(user)}/grant", {"roleNames": [role]})

    def _make_owner(self, on: LakeObject) -> None:
        kind = self.drawn.choice(("USER", "USER", "GROUP"))
        name = self.drawn.choice(self.users if kind == "USER" else self.groups)
        word = on.kind.word.upper().replace("NAMESPACE", "SCHEMA")
        self.node.done("PUT", f"{LAKE}/owners/{word}/{quote(on.full_name)}", {"name": name, "type": kind})

    def of(self, *kinds: Kind, catalog: str = "main") -> list[LakeObject]:
        """Return the objects of some kinds in a catalog."""
        return [each for each in self.objects if each.kind in kinds and each.path[:1] == (catalog,)]

    def _restrict(self) -> None:
        for number, each in enumerate(self.drawn.sample(self.of(Kind.TABLE, Kind.NAMESPACE), 3)):
            word = each.kind.word.upper().replace("NAMESPACE", "SCHEMA")
            to = self.drawn.choice(
                [
                    {"users": self.drawn.sample(self.users, 2)},
                    {"groups": [self.drawn.choice(self.groups)]},
                    {"roles": [self.drawn.choice(self.roles)]},
                    {},
                ]
            )
            terms: dict[str, object] = {**FILTER, "to": to}
            if not to:
                terms = {**FILTER, "except": {"users": [self.drawn.choice(self.users)]}}
            self.node.done("PUT", f"{OWN_LAKE}/objects/{word}/{quote(each.full_name)}/restrictions/q{number}", terms)

    def _move(self) -> None:
        """Move a table into another namespace, and a namespace with its contents."""
        moves = (
            (LakeObject(Kind.TABLE, ("main", "a", "u")), ("main", "b", "moved")),
            (LakeObject(Kind.NAMESPACE, ("main", "a", "deep", "er")), ("main", "b", "er")),
        )
        for source, target in moves:
            body = {"kind": source.kind.word, "source": source.path[1:], "target": target[1:]}
            self.node.done("POST", f"{OWN_LAKE}/catalogs/main/move", body)
            depth = len(source.path)
            self.objects = [
                LakeObject(each.kind, (*target, *each.path[depth:])) if each.path[:depth] == source.path else each
                for each in self.objects
            ]

    def _remake(self) -> None:
        """Drop a table, and make another one at its path: denials and restrictions pass to it, grants do not. The same
        at the path that a table left.
        """
        self.node.ask("DELETE", f"{LAKE}/catalogs/main/schemas/b/tables/t")
        make_table(self.node, "b", "t")
        make_table(self.node, "a", "u")
        self.objects.append(LakeObject(Kind.TABLE, ("main", "a", "u")))

    def _disable(self) -> None:
        """Disable two users and a catalog; remove a user, and add another one of the same name."""
        self.disabled = set(self.drawn.sample(self.users, 2))
        for user in self.disabled:
            self.node.done("PATCH", f"{OWN_LAKE}/users/{quote(user)}", {"enabled": False})
        again = self.drawn.choice([each for each in self.users if each not in self.disabled])
        if self.node.ask("DELETE", f"{LAKE}/users/{quote(again)}").status == 200:
            self.node.done("POST", f"{LAKE}/users", {"name": again})
        self.node.done("PATCH", f"{LAKE}/catalogs/off", {"inUse": False})
