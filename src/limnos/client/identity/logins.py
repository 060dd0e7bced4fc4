# SPDX-License-Identifier: Apache-2.0
"""Calls on passwords and sessions (own API)."""

from __future__ import annotations

from limnos.client.flow import OWN, Flow, Resource, S, call, segments, verb
from limnos.client.values import ConsoleCode, LoginResult


class Logins(Resource[S]):
    """Calls on sessions and passwords of the caller, or of any user for a service admin."""

    @verb
    def login(self, user: str, password: str) -> Flow[LoginResult]:
        """Open a session with a password. Its token is used like an API token, until it expires."""
        return call("POST", f"{OWN}/login", answer=LoginResult, body={"user": user, "password": password})

    @verb
    def refresh(self, refresh_token: str) -> Flow[LoginResult]:
        """Refresh a session. Returns a new token; the refresh token does not change."""
        return call("POST", f"{OWN}/login", answer=LoginResult, body={"refresh_token": refresh_token})

    @verb
    def console_code(self) -> Flow[ConsoleCode]:
        """Create a code that opens one session of the console for the caller."""
        return call("POST", f"{OWN}/console/codes", answer=ConsoleCode)

    @verb
    def set_password(self, user: str, password: str, *, old: str | None = None) -> Flow[bool]:
        """Set a user's password, and end the sessions that were opened with the old one. Returns whether one existed.

        Users who change their own password must send the old one.
        """
        body = {"password": password, "old": old}
        return call("PUT", f"{OWN}/users{segments(user)}/password", answer=bool, field="replaced", body=body)

    @verb
    def remove_password(self, user: str, *, old: str | None = None) -> Flow[bool]:
        """Delete a user's password. Returns whether one existed."""
        return call("DELETE", f"{OWN}/users{segments(user)}/password", answer=bool, field="removed", body={"old": old})
