"""Calls on the users of a metalake (Gravitino REST; disabling through the own API).

May import this room.
"""

from __future__ import annotations

import msgspec

from limnos.client.flow import Flow, Resource, S, decode, request, verb
from limnos.client.paths import metalake_url, own_url
from limnos.client.values import User


class _ListAnswer(msgspec.Struct):
    users: tuple[User, ...]


class _OneAnswer(msgspec.Struct):
    user: User


class RemoveAnswer(msgspec.Struct):
    """The answer to a removal: whether there was anything to remove."""

    removed: bool


class Users(Resource[S]):
    """The members of the client's metalake."""

    __slots__ = ()

    @verb
    def list(self) -> Flow[tuple[User, ...]]:
        """List the users with their roles."""
        reply = yield request("GET", metalake_url(self.scope.metalake, "users"), query={"details": "true"})
        return decode(reply, _ListAnswer).users

    @verb
    def get(self, name: str) -> Flow[User]:
        """Load one user with the roles given to them."""
        reply = yield request("GET", metalake_url(self.scope.metalake, "users", name))
        return decode(reply, _OneAnswer).user

    @verb
    def add(self, name: str) -> Flow[User]:
        """Make somebody a member of the metalake."""
        reply = yield request("POST", metalake_url(self.scope.metalake, "users"), body={"name": name})
        return decode(reply, _OneAnswer).user

    @verb
    def remove(self, name: str) -> Flow[bool]:
        """Take a user out of the metalake and tell whether they were in it."""
        reply = yield request("DELETE", metalake_url(self.scope.metalake, "users", name))
        return decode(reply, RemoveAnswer).removed

    @verb
    def enable(self, name: str) -> Flow[User]:
        """Let a disabled user in again."""
        reply = yield request("PATCH", own_url(self.scope.metalake, "users", name), body={"enabled": True})
        return decode(reply, _OneAnswer).user

    @verb
    def disable(self, name: str) -> Flow[User]:
        """Refuse a user everywhere, from the next request on; roles and ownership stay."""
        reply = yield request("PATCH", own_url(self.scope.metalake, "users", name), body={"enabled": False})
        return decode(reply, _OneAnswer).user
