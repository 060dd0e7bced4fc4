# SPDX-License-Identifier: Apache-2.0
"""Rows of statement locks: the check of a lock's token in a mutation, and the rows that a decision reads."""

from __future__ import annotations

import pytest

from limnos.model.errors import LockLost
from limnos.model.statement_locks import LockKey, LockKind, LockMode, LockRequest, LockRow, secret_of
from limnos.names.dataverse import DataverseName
from limnos.store.activity.sqlpp_locks import lock_status_query
from limnos.store.tx import Tx
from tests.backends import StoreLab

READ, MODIFY, WRITE = LockMode.READ, LockMode.MODIFY, LockMode.WRITE
EXCLUSIVE = LockMode.EXCLUSIVE_MODIFY


def key(name: str) -> LockKey:
    """Return the key of a dataset in a dataverse of two parts."""
    return LockKey(7, LockKind.DATASET, DataverseName.create(("sales.x", "east")), name)


A, B, C = key("a"), key("b"), key("c")


def put(
    lab: StoreLab, token: int, *lock_requests: tuple[LockKey, LockMode], node: bool = True, holder: str = "me"
) -> None:
    """Insert a lock request."""

    def mutation(tx: Tx) -> None:
        tx.locks.insert(
            token, holder=holder, lock_requests=[LockRequest(*wanted_lock) for wanted_lock in lock_requests]
        )
        if node:
            tx.locks.grant(token)

    lab.write(mutation)


def test_rows_are_read_as_they_were_written(lab: StoreLab) -> None:
    """All rows at a request's keys, of this and other requests, are read as they were written. Rows of other keys are
    not read.
    """
    put(lab, 1, (A, READ), (B, WRITE))
    put(lab, 2, (A, EXCLUSIVE), (C, READ), node=False)

    assert lab.write(lambda tx: tx.locks.rows_at_keys(1)) == [
        LockRow(1, A, READ, READ),
        LockRow(1, B, WRITE, WRITE),
        LockRow(2, A, None, EXCLUSIVE),
    ]


def test_keys_of_waiting_requests_are_returned(lab: StoreLab) -> None:
    """All keys of the requests that wait at one of a request's keys are returned, and none if no request waits."""
    put(lab, 1, (A, WRITE))
    put(lab, 2, (B, WRITE))
    put(lab, 3, (A, READ), (B, READ), node=False)

    behind = [lab.write(lambda tx, token=token: tx.locks.rows_at_waiters_keys(token)) for token in (1, 2, 9)]

    assert [{(lock_row.token, lock_row.key) for lock_row in rows} for rows in behind] == [
        {(1, A), (2, B), (3, A), (3, B)},
        {(1, A), (2, B), (3, A), (3, B)},
        set(),
    ]


@pytest.mark.parametrize(
    "token, covers, is_held",
    [
        (1, None, True),
        (1, LockRequest(A, EXCLUSIVE), True),
        (1, LockRequest(A, MODIFY), True),
        (1, LockRequest(A, WRITE), False),
        (1, LockRequest(B, READ), False),
        (2, None, False),
        (2, LockRequest(A, READ), False),
        (3, None, False),
    ],
)
def test_mutation_proceeds_only_with_the_required_lock(
    lab: StoreLab, token: int, covers: LockRequest | None, *, is_held: bool
) -> None:
    """A mutation proceeds if the token holds the required lock. It fails if the token only waits, does not exist, or
    holds a weaker lock.
    """
    put(lab, 1, (A, EXCLUSIVE))
    put(lab, 2, (A, READ), node=False)

    def mutation(tx: Tx) -> int:
        tx.locks.require(token, covers)
        return tx.next_id()

    if is_held:
        assert lab.write(mutation)
        return
    with pytest.raises(LockLost, match="run it again"):
        lab.write(mutation)


@pytest.mark.parametrize("covers", [None, LockRequest(A, MODIFY)], ids=["any", "dataset"])
def test_lock_is_proven_only_by_its_own_secret(lab: StoreLab, covers: LockRequest | None) -> None:
    """A client's token proves a lock only with the secret of this token and this holder; an empty secret, a part of
    it, or another one proves nothing. A statement of this server gives no secret.
    """
    put(lab, 1, (A, EXCLUSIVE))
    put(lab, 2, (B, EXCLUSIVE), holder="other")
    secret = secret_of("me", 1)
    wrong = ("", " ", "0", secret[:-1], f"{secret}0", secret.upper(), secret_of("me", 2), secret_of("other", 1), "None")

    for each in (secret, None):
        lab.write(lambda tx, each=each: tx.locks.require(1, covers, secret=each))
    for each in wrong:
        with pytest.raises(LockLost):
            lab.write(lambda tx, each=each: tx.locks.require(1, covers, secret=each))


def test_mutation_with_a_deleted_lock_is_rolled_back(lab: StoreLab) -> None:
    """After a lock's rows are deleted, a mutation that checks its token fails, and its earlier writes are rolled
    back.
    """
    put(lab, 1, (A, WRITE))
    lab.write(lambda tx: tx.locks.delete(1))

    def mutation(tx: Tx) -> None:
        tx.tasks.create("purge", "{}")
        tx.locks.require(1)

    with pytest.raises(LockLost):
        lab.write(mutation)
    assert lab.database.sql("SELECT count(*) FROM task") == [(0,)]


def test_node_requests_report_waiting_and_expired_nodes(lab: StoreLab) -> None:
    """One query returns for each request of a node whether it waits, and the number of other nodes whose lease has
    expired.
    """
    put(lab, 1, (A, WRITE))
    put(lab, 2, (A, READ), (B, READ), node=False)
    put(lab, 3, (A, READ), node=False, holder="other")
    for holder, lease_ms in (("me", -1), ("other", 60_000), ("third", -1)):
        lab.write(lambda tx, holder=holder, lease_ms=lease_ms: tx.locks.renew_lease(holder, lease_ms=lease_ms))

    rows = lab.find(lock_status_query("me", now_ms=lab.store.time.now_ms()))

    assert {token: int(count) for token, count in rows} == {0: 1, 1: 0, 2: 1}
    assert lab.write(lambda tx: tx.locks.expired_holders(but="me")) == ["third"]
