# SPDX-License-Identifier: Apache-2.0
"""Calls on the groups of a metalake (Gravitino REST; members through the admin API)."""

from __future__ import annotations

from collections.abc import Iterable

from limnos.client.flow import Flow, Resource, S, call, verb
from limnos.client.values import Group


class Groups(Resource[S]):
    """Calls on the groups of the client's metalake and on their members."""

    @verb
    def list(self) -> Flow[tuple[Group, ...]]:
        """List the groups with their roles."""
        query = {"details": "true"}
        return call("GET", self.gravitino_url("groups"), answer=tuple[Group, ...], field="groups", query=query)

    @verb
    def get(self, name: str) -> Flow[Group]:
        """Load a group with its roles."""
        return call("GET", self.gravitino_url("groups", name), answer=Group, field="group")

    @verb
    def create(self, name: str) -> Flow[Group]:
        """Create a group without members."""
        return call("POST", self.gravitino_url("groups"), answer=Group, field="group", body={"name": name})

    @verb
    def delete(self, name: str) -> Flow[bool]:
        """Delete a group. Returns whether it existed."""
        return call("DELETE", self.gravitino_url("groups", name), answer=bool, field="removed")

    @verb
    def members(self, group: str) -> Flow[tuple[str, ...]]:
        """List the names of a group's members."""
        return call("GET", self.own_url("groups", group, "members"), answer=tuple[str, ...], field="members")

    @verb
    def add(self, group: str, users: Iterable[str]) -> Flow[tuple[str, ...]]:
        """Add users to a group atomically. Returns its members."""
        url = self.own_url("groups", group, "members")
        return call("POST", url, answer=tuple[str, ...], field="members", body={"users": [*users]})

    @verb
    def remove(self, group: str, user: str) -> Flow[bool]:
        """Remove a user from a group. Returns whether they were a member."""
        return call("DELETE", self.own_url("groups", group, "members", user), answer=bool, field="removed")
