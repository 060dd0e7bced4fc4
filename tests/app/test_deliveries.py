# SPDX-License-Identifier: Apache-2.0
"""Webhook deliveries over real sockets: all changes arrive, in order and signed, even if the receiver fails
meanwhile.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from limnos.app.deliveries import LEASE_MS, WebhookDeliveries, pause_ms
from limnos.model.errors import BadRequest
from limnos.model.kinds import Kind
from limnos.model.privileges import Privilege
from limnos.model.sealed_secrets import keys_of
from limnos.services.activity.feed import NEWEST, page_read
from limnos.services.activity.feed_positions import position_of
from limnos.services.activity.webhooks import (
    WebhookStatus,
    count_revisions_behind,
    webhook_create,
    webhook_retry,
    webhooks_list,
)
from limnos.services.catalog.metalakes import metalake_create
from limnos.services.catalog.namespaces import namespace_create, namespace_drop
from limnos.services.identity.owners import owner_set
from limnos.services.identity.users import principal_remove
from limnos.services.request.concurrency import commit_watcher
from limnos.services.request.named_storages import NamedStorages
from limnos.services.request.request_scope import RequestScope
from limnos.services.request.secret_sealing import SealingKeys, key_name
from limnos.services.upkeep.secret_keys import keys_list, keys_rotate
from limnos.store.activity.feed import ZoneClock
from limnos.store.activity.upkeep import feed_prune
from tests.app.receivers import Receiver, receiving
from tests.backends import StoreLab, sqlite_copy
from tests.inprocess import LAKE, MAIN, fill
from tests.services.conftest import ServiceDesk

WITHIN_S = 300
ONE, TWO = b"1" * 32, b"2" * 32


@pytest.fixture
def desk(sqlite_template: Path, tmp_path: Path) -> Iterator[ServiceDesk]:
    """A desk with catalog `main` whose node may send to loopback."""
    lab = StoreLab(sqlite_copy(sqlite_template, tmp_path))
    desk = ServiceDesk(lab)
    lab.run(fill(desk.ctx()))
    desk.node.services.defaults = desk.node.services.defaults._replace(allowed_urls=("http://127.0.0.1",))
    yield desk
    lab.close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A running webhook receiver."""
    with receiving() as running_receiver:
        yield running_receiver


def hook(
    desk: ServiceDesk,
    receiver: Receiver,
    *,
    after: str | None = None,
    user: str = "admin",
    operations: Sequence[str] = (),
) -> int:
    """Create a webhook."""
    services = desk.node.services
    services.defaults = services.defaults._replace(allowed_urls=(receiver.url,))
    webhook = desk.run(
        webhook_create(desk.ctx(user), metalake=LAKE, url=f"{receiver.url}/hook", after=after, operations=operations)
    )
    receiver.secret = webhook.secret
    return webhook.id


def deliver(desk: ServiceDesk, until: Callable[[], bool], *, timeout_s: float = 5) -> None:
    """Let a node send until a condition is true."""

    async def run() -> None:
        deliveries = WebhookDeliveries(desk.node.services, timeout_s=timeout_s)
        running = asyncio.create_task(deliveries.run())
        limit = time.monotonic() + WITHIN_S
        try:
            while not until():
                assert time.monotonic() < limit, "it did not happen in time"
                deliveries.wake()
                await asyncio.sleep(0.01)
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    desk.run(run())


def standing(desk: ServiceDesk) -> WebhookStatus:
    """Return the only webhook."""
    (webhook_status,) = desk.run(webhooks_list(desk.ctx(), LAKE))
    return webhook_status


def failed(desk: ServiceDesk) -> bool:
    """Return whether a delivery has failed."""
    return desk.rows("SELECT 1 FROM webhook WHERE error IS NOT NULL") != []


def settled(desk: ServiceDesk) -> bool:
    """Return whether no delivery waits for its retry: the position moves after the receiver has accepted."""
    return desk.rows("SELECT 1 FROM webhook WHERE attempts > 0") == []


def due_now(desk: ServiceDesk) -> None:
    """Make all webhooks due now."""
    desk.rows("UPDATE webhook SET due_at = 0 WHERE stopped = FALSE")


def caught_up(desk: ServiceDesk) -> bool:
    """Return whether the stored position of the only webhook is behind in no zone."""
    ((text,),) = desk.rows("SELECT position FROM webhook")
    revisions = dict(desk.rows("SELECT zone, revision FROM clock"))
    return all(revisions[zone] == at for zone, at in position_of(str(text)).zones.items())


