# SPDX-License-Identifier: Apache-2.0
"""Lock mutations, in every order in which a few statements can acquire, upgrade and release locks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count, product
from typing import Any

import pytest

from limnos.model.errors import ServiceUnavailable
from limnos.model.statement_locks import LockKey, LockKind, LockMode, LockRequest, LockRow
from limnos.names.dataverse import DataverseName
from limnos.rooms.sqlpp.services.locks.lock_mutations import (
    lock_downgrade,
    lock_release,
    lock_request,
    lock_reset,
    lock_upgrade,
)

READ, EXCLUSIVE, UPGRADED = LockMode.READ, LockMode.EXCLUSIVE_MODIFY, LockMode.UPGRADED_WRITE
A, B, C = (LockKey(1, LockKind.DATASET, DataverseName.create(("v",)), name) for name in "abc")
_TOGETHER = {(1, 1), (1, 2), (1, 3), (1, 4), (2, 1), (3, 1), (4, 1), (2, 2), (3, 3)}
"""The table of compatible modes by their numbers, written again so that the tests do not depend on the tested code."""
Rows = frozenset[LockRow]


class Table:
    """The rows of locks in memory, as the mutations read and write them."""

    def __init__(self, rows: Iterable[LockRow]) -> None:
        self.held = set(rows)
        self.locks = self
        self.next_id = count(1 + max((row.token for row in self.held), default=0)).__next__

    def renew_lease(self, holder: str, *, lease_ms: int) -> None:
        """Report every owner as alive."""

    def insert(self, token: int, *, holder: str, lock_requests: Sequence[LockRequest]) -> None:
        self.held |= {LockRow(token, wanted_lock.key, None, wanted_lock.mode) for wanted_lock in lock_requests}

    def _at(self, keys: set[LockKey]) -> list[LockRow]:
        return sorted((row for row in self.held if row.key in keys), key=lambda row: (row.token, row.key))

    def _keys(self, rows: Iterable[LockRow]) -> set[LockKey]:
        return {row.key for row in rows}

    def rows_at_keys(self, token: int) -> list[LockRow]:
        return self._at(self._keys(row for row in self.held if row.token == token))

    def rows_at_waiters_keys(self, token: int) -> list[LockRow]:
        waiting = {row.token for row in self.rows_at_keys(token) if row.waits}
        return self._at(self._keys(row for row in self.held if row.token in waiting))

    def upgrades(self) -> list[LockRow]:
        return self._at(self._keys(row for row in self.held if row.waits and row.mode is not None))

    def _change(self, token: int, change: Callable[[LockRow], LockRow]) -> None:
        self.held = {change(row) if row.token == token else row for row in self.held}

    def grant(self, token: int) -> None:
        self._change(token, lambda row: row._replace(mode=row.wanted))

    def request_upgrade(self, token: int, wanted_lock: LockRequest) -> None:
        self._change(token, lambda row: row._replace(wanted=wanted_lock.mode) if row.key == wanted_lock.key else row)

    def downgrade(self, token: int, key: LockKey) -> None:
        self._change(token, lambda row: row._replace(mode=EXCLUSIVE, wanted=EXCLUSIVE) if row.key == key else row)

    def delete(self, token: int) -> None:
        self.held = {row for row in self.held if row.token != token}


def after(rows: Rows, mutation: Callable[..., object], *args: Any, **named: Any) -> Rows:  # noqa: ANN401 - a mutation's own
    """Return the rows after a mutation, with tokens renumbered from 1, because only their order matters."""
    table: Any = Table(rows)
    mutation(table, *args, **named)
    places = {token: place for place, token in enumerate(sorted({row.token for row in table.held}), 1)}
    return frozenset(row._replace(token=places[row.token]) for row in table.held)


def next_states(rows: Rows, requests: Sequence[Sequence[LockRequest]], *, most: int) -> Iterable[Rows]:
    """Yield all possible next states: a statement requests, releases, cancels, upgrades or downgrades."""
    tokens = {row.token for row in rows}
    if len(tokens) < most:
        for lock_requests in requests:
            yield after(rows, lock_request, "me", lock_requests=lock_requests, lease_ms=1)
    for token in tokens:
        yield after(rows, lock_release, token)
    at_work = tokens - {row.token for row in rows if row.waits}
    for row in rows:
        if row.mode is EXCLUSIVE and row.token in at_work:
            try:
                yield after(rows, lock_upgrade, row.token, key=row.key)
            except ServiceUnavailable:
                assert stuck_if_upgraded(rows, row), f"an upgrade was refused without cause: {sorted(rows)}"
        elif row.mode is UPGRADED:
            yield after(rows, lock_downgrade, row.token, key=row.key)
        elif row.mode is not None and row.waits:
            yield after(rows, lock_reset, row.token, key=row.key)


def together(one: LockMode, other: LockMode) -> bool:
    """Return whether two modes are compatible by the table."""
    return (int(one), int(other)) in _TOGETHER


def complaints(rows: Rows) -> list[str]:
    """Return violations: conflicting locks held at the same time, an overtaken request, a grantable request that was
    not woken, a cycle.
    """
    violations = []
    for one, other in product(rows, repeat=2):
        if one.key != other.key or one.token >= other.token or not one.mode or not other.mode:
            continue
        if not together(one.mode, other.mode):
            violations.append(f"{one} beside {other}")
    waiting = {row.token for row in rows if row.waits}
    violations += [f"{token} could go on" for token in waiting if not blocked_by(rows, token)]
    if waiting and stuck(rows, waiting):
        violations.append("a circle")
    return violations


def blocked_by(rows: Rows, token: int) -> set[int]:
    """Return the requests that a request waits for: holders, upgrades, and older waiting requests."""
    blocking_tokens = set()
    for mine, row in product([row for row in rows if row.token == token and row.waits], rows):
        if row.key != mine.key or row.token == token:
            continue
        if row.mode and not together(mine.wanted, row.mode):
            blocking_tokens.add(row.token)
        if (
            mine.mode is None
            and row.waits
            and (row.mode or row.token < token)
            and not together(mine.wanted, row.wanted)
        ):
            blocking_tokens.add(row.token)
    return blocking_tokens


def stuck(rows: Rows, waiting: set[int]) -> set[int]:
    """Return the statements that would wait forever after all others have ended."""
    left = set(waiting)
    while free := {token for token in left if not blocked_by(rows, token) & left}:
        left -= free
    return left


def stuck_if_upgraded(rows: Rows, row: LockRow) -> set[int]:
    """Return the statements that would wait forever if a lock were upgraded."""
    would = frozenset(rows - {row} | {row._replace(wanted=UPGRADED)})
    return stuck(would, {each.token for each in would if each.waits})


def explore(requests: Sequence[Sequence[LockRequest]], *, most: int) -> int:
    """Visit every reachable state. Returns their number."""
    seen: set[Rows] = {frozenset()}
    ahead: list[Rows] = [frozenset()]
    while ahead:
        rows = ahead.pop()
        assert complaints(rows) == [], sorted(rows)
        for state in next_states(rows, requests, most=most):
            if state not in seen:
                seen.add(state)
                ahead.append(state)
    return len(seen)


def test_three_statements_on_one_key_cause_no_violation() -> None:
    """Three statements in all six modes on one key, in every order, cause no violation."""
    modes = [mode for mode in LockMode if mode is not UPGRADED]

    assert explore([[LockRequest(A, mode)] for mode in modes], most=3) > 200


def test_three_statements_on_two_keys_never_deadlock() -> None:
    """Three statements on one or both of two keys never deadlock; upgrades that would deadlock are refused."""
    modes = [None, READ, LockMode.MODIFY, EXCLUSIVE]
    requests = [
        [LockRequest(key, mode) for key, mode in zip((A, B), chosen, strict=True) if mode]
        for chosen in product(modes, repeat=2)
        if any(chosen)
    ]

    assert explore(requests, most=3) > 500


@pytest.mark.parametrize("first_reads", [True, False])
def test_release_grants_only_requests_with_free_keys(*, first_reads: bool) -> None:
    """A release grants locks to those who wait for its key, and none to another waiter at their keys, whose own third
    key is held by somebody else.
    """
    requests = [
        [LockRequest(A, EXCLUSIVE)],
        [LockRequest(C, EXCLUSIVE)],
        [LockRequest(A, EXCLUSIVE), LockRequest(B, READ if first_reads else EXCLUSIVE)],
        [LockRequest(B, READ), LockRequest(C, EXCLUSIVE)],
    ]
    rows: Rows = frozenset()
    for lock_requests in requests:
        rows = after(rows, lock_request, "me", lock_requests=lock_requests, lease_ms=1)
    assert {row.token for row in rows if row.waits} == {3, 4}

    rows = after(rows, lock_release, 1)

    assert complaints(rows) == []
    assert {row.token for row in rows if row.waits} == {3}


def test_planted_lock_cycle_is_detected() -> None:
    """The search finds planted violations."""
    circle = frozenset(
        [
            LockRow(1, A, EXCLUSIVE, UPGRADED),
            LockRow(2, A, READ, READ),
            LockRow(2, B, EXCLUSIVE, UPGRADED),
            LockRow(1, B, READ, READ),
        ]
    )

    assert complaints(circle) == ["a circle"]
    with pytest.raises(ServiceUnavailable, match="waits for this one"):
        after(
            circle - {LockRow(1, A, EXCLUSIVE, UPGRADED)} | {LockRow(1, A, EXCLUSIVE, EXCLUSIVE)},
            lock_upgrade,
            1,
            key=A,
        )
