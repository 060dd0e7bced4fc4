# SPDX-License-Identifier: Apache-2.0
"""Two indexers at once: words and positions of the later one stay. Scans of all objects: their transactions."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from limnos.rooms.search.services import indexing
from limnos.rooms.search.services.indexing import index_step
from limnos.store.activity.search_index import SearchIndexWrites, known_words_read, zones_behind_read
from limnos.store.backends.sqlite import SqliteSession
from limnos.store.sql import Sql
from tests.http.conftest import empty_database, fresh, node  # noqa: F401 - fixtures
from tests.http.driver import OWN, DriverNode
from tests.http.iceberg.wire import make_table, set_properties, table_path


def index(node: DriverNode) -> None:  # noqa: F811 - a fixture
    """Index all committed changes."""
    while node.runner.run(index_step(node.built.services)):
        pass


def hits(node: DriverNode, word: str) -> list[str]:  # noqa: F811 - a fixture
    """Return the names of the objects that are found by a word."""
    answer = node.done("GET", f"{OWN}/metalakes/lake/search?q={word}")
    return [str(hit["path"][-1]) for hit in answer["hits"]]


@pytest.mark.parametrize("is_indexed", [True, False])
def test_slower_of_two_indexers_writes_nothing(
    node: DriverNode,  # noqa: F811 - a fixture
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_indexed: bool,
) -> None:
    """An indexer that read the words of a zone before another one indexed later changes writes neither the earlier
    words nor the earlier position.
    """
    make_table(node, "a", "t")
    if is_indexed:
        index(node)
    services, store = node.built.services, node.built.services.store
    submit, pending = store.submit, [True]

    async def change(words: str) -> None:
        body = {"requirements": [], "updates": [set_properties(comment=words)]}
        assert (await node.answer("POST", table_path("a", "t"), body)).status == 200

    async def submit_late(*args: Any, **more: Any) -> Any:  # noqa: ANN401 - passed on
        if pending.pop() if pending else False:
            await change("younger")
            while await index_step(services):
                pass
        return await submit(*args, **more)

    node.runner.run(change("older"))
    monkeypatch.setattr(store, "submit", submit_late)
    node.runner.run(index_step(services))

    assert node.runner.run(services.gate.look_up(partial(zones_behind_read, limit=9))) == []
    assert (hits(node, "younger"), hits(node, "older")) == (["t"], [])


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The ids of the objects whose words each transaction writes."""
    every, replace = list[list[int]](), SearchIndexWrites.replace

    def recorded(writes: SearchIndexWrites, ids: Any, texts: Any) -> Any:  # noqa: ANN401 - passed on
        every.append(list(ids))
        return replace(writes, ids, texts)

    monkeypatch.setattr(SearchIndexWrites, "replace", recorded)
    return every


def fill(node: DriverNode, count: int) -> None:  # noqa: F811 - a fixture
    """Create tables whose names are not in the order of their ids."""
    for number in range(count):
        make_table(node, "a", f"table_{number * 7 % count}")


def test_a_scan_writes_hundreds_of_objects_at_once_in_the_order_of_ids(
    node: DriverNode,  # noqa: F811 - a fixture
    written: list[list[int]],
) -> None:
    """The first indexing of a catalog writes the words of its objects in one transaction while they are a few hundred,
    in the order of their ids, which is that of the rows it reads and writes.
    """
    fill(node, 130)
    index(node)

    (of_catalog,) = [ids for ids in written if len(ids) > 100]
    assert of_catalog == sorted(of_catalog)
    assert len(of_catalog) >= 131


def test_created_objects_are_indexed_by_as_many_statements_as_one(
    node: DriverNode,  # noqa: F811 - a fixture
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The words of the objects of one batch are written by statements of all of them, as few as those of one object."""
    make_table(node, "a", "first")
    index(node)
    executed = list[str]()
    real = {name: getattr(SqliteSession, name) for name in ("rows", "count")}

    def record(name: str) -> Any:  # noqa: ANN401 - a method
        def recorded(own: SqliteSession, statement: Sql, params: Any) -> Any:  # noqa: ANN401 - passed on
            executed.append(statement.sqlite)
            return real[name](own, statement, params)

        return recorded

    for name in real:
        monkeypatch.setattr(SqliteSession, name, record(name))
    statements = list[list[str]]()
    for begin, count in ((0, 1), (1, 40)):
        for number in range(begin, begin + count):
            make_table(node, "a", f"created_{number}")
        executed.clear()
        index(node)
        statements.append(list(executed))

    assert set(hits(node, "created")) >= {f"created_{number}" for number in range(41)}
    assert statements[0] == statements[1]
    assert sum("search_text" in each or "search_word" in each for each in statements[1]) <= 4


def test_a_scan_that_is_stopped_continues_where_it_ended(
    node: DriverNode,  # noqa: F811 - a fixture
    written: list[list[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An indexer that may not continue stops after a transaction, and the next one begins behind its last object."""
    monkeypatch.setattr(indexing, "OBJECTS_AT_ONCE", 5)
    fill(node, 12)
    may_continue = iter([True] * 3)  # for two zones, and for the second transaction of a scan

    async def has_lease() -> bool:
        return next(may_continue, False)

    left = node.runner.run(index_step(node.built.services, may_continue=has_lease))
    first = list(written)
    written.clear()
    index(node)

    assert left > 0
    assert len(hits(node, "table")) == 12
    ids = [each for page in (*first, *written) for each in page]
    assert len(ids) == len(set(ids))


def test_joined_words_are_found_and_not_stored_for_suggestions(node: DriverNode) -> None:  # noqa: F811 - a fixture
    """A name without its separators is found and is no suggestion: each table would store some that no other has. Its
    parts are, and a name that has the same letters without separators.
    """
    for name in ("daily_flights", "late_trains", "latetrains"):
        make_table(node, "a", name)
    index(node)
    words = ["daily", "dailyflights", "flights", "latetrains"]

    assert node.runner.run(node.built.services.gate.look_up(partial(known_words_read, words))) == [
        "daily",
        "flights",
        "latetrains",
    ]
    assert hits(node, "dailyfl") == ["daily_flights"]


@pytest.mark.parametrize("chars_max", [1, 10_000])
def test_a_scans_transaction_ends_after_its_words(
    node: DriverNode,  # noqa: F811 - a fixture
    written: list[list[int]],
    monkeypatch: pytest.MonkeyPatch,
    *,
    chars_max: int,
) -> None:
    """A transaction of a scan takes no further objects once it has so many characters of words."""
    monkeypatch.setattr(indexing, "WORDS_AT_ONCE", chars_max)
    monkeypatch.setattr(indexing, "DOCUMENTS_AT_ONCE", 5)
    fill(node, 12)
    index(node)

    sizes = [len(ids) for ids in written if ids]
    assert max(sizes) == (5 if chars_max == 1 else 13)
    assert len(hits(node, "table")) == 12
