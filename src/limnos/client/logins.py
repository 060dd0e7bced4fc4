"""Calls on passwords and sessions (own API).

May import this room.
"""

from __future__ import annotations

from limnos.client.flow import OWN, Flow, Resource, S, call, segments, verb
from limnos.client.values import LoginResult


class Logins(Resource[S]):
    """Signing in with a password, and passwords: the caller's own, or anybody's for a service admin."""

    __slots__ = ()

    @verb
    def login(self, user: str, password: str) -> Flow[LoginResult]:
        """Open a session. Its token goes where an API token goes, until it ends."""
        return call("POST", f"{OWN}/login", answer=LoginResult, body={"user": user, "password": password})

    @verb
    def refresh(self, refresh_token: str) -> Flow[LoginResult]:
        """Go on with a session: a new token; what refreshes it stays as it is."""
        return call("POST", f"{OWN}/login", answer=LoginResult, body={"refresh_token": refresh_token})

    @verb
    def set_password(self, user: str, password: str, *, old: str | None = None) -> Flow[bool]:
        """Set a user's password and tell whether there was one; sessions of the last one end. One's own needs the old one."""
        body = {"password": password, "old": old}
        return call("PUT", f"{OWN}/users{segments(user)}/password", answer=bool, field="replaced", body=body)

    @verb
    def remove_password(self, user: str, *, old: str | None = None) -> Flow[bool]:
        """Take a user's password away and tell whether there was one."""
        return call("DELETE", f"{OWN}/users{segments(user)}/password", answer=bool, field="removed", body={"old": old})
