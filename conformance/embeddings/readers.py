# SPDX-License-Identifier: Apache-2.0
"""Readers of both tables of the suite's pipeline, each by another client, while runs publish.

A reader takes the state of one table, reads the other one, and takes the first state again. If the first state did not
change, both states were current at the same moment, and the reader counts the pair.
"""

from __future__ import annotations

import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import msgspec
from pyiceberg.catalog import load_catalog

from conformance.gravitino.client import interpreter
from limnos.client import Client
from limnos.pipeline.run.refs import heads_of

if TYPE_CHECKING:
    from tests.integration.live import LiveServer

TEXTS: Final = ("main", "docs", "texts")
VECTORS: Final = ("lance", "docs", "vectors")
_PAUSE_S: Final = 1.0
"""Between two reads of one reader: four readers without a pause would take the cores that the runs need."""
_ANSWER_S: Final = 300.0
"""The first query in SQL++ waits for the start of an engine, beside a run on the same cores."""
_GRAVITINO_READER: Final = Path(__file__).with_name("gravitino_reader.py")


class Side(NamedTuple):
    """What a reader learns about one table: its current version, or the number and the rounds of its rows."""

    table: str
    value: tuple[int, ...]


class PublishedRun(NamedTuple):
    """A published run: its round, its number of rows, and the version of each table."""

    round: int
    rows: int
    snapshot: int
    version: int

    def has(self, side: Side) -> bool:
        """Return whether a reader of this run sees this."""
        return (
            side.value
            in {
                "texts": ((self.snapshot,), (self.rows, self.round)),
                "vectors": ((self.version,), (self.rows, self.round)),
            }[side.table]
        )


Look = Callable[[], Side]


def current(client: Client, table: tuple[str, str, str]) -> Side:
    """Return the current version of a table."""
    heads = heads_of(client, table)
    if heads is None or heads.main is None:
        raise ValueError(f"{'.'.join(table)} has no version")
    return Side(table[-1], (heads.main,))


def _rows(table: str, rounds: Sequence[int]) -> Side:
    return Side(table, (len(rounds), *sorted(set(rounds))))


def pyiceberg_look(server: LiveServer) -> Look:
    """Read the rounds of all rows of the Iceberg table with PyIceberg."""
    catalog = load_catalog("main", type="rest", uri=f"{server.uri}/iceberg", warehouse="main", token=server.token)

    def look() -> Side:
        scan = catalog.load_table("docs.texts").scan(selected_fields=("round",))
        return _rows("texts", scan.to_arrow()["round"].to_pylist())

    return look


def pylance_look(client: Client) -> Look:
    """Read the rounds of all rows of the Lance table with pylance."""

    def look() -> Side:
        dataset = client.lance.dataset(".".join(VECTORS))
        return _rows("vectors", dataset.to_table(columns=["round"])["round"].to_pylist())

    return look


def sqlpp_look(client: Client) -> Look:
    """Count the rows of the Iceberg table and their rounds in SQL++."""
    text = "SELECT count(*) AS n, min(t.round) AS first, max(t.round) AS last FROM texts t"

    def look() -> Side:
        answer = client.sqlpp.run(text, dataverse="docs")
        if answer.errors or not answer.results:
            raise ValueError(f"SQL++ refused the query: {answer.errors}")
        row = msgspec.json.decode(answer.results[0])
        return Side("texts", (row["n"], *sorted({row["first"], row["last"]})))

    return look


@contextmanager
def gravitino_look(server: LiveServer) -> Iterator[Look]:
    """Read the version of the Lance table with Gravitino's Python client, which runs in its own environment."""
    with subprocess.Popen(
        [str(interpreter()), str(_GRAVITINO_READER), server.uri, server.token],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        to_reader, from_reader = process.stdin, process.stdout
        if to_reader is None or from_reader is None:
            raise RuntimeError("the reader has no pipes")

        def look() -> Side:
            to_reader.write("\n")
            to_reader.flush()
            return Side("vectors", (int(from_reader.readline()),))

        try:
            yield look
        finally:
            to_reader.close()


class Readers:
    """Four readers in threads of their own, and the pairs that each has seen."""

    def __init__(self, server: LiveServer) -> None:
        self._server = server
        self.pairs: dict[str, Counter[tuple[Side, Side]]] = {}
        self.failures: list[str] = []
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        looks: Mapping[str, Look] = {
            "PyIceberg": pyiceberg_look(self._server),
            "pylance": pylance_look(self._client()),
            "SQL++": sqlpp_look(self._client()),
            "Gravitino": self._opened.enter_context(gravitino_look(self._server)),
        }
        for name, look in looks.items():
            self.pairs[name] = Counter()
            thread = threading.Thread(target=self._read, args=(name, look), daemon=True)
            self._threads.append(thread)
            thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(timeout=120)
        self._opened.close()

    def _client(self) -> Client:
        client = Client(self._server.uri, token=self._server.token, timeout_s=_ANSWER_S)
        return self._opened.enter_context(closing(client))

    def _read(self, name: str, look: Look) -> None:
        # The first table is the one that the reader's client does not read.
        try:
            with closing(Client(self._server.uri, token=self._server.token)) as client:
                first = VECTORS if look().table == "texts" else TEXTS
                while not self._over.is_set():
                    before, side, after = current(client, first), look(), current(client, first)
                    if before == after:
                        self.pairs[name][before, side] += 1
                    self._over.wait(_PAUSE_S)
        except Exception as error:
            self.failures.append(f"{name}: {type(error).__name__}: {error}")

    @property
    def reads(self) -> int:
        """The number of pairs that all readers have seen."""
        return sum(each.total() for each in self.pairs.values())

    def mixed(self, published: Sequence[PublishedRun]) -> list[str]:
        """Return what readers saw that no single run has published."""
        return [
            f"{name}: {first} with {second}"
            for name, pairs in self.pairs.items()
            for first, second in pairs
            if not any(run.has(first) and run.has(second) for run in published)
        ]
