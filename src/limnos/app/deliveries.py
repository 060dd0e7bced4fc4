# SPDX-License-Identifier: Apache-2.0
"""Webhook deliveries: sends changes at least once and in the order of each zone; one node at a time serves a webhook.

The events are the change rows that the mutations wrote. A webhook's feed position advances in the store after the
receiver has accepted the events. Refused events are retried with exponential backoff in smaller batches, and never
skipped. A webhook stops with an error only if its next changes have been pruned.
"""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import suppress
from typing import Final

from limnos.app.http_post import PostFailed, post
from limnos.app.work_poller import WorkPoller
from limnos.http.cloudevents import batches_of, event_of, message_id, signed_headers
from limnos.model.entities import Webhook
from limnos.model.errors import LimnosError, PositionPruned
from limnos.model.permits import upkeep_permit
from limnos.services.activity.webhooks import WebhookBatch, webhook_next
from limnos.services.request.concurrency.lease_holders import new_holder
from limnos.services.request.node_services import NodeServices
from limnos.store.activity.webhooks import SECRET_PROPERTY, webhooks_due
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Counter, Gauge

log = get_logger("limnos.deliveries")
LEASE_MS: Final = 30_000
HELD_MAX: Final = 1_000
"""The maximum number of webhooks that one node leases. A waiting webhook costs little."""
LIMIT: Final = 200
"""The number of revisions per read."""
BATCH_MAX: Final = 100
"""The maximum number of events in a request body. Each failure halves it, down to one."""
PAUSE_MS: Final = 1_000
PAUSE_MS_MAX: Final = 900_000
DELIVERIES = Counter(
    "limnos_webhook_deliveries_total", "Requests to webhooks from this node, by outcome.", ("outcome",)
)
BEHIND = Gauge(
    "limnos_webhook_behind",
    "Revisions that this node has not delivered to a webhook yet, by the webhook's id.",
    ("webhook",),
)


class DeliveryRefusal(Exception):
    """Raised if the receiver responds with a status other than 2xx."""


class _FailureCounts:
    """The count of consecutive failures of a webhook."""

    def __init__(self, failed: int) -> None:
        self.failed = failed

    def part_of(self, count: int) -> int:
        """Return the batch size after failures: `count`, halved for each consecutive failure, at least 1.

        Smaller batches deliver the events before the one that the receiver refuses.
        """
        return max(1, count >> min(self.failed, 10))


class WebhookDeliveries(WorkPoller):
    """Sends changes to the webhooks for which this node has the lease."""

    works = "webhooks"

    def __init__(self, services: NodeServices, *, timeout_s: float) -> None:
        super().__init__(services.loops)
        self.services = services
        self.timeout_s = timeout_s
        self.holder = new_holder()
        self._permit = upkeep_permit("limnos")

    async def _take(self) -> None:
        """Lease the due webhooks, and start the deliveries to them."""
        store, capacity = self.services.store, HELD_MAX - len(self._held)
        now_ms = store.time.now_ms()
        if capacity <= 0 or not await self.services.gate.look_up(lambda: webhooks_due(now_ms)):
            return
        lease = store.submit(self._permit, lambda tx: tx.webhooks.lease(self.holder, limit=capacity, lease_ms=LEASE_MS))
        await self._begin_leased(lease, self._deliver)

    async def _deliver(self, webhook: Webhook) -> None:
        """Send changes to one webhook until an error occurs or the lease is lost; record the error."""
        tries = _FailureCounts(webhook.attempts)
        try:
            await self._send_pages(webhook, tries)
        except asyncio.CancelledError:
            with suppress(Exception, asyncio.CancelledError):
                await self.services.store.submit(self._permit, lambda tx: tx.webhooks.release(webhook.id, self.holder))
            raise
        except Exception as error:  # noqa: BLE001 - stored in the webhook, and retried
            await self._record_failure(webhook, error, tries)  # if that fails too, the lease expires by itself
        finally:
            BEHIND.pop((webhook.id,), None)

    async def _send_pages(self, webhook: Webhook, tries: _FailureCounts) -> None:
        """Read and send changes batch by batch while this node holds the lease."""
        position = webhook.position
        kept_at = time.monotonic()
        while True:
            sending = await webhook_next(self.services, webhook, position, limit=tries.part_of(LIMIT))
            page = sending.page
            BEHIND[webhook.id,] = page.behind
            if page.changes:
                await self._send(webhook, sending, size=tries.part_of(BATCH_MAX))
                tries.failed = 0
            position = page.position.text()
            if page.changes or time.monotonic() - kept_at > LEASE_MS / 3000:
                kept_at = time.monotonic()
                if not await self._store_position(webhook, position, delivered=bool(page.changes)):
                    return
            if not page.more:
                await self.services.watch.wait(page.reached, LEASE_MS / 3000, always=True)
                if self.services.watch.closed:
                    await asyncio.sleep(LEASE_MS / 1000)  # the node is stopping and will cancel this task

    async def _store_position(self, webhook: Webhook, position: str, *, delivered: bool) -> bool:
        """Store the feed position and renew the lease. Returns False if another node has taken the lease."""
        return await self.services.store.submit(
            self._permit,
            lambda tx: tx.webhooks.store_position(
                webhook.id, self.holder, position=position, lease_ms=LEASE_MS, delivered=delivered
            ),
        )

    async def _send(self, webhook: Webhook, sending: WebhookBatch, *, size: int) -> None:
        """Send the changes of a page, in requests of at most `size` events.

        Raises DeliveryRefusal for a status other than 2xx, PostFailed if no response arrived.
        """
        page = sending.page
        events = [event_of(each, epoch=page.position.epoch, metalake=sending.metalake) for each in page.changes]
        for body in batches_of(events, size=size):
            message = message_id(webhook.id, body)
            secret = self.services.defaults.storages.keys.opened_text(SECRET_PROPERTY, webhook.secret)
            headers = signed_headers(body, message=message, at_s=int(time.time()), secret=secret)
            status = await post(webhook.url, headers, body, timeout_s=self.timeout_s)
            if not 200 <= status < 300:
                text = f"{status}, and redirects are not followed" if 300 <= status < 400 else str(status)
                raise DeliveryRefusal(f"the receiver answered {text} to message {message}")
            DELIVERIES["delivered",] += 1

    async def _record_failure(self, webhook: Webhook, error: Exception, tries: _FailureCounts) -> None:
        """Record a failure, and release the webhook until its next attempt; stop it if its next changes were pruned."""
        is_expected = isinstance(error, DeliveryRefusal | PostFailed | LimnosError)
        text = (str(error) if is_expected else f"{type(error).__name__}: {error}")[:1000]
        delay = None if isinstance(error, PositionPruned) else pause_ms(tries.failed)
        if isinstance(error, PositionPruned):
            text += " ('limnos webhook retry --after oldest' continues without the lost changes)"
        DELIVERIES["failed",] += 1
        log.warning("webhook failed", webhook=webhook.id, error=text, again_in_ms=delay)
        await self.services.store.submit(
            self._permit, lambda tx: tx.webhooks.record_failure(webhook.id, self.holder, text, delay_ms=delay)
        )


def pause_ms(attempts: int) -> int:
    """Return the backoff in milliseconds after consecutive failures: exponential, with random jitter of up to half."""
    longest = min(PAUSE_MS << min(attempts, 20), PAUSE_MS_MAX)
    return round(longest * random.uniform(0.5, 1.0))  # noqa: S311 - so that receivers are not met by all at once
