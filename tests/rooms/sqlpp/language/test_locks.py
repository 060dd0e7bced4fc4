# SPDX-License-Identifier: Apache-2.0
"""Locks of statements as rows: compatible modes, modes that include others, and the next request to be granted."""

from __future__ import annotations

from itertools import product

import pytest

from limnos.model.statement_locks import LockKey, LockKind, LockMode, LockRequest, LockRow, contains
from limnos.names.dataverse import DataverseName
from limnos.rooms.sqlpp.language import SqlppError
from limnos.rooms.sqlpp.language.locks import (
    are_compatible,
    find_blocker,
    grantable_locks,
    is_deadlock,
    lock_requests_of,
    require_downgrade,
    require_upgrade,
)

READ, MODIFY, BUILD = LockMode.READ, LockMode.MODIFY, LockMode.INDEX_BUILD
EXCLUSIVE, UPGRADED, WRITE = LockMode.EXCLUSIVE_MODIFY, LockMode.UPGRADED_WRITE, LockMode.WRITE
TABLE = """
                  READ MODIFY INDEX_BUILD EXCLUSIVE_MODIFY UPGRADED_WRITE WRITE
READ              +    +      +           +                -              -
MODIFY            +    +      -           -                -              -
INDEX_BUILD       +    -      +           -                -              -
EXCLUSIVE_MODIFY  +    -      -           -                -              -
UPGRADED_WRITE    -    -      -           -                -              -
WRITE             -    -      -           -                -              -
"""
"""The reference's table; the last two rows are its columns."""
CONTAINED = {
    READ: "READ",
    MODIFY: "READ MODIFY",
    BUILD: "READ INDEX_BUILD",
    EXCLUSIVE: "READ MODIFY INDEX_BUILD EXCLUSIVE_MODIFY",
    UPGRADED: " ".join(mode.name for mode in LockMode),
    WRITE: " ".join(mode.name for mode in LockMode),
}


def key(*parts: str, kind: LockKind = LockKind.DATASET, entity: str = "d") -> LockKey:
    """A key of a catalog."""
    return LockKey(7, kind, DataverseName.create(parts), "" if kind is LockKind.DATAVERSE else entity)


A, B = key("a"), key("b")


def row(token: int, mode: LockMode | None, wanted_mode: LockMode | None = None, *, of: LockKey = A) -> LockRow:
    """Return a row; a waiting one has no mode."""
    return LockRow(token, of, mode, wanted_mode or mode or READ)


def test_lock_mode_compatibility_equals_the_reference() -> None:
    """Each of the 36 cells equals the reference."""
    _, head, *lines = TABLE.rstrip().split("\n")
    cells = {
        (LockMode[line.split()[0]], LockMode[column]): sign == "+"
        for line in lines
        for column, sign in zip(head.split(), line.split()[1:], strict=True)
    }

    assert {pair: are_compatible(*pair) for pair in product(LockMode, repeat=2)} == cells


def test_lock_modes_include_weaker_modes() -> None:
    """For each of the 36 pairs: WRITE includes all modes, EXCLUSIVE_MODIFY the weaker ones, every mode READ."""
    included_names = {
        lock_mode: {mode.name for mode in LockMode if contains(lock_mode, mode)} for lock_mode in LockMode
    }

    assert included_names == {lock_mode: set(names.split()) for lock_mode, names in CONTAINED.items()}


def test_lock_keys_with_different_parts_are_different() -> None:
    """Keys with different parts are different, even if the concatenated parts are equal."""
    keys = [
        key("a", "b", entity="c"),
        key("a", entity="b.c"),
        key("a.b", entity="c"),
        key("a", "b.c", kind=LockKind.DATAVERSE),
        key("a", "b", "c", kind=LockKind.DATAVERSE),
        key("a@", "b", entity="c"),
        key("a", "@b", entity="c"),
        key("a", "b", entity="c", kind=LockKind.FUNCTION),
        key("a", "b", entity="c")._replace(catalog_id=8),
    ]

    assert len(set(keys)) == len(keys)
    assert [str(each) for each in keys[:4]] == [
        "dataset a.b.c",
        "dataset a.`b.c`",
        "dataset `a.b`.c",
        "dataverse a.`b.c`",
    ]


def test_lock_requests_are_sorted_and_merged() -> None:
    """Requests are sorted by granularity and name; a key that is requested twice is requested in the stronger mode."""
    dataverse, dataset = key("b", kind=LockKind.DATAVERSE), key("a", "x")
    type_key = key("z", kind=LockKind.DATATYPE)
    requests = [
        LockRequest(dataset, READ),
        LockRequest(type_key, READ),
        LockRequest(dataverse, READ),
        LockRequest(dataset, EXCLUSIVE),
        LockRequest(dataset, MODIFY),
    ]

    assert lock_requests_of(requests) == ((dataverse, READ), (type_key, READ), (dataset, EXCLUSIVE))


