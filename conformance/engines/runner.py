# SPDX-License-Identifier: Apache-2.0
"""Runs engines through the story, one at a time, and lets all read the tables of all.

Job: the list of engines, and the start of each one's process. May import this package. One engine runs at a time,
because each needs much memory.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from conformance.engines import chdb, cross, duck, expired, flink, restricted, trino
from conformance.engines.checks import Check, Lake
from conformance.engines.driver import Place
from conformance.engines.drivers.flink2_driver import Engine as Flink2
from conformance.engines.drivers.flink_driver import Engine as Flink
from conformance.engines.remote import CallRefused, Remote, Start, hosted
from conformance.engines.rows import Row
from conformance.engines.story import FAILED, OK, Outcome, Story
from conformance.engines.world import REMOTE, place_of, witness_of
from tests.objects import ObjectStoreServer

ENGINES: dict[str, Start] = {
    "spark41": hosted("spark41"),
    "spark35": hosted("spark35", "pyspark35"),
    "pyiceberg": hosted("pyiceberg", "pyiceberg-core"),
    "duckdb": hosted("duckdb"),
    "daft": hosted("daft", "daft", "pyiceberg-core"),
    "polars": hosted("polars", "polars", "pyiceberg-core"),
    "sail": hosted("sail", "pysail"),
    "chdb": hosted("chdb", "chdb"),
    "trino": hosted("trino"),
    "flink": hosted("flink"),
    "flink2": hosted("flink2"),
    "go": hosted("go"),
    "rust": hosted("rust"),
}
DEEPER: dict[str, Callable[[Lake], list[Check]]] = {
    "duckdb": duck.run,
    "chdb": chdb.run,
    "flink": partial(flink.run, Flink),
    "flink2": partial(flink.run, Flink2),
    "trino": trino.run,
}
"""Checks of a single engine."""
REMOTE_ENGINES = ("spark41", "spark35", "pyiceberg", "duckdb", "daft", "polars", "trino", "flink", "flink2", "go")
"""Engines that get credentials from the catalog."""


class Runner:
    """One run: its outcomes, and the engines' titles."""

    def __init__(self, lake: Lake, store: ObjectStoreServer, output: Path) -> None:
        self.lake, self.store, self.output = lake, store, output
        self.outcomes: list[Outcome] = []
        self.titles: dict[str, str] = {}
        self._tables: dict[str, list[Row]] = {}

    def run(self, names: Sequence[str]) -> None:
        """Run everything: the story and writes, then reads, then the object store."""
        driven = [name for name in names if name in ENGINES]
        for name in driven:
            self._with(name, "main", self._told)
        self._read(driven)
        for name in driven:
            if name in REMOTE_ENGINES:
                self._with(name, REMOTE, self._told_remote)
        for name in names:
            if name in DEEPER:
                self._deeper(name)

    def run_crossed(self, names: Sequence[str]) -> None:
        """Run only the tables that these engines write and all of them read."""
        driven = [name for name in names if name in ENGINES]
        for name in driven:
            self._with(name, "main", self._wrote)
        self._read(driven)

    def run_restricted(self, names: Sequence[str]) -> None:
        """Run only the reads and writes of a restricted reader, on disk and in the object store."""
        for name in (name for name in names if name in ENGINES):
            self._with(name, "main", restricted.tell)
            if name in REMOTE_ENGINES:
                self._with(name, REMOTE, restricted.tell)

    def run_expired(self, names: Sequence[str]) -> None:
        """Run only the reads before and after the end of a token, and print what each engine says."""
        for name in (name for name in names if name in ENGINES):
            place = place_of(self.lake, "main", folder=f"{name}-expired")
            over = expired.furnish(place, uri=self.lake.uri, admin=self.lake.admin)
            self._with(name, "main", partial(expired.tell, expired_at=over), place=place)
        for each in self.outcomes:
            print(f"{each.engine}: {each.check}: {each.told}", file=sys.stderr, flush=True)

    def _read(self, names: Sequence[str]) -> None:
        for name in names:
            self._with(name, "main", lambda story: cross.read(story, self._tables))

    def _deeper(self, name: str) -> None:
        for check in DEEPER[name](self.lake):
            self.titles.setdefault(name, check.engine)
            self.outcomes.append(
                Outcome(
                    name, f"deeper: {check.name}", OK if check.passed else FAILED, "" if check.passed else check.told
                )
            )

    def _told(self, story: Story) -> None:
        story.tell()
        self._wrote(story)
        restricted.tell(story)

    def _told_remote(self, story: Story) -> None:
        story.tell_remote()
        restricted.tell(story)

    def _wrote(self, story: Story) -> None:
        if rows := cross.written(story):
            self._tables[story.engine] = rows

    def _with(self, name: str, catalog: str, tell: Callable[[Story], object], *, place: Place | None = None) -> None:
        """Start an engine, run a part, stop it. An engine that does not start has failed."""
        print(f"== {name} on {catalog}", file=sys.stderr, flush=True)
        command, environment = ENGINES[name]()
        remote = Remote(command=command, environment=environment, log=self.output / f"engines-{name}.log")
        story = Story(name, remote, witness=witness_of(self.lake, catalog), lake=self.lake, warehouse=catalog)
        try:
            remote.start(place or place_of(self.lake, catalog, folder=f"{name}-{catalog}"))
            self.titles[name] = remote.title
            tell(story)
        except CallRefused as error:
            story.outcomes.append(Outcome(name, "start", FAILED, str(error)[:700]))
        finally:
            remote.stop()
        where = " (S3)" if catalog == REMOTE else ""
        self.outcomes += [
            Outcome(each.engine, f"{each.check}{where}", each.result, each.told) for each in story.outcomes
        ]
