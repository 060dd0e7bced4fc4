# SPDX-License-Identifier: Apache-2.0
"""Webhooks in the store: one node leases each, and only that node changes its state."""

from __future__ import annotations

from limnos.model.entities import Webhook
from limnos.store.activity.upkeep import orphans_sweep
from limnos.store.activity.webhooks import webhooks_due, webhooks_read
from limnos.store.tx import Tx
from tests.backends import StoreLab
from tests.store.world import StoreWorld


def make(lab: StoreLab, world: StoreWorld) -> Webhook:
    """Create a webhook."""
    return lab.write(
        lambda tx: tx.webhooks.create(metalake_id=world.lake.id, user_id=7, url="https://h", secret="s", position="p")
    )


def read(lab: StoreLab, world: StoreWorld) -> list[Webhook]:
    """Return the webhooks of the metalake."""
    return lab.load(webhooks_read(world.lake.id))


def is_due(lab: StoreLab, ahead_ms: int = 0) -> bool:
    """Return whether a delivery is due, now or later."""
    return lab.load(webhooks_due(lab.store.time.now_ms() + ahead_ms))


def test_webhook_is_read_as_it_was_written(lab: StoreLab, world: StoreWorld) -> None:
    """A webhook is read as it was written, with its user."""
    webhook = make(lab, world)

    assert read(lab, world) == [webhook]
    assert (webhook.user, webhook.user_id, webhook.stopped, webhook.error, webhook.delivered_at) == (
        "tester",
        7,
        False,
        None,
        None,
    )


def test_webhook_is_leased_by_one_node(lab: StoreLab, world: StoreWorld) -> None:
    """A webhook is leased by one node until the lease ends, and is due again then."""
    make(lab, world)

    def lease(tx: Tx) -> int:
        return len(tx.webhooks.lease("me", limit=9, lease_ms=60_000))

    assert [lab.write(lease), lab.write(lease)] == [1, 0]
    assert [is_due(lab), is_due(lab, ahead_ms=61_000)] == [False, True]


def test_only_the_lease_holder_records_progress_and_failures(lab: StoreLab, world: StoreWorld) -> None:
    """Only the node with the lease can move the position or record an error. A success resets the number of
    failures.
    """
    hook = make(lab, world)
    lab.write(lambda tx: tx.webhooks.lease("me", limit=9, lease_ms=60_000))
    lab.write(lambda tx: tx.webhooks.record_failure(hook.id, "other", "no", delay_ms=0))
    untouched = read(lab, world)[0]
    lab.write(lambda tx: tx.webhooks.record_failure(hook.id, "me", "no", delay_ms=0))
    failed = read(lab, world)[0]
    lab.write(lambda tx: tx.webhooks.lease("me", limit=9, lease_ms=60_000))
    moved = [
        lab.write(
            lambda tx, who=who: tx.webhooks.store_position(
                hook.id, who, position=f"by {who}", lease_ms=1000, delivered=True
            )
        )
        for who in ("other", "me")
    ]
    reached = read(lab, world)[0]

    assert (untouched.attempts, untouched.error) == (0, None)
    assert (failed.attempts, failed.error, failed.leased_until) == (1, "no", 0)
    assert moved == [False, True]
    assert (reached.position, reached.attempts, reached.error) == ("by me", 0, None)
    assert reached.delivered_at is not None


def test_stopped_webhook_is_due_after_a_restart(lab: StoreLab, world: StoreWorld) -> None:
    """A stopped webhook is due again when a user restarts it, at its position or at another one."""
    hook = make(lab, world)
    lab.write(lambda tx: tx.webhooks.lease("me", limit=9, lease_ms=60_000))
    lab.write(lambda tx: tx.webhooks.record_failure(hook.id, "me", "lost", delay_ms=None))
    stopped = is_due(lab, ahead_ms=10**12)
    revived = lab.write(lambda tx: tx.webhooks.retry(world.lake.id, hook.id, position=None))

    assert (stopped, revived, is_due(lab)) == (False, True, True)
    assert read(lab, world)[0].position == "p"
    lab.write(lambda tx: tx.webhooks.retry(world.lake.id, hook.id, position="q"))
    assert (read(lab, world)[0].position, read(lab, world)[0].stopped) == ("q", False)


def test_webhook_is_dropped_only_with_its_metalake_id(lab: StoreLab, world: StoreWorld) -> None:
    """A drop with another metalake's id does nothing. With its own metalake's id, the webhook is deleted."""
    hook = make(lab, world)

    is_dropped = lab.write(lambda tx: tx.webhooks.drop(world.main.id, hook.id))
    lab.write(orphans_sweep)
    existing_webhooks = read(lab, world)
    lab.write(lambda tx: tx.nodes.drop(world.lake))
    lab.write(orphans_sweep)

    assert (is_dropped, len(existing_webhooks), read(lab, world)) == (False, 1, [])
