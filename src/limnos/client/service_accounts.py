"""Calls on secrets of service accounts (own API).

May import this room.
"""

from __future__ import annotations

import msgspec

from limnos.client.flow import Flow, Resource, S, decode, request, segments, verb
from limnos.client.paths import OWN
from limnos.client.values import NewSecret, SecretInfo


class _ListAnswer(msgspec.Struct):
    secrets: tuple[SecretInfo, ...]


class _EndAnswer(msgspec.Struct):
    ended: bool


class ServiceAccounts(Resource[S]):
    """Users that are programs: their secrets, which service admins make and end."""

    __slots__ = ()

    @verb
    def list_secrets(self, user: str) -> Flow[tuple[SecretInfo, ...]]:
        """List a service account's secrets without their texts, those that were ended, too."""
        reply = yield request("GET", f"{OWN}/users{segments(user)}/secrets")
        return decode(reply, _ListAnswer).secrets

    @verb
    def create_secret(self, user: str, *, expires_in_s: int | None = None) -> Flow[NewSecret]:
        """Make a secret; the answer is the only place where it is ever shown. Two count at a time."""
        reply = yield request("POST", f"{OWN}/users{segments(user)}/secrets", body={"expires_in_s": expires_in_s})
        return decode(reply, NewSecret)

    @verb
    def end_secret(self, user: str, secret_id: int | str) -> Flow[bool]:
        """End a secret with what it opened, and tell whether it counted."""
        reply = yield request("DELETE", f"{OWN}/users{segments(user)}/secrets{segments(str(secret_id))}")
        return decode(reply, _EndAnswer).ended