def names(receiver: Receiver) -> list[str]:
    """Return the names of the namespaces in the received events."""
    return [event["data"]["path"][-1] for event in receiver.events]


def test_changes_are_delivered_signed_once_and_in_order(desk: ServiceDesk, receiver: Receiver) -> None:
    """Changes arrive as CloudEvents, each once and in order, with a signature over time and body. Then the position is
    not behind.
    """
    hook(desk, receiver)
    for number in range(250):
        desk.namespace(f"n{number}")

    deliver(desk, lambda: len(receiver.events) >= 250 and caught_up(desk))

    event = receiver.events[0]
    assert names(receiver) == [f"n{number}" for number in range(250)]
    assert receiver.wrong == []
    assert max(map(len, receiver.taken)) == 100
    assert {key: event[key] for key in ("specversion", "type", "source", "subject", "datacontenttype")} == {
        "specversion": "1.0",
        "type": "limnos.namespace.create",
        "source": "/metalakes/lake",
        "subject": "main.n0",
        "datacontenttype": "application/json",
    }
    assert [each["sequence"] for each in receiver.events] == sorted(each["sequence"] for each in receiver.events)
    assert len({each["id"] for each in receiver.events}) == 250
    assert (standing(desk).behind, standing(desk).webhook.error) == (0, None)


