"""Calls on API tokens (own API).

May import this room.
"""

from __future__ import annotations

import msgspec

from limnos.client.flow import Flow, Resource, S, decode, request, segments, verb
from limnos.client.paths import OWN
from limnos.client.values import NewToken, TokenInfo


class _ListAnswer(msgspec.Struct):
    tokens: tuple[TokenInfo, ...]


class _RevokeAnswer(msgspec.Struct):
    revoked: bool


class Tokens(Resource[S]):
    """API tokens: the caller's own, or those of another user for who may manage them."""

    __slots__ = ()

    @verb
    def list(self, *, user: str | None = None, everyone: bool = False) -> Flow[tuple[TokenInfo, ...]]:
        """List tokens without their secrets: the caller's, a user's, or everybody's."""
        reply = yield request("GET", f"{OWN}/tokens", query={"user": user, "all": "true" if everyone else None})
        return decode(reply, _ListAnswer).tokens

    @verb
    def create(
        self, *, user: str | None = None, name: str | None = None, expires_in_s: int | None = None
    ) -> Flow[NewToken]:
        """Make a token; the answer is the only place its secret is ever shown."""
        body = {"user": user, "name": name, "expires_in_s": expires_in_s}
        reply = yield request("POST", f"{OWN}/tokens", body=body)
        return decode(reply, NewToken)

    @verb
    def revoke(self, token_id: int | str) -> Flow[bool]:
        """Make a token worthless from the next request on, and tell whether it was not before."""
        reply = yield request("DELETE", f"{OWN}/tokens{segments(str(token_id))}")
        return decode(reply, _RevokeAnswer).revoked
