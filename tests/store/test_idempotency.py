# SPDX-License-Identifier: Apache-2.0
"""Stored outcomes of requests with idempotency keys: stored once, and deleted after the promised time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import asyncpg
import pytest

from limnos.store.backends.sqlite import SqliteStore
from limnos.store.idempotency import PRUNED_AT_ONCE, IdempotencyKey, RequestOutcome, outcome_of, outcome_query
from limnos.store.tx import Tx
from tests.backends import StoreLab
from tests.store.world import StoreWorld

DONE = RequestOutcome(fingerprint=b"f" * 16, operation="create-table", status=200, object_id=77, body=None)
REFUSED = RequestOutcome(
    fingerprint=b"g" * 16, operation="commit-table", status=409, object_id=None, body=b'{"error":{}}'
)
FAR_MS = 1 << 50
"""Later than any time of this test."""


def key(
    world: StoreWorld, *, caller: str = "id 1001", text: str = "01890a5d-ac96-774b-bcce-b302099a8057"
) -> IdempotencyKey:
    """Return a key of the catalog `main`."""
    return IdempotencyKey(world.main.id, caller, text)


def keep(
    lab: StoreLab, where: IdempotencyKey, outcome: RequestOutcome, *, lifetime_ms: int = 60_000
) -> RequestOutcome | None:
    """Store an outcome in a transaction without other changes, which is committed, too."""
    return lab.write(lambda tx: tx.outcomes.keep(where, outcome, lifetime_ms=lifetime_ms), zone=where.zone)


def read(lab: StoreLab, where: IdempotencyKey, *, now_ms: int = 1) -> RequestOutcome | None:
    """Read an outcome from the store, without a view."""
    return outcome_of(lab.find(outcome_query(where, now_ms=now_ms)))


def test_first_outcome_of_a_key_is_not_replaced(lab: StoreLab, world: StoreWorld) -> None:
    """The first stored outcome of a key is returned to later requests and is not replaced."""
    outcomes = [keep(lab, key(world), DONE), keep(lab, key(world), REFUSED)]

    assert outcomes == [None, DONE]
    assert read(lab, key(world)) == DONE


def test_key_lookup_takes_one_statement(lab: StoreLab, world: StoreWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looking up a key takes exactly one statement, because every request with a key does it first."""
    keep(lab, key(world), DONE)
    read(lab, key(world))
    sent = list[str]()
    if isinstance(lab.store, SqliteStore):
        lab.store._reader.set_trace_callback(sent.append)
    else:
        for name in ("fetch", "execute"):
            monkeypatch.setattr(asyncpg.Connection, name, _noted(getattr(asyncpg.Connection, name), sent))

    assert read(lab, key(world)) == DONE

    assert len(sent) == 1, sent


def _noted(method: Callable[..., Any], sent: list[str]) -> Callable[..., Any]:
    def noting(self: object, text: str, *params: object, **named: object) -> object:
        sent.append(text)
        return method(self, text, *params, **named)

    return noting


def test_keys_are_separate_by_caller_and_catalog(lab: StoreLab, world: StoreWorld) -> None:
    """The same key text of another caller, or in another catalog, is another key."""
    keep(lab, key(world), REFUSED)
    others = [key(world, caller="id 1002"), key(world, text="x"), key(world)._replace(zone=world.side.id)]

    assert read(lab, key(world)) == REFUSED
    assert [read(lab, other) for other in others] == [None] * 3
    assert [keep(lab, other, DONE) for other in others] == [None] * 3


def test_expired_outcome_can_be_replaced(lab: StoreLab, world: StoreWorld) -> None:
    """An expired outcome is not found, and another one can replace it."""
    keep(lab, key(world), DONE, lifetime_ms=0)

    assert read(lab, key(world), now_ms=FAR_MS) is None
    assert keep(lab, key(world), REFUSED) is None
    assert read(lab, key(world)) == REFUSED


def test_rolled_back_mutation_stores_no_outcome(lab: StoreLab, world: StoreWorld) -> None:
    """An outcome is stored in the transaction of its mutation: a mutation that is rolled back stores none."""

    def mutation(tx: Tx) -> None:
        tx.outcomes.keep(key(world), DONE, lifetime_ms=60_000)
        raise ValueError("refused")

    with pytest.raises(ValueError, match="refused"):
        lab.write(mutation, zone=world.main.id)

    assert read(lab, key(world)) is None


def test_pruning_deletes_the_oldest_expired_outcomes(lab: StoreLab, world: StoreWorld) -> None:
    """Pruning deletes a limited number of expired outcomes, the oldest first, and no other."""

    def many(tx: Tx) -> None:
        for number in range(PRUNED_AT_ONCE + 5):
            tx.outcomes.keep(key(world, text=f"old {number}"), DONE, lifetime_ms=-number)
        tx.outcomes.keep(key(world), DONE, lifetime_ms=60_000)

    lab.write(many, zone=world.main.id)
    pruned_counts = [lab.write(lambda tx: tx.outcomes.prune()) for _ in range(3)]

    assert pruned_counts == [PRUNED_AT_ONCE, 5, 0]
    assert read(lab, key(world)) == DONE
