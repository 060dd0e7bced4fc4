"""Calls on passwords and sessions (own API).

May import this room.
"""

from __future__ import annotations

import msgspec

from limnos.client.flow import Flow, Resource, S, decode, request, segments, verb
from limnos.client.paths import OWN
from limnos.client.values import Session


class _SetAnswer(msgspec.Struct):
    replaced: bool


class _RemoveAnswer(msgspec.Struct):
    removed: bool


class Logins(Resource[S]):
    """Signing in with a password, and passwords: the caller's own, or anybody's for a service admin."""

    __slots__ = ()

    @verb
    def login(self, user: str, password: str) -> Flow[Session]:
        """Open a session. Its token goes where an API token goes, until it ends."""
        reply = yield request("POST", f"{OWN}/login", body={"user": user, "password": password})
        return decode(reply, Session)

    @verb
    def refresh(self, refresh_token: str) -> Flow[Session]:
        """Go on with a session: a new token; what refreshes it stays as it is."""
        reply = yield request("POST", f"{OWN}/login", body={"refresh_token": refresh_token})
        return decode(reply, Session)

    @verb
    def set_password(self, user: str, password: str, *, old: str | None = None) -> Flow[bool]:
        """Set a user's password and tell whether there was one; sessions of the last one end. One's own needs the old one."""
        reply = yield request("PUT", f"{OWN}/users{segments(user)}/password", body={"password": password, "old": old})
        return decode(reply, _SetAnswer).replaced

    @verb
    def remove_password(self, user: str, *, old: str | None = None) -> Flow[bool]:
        """Take a user's password away and tell whether there was one."""
        reply = yield request("DELETE", f"{OWN}/users{segments(user)}/password", body={"old": old})
        return decode(reply, _RemoveAnswer).removed
