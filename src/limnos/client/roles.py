"""Calls on roles: making them, giving them to users and groups, and what they grant (Gravitino REST).

May import this room.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence

import msgspec

from limnos.client.flow import Flow, Reply, Request, Resource, S, decode, request, verb
from limnos.client.metalakes import DropAnswer
from limnos.client.objects import object_name
from limnos.client.paths import TYPES, metalake_url
from limnos.client.values import Group, Role, User


class _NamesAnswer(msgspec.Struct):
    names: tuple[str, ...]


class _RoleAnswer(msgspec.Struct):
    role: Role


class _UserAnswer(msgspec.Struct):
    user: User


class _GroupAnswer(msgspec.Struct):
    group: Group


class Roles(Resource[S]):
    """The roles of the client's metalake. Privileges are held through roles only."""

    __slots__ = ()

    @verb
    def list(self) -> Flow[tuple[str, ...]]:
        """List the names of the roles the caller may see."""
        reply = yield request("GET", metalake_url(self.scope.metalake, "roles"))
        return decode(reply, _NamesAnswer).names

    @verb
    def get(self, name: str) -> Flow[Role]:
        """Load a role with everything it grants."""
        reply = yield request("GET", metalake_url(self.scope.metalake, "roles", name))
        return decode(reply, _RoleAnswer).role

    @verb
    def create(self, name: str, *, properties: Mapping[str, str] | None = None) -> Flow[Role]:
        """Make a role that grants nothing yet."""
        body = {"name": name, "properties": dict(properties or {}), "securableObjects": ()}
        reply = yield request("POST", metalake_url(self.scope.metalake, "roles"), body=body)
        return decode(reply, _RoleAnswer).role

    @verb
    def delete(self, name: str) -> Flow[bool]:
        """Delete a role and tell whether it was there."""
        reply = yield request("DELETE", metalake_url(self.scope.metalake, "roles", name))
        return decode(reply, DropAnswer).dropped

    @verb
    def grant_to_user(self, user: str, roles: Iterable[str]) -> Flow[User]:
        """Give roles to a user; those they have already stay."""
        reply = yield self._hand("users", user, "grant", roles)
        return decode(reply, _UserAnswer).user

    @verb
    def revoke_from_user(self, user: str, roles: Iterable[str]) -> Flow[User]:
        """Take roles from a user."""
        reply = yield self._hand("users", user, "revoke", roles)
        return decode(reply, _UserAnswer).user

    @verb
    def grant_to_group(self, group: str, roles: Iterable[str]) -> Flow[Group]:
        """Give roles to a group; those it has already stay."""
        reply = yield self._hand("groups", group, "grant", roles)
        return decode(reply, _GroupAnswer).group

    @verb
    def revoke_from_group(self, group: str, roles: Iterable[str]) -> Flow[Group]:
        """Take roles from a group."""
        reply = yield self._hand("groups", group, "revoke", roles)
        return decode(reply, _GroupAnswer).group

    @verb
    def allow(
        self, role: str, privileges: Iterable[str], *, on: str | Sequence[str], kind: str, deny: bool = False
    ) -> Flow[Role]:
        """Add privileges on an object to a role; with `deny` they are denied, which beats every allow.

        `kind` is `metalake`, `catalog`, `namespace` or `table`.
        """
        reply = yield from self._change(role, privileges, on=on, kind=kind, deny=deny, verb="grant")
        return decode(reply, _RoleAnswer).role

    @verb
    def withdraw(
        self, role: str, privileges: Iterable[str], *, on: str | Sequence[str], kind: str, deny: bool = False
    ) -> Flow[Role]:
        """Remove privileges on an object from a role; with `deny`, those that were denied."""
        reply = yield from self._change(role, privileges, on=on, kind=kind, deny=deny, verb="revoke")
        return decode(reply, _RoleAnswer).role

    def _hand(self, holders: str, name: str, what: str, roles: Iterable[str]) -> Request:
        url = metalake_url(self.scope.metalake, "permissions", holders, name, what)
        return request("PUT", url, body={"roleNames": [*roles]})

    def _change(
        self, role: str, privileges: Iterable[str], *, on: str | Sequence[str], kind: str, deny: bool, verb: str
    ) -> Generator[Request, Reply, Reply]:
        name = yield from object_name(self.scope, on, kind=kind)
        condition = "deny" if deny else "allow"
        body = {"privileges": [{"name": privilege, "condition": condition} for privilege in privileges]}
        url = metalake_url(self.scope.metalake, "permissions", "roles", role, TYPES[kind], name, verb)
        return (yield request("PUT", url, body=body))