def test_incompatible_modes_of_one_key_are_refused() -> None:
    """Two modes of one key, neither of which includes the other, are ASX1049."""
    with pytest.raises(
        SqlppError, match="ASX1049: Metadata lock cannot be acquired for INDEX_BUILD since it is already"
    ):
        lock_requests_of([LockRequest(A, MODIFY), LockRequest(A, BUILD)])


def test_a_free_key_is_granted() -> None:
    """A request without competitors is granted; so are two compatible ones."""
    assert grantable_locks([row(1, None, WRITE)], {1}) == [1]
    assert grantable_locks([row(1, MODIFY), row(2, None, MODIFY), row(3, None, READ)], {2, 3}) == [2, 3]


def test_request_for_two_keys_is_granted_entirely_or_not() -> None:
    """A request for two keys, one of which is in use, gets neither, and later requests for both wait."""
    rows = [row(1, WRITE, of=B), row(2, None, WRITE), row(2, None, WRITE, of=B), row(3, None, READ)]

    assert grantable_locks(rows, {2, 3}) == []


def test_waiting_exclusive_lock_blocks_later_modify() -> None:
    """If MODIFY is granted and EXCLUSIVE_MODIFY waits, a later MODIFY waits; afterwards both are granted."""
    waiting = [row(2, None, EXCLUSIVE), row(3, None, MODIFY), row(4, None, MODIFY)]

    assert grantable_locks([row(1, MODIFY), *waiting], {2, 3, 4}) == []
    assert grantable_locks(waiting, {2, 3, 4}) == [2]
    assert grantable_locks(waiting[1:], {3, 4}) == [3, 4]


def test_index_builds_and_modifiers_exclude_each_other() -> None:
    """Two index builds run concurrently and block a modifier; two modifiers block an index build."""
    assert grantable_locks([row(1, None, BUILD), row(2, None, BUILD), row(3, None, MODIFY)], {1, 2, 3}) == [1, 2]
    assert grantable_locks([row(1, None, MODIFY), row(2, None, MODIFY), row(3, None, BUILD)], {1, 2, 3}) == [1, 2]


def test_upgrade_waits_for_readers_and_blocks_later_ones() -> None:
    """An upgrade is granted when no other holder remains; a later reader waits for it. Only requested ids are
    returned.
    """
    upgrading = row(1, EXCLUSIVE, UPGRADED)

    assert grantable_locks([upgrading, row(2, READ), row(3, None, READ)], {1, 3}) == []
    assert grantable_locks([upgrading, row(3, None, READ)], {1, 3}) == [1]
    assert grantable_locks([upgrading, row(3, None, READ)], {3}) == []


def test_cycle_of_upgrades_is_detected_as_deadlock() -> None:
    """In a cycle of upgrades, each of which waits for a reader that waits itself, the last request closes the cycle."""
    rows = [row(1, EXCLUSIVE, UPGRADED), row(2, READ), row(2, EXCLUSIVE, UPGRADED, of=B), row(1, READ, of=B)]
    acyclic_rows = [row(1, EXCLUSIVE, UPGRADED), row(2, READ), row(2, EXCLUSIVE, UPGRADED, of=B), row(3, READ, of=B)]

    assert is_deadlock(rows, 1)
    assert is_deadlock(rows, 2)
    assert not is_deadlock(acyclic_rows, 1)
    assert not is_deadlock(rows[:2], 1)


def test_blocker_is_a_holder_or_an_earlier_request() -> None:
    """The blocker is a holder, or an earlier waiting request, never a later one."""
    assert find_blocker([row(1, READ), row(2, None, WRITE)], 2) == row(1, READ)
    assert find_blocker([row(1, MODIFY), row(2, None, EXCLUSIVE), row(3, None, MODIFY)], 3) == row(2, None, EXCLUSIVE)
    assert find_blocker([row(2, None, WRITE), row(3, None, WRITE)], 2) is None
    assert find_blocker([row(1, EXCLUSIVE, UPGRADED), row(2, None, READ)], 1) is None
    assert find_blocker([row(1, EXCLUSIVE, UPGRADED), row(2, READ)], 1) == row(2, READ)


@pytest.mark.parametrize("current_mode", [None, *LockMode])
@pytest.mark.parametrize("target_mode", LockMode)
def test_only_exclusive_modify_can_be_upgraded(current_mode: LockMode | None, target_mode: LockMode) -> None:
    """Only EXCLUSIVE_MODIFY can be upgraded to UPGRADED_WRITE, and downgraded again; each refusal has its code."""

    def code(check: object) -> str | None:
        try:
            check(current_mode, target_mode)  # type: ignore[operator]
        except SqlppError as error:
            return error.code
        return None

    up = (
        None
        if (current_mode, target_mode) == (EXCLUSIVE, UPGRADED)
        else "ASX1047"
        if current_mode is None
        else "ASX1045"
    )
    down = (
        None
        if (current_mode, target_mode) == (UPGRADED, EXCLUSIVE)
        else "ASX1048"
        if current_mode is None
        else "ASX1046"
    )

    assert (code(require_upgrade), code(require_downgrade)) == (up, down)
