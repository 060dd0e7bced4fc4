# SPDX-License-Identifier: Apache-2.0
"""Limits of a search: with a smaller limit, the hits are the first ones of those with a larger limit, for every
caller.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import quote

import pytest

from limnos.rooms.search.services.indexing import index_step
from limnos.rooms.search.services.searches import AT_ONCE
from limnos.store.interface import KnownRevisions
from limnos.view.freshness_gate import Zones
from tests.http.conftest import empty_database, fresh, node  # noqa: F401 - fixtures
from tests.http.driver import OWN, DriverNode, grant
from tests.http.iceberg.wire import commit, make_space, make_table, set_properties

TABLES = 60
SPACES = (("a",), ("b",), ("a", "deep"))


def plant(node: DriverNode, dice: random.Random) -> list[tuple[str, ...]]:  # noqa: F811 - not the fixture
    """Create tables whose names are equally long, on two levels. A third of them has the word in a column, one in a
    comment, and one in both.
    """
    tables = []
    for levels in SPACES:
        make_space(node, *levels)
    for number in range(TABLES):
        levels, (column, comment) = (
            dice.choice(SPACES),
            dice.choice((("gauge", ""), ("id", "gauge"), ("gauge_x", "gauge"))),
        )
        fields = [{"id": 1, "name": column, "required": False, "type": "long"}]
        schema = {"type": "struct", "fields": fields}
        make_table(node, *levels, f"flight_{number:02}", schema=schema, properties={"comment": comment})
        tables.append((*levels, f"flight_{number:02}"))
    return tables


def index(node: DriverNode) -> None:  # noqa: F811 - not the fixture
    """Index all committed changes."""
    while node.runner.run(index_step(node.built.services)):
        pass


def search(node: DriverNode, question: str, user: str, limit: int) -> dict:  # noqa: F811 - not the fixture
    """Search with a limit of hits."""
    return node.done("GET", f"{OWN}/metalakes/lake/search?limit={limit}&q={quote(question)}", user=user)


@pytest.mark.parametrize("is_indexed", [True, False])
def test_limited_hits_are_the_first_of_all_hits(node: DriverNode, is_indexed: bool) -> None:  # noqa: F811 - a fixture
    """With each limit the hits are the first ones of all hits: shorter paths first, then the latest changes, in every
    tier. The answer says whether further hits exist.
    """
    dice = random.Random(3)
    index(node)
    tables = plant(node, dice)
    if is_indexed:
        index(node)
    for table in dice.sample(tables, 20):
        commit(node, *table, updates=[set_properties(changed="yes")])
    grant(node, "ana", "USE_CATALOG", kind="CATALOG", on="main")
    for space in ("a", "b"):
        grant(node, "ana", "USE_SCHEMA SELECT_TABLE", kind="SCHEMA", on=f"main.{space}")
    for table in dice.sample([each for each in tables if len(each) == 2], 25):
        grant(node, "ana", "SELECT_TABLE", kind="TABLE", on=".".join(("main", *table)), condition="deny")

    for user, count in (("admin", TABLES), ("ana", TABLES - 25)):
        for question in ("flight", "fli", "gauge", "gauge flight", "kind:table", "gauge kind:table owner:admin"):
            whole = search(node, question, user, AT_ONCE)["hits"]
            assert len(whole) == count, (question, user)
            for limit in (1, 4, 11, count - 1, count):
                answer = search(node, question, user, limit)
                assert answer["hits"] == whole[:limit], (question, user, limit)
                assert answer["more"] is (limit < count)


def test_correction_is_never_suggested_from_hidden_objects(node: DriverNode) -> None:  # noqa: F811 - a fixture
    """A correction is suggested only to a caller who may load an object with that word, however many hidden objects
    have it.
    """
    make_space(node, "a")
    make_space(node, "z")
    for number in range(15):
        make_table(node, "a", f"harbour_{number:02}")
    make_table(node, "z", "harbour_of_lisbon")
    index(node)
    for user, space in (("ana", "z"), ("bob", "a")):
        grant(node, user, "USE_CATALOG SELECT_TABLE", kind="CATALOG", on="main")
        grant(node, user, "USE_SCHEMA", kind="SCHEMA", on=f"main.{space}")
    for number in range(15):
        grant(node, "bob", "SELECT_TABLE", kind="TABLE", on=f"main.a.harbour_{number:02}", condition="deny")

    assert search(node, "harbuor", "admin", 5)["meant"] == ["harbour"]
    assert search(node, "harbuor", "ana", 5)["meant"] == ["harbour"]
    assert search(node, "harbuor", "bob", 5)["meant"] == []


def test_a_warm_search_sends_few_statements(node: DriverNode) -> None:  # noqa: F811 - a fixture
    """A search with a warm cache sends one statement for candidates and words, and one freshness check for each tier. A
    correction reuses the changes that the index lacks, and a catalog's owner is not treated as a caller with few
    rights.
    """
    make_space(node, "a")
    for number in range(30):
        make_table(node, "a", f"harbour_{number:02}")
    index(node)
    grant(node, "ana", "USE_CATALOG", kind="CATALOG", on="main")
    grant(node, "ana", "USE_SCHEMA SELECT_TABLE", kind="SCHEMA", on="main.a")
    store, most = node.built.services.store, {"admin": (11, 7, 9), "ana": (12, 7, 8)}

    for user, limits in most.items():
        for question, count in zip(("harbour_07", "nothing", "harbuor"), limits, strict=True):
            search(node, question, user, 5)
            before = store.statements
            search(node, question, user, 5)
            assert store.statements - before <= count, (user, question)


def test_cached_search_lets_other_requests_run_between_batches(node: DriverNode) -> None:  # noqa: F811 - a fixture
    """A search that finds everything in memory gives the event loop to others before each batch of candidates, also
    if the request uses too little of it to wait for a turn.
    """
    node.built.application.turns.loop_turns.now = lambda: 0.0
    make_space(node, "a")
    for number in range(AT_ONCE + 30):
        make_table(node, "a", f"flight_{number:03}")
    target = f"{OWN}/metalakes/lake/search?q=flight&facets=true"
    assert node.get(target).status == 200
    passes = 0

    async def count() -> None:
        nonlocal passes
        while True:
            await asyncio.sleep(0)
            passes += 1

    async def story() -> int:
        counting = asyncio.create_task(count())
        await asyncio.sleep(0)  # from now on, each suspension of the request is one pass
        answer = await node.answer("GET", target)
        counting.cancel()
        return answer.status

    assert node.runner.run(story()) == 200
    assert passes >= 2


def test_hidden_candidates_let_other_requests_run_between_batches(node: DriverNode) -> None:  # noqa: F811 - a fixture
    """A search for words of many objects gives the event loop to others before each batch, also if the caller may load
    none of them.
    """
    node.built.application.turns.loop_turns.now = lambda: 0.0
    make_space(node, "a")
    make_space(node, "open")
    for number in range(3 * AT_ONCE):
        make_table(node, "a", f"flight_{number:03}")
    index(node)
    grant(node, "ana", "USE_CATALOG USE_SCHEMA SELECT_TABLE", kind="CATALOG", on="main")
    grant(node, "ana", "USE_SCHEMA SELECT_TABLE", kind="SCHEMA", on="main.a", condition="deny")
    target, counts = f"{OWN}/metalakes/lake/search?q=flight", list[int]()
    assert node.done("GET", target, user="ana")["hits"] == []

    async def count() -> None:
        while True:
            await asyncio.sleep(0)
            counts[-1] += 1

    async def story() -> int:
        counts.append(0)
        counting = asyncio.create_task(count())
        await asyncio.sleep(0)
        with patched_reads(node, counts):
            answer = await node.answer("GET", target, user="ana")
        counting.cancel()
        return answer.status

    assert node.runner.run(story()) == 200
    assert all(counts[2:-1]), counts


@contextmanager
def patched_reads(node: DriverNode, counts: list[int]) -> Iterator[None]:  # noqa: F811 - not the fixture
    """Begin a new count at each freshness check of a batch."""
    gate = node.built.services.gate
    real = gate.refresh_together

    async def refresh_together(chains: tuple[Zones, ...], reason: str) -> KnownRevisions:
        counts.append(0)
        return await real(chains, reason)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gate, "refresh_together", refresh_together)
        yield
