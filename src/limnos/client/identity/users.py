# SPDX-License-Identifier: Apache-2.0
"""Calls on the users of a metalake (Gravitino REST; disabling through the admin API)."""

from __future__ import annotations

from limnos.client.flow import Flow, Resource, S, call, verb
from limnos.client.values import User


class Users(Resource[S]):
    """Calls on the users who are members of the client's metalake."""

    @verb
    def list(self) -> Flow[tuple[User, ...]]:
        """List the users with their roles."""
        query = {"details": "true"}
        return call("GET", self.gravitino_url("users"), answer=tuple[User, ...], field="users", query=query)

    @verb
    def get(self, name: str) -> Flow[User]:
        """Load a user with their roles."""
        return call("GET", self.gravitino_url("users", name), answer=User, field="user")

    @verb
    def groups(self, name: str) -> Flow[tuple[str, ...]]:
        """List the names of a user's groups that the caller may load."""
        return call("GET", self.own_url("users", name, "groups"), answer=tuple[str, ...], field="groups")

    @verb
    def add(self, name: str) -> Flow[User]:
        """Add a user to the metalake. The name is the name in the user's credentials."""
        return call("POST", self.gravitino_url("users"), answer=User, field="user", body={"name": name})

    @verb
    def remove(self, name: str) -> Flow[bool]:
        """Remove a user from the metalake. Returns whether they were a member."""
        return call("DELETE", self.gravitino_url("users", name), answer=bool, field="removed")

    @verb
    def enable(self, name: str) -> Flow[User]:
        """Enable a disabled user, so that the server accepts their requests again."""
        return call("PATCH", self.own_url("users", name), answer=User, field="user", body={"enabled": True})

    @verb
    def disable(self, name: str) -> Flow[User]:
        """Disable a user from the next request on. The user's roles and ownership do not change."""
        return call("PATCH", self.own_url("users", name), answer=User, field="user", body={"enabled": False})
