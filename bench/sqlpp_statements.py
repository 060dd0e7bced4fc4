# SPDX-License-Identifier: Apache-2.0
"""Costs of single SQL++ statements with their targets: lookups, changes, a correlated query, a warm start, memory.

Imported by `python -m bench.sqlpp`. CPU is user and system time of the server and all of its descendants, including the
engine's Python and Java, divided by the number of statements. Times are medians of the client's waiting time.
"""

from __future__ import annotations

import random
import statistics
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from bench.cpu import descendants, processes_s
from bench.sqlpp_client import Client, took_ms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

POINTS: Final = """CREATE DATAVERSE bench; CREATE TYPE bench.Point AS { id: bigint, name: string, n: bigint };
CREATE DATASET bench.points(bench.Point) PRIMARY KEY id;"""
OBJECTS: Final = "(SELECT VALUE {{'id': i, 'name': 'n' || to_string(i), 'n': i * 7 % 1000003}} FROM range({}, {}) AS i)"
AT_ONCE: Final = 100_000
WARM: Final = 30
LOOKUP_CPU_S, CHANGE_S, INSERT_S, DIVISION_S, WARM_S = 0.05, 0.4, 4.0, 5.0, 15.0
SMALL_FILES: Final = 40
"""Fewer than `sqlpp.compact_files`: they remain as long as no statement adds files."""
COMPACTED_WITHIN: Final = 60
"""A number of changes within which any dataset reaches `sqlpp.compact_files`."""
WARMS: Final = {"LIMNOS__ENGINE__WARM": "true"}
GROWTH_MB: Final = 64
"""The growth of memory after the first `FULL_HEAP` statements that counts as noise."""
FULL_HEAP: Final = 2500
"""The number of statements after which the engine's JVM has filled its heap of 1 GB once; until then it grows."""


class Server(NamedTuple):
    """A running server: process id, client, and the time of its ready line."""

    pid: int
    client: Client


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one of many statements."""

    cpu_s: float
    median_s: float

    def line(self, name: str, aim_s: float, *, timed: bool = True) -> str:
        """Return the row; with `timed`, the target applies to the time, too."""
        time_text = f"{self.median_s:.3f} s"
        if timed:
            time_text += f" ({_verdict(self.median_s, aim_s)})"
        return f"{name}: CPU {self.cpu_s:.3f} s ({_verdict(self.cpu_s, aim_s)}), median time {time_text}; aim {aim_s} s"


def _verdict(figure: float, aim: float) -> str:
    return "met" if figure <= aim else "MISSED"


def cost_of(server: Server, text: Callable[[int], str], *, times: int, warm: int = WARM) -> Cost:
    """Run a statement several times. The first ones warm up and are not counted."""
    for turn in range(-warm, 0):
        server.client.say(text(turn))
    before = processes_s([server.pid])
    times_ms = [took_ms(partial(server.client.say, text(turn))) for turn in range(times)]
    return Cost((processes_s([server.pid]) - before) / times, statistics.median(times_ms) / 1000)


def fill(client: Client, objects: int, *, first: int = 1, dataset: str = "bench.points") -> None:
    """Insert objects, at most `AT_ONCE` with one statement."""
    for start in range(first, first + objects, AT_ONCE):
        last = min(start + AT_ONCE, first + objects) - 1
        client.say(f"INSERT INTO {dataset}{OBJECTS.format(start, last)}")


def lookup_lines(server: Server, *, counts: Sequence[int], times: int) -> Iterator[str]:
    """Look up objects by their key, at each number of objects (0: not), before and after many small INSERTs."""
    client = server.client
    client.say(POINTS)
    last = 0
    for objects in filter(None, counts):
        fill(client, objects - last, first=last + 1)
        last = objects + SMALL_FILES

        def text(turn: int, objects: int = objects) -> str:
            return f"SELECT VALUE p FROM bench.points p WHERE p.id = {turn * 7919 % objects + 1}"

        cost = cost_of(server, text, times=times)
        yield cost.line(f"lookup by key among {objects:,} objects", LOOKUP_CPU_S, timed=False)
        for number in range(objects + 1, last + 1):
            client.say(f"INSERT INTO bench.points({{'id': {number}, 'name': 'new', 'n': {number}}})")
        cost = cost_of(server, text, times=times)
        yield cost.line(f"the same after {SMALL_FILES} INSERTs of one object", LOOKUP_CPU_S, timed=False)


def change_lines(server: Server, *, objects: int, times: int) -> Iterator[str]:
    """Replace and delete single objects, then continue to replace them until the dataset has been compacted.

    Each row has its own dataset, with fewer files than `sqlpp.compact_files`: the compaction after that many statements
    is a separate row.
    """
    client = server.client
    client.say(POINTS)
    client.say("CREATE DATASET bench.less(bench.Point) PRIMARY KEY id;")
    for dataset in ("bench.points", "bench.less"):
        fill(client, objects, dataset=dataset)

    def upsert(turn: int) -> str:
        return f"UPSERT INTO bench.points({{'id': {turn * 7919 % objects + 1}, 'name': 'changed', 'n': {turn}}})"

    def delete(turn: int) -> str:
        return f"DELETE FROM bench.less p WHERE p.id = {turn * 6007 % objects + 1}"

    yield cost_of(server, upsert, times=times, warm=8).line(f"UPSERT of one of {objects:,} objects", CHANGE_S)
    yield cost_of(server, delete, times=times, warm=8).line(f"DELETE of one of {objects:,} objects", CHANGE_S)
    before = processes_s([server.pid])
    times_ms = [took_ms(partial(client.say, upsert(turn))) for turn in range(times, times + COMPACTED_WITHIN)]
    cpu_s = processes_s([server.pid]) - before
    yield (
        f"{COMPACTED_WITHIN} UPSERTs more, with the first compaction of the server: CPU {cpu_s:.1f} s, longest "
        f"statement {max(times_ms) / 1000:.1f} s, median {statistics.median(times_ms) / 1000:.3f} s"
    )


def insert_lines(server: Server, *, rounds: int) -> Iterator[str]:
    """Insert 100,000 objects with one statement, into a dataset that has objects."""
    server.client.say(POINTS)
    fill(server.client, AT_ONCE)

    def text(turn: int) -> str:
        first = (turn + 3) * AT_ONCE
        return f"INSERT INTO bench.points{OBJECTS.format(first + 1, first + AT_ONCE)}"

    yield cost_of(server, text, times=rounds, warm=1).line(f"INSERT of {AT_ONCE:,} objects", INSERT_S)


DIVISION: Final = """
SELECT b.id FROM bench.buyers b
WHERE NOT EXISTS (SELECT VALUE a FROM bench.sales a
                  WHERE a.level NOT IN (SELECT VALUE s.level FROM bench.sales s WHERE s.buyer = b.id))
