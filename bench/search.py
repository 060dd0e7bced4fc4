# SPDX-License-Identifier: Apache-2.0
"""`python -m bench.search`: the cost of searches in a large lake, their exactness, and their cost for commits.

Measured on each store: CPU of server and database per kind of query and caller; the answers after random changes that
another node made; the CPU of indexing changes; and commits with and without the index of words. It judges nothing.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import json
import random
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import quote

from bench.cpu import TreeCpu
from bench.load import LoadError
from bench.measure import say
from bench.operations import PREFIX, namespace_path, new_table, table_path
from bench.search_lake import ADMIN, LITTLE, PICKER, Lake, plant_lake, template_bodies
from bench.stores import STORES, Place, Postgres, running_server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from bench.stores import Server

SEARCH: Final = "/api/limnos/v1/metalakes/lake/search"
OFF: Final = {"LIMNOS__SEARCH__WORDS": "false"}
SPACES: Final = ("changed", "moved")
COMMITS: Final = 500
"""Commits of a round."""
INDEX_S: Final = 3.0
"""Seconds in which the index certainly includes the commits; both variants wait for them."""
CAUGHT_UP_S: Final = 600.0
IDLE_SHARE: Final = 0.05
"""The share of one CPU below which a server has finished the background work after its start."""
AIMS_MS: Final = (5.0, 60.0, 200.0)
"""The median, 99th percentile and maximum that a search of two letters or more should not exceed."""


class Client:
    """One connection to a server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._connection = http.client.HTTPConnection(server.host, server.port, timeout=300)

    def ask(
        self, method: str, path: str, body: object = None, *, user: str | None = None, text: bytes | None = None
    ) -> bytes:
        """Send a request with a body of JSON, or with a `text`, as the admin or as a user. Raises LoadError unless it
        succeeds.
        """
        proof = f"Bearer {self._server.admin_token}"
        if user is not None:
            proof = f"Basic {base64.b64encode(f'{user}:'.encode()).decode()}"
        headers = {"Authorization": proof, "Content-Type": "application/json"}
        self._connection.request(method, path, text if body is None else json.dumps(body), headers)
        response = self._connection.getresponse()
        answer = response.read()
        if response.status >= 300:
            raise LoadError(f"{response.status} for {method} {path}: {answer[:600].decode(errors='replace')}")
        return answer

    def find(self, question: str, *, user: str = ADMIN, limit: int = 50) -> dict[str, object]:
        """Search."""
        body = self.ask("GET", f"{SEARCH}?q={quote(question)}&limit={limit}", user=user)
        answer: dict[str, object] = json.loads(body)
        return answer


class QuestionKind(NamedTuple):
    """A kind of query, and a function that builds one."""

    title: str
    make: Callable[[Lake, random.Random], str]


def _nothing(_: Lake, dice: random.Random) -> str:
    return "".join(dice.choices("qwxyj", k=9))


def _typo(lake: Lake, dice: random.Random) -> str:
    word = dice.choice([each for each in lake.vocabulary[:20_000] if len(each) >= 6])
    place = dice.randrange(1, len(word))
    return f"{word[:place]}{dice.choice('qwxyj')}{word[place + 1 :]}"


def _word_above(lake: Lake, dice: random.Random) -> str:
    table = lake.any_table(dice)
    return f"{table.namespace[-1].partition('_')[0]} {table.name.partition('_')[0]}"


KINDS: Final = (
    QuestionKind("exact name", lambda lake, dice: lake.any_table(dice).name),
    QuestionKind("path", lambda lake, dice: ".".join(lake.any_table(dice).path)),
    QuestionKind("prefix, 2 letters", lambda lake, dice: lake.any_table(dice).name[:2]),
    QuestionKind("prefix, 4 letters", lambda lake, dice: lake.any_table(dice).name[:4]),
    QuestionKind("last word of a name", lambda lake, dice: lake.any_table(dice).name.rpartition("_")[2]),
    QuestionKind("namespace's and table's word", _word_above),
    QuestionKind("column", lambda lake, dice: dice.choice(lake.any_table(dice).columns)),
    QuestionKind("two words of a comment", lambda lake, dice: " ".join(lake.any_table(dice).comment.split()[:2])),
    QuestionKind("misspelled word", _typo),
    QuestionKind("nothing found", _nothing),
)


