"""Calls on webhooks (own API), for the owner of the metalake.

May import this room.
"""

from __future__ import annotations

import msgspec

from limnos.client.flow import Flow, Resource, S, decode, request, segments, verb
from limnos.client.paths import OWN
from limnos.client.values import NewWebhook, WebhookInfo


class _ListAnswer(msgspec.Struct):
    webhooks: tuple[WebhookInfo, ...]


class Webhooks(Resource[S]):
    """Addresses that the metalake's changes are sent to."""

    __slots__ = ()

    def _path(self, *rest: str) -> str:
        return f"{OWN}{segments('metalakes', self.scope.metalake, 'webhooks', *rest)}"

    @verb
    def list(self) -> Flow[tuple[WebhookInfo, ...]]:
        """List webhooks: how far behind each is, and what went wrong last."""
        reply = yield request("GET", self._path())
        return decode(reply, _ListAnswer).webhooks

    @verb
    def create(self, url: str, *, after: str | None = None) -> Flow[NewWebhook]:
        """Send changes to an address from now on, from a position, or from the `oldest`; the secret is shown once."""
        reply = yield request("POST", self._path(), body={"url": url, "after": after})
        return decode(reply, NewWebhook)

    @verb
    def drop(self, webhook_id: int | str) -> Flow[None]:
        """Send nothing more."""
        yield request("DELETE", self._path(str(webhook_id)))

    @verb
    def retry(self, webhook_id: int | str, *, after: str | None = None) -> Flow[None]:
        """Try again at once, also one that stopped: where it was, or from `oldest`, `now` or a position."""
        yield request("POST", self._path(str(webhook_id), "retry"), body={"after": after})
