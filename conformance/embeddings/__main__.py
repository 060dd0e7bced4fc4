# SPDX-License-Identifier: Apache-2.0
"""`python -m conformance.embeddings [--rows 100000] [--reads 1000] [--kills 10]`: a pipeline that publishes texts and
their embeddings together, beside four readers and killed drivers.

The texts are sentences of installed packages. Each round adds some, and writes all rows of an Iceberg table and of a
Lance table. After two rounds, drivers are killed at random moments, and their runs are resumed. Checked are: PyIceberg,
pylance, SQL++ and Gravitino's client never see the tables of two different rounds; a round embeds new texts only; each
row is there once. The recall of the vector index is printed. The exit code is 1 if something differs.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from conformance.embeddings.embedder import CALLS, DIMENSION
from conformance.embeddings.readers import TEXTS, VECTORS, PublishedRun, Readers, current
from conformance.embeddings.texts import sentences
from limnos.client import Client
from tests.integration.live import serving
from tests.pipeline.run.test_kills import Driver

if TYPE_CHECKING:
    from tests.integration.live import LiveServer

_PIPELINE: Final = """
pipeline: embeddings
catalog: main
parameters: {rows: int, round: int}
sources: {pages: {files: pages.jsonl, schema: "id INT, text STRING"}}
steps:
  docs.texts:
    sql: SELECT id, text, :round AS round FROM pages WHERE id < :rows
  docs.vectors:
    catalog: lance
    sql: SELECT id, text, round FROM docs.texts
    embed: {function: 'embedder:embed', model: 'embedder:load', columns: text, dimension: DIMENSION, batch: 500}
    indexes: [{vector: embedding, metric: cosine, sub_vectors: 16}, {scalar: id}, {text: text}]
    expect: [{unique: id}, embedding IS NOT NULL]
"""
_QUERIES: Final = 200
_NEAREST: Final = 10
_PROBES: Final = 100
_RECALL_MIN: Final = 0.9
_LARGEST_DELAY_S: Final = 8.0


class Trial:
    """The pipeline's directory, its server, and what its runs have published."""

    def __init__(self, server: LiveServer, client: Client, *, directory: Path, texts: list[str]) -> None:
        self.server, self.client, self.directory, self.texts = server, client, directory, texts
        self.published: list[PublishedRun] = []
        self.faults: list[str] = []
        directory.mkdir()
        self._calls = directory / "calls"
        (directory / "pipeline.yaml").write_text(_PIPELINE.replace("DIMENSION", str(DIMENSION)))
        shutil.copy(Path(__file__).with_name("embedder.py"), directory)
        lines = (json.dumps({"id": number, "text": text}) for number, text in enumerate(texts))
        (directory / "pages.jsonl").write_text("\n".join(lines))

    def check(self, holds: bool, fault: str) -> None:
        """Print a fault, and count it."""
        if not holds:
            self.faults.append(fault)
            print(f"  FAULT {fault}", flush=True)

    def driver(self, *words: str) -> Driver:
        """Start a driver in the pipeline's directory."""
        return Driver(self.server, *words, environment={**os.environ, CALLS: str(self._calls)})

    def start(self, rows: int) -> Driver:
        """Start the next round with the first `rows` texts."""
        parameters = ("--param", f"rows={rows}", "--param", f"round={self.round}")
        return self.driver("run", str(self.directory / "pipeline.yaml"), *parameters)

    @property
    def round(self) -> int:
        """The round that the next run publishes."""
        return len(self.published) + 1

    def end(self, driver: Driver, *, rows: int) -> None:
        """Wait until a driver ends, and record what it has published."""
        ended = driver.ended()
        if ended.get("state") != "published":
            raise RuntimeError(f"a run ended as {ended}")
        self.record(rows)

    def record(self, rows: int) -> None:
        """Record the versions of a published round, and compare its rows."""
        (snapshot,), (version,) = (current(self.client, table).value for table in (TEXTS, VECTORS))
        self.published.append(PublishedRun(self.round, rows, snapshot, version))
        vectors = self.client.lance.dataset(".".join(VECTORS)).to_table(columns=["id", "round"])
        ids = Counter(vectors["id"].to_pylist())
        self.check(ids == Counter(range(rows)), f"round {self.round - 1}: rows are missing, added or twice")
        self.check(set(vectors["round"].to_pylist()) == {self.round - 1}, "rows of another round")

    def embedded(self) -> int:
        """Return how many texts were embedded since the last call."""
        lines = self._calls.read_text().split() if self._calls.exists() else []
        self._calls.unlink(missing_ok=True)
        return sum(int(each) for each in lines if each.isdigit())

    def kill(self, chance: random.Random, rows: int) -> str:
        """Kill the driver of the next round at a random moment, and resume its run. Returns a line about it."""
        waits_for = chance.choice(["docs.texts", "docs.vectors", "docs.vectors", "docs.vectors"])
        driver, run = self.start(rows), ""
        for event in driver.events():
            run = str(event["run"])
            if event.get("step") == waits_for and event["state"] == "running":
                break
        delay = chance.uniform(0, _LARGEST_DELAY_S)
        time.sleep(delay)
        os.kill(driver.process.pid, signal.SIGKILL)
        driver.process.wait()
        state = self._state_after(run)
        if state == "lost":
            self.end(self.driver("resume", run), rows=rows)
        else:
            self.check(state == "published", f"a killed run is {state}")
            self.record(rows)
        return f"killed {delay:.1f} s after {waits_for} began; the run was {state}"

    def _state_after(self, run: str) -> str:
        state = self.client.runs.load(run).state
        while state == "running":
            time.sleep(0.2)
            state = self.client.runs.load(run).state
        return state

    def recall(self) -> float:
        """Return the share of the nearest rows of random texts that the index finds, too."""
        dataset = self.client.lance.dataset(".".join(VECTORS))
        chosen = np.random.default_rng(11).choice(dataset.count_rows(), _QUERIES, replace=False)
        vectors = dataset.take(sorted(chosen.tolist()), columns=["embedding"])["embedding"].to_pylist()

        def nearest(vector: list[float], *, by_index: bool) -> set[int]:
            query: dict[str, object] = {"column": "embedding", "q": vector, "k": _NEAREST, "use_index": by_index}
            options = {"nprobes": _PROBES, "refine_factor": 10} if by_index else {"metric": "cosine"}
            return set(dataset.to_table(columns=["id"], nearest=query | options)["id"].to_pylist())

        common = sum(len(nearest(each, by_index=True) & nearest(each, by_index=False)) for each in vectors)
        return common / (_QUERIES * _NEAREST)


