# SPDX-License-Identifier: Apache-2.0
"""`python -m conformance.promotion [--scale 1]`: TPC-H built in an environment, and promoted.

Starts its own server on SQLite. The environment `dev` computes all tables from the base data. A promotion then has to
copy each of them, while readers of production never see some of its tables without the others. Production has to equal
plain Spark SQL, also after a day of changes, which it reads by itself. After a change of one query, the selection
`state:modified+` has to be that step and the steps that read it. The exit code is 1 if something differs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from conformance.tpch.data import deliveries
from conformance.tpch.result_cache import expected_tables
from conformance.tpch.trial import Trial, running_spark
from limnos import pipeline
from limnos.client import Client
from limnos.pipeline.run.options import RunOptions
from limnos.pipeline.run.refs import heads_of
from tests.integration.live import LiveServer, serving
from tests.pipeline.run.test_kills import Driver

if TYPE_CHECKING:
    from limnos.pipeline.declared_values import Parts
    from limnos.pipeline.run.result import RunEvent

_ENVIRONMENT: Final = "\nenvironments: {dev: {prefix: dev_}}\n"
_CHANGED: Final = ("count(*) AS lines", "count(*) AS lines, max(l_shipdate) AS last_shipped")
"""A change of the query of `mart.tpch.order_revenue`."""
_SELECTED: Final = ("mart.tpch.order_revenue", "mart.tpch.revenue_by_month")
"""The step that changes, and the steps that read it: by hand, from the pipeline's file."""


class Watch:
    """What a reader of production's tables sees: which of them have rows at the same moment."""

    def __init__(self) -> None:
        self.states: Counter[tuple[bool, ...]] = Counter()
        self.mixed: list[tuple[bool, ...]] = []

    @contextmanager
    def over(self, server: LiveServer, tables: Sequence[Parts]) -> Iterator[None]:
        """Look at the tables until the body of a `with` ends. A state counts if two passes in turn see the same."""
        ended = threading.Event()

        def look() -> None:
            with closing(Client(server.uri, token=server.token)) as client:
                while not ended.is_set():
                    first, second = ([_head(client, table) for table in tables] for _ in range(2))
                    if first == second:
                        self.states[tuple(each is not None for each in first)] += 1
                    else:  # published in one of the passes: the tables changed that were read before, or after it
                        changed = [one != other for one, other in zip(first, second, strict=True)]
                        in_order = changed in (sorted(changed), sorted(changed, reverse=True))
                        self.mixed += [] if in_order else [tuple(changed)]

        reader = threading.Thread(target=look, daemon=True)
        reader.start()
        try:
            yield
        finally:
            ended.set()
            reader.join(timeout=60)

    @property
    def partial(self) -> list[tuple[bool, ...]]:
        """The states in which some tables had rows and others had none."""
        return [state for state in self.states if len(set(state)) > 1]


def _head(client: Client, table: Parts) -> int | None:
    heads = heads_of(client, table)
    return None if heads is None else heads.main


def promote(trial: Trial) -> Counter[str]:
    """Promote all steps, and count those that were copied and those that were computed. Prints the reasons."""
    events: list[RunEvent] = []
    options = RunOptions(promotes="dev", select=("*",))
    pipeline.load(trial.file).run(trial.spark, options=options, listener=events.append).require()
    outcomes: Counter[str] = Counter()
    for event in events:
        if event.step is not None and event.state == "done":
            message = event.message or ""
            outcomes["copied" if message.startswith("copied from") else "computed"] += 1
            if not message.startswith("copied from"):
                print(f"  {event.step}: {message}", flush=True)
    return outcomes


def play(trial: Trial, server: LiveServer, *, data: Path) -> int:
    """Build, promote, go on, and select. Returns the number of faults."""
    faults = 0
    trial.deliver(0)
    began = time.monotonic()
    pipeline.load(trial.file).in_environment("dev").run(trial.spark).require()
    print(f"dev: published after {time.monotonic() - began:.1f} s", flush=True)
    tables = [step.table for step in pipeline.load(trial.file).declaration.steps]
    watch = Watch()
    began = time.monotonic()
    with watch.over(server, tables):
        outcomes = promote(trial)
    print(
        f"promotion: {outcomes['copied']} steps copied, {outcomes['computed']} computed, after"
        f" {time.monotonic() - began:.1f} s; {watch.states.total()} passes over {len(tables)} tables, partial:"
        f" {watch.partial or watch.mixed or 'none'}",
        flush=True,
    )
    faults += outcomes["computed"] + len(watch.partial) + len(watch.mixed)
    for day in (0, 1):
        if day:
            trial.deliver(day)
            trial.run()
        for line in trial.compare(expected_tables(trial.spark, data, days=day)):
            faults += not line.equal
            print(f"  day {day}: {line}", flush=True)
    return faults + _selection_faults(trial, server)


def _selection_faults(trial: Trial, server: LiveServer) -> int:
    text = trial.file.read_text()
    trial.file.write_text(text.replace(*_CHANGED))
    driver = Driver(server, "run", str(trial.file), "--select", "state:modified+", "--dry-run", "--no-helper")
    printed, _ = driver.process.communicate(timeout=300)
    selected = tuple(sorted(str(each["step"]) for each in json.loads(printed)))
    print(f"after a change of one query, state:modified+ is {', '.join(selected)}", flush=True)
    return int(selected != _SELECTED)


def main() -> int:
    """Play the trial, and print the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--memory", default="4g", help="of Spark")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="promotion-") as temporary:
        place = Path(temporary).resolve()
        data = place / "deliveries"
        deliveries(data, scale=options.scale, days=1)
        with (
            serving(place / "server", "--allow-root", str(place)) as server,
            running_spark(server, scale=options.scale, memory=options.memory) as spark,
        ):
            trial = Trial(place, spark, deliveries=data)
            trial.file.write_text(trial.file.read_text() + _ENVIRONMENT)
            faults = play(trial, server, data=data)
    print("nothing computed again, nothing partial, all tables equal" if not faults else f"{faults} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
