"""Calls on webhooks (own API), for the owner of the metalake.

May import this room.
"""

from __future__ import annotations

from limnos.client.flow import OWN, Flow, Resource, S, call, request, segments, verb
from limnos.client.values import NewWebhook, WebhookInfo


class Webhooks(Resource[S]):
    """Addresses that the metalake's changes are sent to."""

    __slots__ = ()

    def _path(self, *rest: str) -> str:
        return f"{OWN}{segments('metalakes', self.scope.metalake, 'webhooks', *rest)}"

    @verb
    def list(self) -> Flow[tuple[WebhookInfo, ...]]:
        """List webhooks: how far behind each is, and what went wrong last."""
        return call("GET", self._path(), answer=tuple[WebhookInfo, ...], field="webhooks")

    @verb
    def create(self, url: str, *, after: str | None = None) -> Flow[NewWebhook]:
        """Send changes to an address from now on, from a position, or from the `oldest`; the secret is shown once."""
        return call("POST", self._path(), answer=NewWebhook, body={"url": url, "after": after})

    @verb
    def drop(self, webhook_id: int | str) -> Flow[None]:
        """Send nothing more."""
        yield request("DELETE", self._path(str(webhook_id)))

    @verb
    def retry(self, webhook_id: int | str, *, after: str | None = None) -> Flow[None]:
        """Try again at once, also one that stopped: where it was, or from `oldest`, `now` or a position."""
        yield request("POST", self._path(str(webhook_id), "retry"), body={"after": after})
