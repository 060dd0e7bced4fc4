# SPDX-License-Identifier: Apache-2.0
"""Lock mutations: request, grant, upgrade and release the locks of statements, and release those of dead nodes.

`services.sqlpp.locks.statement_locks` waits for them. Each mutation is a background operation of the server, so only
one runs at a time on all nodes. A mutation that frees locks also grants them to waiters, in the same transaction:
waiters only read whether their locks are granted.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from limnos.model.errors import ServiceUnavailable
from limnos.model.statement_locks import LockKey, LockMode, LockRequest, LockRow
from limnos.rooms.sqlpp.language.locks import (
    find_blocker,
    grantable_locks,
    is_deadlock,
    require_downgrade,
    require_upgrade,
)
from limnos.store.tx import Tx


def lock_request(tx: Tx, holder: str, *, lock_requests: Sequence[LockRequest], lease_ms: int) -> tuple[int, bool]:
    """Request locks. Returns the request's token, and whether all locks were granted immediately."""
    token = tx.next_id()
    tx.locks.renew_lease(holder, lease_ms=lease_ms)
    tx.locks.insert(token, holder=holder, lock_requests=lock_requests)
    return token, token in _grant(tx, tx.locks.rows_at_keys(token), among={token})


def lock_release(tx: Tx, token: int) -> list[int]:
    """Release the locks of a request, or withdraw it. Returns the tokens of the requests that were granted locks as a
    result.
    """
    rows = tx.locks.rows_at_waiters_keys(token)
    tx.locks.delete(token)
    return _grant_waiting(tx, rows, token=token, left=[row for row in rows if row.token != token])


def lock_withdraw(tx: Tx, token: int) -> tuple[LockRow | None, list[int]]:
    """Withdraw a request that timed out.

    Returns the lock that blocked it, and the tokens of the requests that were granted locks as a result.
    """
    row = find_blocker(tx.locks.rows_at_keys(token), token)
    return row, lock_release(tx, token)


def lock_upgrade(tx: Tx, token: int, *, key: LockKey) -> bool:
    """Request an upgrade of a held lock. Returns whether it was granted immediately.

    Raises SqlppError if the lock is not held in EXCLUSIVE_MODIFY, and ServiceUnavailable for a deadlock.
    """
    require_upgrade(_held_mode(tx, token, key=key), LockMode.UPGRADED_WRITE)
    tx.locks.request_upgrade(token, LockRequest(key, LockMode.UPGRADED_WRITE))
    if is_deadlock(tx.locks.upgrades(), token):
        raise ServiceUnavailable(
            f"Another statement that waits for this one holds {key}; nothing was changed: try again", lock=str(key)
        )
    return token in _grant(tx, tx.locks.rows_at_keys(token), among={token})


def lock_downgrade(tx: Tx, token: int, *, key: LockKey) -> list[int]:
    """Downgrade an upgraded lock. Returns the tokens of the requests that were granted locks as a result.

    Raises SqlppError if the lock is not held in UPGRADED_WRITE.
    """
    require_downgrade(_held_mode(tx, token, key=key), LockMode.EXCLUSIVE_MODIFY)
    return lock_reset(tx, token, key=key)


def lock_reset(tx: Tx, token: int, *, key: LockKey) -> list[int]:
    """Reset a lock to EXCLUSIVE_MODIFY, whether or not its upgrade was granted.

    Returns the tokens of the requests that were granted locks as a result.
    """
    tx.locks.downgrade(token, key)
    rows = tx.locks.rows_at_waiters_keys(token)
    return _grant_waiting(tx, rows, token=token, left=rows)


def locks_drop_dead(tx: Tx, holder: str) -> list[int]:
    """Release the locks of nodes whose lease has expired, except those of the node `holder`.

    Returns the tokens of the requests that were granted locks as a result.
    """
    results = []
    for expired in tx.locks.expired_holders(but=holder):
        for token in tx.locks.tokens(expired):
            results += lock_release(tx, token)
        tx.locks.delete_lease(expired)
    return results


def locks_beat(tx: Tx, holder: str, *, known: Collection[int], lease_ms: int) -> tuple[set[int], list[int]]:
    """Renew a node's lease. Release the node's locks in the store whose tokens are not in `known`, and the locks of
    nodes whose lease has expired.

    Returns the node's remaining tokens, and the tokens of the requests that were granted locks as a result.
    """
    tx.locks.renew_lease(holder, lease_ms=lease_ms)
    results = locks_drop_dead(tx, holder)
    stored_tokens = set(tx.locks.tokens(holder))
    for token in sorted(stored_tokens - set(known)):
        results += lock_release(tx, token)
    return stored_tokens & set(known), results


def _held_mode(tx: Tx, token: int, *, key: LockKey) -> LockMode | None:
    modes = [row.mode for row in tx.locks.rows_at_keys(token) if (row.token, row.key) == (token, key)]
    return modes[0] if modes else None


def _grant_waiting(tx: Tx, rows: Collection[LockRow], *, token: int, left: Collection[LockRow]) -> list[int]:
    """Grant the freed locks to waiters for the keys of a request. Returns the tokens of the granted requests.

    Only the queues of these keys are complete in `left`, so waiters for other keys are not considered.
    """
    keys = {row.key for row in rows if row.token == token}
    waiting = {row.token for row in left if row.waits and row.key in keys}
    return _grant(tx, left, among=waiting - {token})


def _grant(tx: Tx, rows: Collection[LockRow], *, among: Collection[int]) -> list[int]:
    results = grantable_locks(rows, among)
    for token in results:
        tx.locks.grant(token)
    return results
