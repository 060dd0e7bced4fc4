# SPDX-License-Identifier: Apache-2.0
"""Commits of several tables on two nodes are atomic, with concurrent writers and any order of the tables.

Each commit marks all of its tables with its own number, so the tables show which commits they contain. The model is the
list of answers: a successful commit is in all of its tables, a refused one in none.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from tests.http.iceberg.wire import creation
from tests.nodes.test_crowds import Report, crowd
from tests.nodes.wire import OWN, PREFIX, Wire, properties_body, table_path
from tests.nodes.world import NodesWorld

ROUNDS = int(os.environ.get("LIMNOS_TEST_ROUNDS", "96"))
"""Commits of the model by all writers together."""
WRITERS = 8
TABLES = [f"t{number}" for number in range(10)]
NEW = [f"new{number}" for number in range(6)]
PATH = f"{PREFIX}/transactions/commit"
NEVER = {"type": "assert-table-uuid", "uuid": "00000000-0000-7000-8000-000000000000"}
Change = dict[str, object]


def change(space: str, name: str, mark: str, *, requirements: list[object] | None = None) -> Change:
    """Return a change that sets a mark on a table."""
    body = properties_body(**{mark: "x"})
    return {"identifier": {"namespace": [space], "name": name}, **body, "requirements": requirements or []}


def marks_of(wire: Wire, space: str, name: str) -> set[str]:
    """Return the marks on a table, or an empty set if the table does not exist."""
    answer = wire.ask("GET", table_path(space, name))
    if answer.status == 404:
        return set()
    assert answer.status == 200, answer
    metadata = answer.body["metadata"]
    assert isinstance(metadata, dict)
    return {key for key in metadata["properties"] if key.startswith("set-")}


class CommitAnswer(NamedTuple):
    """The answer to a commit of several tables, and the tables."""

    mark: str
    names: frozenset[str]
    status: int


class Model:
    """The commits that writers send, and the answers."""

    def __init__(self, space: str, warehouse: str) -> None:
        self.space = space
        self.warehouse = warehouse
        self.told: list[CommitAnswer] = []
        self.names: dict[str, frozenset[str]] = {}
        self.torn: list[str] = []
        self.over = threading.Event()

    def body(self, dice: random.Random, mark: str) -> tuple[dict[str, object], frozenset[str], bool]:
        """Return a random commit: some tables, some of them twice, sometimes a new one, sometimes a failing
        requirement.
        """
        names = dice.sample(TABLES, dice.randint(1, 5))
        changes = [change(self.space, name, mark) for name in names]
        changes += [change(self.space, name, f"{mark}-again") for name in names if dice.random() < 0.2]
        if dice.random() < 0.2:
            name = dice.choice(NEW)
            names.append(name)
            updates = [*creation(f"{self.warehouse}/{mark}"), *properties_body(**{mark: "x"})["updates"]]  # type: ignore[misc]
            updates[0] = {"action": "assign-uuid", "uuid": f"0b7a7a0e-6f0a-4d3b-9c76-{abs(hash(mark)) % 10**12:012d}"}
            create_change = {"requirements": [{"type": "assert-create"}], "updates": updates}
            changes.append({"identifier": {"namespace": [self.space], "name": name}, **create_change})
        fails = dice.random() < 0.2
        if fails:
            changes.append(change(self.space, dice.choice(TABLES), mark, requirements=[NEVER]))
        dice.shuffle(changes)
        return {"table-changes": changes}, frozenset(names), fails

    def write(self, wire: Wire, number: int) -> list[int]:
        """Send a writer's share of the commits."""
        dice = random.Random(number)
        statuses = []
        for turn in range(ROUNDS // WRITERS):
            mark = f"set-{number}-{turn}"
            body, names, fails = self.body(dice, mark)
            self.names[mark] = names
            answer = wire.ask("POST", PATH, body)
            assert answer.status in (204, 409), answer
            assert not (fails and answer.status == 204)
            self.told.append(CommitAnswer(mark, names, answer.status))
            statuses.append(answer.status)
        return statuses

    def read(self, wire: Wire, number: int) -> None:
        """Repeatedly read two tables one after the other. If the first one has the mark of a commit of both, the second
        must have it, too.
        """
        dice = random.Random(number)
        while not self.over.is_set():
            first, second = dice.sample(TABLES, 2)
            seen, later = marks_of(wire, self.space, first), marks_of(wire, self.space, second)
            for mark in seen - later:
                if second in self.names.get(mark.removesuffix("-again"), ()) and not mark.endswith("-again"):
                    self.torn.append(f"{mark} in {first}, and not in {second} after it")


def prepare(world: NodesWorld, space: str, names: list[str]) -> str:
    """Create tables, and return the directory for further ones."""
    world.namespace(space)
    for name in names:
        world.table(space, name)
    metadata = world.admin(0).do("GET", table_path(space, names[0])).body["metadata"]
    assert isinstance(metadata, dict)
    return str(metadata["location"]).rpartition("/")[0]


def test_random_multi_table_commits_are_atomic(world: NodesWorld, record_property: Report) -> None:
    """Eight writers on two nodes send random commits during concurrent reads. Each commit is in all of its tables or in
    none.
    """
    model = Model("model", prepare(world, "model", TABLES))
    readers = [Wire(node.uri, user="admin") for node in world.nodes]
    work: list[Callable[[Wire], list[int]]] = [
        lambda wire, number=number: model.write(wire, number)
        for number in range(WRITERS)  # type: ignore[misc]
    ]

    with ThreadPoolExecutor(len(readers)) as threads:
        looking = [threads.submit(model.read, wire, 100 + number) for number, wire in enumerate(readers)]
        try:
            statuses = crowd(world, f"{WRITERS} writers of random sets", work=work, report=record_property)
        finally:
            model.over.set()
        for each in looking:
            each.result()
    for wire in readers:
        wire.close()

    assert model.torn == []
    assert statuses[204] > ROUNDS / 3
    assert statuses[409] > 0
    for node in (0, 1):
        marks_by_table = {name: marks_of(world.admin(node), "model", name) for name in (*TABLES, *NEW)}
        for mark, names, status in model.told:
            marked_tables = {name for name in marks_by_table if mark in marks_by_table[name]}
            assert marked_tables == (names if status == 204 else frozenset()), f"{mark} was answered {status}"


def test_large_commits_in_opposite_orders_do_not_deadlock(world: NodesWorld, record_property: Report) -> None:
    """32 writers on two nodes commit to the same twenty tables in opposite orders. None waits in a deadlock and none is
    refused.
    """
    names = [f"w{number}" for number in range(20)]
    prepare(world, "large", names)

    def writer(number: int) -> Callable[[Wire], list[int]]:
        order = names if number % 4 < 2 else names[::-1]
        body = {"table-changes": [change("large", name, f"set-{number}") for name in order]}
        return lambda wire: [wire.ask("POST", PATH, body).status]

    statuses = crowd(
        world, "32 writers of 20 tables", work=[writer(each) for each in range(32)], report=record_property
    )

    assert statuses == {204: 32}
    for name in names:
        assert len(marks_of(world.admin(1), "large", name)) == 32


def test_multi_and_single_table_commits_make_progress(world: NodesWorld, record_property: Report) -> None:
    """Commits of several tables on one node and of single tables on the other all make progress."""
    names = [f"b{number}" for number in range(8)]
    prepare(world, "mixed", names)

    def single(number: int) -> Callable[[Wire], list[int]]:
        name = names[number % len(names)]
        return lambda wire: [
            wire.ask("POST", table_path("mixed", name), properties_body(**{f"one-{number}-{turn}": "x"})).status
            for turn in range(12)
        ]

    def several(number: int) -> Callable[[Wire], list[int]]:
        body = [
            {"table-changes": [change("mixed", name, f"set-{number}-{turn}") for name in names]} for turn in range(4)
        ]
        return lambda wire: [wire.ask("POST", PATH, each).status for each in body]

    work = [several(number) if number % 2 == 0 else single(number) for number in range(8)]

    statuses = crowd(world, "4 writers of sets beside 4 of single tables", work=work, report=record_property)

    assert statuses == {204: 16, 200: 48}
    for name in names:
        assert len(marks_of(world.admin(0), "mixed", name)) == 16


def test_concurrent_name_swaps_of_two_tables_lose_no_name(world: NodesWorld, record_property: Report) -> None:
    """Two nodes repeatedly exchange the names of the same two tables in transactions of three moves. At every moment
    both names exist.
    """
    prepare(world, "swap", ["x", "y"])
    uuids = {str(world.admin(0).do("GET", table_path("swap", name)).body["metadata"]["table-uuid"]) for name in "xy"}  # type: ignore[index]
    path = f"{OWN}/metalakes/lake/catalogs/main/transactions"

    def swapper(first: str, second: str) -> Callable[[Wire], list[int]]:
        steps = ((first, "z"), (second, first), ("z", second))
        body = {"operations": [{"do": "move-table", "source": ["swap", a], "target": ["swap", b]} for a, b in steps]}
        return lambda wire: [wire.ask("POST", path, body).status for _ in range(8)]

    work = [swapper("x", "y"), swapper("y", "x")] * 2

    statuses = crowd(world, "4 swappers of two tables", work=work, report=record_property)

    assert statuses == {200: 32}
    answers = [world.admin(1).do("GET", table_path("swap", name)) for name in "xy"]
    assert {str(answer.body["metadata"]["table-uuid"]) for answer in answers} == uuids  # type: ignore[index]
    assert world.admin(1).ask("HEAD", table_path("swap", "z")).status == 404
