# SPDX-License-Identifier: Apache-2.0
"""Calls on API tokens (own API)."""

from __future__ import annotations

from limnos.client.flow import OWN, Flow, Resource, S, call, segments, verb
from limnos.client.values import NewToken, TokenInfo


class Tokens(Resource[S]):
    """Calls on the API tokens of the caller, or of another user for callers with the right to manage them."""

    @verb
    def list(self, *, user: str | None = None, everyone: bool = False) -> Flow[tuple[TokenInfo, ...]]:
        """List tokens without their secrets: the caller's, a user's, or all."""
        query = {"user": user, "all": "true" if everyone else None}
        return call("GET", f"{OWN}/tokens", answer=tuple[TokenInfo, ...], field="tokens", query=query)

    @verb
    def create(
        self, *, user: str | None = None, name: str | None = None, expires_in_s: int | None = None
    ) -> Flow[NewToken]:
        """Create a token. Only this response has its secret."""
        body = {"user": user, "name": name, "expires_in_s": expires_in_s}
        return call("POST", f"{OWN}/tokens", answer=NewToken, body=body)

    @verb
    def revoke(self, token_id: int | str) -> Flow[bool]:
        """Revoke a token from the next request on. Returns whether it was valid."""
        return call("DELETE", f"{OWN}/tokens{segments(str(token_id))}", answer=bool, field="revoked")
