# SPDX-License-Identifier: Apache-2.0
"""Calls on webhooks (own API), for the owner of the metalake."""

from __future__ import annotations

from collections.abc import Sequence

from limnos.client.flow import OWN, Flow, Resource, S, call, request, segments, verb
from limnos.client.values import NewWebhook, WebhookInfo


class Webhooks(Resource[S]):
    """Calls on webhooks: URLs to which the server sends the metalake's changes."""

    def _path(self, *rest: str) -> str:
        return f"{OWN}{segments('metalakes', self.scope.metalake, 'webhooks', *rest)}"

    @verb
    def list(self) -> Flow[tuple[WebhookInfo, ...]]:
        """List webhooks, with their undelivered revisions and last errors."""
        return call("GET", self._path(), answer=tuple[WebhookInfo, ...], field="webhooks")

    @verb
    def create(self, url: str, *, after: str | None = None, operations: Sequence[str] = ()) -> Flow[NewWebhook]:
        """Create a webhook that starts now, at a feed position, or at the `oldest` change.

        With `operations` it sends the changes with these operations alone, such as `fail` and `late`. The secret is
        returned only here.
        """
        body: dict[str, object] = {"url": url, "after": after}
        if operations:
            body["operations"] = [*operations]
        return call("POST", self._path(), answer=NewWebhook, body=body)

    @verb
    def drop(self, webhook_id: int | str) -> Flow[None]:
        """Delete a webhook; undelivered changes are not sent."""
        yield request("DELETE", self._path(str(webhook_id)))

    @verb
    def retry(self, webhook_id: int | str, *, after: str | None = None) -> Flow[None]:
        """Resume the deliveries of a webhook now, also after it was stopped: from its position, or from `oldest`, `now`
        or a feed position.
        """
        yield request("POST", self._path(str(webhook_id), "retry"), body={"after": after})
