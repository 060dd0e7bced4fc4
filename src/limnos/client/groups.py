"""Calls on the groups of a metalake (Gravitino REST; members through the own API).

May import this room.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from limnos.client.flow import Flow, Resource, S, decode, request, verb
from limnos.client.paths import metalake_url, own_url
from limnos.client.users import RemoveAnswer
from limnos.client.values import Group


class _ListAnswer(msgspec.Struct):
    groups: tuple[Group, ...]


class _OneAnswer(msgspec.Struct):
    group: Group


class _MembersAnswer(msgspec.Struct):
    members: tuple[str, ...]


class Groups(Resource[S]):
    """The groups of the client's metalake."""

    __slots__ = ()

    @verb
    def list(self) -> Flow[tuple[Group, ...]]:
        """List the groups with their roles."""
        reply = yield request("GET", metalake_url(self.scope.metalake, "groups"), query={"details": "true"})
        return decode(reply, _ListAnswer).groups

    @verb
    def get(self, name: str) -> Flow[Group]:
        """Load one group with the roles given to it."""
        reply = yield request("GET", metalake_url(self.scope.metalake, "groups", name))
        return decode(reply, _OneAnswer).group

    @verb
    def create(self, name: str) -> Flow[Group]:
        """Make a group without members."""
        reply = yield request("POST", metalake_url(self.scope.metalake, "groups"), body={"name": name})
        return decode(reply, _OneAnswer).group

    @verb
    def delete(self, name: str) -> Flow[bool]:
        """Delete a group and tell whether it was there."""
        reply = yield request("DELETE", metalake_url(self.scope.metalake, "groups", name))
        return decode(reply, RemoveAnswer).removed

    @verb
    def members(self, group: str) -> Flow[tuple[str, ...]]:
        """List the users who were put into a group."""
        reply = yield request("GET", own_url(self.scope.metalake, "groups", group, "members"))
        return decode(reply, _MembersAnswer).members

    @verb
    def add(self, group: str, users: Iterable[str]) -> Flow[tuple[str, ...]]:
        """Put users into a group, all or none, and list its members."""
        url = own_url(self.scope.metalake, "groups", group, "members")
        reply = yield request("POST", url, body={"users": [*users]})
        return decode(reply, _MembersAnswer).members

    @verb
    def remove(self, group: str, user: str) -> Flow[bool]:
        """Take one user out of a group and tell whether they were in it."""
        reply = yield request("DELETE", own_url(self.scope.metalake, "groups", group, "members", user))
        return decode(reply, RemoveAnswer).removed
