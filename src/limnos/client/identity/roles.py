# SPDX-License-Identifier: Apache-2.0
"""Calls on roles, their holders and their privileges (Gravitino REST)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from limnos.client.catalog.objects import object_name
from limnos.client.flow import Flow, Resource, S, T, call, verb
from limnos.client.paths import TYPES
from limnos.client.values import Group, Role, User


class Roles(Resource[S]):
    """Calls on the roles of the client's metalake. Privileges are granted through roles only."""

    @verb
    def list(self) -> Flow[tuple[str, ...]]:
        """List the names of the roles that the caller may see."""
        return call("GET", self.gravitino_url("roles"), answer=tuple[str, ...], field="names")

    @verb
    def get(self, name: str) -> Flow[Role]:
        """Load a role with all of its privileges."""
        return call("GET", self.gravitino_url("roles", name), answer=Role, field="role")

    @verb
    def create(self, name: str, *, properties: Mapping[str, str] | None = None) -> Flow[Role]:
        """Create a role without privileges."""
        body = {"name": name, "properties": dict(properties or {}), "securableObjects": ()}
        return call("POST", self.gravitino_url("roles"), answer=Role, field="role", body=body)

    @verb
    def delete(self, name: str) -> Flow[bool]:
        """Delete a role. Returns whether it existed."""
        return call("DELETE", self.gravitino_url("roles", name), answer=bool, field="dropped")

    @verb
    def grant_to_user(self, user: str, roles: Iterable[str]) -> Flow[User]:
        """Grant further roles to a user. Returns the user with all roles."""
        return self._hand(user, "grant", roles, holder=User)

    @verb
    def revoke_from_user(self, user: str, roles: Iterable[str]) -> Flow[User]:
        """Revoke roles from a user. Returns the user with the remaining roles."""
        return self._hand(user, "revoke", roles, holder=User)

    @verb
    def grant_to_group(self, group: str, roles: Iterable[str]) -> Flow[Group]:
        """Grant further roles to a group. Returns the group with all roles."""
        return self._hand(group, "grant", roles, holder=Group)

    @verb
    def revoke_from_group(self, group: str, roles: Iterable[str]) -> Flow[Group]:
        """Revoke roles from a group. Returns the group with the remaining roles."""
        return self._hand(group, "revoke", roles, holder=Group)

    @verb
    def allow(
        self, role: str, privileges: Iterable[str], *, on: str | Sequence[str], kind: str, deny: bool = False
    ) -> Flow[Role]:
        """Add privileges on an object to a role. With `deny` they are denied, which overrides every allow.

        `kind` is the kind of the object `on`, such as `metalake`, `catalog`, `namespace`, `table` or `view`.
        """
        return self._change(role, privileges, on=on, kind=kind, deny=deny, verb="grant")

    @verb
    def withdraw(
        self, role: str, privileges: Iterable[str], *, on: str | Sequence[str], kind: str, deny: bool = False
    ) -> Flow[Role]:
        """Remove privileges on an object from a role; with `deny`, remove denied privileges."""
        return self._change(role, privileges, on=on, kind=kind, deny=deny, verb="revoke")

    def _hand(self, name: str, what: str, roles: Iterable[str], *, holder: type[T]) -> Flow[T]:
        """Grant roles to a user or a group, or revoke them. `what` is `grant` or `revoke`. Returns the user or
        group.
        """
        word = holder.__name__.lower()
        url = self.gravitino_url("permissions", f"{word}s", name, what)
        return call("PUT", url, answer=holder, field=word, body={"roleNames": [*roles]})

    def _change(
        self, role: str, privileges: Iterable[str], *, on: str | Sequence[str], kind: str, deny: bool, verb: str
    ) -> Flow[Role]:
        name = yield from object_name(self.scope, on, kind=kind)
        condition = "deny" if deny else "allow"
        body = {"privileges": [{"name": privilege, "condition": condition} for privilege in privileges]}
        url = self.gravitino_url("permissions", "roles", role, TYPES[kind], name, verb)
        return (yield from call("PUT", url, answer=Role, field="role", body=body))