class Cost(NamedTuple):
    """The cost of one search: CPU and time in ms, the number of hits, and whether its limit was reached."""

    cpu_ms: float
    took_ms: float
    hits: int
    bounded: bool


def searched(client: Client, server: Server, question: str, *, user: str) -> Cost:
    """Search once. Returns the cost at the server and the database."""
    clock = TreeCpu(server.pids)
    before, began = clock.look(), time.perf_counter()
    answer = client.find(question, user=user)
    took = time.perf_counter() - began
    hits = answer["hits"]
    assert isinstance(hits, list)
    return Cost((clock.look() - before) / 1e6, took * 1000, len(hits), bool(answer["bounded"]))


def cost_line(title: str, costs: Sequence[Cost]) -> str:
    """Format the costs of a kind of query; `!` marks values over their targets."""
    cpu = sorted(each.cpu_ms for each in costs)
    figures = (statistics.median(cpu), cpu[int(len(cpu) * 0.99)], cpu[-1])
    cells = "  ".join(f"{ms:8.2f}{'!' if ms > aim else ' '}" for ms, aim in zip(figures, AIMS_MS, strict=True))
    hits, bounded = statistics.mean(each.hits for each in costs), sum(each.bounded for each in costs)
    took = statistics.median(each.took_ms for each in costs)
    return f"  {title:40} {cells} {took:8.1f} {hits:6.1f} {bounded:6}"


def wait_until_idle(server: Server) -> None:
    """Wait until a server and its database are idle: after a start it checks all objects in the background."""
    clock, since = TreeCpu(server.pids), time.monotonic()
    before, idle = clock.look(), 0
    while idle < 3 and time.monotonic() - since < CAUGHT_UP_S:
        time.sleep(1)
        now = clock.look()
        idle = idle + 1 if now - before < IDLE_SHARE * 1e9 else 0
        before = now


def costs(server: Server, lake: Lake, *, questions: int) -> None:
    """Print the cost of each kind of query for each caller."""
    client = Client(server)
    wait_until_idle(server)
    print(f"  {'':40} {'CPU p50':>8}   {'p99':>8}   {'max ms':>8}  {'took':>8} {'hits':>6} bounded")
    for user in (ADMIN, LITTLE, PICKER):
        every: list[Cost] = []
        for kind in KINDS:
            dice = random.Random(f"{kind.title} {user}")
            client.find("warm", user=user)
            query_costs = [searched(client, server, kind.make(lake, dice), user=user) for _ in range(questions)]
            print(cost_line(f"{user}: {kind.title}", query_costs), flush=True)
            every += query_costs
        print(cost_line(f"{user}: all", every), flush=True)


# ------------------------------------------------------------------------------------------------- exactness


def letters(dice: random.Random) -> str:
    """Return a word that no other object has."""
    return "zz" + "".join(dice.choices("bcdfghjkmpqrtvwxz", k=12))


def fields(words: Sequence[str]) -> list[dict[str, object]]:
    """Return columns with the given names."""
    return [{"id": place + 1, "name": word, "required": False, "type": "string"} for place, word in enumerate(words)]


class ChangedTables:
    """Tables that one node changes, and the expected results of searches on another node."""

    def __init__(self, writer: Client, reader: Client) -> None:
        self.writer, self.reader, self.dice = writer, reader, random.Random(11)
        self.tables: dict[tuple[str, str], list[str]] = {}
        for space in SPACES:
            writer.ask("POST", f"{PREFIX}/namespaces", {"namespace": [space]})

    def change(self) -> tuple[dict[str, list[str]], str]:
        """Make a random change. Returns the queries with the expected paths, and the change's kind."""
        kind = self.dice.choice(("create", "create", "rename", "move", "drop", "column"))
        if kind == "create" or not self.tables:
            return self._create(), "create"
        space, name = self.dice.choice(sorted(self.tables))
        words = self.tables[space, name]
        if kind == "drop":
            self.writer.ask("DELETE", table_path([space], name))
            del self.tables[space, name]
            return {name: [], words[0]: []}, kind
        if kind == "column":
            words.append(letters(self.dice))
            schema = {"type": "struct", "schema-id": len(words), "fields": fields(words)}
            updates = [{"action": "add-schema", "schema": schema}, {"action": "set-current-schema", "schema-id": -1}]
            self.writer.ask("POST", table_path([space], name), {"requirements": [], "updates": updates})
            return {word: [f"main.{space}.{name}"] for word in (words[-1], words[0])}, kind
        target = (space if kind == "rename" else SPACES[space == SPACES[0]], letters(self.dice))
        ends = ({"namespace": [each[0]], "name": each[1]} for each in ((space, name), target))
        self.writer.ask("POST", f"{PREFIX}/tables/rename", dict(zip(("source", "destination"), ends, strict=True)))
        self.tables[target] = self.tables.pop((space, name))
        path = [".".join(("main", *target))]
        return {name: [], target[1]: path, words[0]: path}, kind

    def _create(self) -> dict[str, list[str]]:
        space, name, word = self.dice.choice(SPACES), letters(self.dice), letters(self.dice)
        body = {"name": name, "schema": {"type": "struct", "schema-id": 0, "fields": fields([word])}}
        self.writer.ask("POST", f"{namespace_path([space])}/tables", body)
        self.tables[space, name] = [word]
        return {name: [f"main.{space}.{name}"], word: [f"main.{space}.{name}"]}