def play(trial: Trial, *, reads: int, kills: int, say: Callable[[str], None]) -> None:
    """Run all rounds beside the readers."""
    total = len(trial.texts)
    added = total // (2 * (kills + 1))
    rows = total - (kills + 1) * added
    began = time.monotonic()
    trial.end(trial.start(rows), rows=rows)
    say(f"round 1: {rows:,} rows published after {time.monotonic() - began:.0f} s, {trial.embedded():,} embedded")
    with Readers(trial.server) as readers:
        rows += added
        began = time.monotonic()
        trial.end(trial.start(rows), rows=rows)
        embedded = trial.embedded()
        say(f"round 2: {rows:,} rows published after {time.monotonic() - began:.0f} s, {embedded:,} embedded")
        trial.check(embedded == added, f"{added:,} texts are new")
        chance = random.Random(50)
        for _ in range(kills):
            rows += added
            line = trial.kill(chance, rows)
            say(f"round {len(trial.published)}: {rows:,} rows, {line}; {readers.reads:,} reads")
        while readers.reads < reads and not readers.failures:
            trial.end(trial.start(rows), rows=rows)
            say(f"round {len(trial.published)}: {rows:,} rows; {readers.reads:,} reads")
    for failure in readers.failures:
        trial.check(False, failure)
    for mixture in readers.mixed(trial.published):
        trial.check(False, mixture)
    by_reader = ", ".join(f"{name} {pairs.total():,}" for name, pairs in readers.pairs.items())
    rounds = {name: len({pair[1] for pair in pairs}) for name, pairs in readers.pairs.items()}
    say(f"{readers.reads:,} reads of both tables: {by_reader}; states seen by each: {rounds}")
    recall = trial.recall()
    say(f"recall of the vector index: {recall:.3f} ({_NEAREST} nearest of {_QUERIES} texts, {_PROBES} probes)")
    trial.check(recall >= _RECALL_MIN, f"the recall is below {_RECALL_MIN}")


def main() -> int:
    """Play the trial on a server of its own, and print the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--reads", type=int, default=1_000)
    parser.add_argument("--kills", type=int, default=10)
    options = parser.parse_args()

    def say(line: str) -> None:
        print(line, flush=True)

    with tempfile.TemporaryDirectory(prefix="embeddings-") as temporary:
        place = Path(temporary).resolve()
        texts = sentences(options.rows)
        say(f"{len(texts):,} sentences, {sum(map(len, texts)) / len(texts):.0f} characters each")
        with (
            serving(place / "server", "--allow-root", str(place)) as server,
            closing(Client(server.uri, token=server.token)) as client,
        ):
            client.namespaces.create("main.docs")
            client.namespaces.create("lance.docs")
            trial = Trial(server, client, directory=place / "pipeline", texts=texts)
            play(trial, reads=options.reads, kills=options.kills, say=say)
    say("each row once, and never one table without the other" if not trial.faults else f"{len(trial.faults)} faults")
    return 1 if trial.faults else 0


if __name__ == "__main__":
    sys.exit(main())
