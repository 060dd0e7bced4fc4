"""Calls on the users of a metalake (Gravitino REST; disabling through the own API).

May import this room.
"""

from __future__ import annotations

from limnos.client.flow import Flow, Resource, S, call, verb
from limnos.client.values import User


class Users(Resource[S]):
    """The members of the client's metalake."""

    __slots__ = ()

    @verb
    def list(self) -> Flow[tuple[User, ...]]:
        """List the users with their roles."""
        query = {"details": "true"}
        return call("GET", self.gravitino_url("users"), answer=tuple[User, ...], field="users", query=query)

    @verb
    def get(self, name: str) -> Flow[User]:
        """Load one user with the roles given to them."""
        return call("GET", self.gravitino_url("users", name), answer=User, field="user")

    @verb
    def add(self, name: str) -> Flow[User]:
        """Make somebody a member of the metalake."""
        return call("POST", self.gravitino_url("users"), answer=User, field="user", body={"name": name})

    @verb
    def remove(self, name: str) -> Flow[bool]:
        """Take a user out of the metalake and tell whether they were in it."""
        return call("DELETE", self.gravitino_url("users", name), answer=bool, field="removed")

    @verb
    def enable(self, name: str) -> Flow[User]:
        """Let a disabled user in again."""
        return call("PATCH", self.own_url("users", name), answer=User, field="user", body={"enabled": True})

    @verb
    def disable(self, name: str) -> Flow[User]:
        """Refuse a user everywhere, from the next request on; roles and ownership stay."""
        return call("PATCH", self.own_url("users", name), answer=User, field="user", body={"enabled": False})