def test_webhook_waits_despite_limit_of_feed_readers(
    desk: ServiceDesk, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the limit of waiting feed readers is reached, a webhook can wait nevertheless, and does not fail."""
    monkeypatch.setattr(commit_watcher, "WAITERS_MAX", 0)
    hook(desk, receiver)
    desk.namespace("a")

    deliver(desk, lambda: desk.node.services.watch.waiting > 0 or failed(desk))

    assert names(receiver) == ["a"]
    assert standing(desk).webhook.error is None


def test_change_during_sending_is_delivered(desk: ServiceDesk, receiver: Receiver) -> None:
    """A change that is made while a node sends is delivered without another search for due webhooks."""
    hook(desk, receiver)

    async def run() -> None:
        deliveries = WebhookDeliveries(desk.node.services, timeout_s=5)
        running = asyncio.create_task(deliveries.run())
        for number in range(5):
            while desk.node.services.watch.waiting == 0:  # noqa: ASYNC110 - the watch has no event for it
                await asyncio.sleep(0.01)
            await namespace_create(desk.ctx(), MAIN, levels=(f"n{number}",), properties={})
            async with asyncio.timeout(WITHIN_S):
                while len(receiver.events) <= number:  # noqa: ASYNC110 - the receiver is in a thread
                    await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    desk.run(run())

    assert names(receiver) == [f"n{number}" for number in range(5)]


@pytest.mark.parametrize("status", [500, 404, 302])
def test_refused_delivery_is_reported_and_retried(desk: ServiceDesk, receiver: Receiver, status: int) -> None:
    """A refused delivery is kept, its reason is reported, and it is sent again with the same id when the receiver
    accepts.
    """
    hook(desk, receiver)
    desk.namespace("a")
    receiver.status = status
    deliver(desk, lambda: failed(desk))
    before = standing(desk)
    receiver.status = 204
    due_now(desk)

    deliver(desk, lambda: bool(receiver.events) and settled(desk))

    assert (before.behind, before.webhook.attempts >= 1) == (1, True)
    assert f"answered {status}" in str(before.webhook.error)
    assert names(receiver) == ["a"]
    assert len(set(receiver.messages)) == 1
    assert standing(desk).webhook.attempts == 0


def test_redirects_are_not_followed(desk: ServiceDesk, receiver: Receiver) -> None:
    """A redirect is a failure: the receiver is called once for each attempt, and the redirect's target never."""
    hook(desk, receiver)
    desk.namespace("a")
    with receiving() as elsewhere:
        receiver.status, original_url = 307, receiver.url
        receiver.url = elsewhere.url
        deliver(desk, lambda: failed(desk))
        receiver.url = original_url

        assert "redirects are not followed" in str(standing(desk).webhook.error)
        assert elsewhere.messages == []


def test_delivery_fails_if_receiver_exceeds_deadline(desk: ServiceDesk, receiver: Receiver) -> None:
    """If the receiver does not answer before the deadline, the delivery has failed."""
    hook(desk, receiver)
    desk.namespace("a")
    receiver.hangs.set()

    deliver(desk, lambda: failed(desk), timeout_s=0.2)

    assert standing(desk).webhook.error == "no response within 0.2 s"


def test_changes_during_receiver_downtime_are_delivered_later(desk: ServiceDesk) -> None:
    """All changes that were made while the receiver was down are delivered in order when it is back."""
    with receiving() as receiver:
        hook(desk, receiver)
        port = int(receiver.url.rpartition(":")[2])
    for number in range(30):
        desk.namespace(f"n{number}")
    deliver(desk, lambda: failed(desk))
    due_now(desk)

    with receiving(port, receiver):
        deliver(desk, lambda: len(receiver.events) >= 30)

    assert names(receiver) == [f"n{number}" for number in range(30)]


def test_batches_shrink_to_isolate_a_refused_event(desk: ServiceDesk, receiver: Receiver) -> None:
    """After failures the batches get smaller, so that all events before the refused one are delivered."""
    hook(desk, receiver)
    for number in range(20):
        desk.namespace(f"n{number}")
    original_take = receiver.take

    def picky(headers: dict[str, str], body: bytes) -> int:
        if b'"n13"' in body:
            receiver.refused += 1
            return 400
        return original_take(headers, body)

    receiver.take = picky  # type: ignore[method-assign]

    def is_n12_delivered() -> bool:
        due_now(desk)
        return "n12" in names(receiver)

    deliver(desk, is_n12_delivered)

    assert list(dict.fromkeys(names(receiver))) == [f"n{number}" for number in range(13)]


def test_two_nodes_do_not_send_at_once(desk: ServiceDesk, receiver: Receiver) -> None:
    """Only one node at a time sends for a webhook."""
    hook(desk, receiver)
    for number in range(50):
        desk.namespace(f"n{number}")

    async def run() -> None:
        running = [asyncio.create_task(WebhookDeliveries(desk.node.services, timeout_s=5).run()) for _ in range(3)]
        async with asyncio.timeout(WITHIN_S):
            while len(receiver.events) < 50:  # noqa: ASYNC110 - the receiver is in a thread
                await asyncio.sleep(0.01)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    desk.run(run())

    assert names(receiver) == [f"n{number}" for number in range(50)]


def test_stopping_node_releases_its_webhooks(desk: ServiceDesk, receiver: Receiver) -> None:
    """A node that stops releases its webhooks, so that another node need not wait for the end of the lease."""
    hook(desk, receiver)
    desk.namespace("a")
    deliver(desk, lambda: bool(receiver.events))

    assert desk.rows("SELECT leased_until, holder FROM webhook") == [(0, "")]


def test_node_with_expired_lease_cannot_move_position_back(desk: ServiceDesk, receiver: Receiver) -> None:
    """A node whose lease has expired cannot move the position back."""
    webhook_id = hook(desk, receiver)
    before = standing(desk).webhook.position

    def rivals(tx: object) -> list[bool]:
        webhooks = tx.webhooks  # type: ignore[attr-defined]
        first = webhooks.lease("one", limit=9, lease_ms=-1)
        second = webhooks.lease("two", limit=9, lease_ms=1000)
        moves = [
            webhooks.store_position(webhook_id, who, position=before, lease_ms=1, delivered=False)
            for who in ("one", "two")
        ]
        return [len(first) == 1, len(second) == 1, *moves]

    assert desk.lab.write(rivals) == [True, True, False, True]


def test_webhook_delivers_only_events_visible_to_creator(desk: ServiceDesk, receiver: Receiver) -> None:
    """A webhook delivers what its creator may see at the time of sending: a creator who is no longer owner receives
    only the events that its other privileges allow.
    """
    desk.users("ana")
    desk.run(
        owner_set(desk.ctx(), metalake=LAKE, kind=Kind.METALAKE, full_name=LAKE, owner_kind=Kind.USER, owner="ana")
    )
    hook(desk, receiver, user="ana")
    desk.run(
        owner_set(
            desk.ctx("ana"), metalake=LAKE, kind=Kind.METALAKE, full_name=LAKE, owner_kind=Kind.USER, owner="admin"
        )
    )
    desk.namespace("seen")
    desk.namespace("hidden")
    desk.namespace("seen", "last")
    desk.allow("ana", Kind.CATALOG, "main", Privilege.USE_CATALOG)
    desk.allow("ana", Kind.NAMESPACE, "main.seen", Privilege.USE_SCHEMA)

    deliver(desk, lambda: "last" in names(receiver))

    assert "hidden" not in names(receiver)


def test_webhook_sends_the_changes_of_its_operations_alone(desk: ServiceDesk, receiver: Receiver) -> None:
    """A webhook with operations sends their changes alone, and its position passes the others."""
    hook(desk, receiver, operations=("drop",))
    desk.namespace("kept")
    desk.namespace("last")
    desk.run(namespace_drop(desk.ctx(), RequestScope(LAKE, "main"), levels=("last",)))

    deliver(desk, lambda: "last" in names(receiver))

    assert names(receiver) == ["last"]


def test_webhook_of_removed_creator_delivers_nothing(desk: ServiceDesk, receiver: Receiver) -> None:
    """After the creator was removed nothing is delivered, not even if a new user has the same name."""
    desk.users("ana")
    desk.run(
        owner_set(desk.ctx(), metalake=LAKE, kind=Kind.METALAKE, full_name=LAKE, owner_kind=Kind.USER, owner="ana")
    )
    hook(desk, receiver, user="ana")
    desk.run(
        owner_set(
            desk.ctx("ana"), metalake=LAKE, kind=Kind.METALAKE, full_name=LAKE, owner_kind=Kind.USER, owner="admin"
        )
    )
    desk.run(principal_remove(desk.ctx(), metalake=LAKE, kind=Kind.USER, name="ana"))
    desk.users("ana")

    deliver(desk, lambda: failed(desk))

    assert "was removed" in str(standing(desk).webhook.error)
    assert receiver.events == []


def test_webhook_stops_if_undelivered_changes_were_deleted(desk: ServiceDesk, receiver: Receiver) -> None:
    """If changes were deleted before they were delivered, the webhook stops with that reason until a user sets a new
    position.
    """
    webhook_id = hook(desk, receiver)
    desk.namespace("lost")
    desk.lab.write(lambda tx: feed_prune(tx, keep_ms=-1000))
    desk.namespace("kept")
    deliver(desk, lambda: desk.rows("SELECT 1 FROM webhook WHERE stopped = TRUE") != [])
    stopped = standing(desk)

    desk.run(webhook_retry(desk.ctx(), metalake=LAKE, webhook_id=webhook_id, after="oldest"))
    deliver(desk, lambda: bool(receiver.events))

    assert "no longer kept" in str(stopped.webhook.error)
    assert names(receiver) == ["kept"]


def test_addresses_are_looked_at_again_when_sending(desk: ServiceDesk, receiver: Receiver) -> None:
    """If the server's settings no longer allow the webhook's address, nothing is sent."""
    hook(desk, receiver)
    desk.namespace("a")
    services = desk.node.services
    services.defaults = services.defaults._replace(allowed_urls=())

    deliver(desk, lambda: failed(desk))

    assert "events.allowed_urls" in str(standing(desk).webhook.error)
    assert receiver.messages == []


def test_retry_pause_doubles_up_to_a_limit(desk: ServiceDesk) -> None:
    """The pause doubles after each failure up to a quarter of an hour, and is reduced randomly by up to a half."""
    assert all(500 <= pause_ms(0) <= 1_000 and 4_000 <= pause_ms(3) <= 8_000 for _ in range(20))
    assert all(450_000 <= pause_ms(99) <= 900_000 for _ in range(20))


def test_webhook_secrets_are_sealed_in_the_database(desk: ServiceDesk, receiver: Receiver) -> None:
    """The database has sealed secrets only, and a rotation of keys seals secrets of an earlier release. Messages are
    signed as before. If the key of a secret is missing, nothing is sent, and the error names the key's id.
    """
    services = desk.node.services

    def install_keys(*keys: bytes) -> None:
        sealing_keys = SealingKeys(keys)
        sealing_keys.begin()
        services.defaults = services.defaults._replace(storages=NamedStorages(keys=sealing_keys))

    def read_stored_secret() -> str:
        return str(desk.rows("SELECT secret FROM webhook")[0][0])

    hook(desk, receiver)
    assert read_stored_secret() == receiver.secret  # as an earlier release wrote it
    for number, keys in enumerate([(ONE,), (ONE, TWO)]):
        install_keys(*keys)
        key_usage, done = desk.run(keys_rotate(desk.ctx()))
        assert (done, key_usage.plain, key_usage.webhooks) == (1, 0, {key_name(keys[-1]): 1})
        assert keys_of(read_stored_secret()) == {key_name(keys[-1])}
        assert receiver.secret not in read_stored_secret()
        desk.namespace(f"n{number}")
        deliver(desk, lambda: f"n{number}" in names(receiver))  # noqa: B023 - called before the next
    install_keys(ONE)
    desk.namespace("late")
    deliver(desk, lambda: failed(desk))

    assert set(names(receiver)) == {"n0", "n1"}  # the failed delivery is sent again
    assert key_name(TWO) in str(standing(desk).webhook.error)
    assert desk.run(keys_list(desk.ctx())).lacking == (key_name(TWO),)


def test_a_new_webhook_is_sealed_at_once(desk: ServiceDesk, receiver: Receiver) -> None:
    """The creator of a webhook gets its secret; the database has only the sealed one."""
    keys = SealingKeys((ONE,))
    keys.begin()
    desk.node.services.defaults = desk.node.services.defaults._replace(storages=NamedStorages(keys=keys))
    hook(desk, receiver)
    desk.namespace("n")
    deliver(desk, lambda: len(receiver.events) == 1)

    ((stored_secret,),) = desk.rows("SELECT secret FROM webhook")
    assert keys_of(str(stored_secret)) == {key_name(ONE)}
    assert receiver.secret not in str(stored_secret)


def test_a_position_ahead_of_a_clock_is_not_behind(desk: ServiceDesk, receiver: Receiver) -> None:
    """If a position is ahead of a zone's clock, as after a restore, that zone counts as zero behind, never as less.
    Other zones count as usual.
    """
    hook(desk, receiver)
    webhook = standing(desk).webhook
    zones = position_of(webhook.position).zones
    clocks = {zone: ZoneClock(at - 5, 0) for zone, at in zones.items()}
    first = next(iter(zones))

    assert count_revisions_behind(webhook, clocks) == 0
    assert count_revisions_behind(webhook, {**clocks, first: ZoneClock(zones[first] + 3, 0)}) == 3


def test_webhook_position_of_another_metalake_is_refused(desk: ServiceDesk, receiver: Receiver) -> None:
    """A webhook's position must be one of its own metalake. A position of another metalake is refused, for a new
    webhook and for a retry.
    """
    desk.run(metalake_create(desk.ctx(), name="pond", comment=None, properties={}))
    page = desk.run(page_read(desk.ctx(), RequestScope("pond"), None, limit=1, start=NEWEST))
    own = hook(desk, receiver)

    with pytest.raises(BadRequest):
        hook(desk, receiver, after=page.position.text())
    with pytest.raises(BadRequest):
        desk.run(webhook_retry(desk.ctx(), metalake=LAKE, webhook_id=own, after=page.position.text()))
    assert [each.webhook.id for each in desk.run(webhooks_list(desk.ctx(), LAKE))] == [own]


def test_a_node_that_lost_its_lease_sends_no_more(desk: ServiceDesk, receiver: Receiver) -> None:
    """If another node has taken over a webhook, the first node stops after the batch that it is sending."""
    hook(desk, receiver)
    for number in range(250):
        desk.namespace(f"n{number}")
    take = receiver.take

    def stolen(headers: dict[str, str], body: bytes) -> int:
        if not receiver.taken:
            desk.rows("UPDATE webhook SET holder = 'another'")
        return take(headers, body)

    receiver.take = stolen  # type: ignore[method-assign]
    deliveries = WebhookDeliveries(desk.node.services, timeout_s=5)

    async def run() -> None:
        await deliveries._take()
        async with asyncio.timeout(WITHIN_S):
            await asyncio.gather(*deliveries._held)

    desk.run(run())

    assert 0 < len(receiver.events) < 250
    assert desk.rows("SELECT holder FROM webhook") == [("another",)]


def test_lease_is_renewed_after_at_most_a_third_of_its_time(
    desk: ServiceDesk, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wait for changes is at most a third of a webhook's lease."""
    hook(desk, receiver)
    waits: list[float] = []

    async def wait(_: object, timeout_s: float, **__: object) -> None:
        waits.append(timeout_s)
        await asyncio.sleep(0.01)

    monkeypatch.setattr(desk.node.services.watch, "wait", wait)
    deliver(desk, lambda: len(waits) > 1)

    assert max(waits) * 1000 * 3 <= LEASE_MS
