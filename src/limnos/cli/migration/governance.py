# SPDX-License-Identifier: Apache-2.0
"""What a Gravitino server knows beside tables: users, groups, roles with their grants, tags and owners, as items.

Reads the source only. Objects of other catalogs than the one that is moved are left out, and counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from limnos.cli.migration.moves import Item
from limnos.cli.migration.states import Name
from limnos.client.errors import ClientError, NotFoundError
from limnos.client.paths import parts_of_full_name

if TYPE_CHECKING:
    from limnos.client import Client
    from limnos.client.values import Role

LEFT_OUT: Final = "left-out"
_OWN_KINDS: Final = frozenset({"role", "tag", "policy"})


class GravitinoAccess:
    """The users and rights of a metalake, in the names of the target."""

    def __init__(self, client: Client, *, metalake: str, catalog: str, target_metalake: str, target: str) -> None:
        self.client = client
        self.metalake = metalake
        self.catalog = catalog
        self.target_metalake = target_metalake
        self.target = target
        separator = client.server.configs().get("gravitino.schema.separator", ":")
        self.separator = str(separator)

    def principals(self) -> Iterator[Item]:
        """Yield users, groups, roles without privileges, and members of groups."""
        users, groups = self.client.users.list(), self.client.groups.list()
        for kind, names in (
            ("user", [each.name for each in users]),
            ("group", [each.name for each in groups]),
            ("role", list(self.client.roles.list())),
        ):
            for name in names:
                yield _item((name,), "create-principal", kind=kind, name=name, exists="skip")._replace(
                    plan_text=f"a {kind}, unless there is one of this name here"
                )
        for group in groups:
            members = self._members(group.name)
            if members:
                yield _item((group.name,), "add-members", group=group.name, users=list(members))

    def rights(self) -> Iterator[Item]:
        """Yield the privileges of roles, and who holds the roles."""
        for name in self.client.roles.list():
            yield from self._grants(self.client.roles.get(name))
        for kind, holders in (("user", self.client.users.list()), ("group", self.client.groups.list())):
            for each in holders:
                if each.roles:
                    yield _item(
                        (each.name,), "assign-roles", kind=kind, name=each.name, roles=list(each.roles)
                    )._replace(plan_text=f"{kind} gets {', '.join(each.roles)}")

    def tags(self) -> Iterator[Item]:
        """Yield tags, and the objects that have them."""
        for tag in self.client.tags.list():
            values = {} if tag.allowed_values is None else {"allowed_values": list(tag.allowed_values)}
            yield _item(
                (tag.name,),
                "create-tag",
                name=tag.name,
                comment=tag.comment,
                properties=tag.properties or {},
                exists="skip",
                **values,
            )
        for tag in self.client.tags.list():
            for each in self.client.tags.objects(tag.name):
                on = self._on(each.type, each.full_name)
                if on is None:
                    yield Item((each.full_name,), LEFT_OUT, {})
                    continue
                for value in self._values(tag.name, each.type, full_name=each.full_name) or (None,):
                    more = {} if value is None else {"value": value}
                    yield _item(tuple(on), "tag", kind=each.type.lower(), on=on, tag=tag.name, exists="skip", **more)

    def owner(self, path: Name, kind: str) -> Iterator[Item]:
        """Yield the owner of an object of the catalog, by its path below the catalog."""
        try:
            owner = self.client.owners.get((self.catalog, *path), kind=kind)
        except NotFoundError:
            return
        if owner is not None:
            on = [self.target, *path]
            yield _item(path, "set-owner", kind=kind, on=on, owner=owner.name, owner_kind=owner.type.lower())

    def _members(self, group: str) -> tuple[str, ...]:
        try:
            return self.client.groups.members(group)
        except ClientError:
            return ()  # Gravitino does not tell members of groups

    def _grants(self, role: Role) -> Iterator[Item]:
        for each in role.securable_objects:
            on = self._on(each.type, each.full_name)
            if on is None:
                yield Item((role.name, each.full_name), LEFT_OUT, {})
                continue
            for denies in (False, True):
                names = [rule.name for rule in each.privileges if (rule.condition.lower() == "deny") is denies]
                if names:
                    yield _item(
                        (role.name, *on),
                        "grant",
                        role=role.name,
                        kind=each.type.lower(),
                        on=on,
                        privileges=names,
                        deny=denies,
                    )._replace(plan_text=f"{'denies' if denies else 'allows'} {', '.join(names)}")

    def _values(self, tag: str, kind: str, *, full_name: str) -> tuple[str, ...]:
        parts = self._parts(kind, full_name)
        if parts is None:
            return ()
        word = "namespace" if kind.lower() == "schema" else kind.lower()
        attachments = [
            each for each in self.client.tags.on(parts, kind=word) if each.name == tag and not each.inherited
        ]
        return attachments[0].assignment_values if attachments else ()

    def _parts(self, kind: str, full_name: str) -> Name | None:
        return parts_of_full_name(full_name, kind, separator=self.separator)

    def _on(self, kind: str, full_name: str) -> list[str] | None:
        """Return an object in the names of the target; None if it is in another catalog, or its name is ambiguous."""
        word = kind.lower()
        if word == "metalake":
            return [self.target_metalake]
        if word in _OWN_KINDS:
            return [full_name]
        parts = self._parts(kind, full_name)
        return [self.target, *parts[1:]] if parts and parts[0] == self.catalog else None


def _item(path: Name, do: str, **fields: object) -> Item:
    return Item(path, do, {"do": do, **{key: value for key, value in fields.items() if value is not None}})
