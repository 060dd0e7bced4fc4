# SPDX-License-Identifier: Apache-2.0
"""Requests for access and their answers in the store, on both databases: kept for 30 days, bounded, replaced, swept."""

from __future__ import annotations

from random import Random
from string import ascii_letters, digits

import pytest

from limnos.model.entities import Principal
from limnos.model.kinds import Kind
from limnos.store.activity.upkeep import orphans_sweep
from limnos.store.identity import access_answers
from limnos.store.identity.access_answers import AccessAnswerRow, access_answers_read
from limnos.store.identity.access_requests import (
    KEPT_MS,
    AccessRequestKey,
    AccessRequestRow,
    own_access_requests_read,
)
from limnos.store.tx import Tx
from tests.backends import StoreLab
from tests.store.world import StoreWorld


@pytest.fixture
def ana(lab: StoreLab, world: StoreWorld) -> Principal:
    """A user of the metalake."""
    return lab.write(lambda tx: tx.principals.create(world.lake.id, Kind.USER, "ana"), zone=world.lake.id)


def key_of(world: StoreWorld, user: Principal, *, name: str = "t") -> AccessRequestKey:
    """Return the key of a request for a table."""
    return AccessRequestKey(world.lake.id, user.id, Kind.TABLE, ("main", "a", name))


def answers_of(lab: StoreLab, user: Principal) -> list[AccessAnswerRow]:
    """Return the answers to a user."""
    now_ms = lab.store.time.now_ms()
    return lab.load(access_answers_read(user.metalake_id, user.id, now_ms=now_ms))


def open_of(lab: StoreLab, user: Principal) -> list[AccessRequestRow]:
    """Return the open requests of a user."""
    return lab.load(own_access_requests_read(user.metalake_id, user.id, now_ms=lab.store.time.now_ms()))


def decline(tx: Tx, key: AccessRequestKey, *, note: str = "") -> None:
    """Ask for a table, and decline."""
    tx.access_requests.put(key, preset="reader", reason="why")
    request = tx.access_requests.find(key)
    assert request is not None
    tx.access_requests.drop(key)
    tx.access_answers.put(request, answer="declined", note=note)


def test_answer_replaces_the_former_one(lab: StoreLab, world: StoreWorld, ana: Principal) -> None:
    """An answer has the request, the writing user, the time and the note; a later one to the same request replaces it;
    a dropped one is gone. It is in no list of open requests.
    """
    key = key_of(world, ana)
    lab.write(lambda tx: decline(tx, key, note="first"), zone=world.lake.id)
    lab.write(lambda tx: decline(tx, key, note="second\nline"), zone=world.lake.id)

    (row,) = answers_of(lab, ana)
    assert (row.request.key, row.request.preset, row.request.reason) == (key, "reader", "why")
    assert (row.answer, row.answered_by, row.note) == ("declined", "tester", "second\nline")
    assert row.answered_at >= row.request.asked_at
    assert open_of(lab, ana) == []
    lab.write(lambda tx: tx.access_answers.drop(key), zone=world.lake.id)
    assert answers_of(lab, ana) == []


def test_longest_path_is_stored(lab: StoreLab, world: StoreWorld, ana: Principal) -> None:
    """The longest path fits the keys of both databases, though it cannot be compressed."""
    random = Random(1)
    path = tuple("".join(random.choices(ascii_letters + digits, k=size)) for size in (*[197] * 11, 196))
    key = AccessRequestKey(world.lake.id, ana.id, Kind.TABLE, path)
    longer = key._replace(path=(*path[:-1], path[0]))

    lab.write(lambda tx: decline(tx, key), zone=world.lake.id)

    assert [row.request.key for row in answers_of(lab, ana)] == [key]
    assert (key.is_too_long, longer.is_too_long) == (False, True)


def test_newest_answers_remain(
    lab: StoreLab, world: StoreWorld, ana: Principal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over the limit the user's oldest answers are deleted, and no other user's."""
    monkeypatch.setattr(access_answers, "ANSWERS_MAX", 2)
    ben = lab.write(lambda tx: tx.principals.create(world.lake.id, Kind.USER, "ben"), zone=world.lake.id)
    lab.write(lambda tx: decline(tx, key_of(world, ben)), zone=world.lake.id)
    for number in range(3):
        key = key_of(world, ana, name=f"t{number}")
        lab.write(lambda tx, key=key: decline(tx, key), zone=world.lake.id)
        lab.database.sql("UPDATE access_answer SET answered_at = answered_at - 1000")

    assert [row.request.key.path[-1] for row in answers_of(lab, ana)] == ["t2", "t1"]
    assert len(answers_of(lab, ben)) == 1


@pytest.mark.parametrize("late_ms", [0, 60_000])
def test_rows_end_after_thirty_days(lab: StoreLab, world: StoreWorld, ana: Principal, late_ms: int) -> None:
    """Answers and open requests are read for 30 days. The sweep then deletes the rows with their texts."""
    lab.write(lambda tx: decline(tx, key_of(world, ana)), zone=world.lake.id)
    lab.write(
        lambda tx: tx.access_requests.put(key_of(world, ana, name="u"), preset="reader", reason="r"),
        zone=world.lake.id,
    )
    then = lab.store.time.now_ms() - KEPT_MS + 30_000 - late_ms
    lab.database.sql("UPDATE access_answer SET answered_at = ?", then)
    lab.database.sql("UPDATE access_request SET asked_at = ?", then)
    is_kept = not late_ms

    lists = (answers_of(lab, ana), open_of(lab, ana))
    lab.write(orphans_sweep)
    rows = [lab.database.sql(f"SELECT count(*) FROM {name}") for name in ("access_answer", "access_request")]

    assert [len(each) for each in lists] == [is_kept, is_kept]
    assert rows == [[(int(is_kept),)]] * 2


def test_answers_of_dropped_users_are_swept(lab: StoreLab, world: StoreWorld, ana: Principal) -> None:
    """The sweep deletes the answers to a user who was dropped."""
    lab.write(lambda tx: decline(tx, key_of(world, ana)), zone=world.lake.id)
    lab.write(lambda tx: tx.principals.drop(ana), zone=world.lake.id)

    lab.write(orphans_sweep)

    assert lab.database.sql("SELECT count(*) FROM access_answer") == [(0,)]