ORDER BY b.id"""
"""Buyers whose sales have all levels (a relational division)."""
BUYERS, SALES = 150, 1500


def division_lines(server: Server, *, rounds: int) -> Iterator[str]:
    """Run a correlated query of NOT EXISTS over NOT IN, on as many objects as TPC-H has at scale 0.001."""
    server.client.say(
        f"""CREATE DATAVERSE bench; CREATE TYPE bench.Buyer AS CLOSED {{ id: integer, name: string }};
        CREATE TYPE bench.Sale AS CLOSED {{ id: integer, buyer: integer, level: string, price: double }};
        CREATE DATASET bench.buyers(bench.Buyer) PRIMARY KEY id; CREATE DATASET bench.sales(bench.Sale) PRIMARY KEY id;
        INSERT INTO bench.buyers(SELECT VALUE {{'id': i, 'name': 'b' || to_string(i)}} FROM range(1, {BUYERS}) AS i);
        INSERT INTO bench.sales(SELECT VALUE {{'id': i, 'buyer': i * 37 % {BUYERS} + 1,
            'level': 'level ' || to_string(i * i % 23 % 5), 'price': i * 1.5}} FROM range(1, {SALES}) AS i);"""
    )
    expected = divided()
    objects = server.client.say(DIVISION)
    if [each["id"] for each in objects] != expected:
        yield f"relational division: WRONG RESULT, {len(objects)} and not {len(expected)} objects"
    yield cost_of(server, lambda _: DIVISION, times=rounds, warm=1).line(
        f"relational division, {BUYERS} by {SALES:,} objects, {len(expected)} results", DIVISION_S
    )


def divided() -> list[int]:
    """Return the expected ids of `DIVISION`, computed in Python."""
    levels: dict[int, set[int]] = {}
    for number in range(1, SALES + 1):
        levels.setdefault(number * 37 % BUYERS + 1, set()).add(number * number % 23 % 5)
    every = set().union(*levels.values())
    return sorted(buyer for buyer in range(1, BUYERS + 1) if levels.get(buyer, set()) == every)


def warm_lines(server: Server, *, ready_at: float, started_at: float) -> Iterator[str]:
    """Run the first query on an engine that the server starts by itself."""
    server.client.say(POINTS)
    made_s = time.perf_counter() - started_at
    lookup = "SELECT VALUE p FROM bench.points p WHERE p.id = 1"
    server.client.say(lookup)
    first_s = time.perf_counter() - started_at
    took_s = took_ms(partial(server.client.say, "SELECT VALUE count(*) FROM bench.points")) / 1000
    yield (
        f"warm engine: ready line {ready_at - started_at:.1f} s after the start, definitions at {made_s:.1f} s, "
        f"first lookup answered at {first_s:.1f} s ({_verdict(first_s, WARM_S)}); aim {WARM_S} s; "
        f"the first count took {took_s:.1f} s"
    )


class Memory(NamedTuple):
    """Resident memory of the engine in MB."""

    java: int
    python: int

    def __str__(self) -> str:
        return f"JVM {self.java:,} MB, Python {self.python:,} MB, together {self.java + self.python:,} MB"


def memory_of(pid: int) -> Memory:
    """Return the resident memory of the engine of a server: its JVM, and the parent Python process."""
    java = [each for each in descendants([pid]) if _comm(each) == "java"]
    above = {_parent(each) for each in java}
    return Memory(sum(map(_resident_mb, java)), sum(map(_resident_mb, above - {pid})))


def _comm(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _status(pid: int, name: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(f"{name}:")))


def _parent(pid: int) -> int:
    return _status(pid, "PPid")


def _resident_mb(pid: int) -> int:
    return _status(pid, "VmRSS") // 1024


def memory_lines(server: Server, *, statements: int, objects: int, every: int = 500) -> Iterator[str]:
    """Run statements of several kinds, and report the engine's memory after every few hundred."""
    server.client.say(POINTS)
    fill(server.client, objects)
    sizes: list[tuple[int, Memory]] = []
    for number in range(1, statements + 1):
        server.client.say(mixed_statement(number, objects=objects))
        if number % every == 0:
            sizes.append((number, memory_of(server.pid)))
            yield f"  after {number:,} statements: {sizes[-1][1]}"
    yield growth_line(sizes)