def exactness(writer: Server, reader: Server, *, changes: int) -> None:
    """Make changes on one node, and compare the results of the next search on the other."""
    changed = ChangedTables(Client(writer), Client(reader))
    searches = wrong = 0
    kinds: dict[str, int] = {}
    for _ in range(changes):
        questions, kind = changed.change()
        kinds[kind] = kinds.get(kind, 0) + 1
        for question, expected in questions.items():
            hits = changed.reader.find(question)["hits"]
            assert isinstance(hits, list)
            paths = [".".join(hit["path"]) for hit in hits]
            searches += 1
            if paths != expected:
                wrong += 1
                print(f"  WRONG after {kind}: '{question}' finds {paths}, not {expected}", flush=True)
    kind_counts = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    print(f"  {changes} changes on another node ({kind_counts}): {searches} searches, {wrong} wrong", flush=True)


# ---------------------------------------------------------------------------------------- indexing and commits


def caught_up(server: Server, *, changes: int, environment: Callable[[dict[str, str]], Server]) -> None:
    """Create tables on a node without the index, and print the CPU with which a node with it catches up.

    The start of a node without the index is subtracted.
    """
    client = Client(server)
    client.ask("POST", f"{PREFIX}/namespaces", {"namespace": ["behind"]})
    for number in range(changes):
        client.ask("POST", f"{namespace_path(['behind'])}/tables", new_table(f"t{number}", width=8, properties=0))
    idle = environment(OFF)
    start_ns = TreeCpu(idle.pids[:1]).look()
    databases = TreeCpu(idle.pids[1:])
    before_ns, began = databases.look(), time.perf_counter()
    indexer = environment({})
    clock, reader = TreeCpu(indexer.pids[:1]), Client(indexer)
    while reader.find("zzzz")["behind"] and time.perf_counter() - began < CAUGHT_UP_S:
        clock.look()
        time.sleep(0.5)
    cpu = (clock.look() - start_ns + databases.look() - before_ns) / 1e9
    print(f"  {changes:,} changes behind: {cpu:.1f} s of CPU, {time.perf_counter() - began:.0f} s", flush=True)


def commit_costs(make: Callable[[str, dict[str, str]], tuple[Server, Client]], *, rounds: int) -> None:
    """Print the CPU of commits without and with the index of words, by the best round of each."""
    sides = {"off": make("off", OFF), "on": make("on", {})}
    for _, client in sides.values():
        client.ask("POST", f"{PREFIX}/namespaces", {"namespace": ["commits"]})
        client.ask("POST", f"{namespace_path(['commits'])}/tables", new_table("t", width=50))
        commits(client, COMMITS)
    for title, comment in (("set a property", False), ("set the comment", True)):
        best: dict[str, list[float]] = {"off": [], "on": []}
        for _ in range(rounds):
            for side, (server, client) in sides.items():
                time.sleep(INDEX_S)
                clock = TreeCpu(server.pids)
                before = clock.look()
                commits(client, COMMITS, comment=comment)
                time.sleep(INDEX_S)
                best[side].append((clock.look() - before) / 1000 / COMMITS)
        off, on = min(best["off"]), min(best["on"])
        pairs = statistics.median(b / a for a, b in zip(best["off"], best["on"], strict=True))
        print(
            f"  commit, {title}: off {off:.0f} µs, on {on:.0f} µs, {on / off:.3f} times (median of pairs {pairs:.3f})",
            flush=True,
        )


