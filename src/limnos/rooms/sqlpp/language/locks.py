# SPDX-License-Identifier: Apache-2.0
"""Lock rules of statements: compatibility of modes, and the order in which requests are granted. Pure functions.

Must not know storage, waiters or timeouts. A request is for all its keys together and is granted completely or not at
all. So a waiting request holds no lock and cannot deadlock; only an upgrade holds and waits, and an upgrade that would
close a cycle is rejected. Among incompatible requests the older one has priority.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from limnos.model.statement_locks import LockKey, LockMode, LockRequest, LockRow, contains
from limnos.rooms.sqlpp.language.errors import SqlppError

TWO_PHASES = 1039
"""AsterixDB's error number if a lock is requested after locks were released."""

ILLEGAL_UPGRADE = 1045
ILLEGAL_DOWNGRADE = 1046
NOT_HELD_TO_UPGRADE = 1047
NOT_HELD_TO_DOWNGRADE = 1048
HELD_OTHERWISE = 1049
"""AsterixDB's error number if a lock is held in a mode that does not contain the requested one."""


_READ, _MODIFY, _BUILD = LockMode.READ, LockMode.MODIFY, LockMode.INDEX_BUILD
_EXCLUSIVE, _UPGRADED, _WRITE = LockMode.EXCLUSIVE_MODIFY, LockMode.UPGRADED_WRITE, LockMode.WRITE
_TOGETHER: Final = {
    _READ: frozenset({_READ, _MODIFY, _BUILD, _EXCLUSIVE}),
    _MODIFY: frozenset({_READ, _MODIFY}),
    _BUILD: frozenset({_READ, _BUILD}),
    _EXCLUSIVE: frozenset({_READ}),
    _UPGRADED: frozenset[LockMode](),
    _WRITE: frozenset[LockMode](),
}


def are_compatible(one: LockMode, other: LockMode) -> bool:
    """Return whether two holders may hold the same key in these modes."""
    return other in _TOGETHER[one]


def lock_requests_of(lock_requests: Iterable[LockRequest]) -> tuple[LockRequest, ...]:
    """Sort requests in locking order, with one request per key in the strongest requested mode.

    Raises SqlppError (ASX1049) if a key is requested in two modes of which neither includes the other.
    """
    modes: dict[LockKey, LockMode] = {}
    for key, mode in lock_requests:
        former_mode = modes.get(key, mode)
        if not contains(former_mode, mode) and not contains(mode, former_mode):
            raise conflicting_modes_error(mode, former_mode)
        modes[key] = former_mode if contains(former_mode, mode) else mode
    return tuple(LockRequest(*item) for item in sorted(modes.items()))


def grantable_locks(rows: Collection[LockRow], among: Collection[int]) -> list[int]:
    """Choose the requests that are granted now: upgrades first, then other requests from the oldest to the newest.

    Args:
        rows: All rows of every key of one of the requests.
        among: Tokens of the requests to choose from.
    """
    modes: dict[LockKey, set[LockMode]] = {}
    holders: dict[LockKey, set[int]] = {}
    for row in rows:
        if row.mode is not None:  # while an upgrade waits for readers to finish, no new readers are granted
            modes.setdefault(row.key, set()).update((row.mode, row.wanted))
            holders.setdefault(row.key, set()).add(row.token)
    waiting: dict[int, list[LockRow]] = {}
    upgrades: dict[int, list[LockRow]] = {}
    for row in rows:
        if row.waits:
            (waiting if row.mode is None else upgrades).setdefault(row.token, []).append(row)
    alone = [
        token
        for token, rows in sorted(upgrades.items())
        if token in among and all(holders[row.key] == {token} for row in rows)
    ]
    return alone + _grantable_new_locks(waiting, among, modes=modes)


def _grantable_new_locks(
    waiting: dict[int, list[LockRow]], among: Collection[int], *, modes: dict[LockKey, set[LockMode]]
) -> list[int]:
    """Choose among requests that hold no locks yet. A request that is not granted blocks later requests on its keys."""
    results = []
    for token, rows in sorted(waiting.items()):
        if token in among and all(modes.get(row.key, set()) <= _TOGETHER[row.wanted] for row in rows):
            results.append(token)
        for row in rows:
            modes.setdefault(row.key, set()).add(row.wanted)
    return results


def find_blocker(rows: Collection[LockRow], token: int) -> LockRow | None:
    """Find a lock, or an older request, that blocks a request or an upgrade; None if there is none. `rows` are all rows
    of every requested key.
    """
    mine = {row.key: row for row in rows if row.token == token and row.waits}
    for row in rows:
        own = mine.get(row.key)
        if own is None or row.token == token:
            continue
        modes = set() if row.mode is None else {row.mode}
        ahead = modes if own.mode is not None or (row.token > token and row.mode is None) else modes | {row.wanted}
        if not ahead <= _TOGETHER[own.wanted]:
            return row
    return None


def is_deadlock(rows: Collection[LockRow], token: int) -> bool:
    """Return whether an upgrade would wait for itself through other upgrades (a cycle).

    `rows` are those of every key with an upgrade.
    """
    holders: dict[LockKey, set[int]] = {}
    upgrades: dict[int, set[LockKey]] = {}
    for row in rows:
        if row.mode is not None:
            holders.setdefault(row.key, set()).add(row.token)
            if row.waits:
                upgrades.setdefault(row.token, set()).add(row.key)
    seen_holders: set[int] = set()
    ahead = [token]
    while ahead:
        for key in upgrades.get(now := ahead.pop(), set()):
            others = holders[key] - {now}
            if token in others:
                return True
            ahead.extend(others - seen_holders)
            seen_holders |= others
    return False


def require_upgrade(mode: LockMode | None, lock_mode: LockMode) -> None:
    """Check an upgrade: only EXCLUSIVE_MODIFY to UPGRADED_WRITE. Raises SqlppError (ASX1045, ASX1047)."""
    if mode is None:
        raise SqlppError(NOT_HELD_TO_UPGRADE, "Metadata lock cannot be upgraded! because it was not acquired before")
    if (mode, lock_mode) != (_EXCLUSIVE, _UPGRADED):
        raise SqlppError(
            ILLEGAL_UPGRADE, f"Illegal attempt to upgrade metadata lock from {mode.name} to {lock_mode.name}"
        )


def require_downgrade(mode: LockMode | None, lock_mode: LockMode) -> None:
    """Check a downgrade: only UPGRADED_WRITE to EXCLUSIVE_MODIFY. Raises SqlppError (ASX1046, ASX1048)."""
    if mode is None:
        raise SqlppError(
            NOT_HELD_TO_DOWNGRADE, "Metadata lock cannot be downgraded! because it was not acquired before"
        )
    if (mode, lock_mode) != (_UPGRADED, _EXCLUSIVE):
        raise SqlppError(
            ILLEGAL_DOWNGRADE, f"Illegal attempt to downgrade metadata lock from {mode.name} to {lock_mode.name}"
        )


def conflicting_modes_error(mode: LockMode, lock_mode: LockMode) -> SqlppError:
    """Return the error for a key that is requested in two modes of which neither includes the other."""
    return SqlppError(
        HELD_OTHERWISE,
        f"Metadata lock cannot be acquired for {mode.name} since it is already acquired for {lock_mode.name}",
    )


def released_locks_error() -> SqlppError:
    """Return the error for a request by a statement that has already released its locks."""
    return SqlppError(TWO_PHASES, "Two-phase locking violation -- locks can not be acquired after unlocking")