def growth_line(sizes: list[tuple[int, Memory]], *, after: int = FULL_HEAP) -> str:
    """Return the row that judges the growth after the first thousand statements: the second half of the rest compared
    with the first.
    """
    later = [memory.java + memory.python for number, memory in sizes if number >= after]
    if len(later) < 4:
        return "memory: too few statements to judge its growth"
    half = len(later) // 2
    growth = round(statistics.mean(later[-half:]) - statistics.mean(later[:half]))
    word = "flat" if growth <= GROWTH_MB else "GROWS"
    return (
        f"memory after {sizes[-1][0]:,} statements: {sizes[-1][1]}; the second half of those after {after:,} has "
        f"{growth:+,} MB on average ({word}; aim: at most {GROWTH_MB} MB, noise)"
    )


def random_condition(chance: random.Random, *, depth: int) -> str:
    """Return a condition of random structure: Spark's parser caches what it learns about each structure."""
    if not depth:
        return chance.choice(["p.n < 7", "p.id % 3 = 1", "p.name LIKE 'n1%'", "p.n BETWEEN 5 AND 9", "p.n IS NULL"])
    form = chance.choice(["({} AND {})", "({} OR {})", "(NOT {})", "(CASE WHEN {} THEN {} ELSE FALSE END)"])
    return form.format(*(random_condition(chance, depth=depth - 1) for _ in range(form.count("{}"))))


def mixed_statement(number: int, *, objects: int) -> str:
    """Return one statement of a mix: of ten statements five lookups, an INSERT, an UPSERT, a DELETE, a count of all
    objects, and a count of those that meet a condition of random structure.
    """
    key = number * 7919 % objects + 1
    return {
        0: "SELECT VALUE count(*) FROM bench.points p WHERE p.n >= 0",
        1: f"INSERT INTO bench.points({{'id': {objects + number}, 'name': 'new', 'n': {number}}})",
        2: f"UPSERT INTO bench.points({{'id': {key}, 'name': 'changed', 'n': {number}}})",
        3: f"DELETE FROM bench.points p WHERE p.id = {key}",
        4: f"SELECT VALUE count(*) FROM bench.points p WHERE {random_condition(random.Random(number), depth=5)}",
    }.get(number % 10, f"SELECT VALUE p FROM bench.points p WHERE p.id = {key}")