def commits(client: Client, count: int, *, comment: bool = False) -> None:
    """Commit to one table, one commit after the other."""
    for number in range(count):
        value = {"comment" if comment else "bench": f"{number} {time.monotonic_ns()}"}
        body = {"requirements": [], "updates": [{"action": "set-properties", "updates": value}]}
        client.ask("POST", table_path(["commits"], "t"), body)


# ------------------------------------------------------------------------------------------------------- main


def measured(store: str, folder: Path, arguments: argparse.Namespace) -> None:
    """Measure one store."""
    lake = Lake(arguments.objects)
    with ExitStack() as stack:
        postgres = Postgres(folder / "pg") if store == "postgres" else None
        if postgres is not None:
            stack.callback(postgres.stop)
        pid = None if postgres is None else postgres.pid

        def place(name: str) -> Place:
            return Place(folder / f"{store}-{name}", None if postgres is None else postgres.new_database(name))

        @contextmanager
        def serving(at: Place, environment: dict[str, str]) -> Iterator[Server]:
            with running_server(at, database_pid=pid, environment=environment) as server:
                yield server

        def commit_side(name: str, environment: dict[str, str]) -> tuple[Server, Client]:
            server = sides.enter_context(serving(place(f"commits_{name}"), environment))
            return server, Client(server)

        if "commits" in arguments.parts:
            with ExitStack() as sides:
                commit_costs(commit_side, rounds=arguments.rounds)
        if not {"costs", "changes", "behind"} & set(arguments.parts):
            return
        began, at = time.monotonic(), place("lake")
        with serving(at, {}) as server:
            for path, body in template_bodies():
                Client(server).ask("POST", path, body)
        plant_lake(at, lake)
        say(f"planted {lake.objects:,} objects in {store}: {time.monotonic() - began:.0f} s")
        if {"costs", "changes"} & set(arguments.parts):
            with serving(at, {}) as one, serving(at, {}) as other:
                if "costs" in arguments.parts:
                    costs(one, lake, questions=arguments.questions)
                if "changes" in arguments.parts:
                    exactness(one, other, changes=arguments.changes)
        if "behind" in arguments.parts:
            with ExitStack() as nodes:
                first = nodes.enter_context(serving(at, OFF))
                caught_up(
                    first, changes=arguments.behind, environment=lambda env: nodes.enter_context(serving(at, env))
                )


def options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parts = ("costs", "changes", "behind", "commits")
    parser = argparse.ArgumentParser(prog="python -m bench.search", description=__doc__)
    parser.add_argument("--stores", nargs="+", choices=STORES, default=STORES)
    parser.add_argument("--objects", type=int, default=100_000, help="of the lake")
    parser.add_argument("--questions", type=int, default=100, help="of each kind and caller")
    parser.add_argument("--changes", type=int, default=1_000, help="on another node, each with searches after it")
    parser.add_argument("--behind", type=int, default=10_000, help="changes that the index takes at once")
    parser.add_argument("--rounds", type=int, default=5, help="of commits with and without the index")
    parser.add_argument("--parts", nargs="+", choices=parts, default=parts)
    parser.add_argument("--data", type=Path, default=None, help="folder for the stores while it runs")
    parsed_arguments = parser.parse_args(arguments)
    if (
        parsed_arguments.objects < 1_000
        or min(parsed_arguments.questions, parsed_arguments.changes, parsed_arguments.behind, parsed_arguments.rounds)
        < 1
    ):
        parser.error("--objects: at least 1,000; the other numbers: at least 1")
    return parsed_arguments


def main() -> int:
    """Measure and print."""
    arguments = options()
    for store in arguments.stores:
        print(f"{store}, {arguments.objects:,} objects", flush=True)
        with tempfile.TemporaryDirectory(
            prefix="limnos-bench-", dir=arguments.data, ignore_cleanup_errors=True
        ) as folder:
            try:
                measured(store, Path(folder), arguments)
            except LoadError as error:
                say(f"failed: {error}")
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
