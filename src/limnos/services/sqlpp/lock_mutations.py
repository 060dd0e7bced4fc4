"""The mutations of statements' locks: asked for, granted, upgraded, given back, taken from the dead.

May import `sqlpp` (who is granted what), `store` and the rooms below. Knows nobody who waits: that is `sqlpp_locking`. Each is an
upkeep of the server, so one runs at a time on all nodes. Whoever takes something away grants it on, in the same transaction: nobody
has to try, who waits only looks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limnos.model.errors import ServiceUnavailable
from limnos.sqlpp.locks import (
    LockMode,
    LockRequest,
    find_blocker,
    grantable_locks,
    is_deadlock,
    require_downgrade,
    require_upgrade,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from limnos.sqlpp.locks import LockKey, LockRow
    from limnos.store.tx import Tx


def lock_request(tx: Tx, holder: str, *, wishes: Sequence[LockRequest], lease_ms: int) -> tuple[int, bool]:
    """Ask for locks; returns the request's token, and whether all are granted at once."""
    token = tx.next_id()
    tx.locks.live(holder, lease_ms=lease_ms)
    tx.locks.insert(token, holder=holder, wishes=wishes)
    return token, token in _grant(tx, tx.locks.beside(token), among={token})


def lock_release(tx: Tx, token: int) -> list[int]:
    """Give locks back, or withdraw a request; returns who was granted something because of it."""
    rows = tx.locks.behind(token)
    tx.locks.delete(token)
    return _pass_on(tx, rows, token=token, left=[row for row in rows if row.token != token])


def lock_withdraw(tx: Tx, token: int) -> tuple[LockRow | None, list[int]]:
    """Give up a request that waited too long; returns what was in its way, and who was granted something because of it."""
    found = find_blocker(tx.locks.beside(token), token)
    return found, lock_release(tx, token)


def lock_upgrade(tx: Tx, token: int, *, key: LockKey) -> bool:
    """Ask for more of a lock that is held; says whether it is granted at once. Raises SqlppError, ServiceUnavailable."""
    require_upgrade(_held_mode(tx, token, key=key), LockMode.UPGRADED_WRITE)
    tx.locks.want(token, LockRequest(key, LockMode.UPGRADED_WRITE))
    if is_deadlock(tx.locks.upgrades(), token):
        raise ServiceUnavailable(
            f"Another statement that waits for this one holds {key}; nothing was changed: try again", lock=str(key)
        )
    return token in _grant(tx, tx.locks.beside(token), among={token})


def lock_downgrade(tx: Tx, token: int, *, key: LockKey) -> list[int]:
    """Give the more of a lock back; returns who was granted something because of it. Raises SqlppError."""
    require_downgrade(_held_mode(tx, token, key=key), LockMode.EXCLUSIVE_MODIFY)
    return lock_lessen(tx, token, key=key)


def lock_lessen(tx: Tx, token: int, *, key: LockKey) -> list[int]:
    """Bring a lock back to EXCLUSIVE_MODIFY, be its upgrade granted or not; returns who was granted something because of it."""
    tx.locks.lessen(token, key)
    rows = tx.locks.behind(token)
    return _pass_on(tx, rows, token=token, left=rows)


def locks_drop_dead(tx: Tx, holder: str) -> list[int]:
    """Take the locks of nodes whose lease is out, the asking one left out; returns who was granted something because of it."""
    found = []
    for dead in tx.locks.dead(but=holder):
        for token in tx.locks.tokens(dead):
            found += lock_release(tx, token)
        tx.locks.bury(dead)
    return found


def locks_beat(tx: Tx, holder: str, *, known: Collection[int], lease_ms: int) -> tuple[set[int], list[int]]:
    """Note that a node lives, and give back what nobody on it knows of.

    Returns its requests that still stand, and who was granted something because of what was given back.
    """
    tx.locks.live(holder, lease_ms=lease_ms)
    found = locks_drop_dead(tx, holder)
    standing = set(tx.locks.tokens(holder))
    for token in sorted(standing - set(known)):
        found += lock_release(tx, token)
    return standing & set(known), found


def _held_mode(tx: Tx, token: int, *, key: LockKey) -> LockMode | None:
    modes = [row.mode for row in tx.locks.beside(token) if (row.token, row.key) == (token, key)]
    return modes[0] if modes else None


def _pass_on(tx: Tx, rows: Collection[LockRow], *, token: int, left: Collection[LockRow]) -> list[int]:
    """Grant what is left to those who wait at a key of a request: of no others the whole is known."""
    keys = {row.key for row in rows if row.token == token}
    waiting = {row.token for row in left if row.waits and row.key in keys}
    return _grant(tx, left, among=waiting - {token})


def _grant(tx: Tx, rows: Collection[LockRow], *, among: Collection[int]) -> list[int]:
    found = grantable_locks(rows, among)
    for token in found:
        tx.locks.grant(token)
    return found
