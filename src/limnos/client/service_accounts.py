"""Calls on secrets of service accounts (own API).

May import this room.
"""

from __future__ import annotations

from limnos.client.flow import OWN, Flow, Resource, S, call, segments, verb
from limnos.client.values import NewSecret, SecretInfo


class ServiceAccounts(Resource[S]):
    """Users that are programs: their secrets, which service admins make and end."""

    __slots__ = ()

    @verb
    def list_secrets(self, user: str) -> Flow[tuple[SecretInfo, ...]]:
        """List a service account's secrets without their texts, those that were ended, too."""
        return call("GET", f"{OWN}/users{segments(user)}/secrets", answer=tuple[SecretInfo, ...], field="secrets")

    @verb
    def create_secret(self, user: str, *, expires_in_s: int | None = None) -> Flow[NewSecret]:
        """Make a secret; the answer is the only place where it is ever shown. Two count at a time."""
        body = {"expires_in_s": expires_in_s}
        return call("POST", f"{OWN}/users{segments(user)}/secrets", answer=NewSecret, body=body)

    @verb
    def end_secret(self, user: str, secret_id: int | str) -> Flow[bool]:
        """End a secret with what it opened, and tell whether it counted."""
        url = f"{OWN}/users{segments(user)}/secrets{segments(str(secret_id))}"
        return call("DELETE", url, answer=bool, field="ended")
