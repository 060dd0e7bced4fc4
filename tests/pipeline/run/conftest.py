# SPDX-License-Identifier: Apache-2.0
"""A real server and an engine without Spark, so that all outcomes of a run can be tested in seconds.

The engine commits real snapshots to real branches over Iceberg REST, but without data files.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from limnos.client import Client
from limnos.client.errors import ConflictError, NotFoundError
from limnos.pipeline.context import StepContext
from limnos.pipeline.declaration import LoopRows, Pipeline, QueryLoop, Sql, StepDeclaration
from limnos.pipeline.declared_values import Parts, Scalar
from limnos.pipeline.failures import OutputGone, StepFailed
from limnos.pipeline.lineage import lineage_of_tables
from limnos.pipeline.outcomes import BuiltStep, ReadPin, StepBranch, StepOutcome
from limnos.pipeline.problems import AbsentTable
from limnos.pipeline.run.events import RunEvent
from limnos.pipeline.run.options import RunOptions
from limnos.pipeline.run.refs import heads_of
from limnos.pipeline.run.request import RunMeans
from limnos.pipeline.run.result import RunResult
from limnos.pipeline.run.start import start
from limnos.pipeline.run.stop import StopSignal
from tests.integration.live import LiveServer

SCHEMA = {"type": "struct", "schema-id": 0, "fields": [{"id": 1, "name": "x", "required": False, "type": "long"}]}
_numbers = itertools.count(1000)


@pytest.fixture
def client(server: LiveServer) -> Iterator[Client]:
    """A client with the admin's token."""
    with Client(server.uri, token=server.token) as live_client:
        yield live_client


@pytest.fixture
def heartbeat_client(server: LiveServer) -> Iterator[Client]:
    """A second client, for heartbeats."""
    with Client(server.uri, token=server.token) as heartbeat_client:
        yield heartbeat_client


@pytest.fixture
def space(client: Client, request: pytest.FixtureRequest) -> str:
    """A namespace of the test below `main`."""
    name = f"s{next(_numbers)}"
    client.namespaces.create(f"main.{name}")
    return name


def commit(client: Client, table: Parts, *, ref: str, parent: int | None, by: Mapping[str, str] | None = None) -> int:
    """Commit a snapshot without files to a branch. Returns its id."""
    number = next(_numbers)
    metadata = client.tables.load(table).metadata
    sequence = int(str(metadata.get("last-sequence-number", 0))) + 1
    snapshot = {
        "snapshot-id": number,
        "sequence-number": sequence,
        "timestamp-ms": metadata["last-updated-ms"],
        "manifest-list": f"{metadata['location']}/metadata/{number}.avro",
        "schema-id": 0,
        "summary": {"operation": "append", **(by or {})},
    }
    if parent is not None:
        snapshot["parent-snapshot-id"] = parent
    set_ref = {"action": "set-snapshot-ref", "ref-name": ref, "type": "branch", "snapshot-id": number}
    updates = [{"action": "add-snapshot", "snapshot": snapshot}, set_ref]
    operation = {"do": "commit-table", "path": list(table[1:]), "requirements": [], "updates": updates}
    client.transactions.run(table[0], [operation])
    return number


@dataclass(kw_only=True)
class FakeEngine:
    """Executes steps as commits without rows. The hooks `before` and `after` are called around each step, to inject
    faults.
    """

    client: Client
    before: Callable[[StepDeclaration, StepContext], None] = lambda step, context: None
    after: Callable[[StepDeclaration, StepContext], None] = lambda step, context: None
    carried: list[tuple[str, str]] = field(default_factory=list)
    """Step and branch, in the order of their start."""
    read: dict[str, dict[Parts, int | None]] = field(default_factory=dict)
    """The last reads of each step: snapshot by table."""
    halted: threading.Event = field(default_factory=threading.Event)
    copied: dict[str, Mapping[Parts, BuiltStep]] = field(default_factory=dict)
    """What each step could know of tables that earlier steps copied."""
    expired: set[Parts] = field(default_factory=set)
    sources: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Names of the sources that a step reads in addition to tables, by its table."""
    at_once: int = 4
    mended: dict[str, bool | None] = field(default_factory=dict)
    """The answers of `changed` per source. Others have not changed."""
    looped: list[str] = field(default_factory=list)
    """The rows of the queries of loops."""
    waits: dict[str, str] = field(default_factory=dict)
    """By step, why it waits for a cluster."""

    def reads(self, pipeline: Pipeline) -> Mapping[str, frozenset[Parts]]:
        """Return the tables of each step; the text of a query is the list of its tables."""
        return {
            step.name: frozenset(
                pipeline.actual_table(tuple(each.split(".")))
                for each in step.body.text.split()
                if isinstance(step.body, Sql)
            )
            for step in pipeline.steps
            if isinstance(step.body, Sql)
        }

    def pins(self, tables: Iterable[Parts]) -> dict[Parts, ReadPin]:
        """Return the current heads of `main`."""
        read_pins = {}
        for table in tables:
            heads = heads_of(self.client, table)
            if heads is None:
                raise AbsentTable(table)
            read_pins[table] = ReadPin(name=".".join(table), table=table, snapshot=heads.main)
        return read_pins

    def find_lost_tables(self, pins: Mapping[Parts, ReadPin]) -> frozenset[Parts]:
        """Return the pins that the test declared as expired."""
        return frozenset(pins) & self.expired

    def loop_rows(self, pipeline: Pipeline, loop: QueryLoop, *, parameters: Mapping[str, Scalar]) -> LoopRows:
        """Return the rows that the test set."""
        return LoopRows(query=loop.query, columns=("x",), rows=tuple((each,) for each in self.looped))

    def ship(self, pipeline: Pipeline, *, directory: Path) -> None:
        """No-op: the fake engine runs no function."""

    def source_pins(self, pipeline: Pipeline, names: frozenset[str], *, directory: Path) -> dict[str, ReadPin]:
        """Return no pins: no source of the tests is a topic."""
        return {}

    def find_changed_sources(
        self, pipeline: Pipeline, pins: Mapping[str, ReadPin], *, directory: Path
    ) -> Mapping[str, bool | None]:
        """Return for each source the answer that the test set."""
        return {name: self.mended.get(name, False) for name in pins}

    def carry_out(self, step: StepDeclaration, *, context: StepContext) -> StepOutcome:
        """Begin the branch at `main`, commit one snapshot, return the outcome."""
        self.carried.append((step.name, context.branch))
        self.before(step, context)
        named = step.body.text.split() if isinstance(step.body, Sql) else ()
        reads = {context.pipeline.actual_table(tuple(each.split("."))) for each in named}
        branch_heads = {table: branch.head for table, branch in context.done_branches.items() if table in reads}
        self.read[step.name] = {
            **{table: pin.snapshot for table, pin in context.pins.items() if table in reads},
            **branch_heads,
        }
        heads = heads_of(self.client, step.table)
        if heads is None:
            if step.table in context.existing_tables:
                raise OutputGone(f"{step.table[-1]} is not there any longer")
            create = {
                "do": "create-table",
                "path": list(step.table[1:]),
                "schema": SCHEMA,
                "properties": dict(step.properties),
            }
            if step.declared is not None:
                with suppress(ConflictError):
                    self.client.namespaces.create(step.table[:-1])
            try:
                self.client.transactions.run(step.table[0], [create])
            except NotFoundError as error:
                raise StepFailed(error.message) from error
            heads = heads_of(self.client, step.table)
        assert heads is not None
        by = {"limnos.run": context.run, "limnos.step": step.name}
        head = commit(self.client, step.table, ref=context.branch, parent=heads.main, by=by)
        branch = StepBranch(
            table=step.table,
            name=context.branch,
            uuid=heads.uuid,
            schema_id=0,
            base=heads.main,
            head=head,
            is_new=False,
        )
        self.after(step, context)
        context.check()
        pins = tuple(ReadPin(name=name, fingerprint="{}") for name in self.sources.get(step.table[-1], ()))
        self.copied[step.name] = dict(context.copied)
        lineage, phases = lineage_of_tables(sorted(self.read[step.name])), {"writing": 0.0625}
        return StepOutcome(
            branches=(branch,),
            pins=pins,
            findings=(),
            rows=1,
            bytes=10,
            seconds=0.1,
            phases=phases,
            lineage=lineage,
            copied_from=context.built.get(step.name),
        )

    def steps_at_once(self) -> int:
        """Propose the number that the test set."""
        return self.at_once

    def tasks(self, step: str) -> FakeTaskCounts:
        """Return task counts with half of the tasks done."""
        return FakeTaskCounts(1, 2)

    def wait_reason(self, step: str) -> str | None:
        """Return what the test set."""
        return self.waits.get(step)

    def halt(self) -> None:
        """Record the call."""
        self.halted.set()


@dataclass
class FakeTaskCounts:
    """Counts of tasks."""

    done: int
    total: int


@dataclass(kw_only=True)
class PipelineRig:
    """All that a test needs to run pipelines: `run` starts one with the fake engine."""

    client: Client
    heartbeat_client: Client
    space: str
    engine: FakeEngine
    events: list[RunEvent] = field(default_factory=list)
    stop: StopSignal = field(default_factory=StopSignal)

    def means(self) -> RunMeans:
        """Return the dependencies of runs."""
        return RunMeans(
            client=self.client,
            heartbeat_client=self.heartbeat_client,
            engine=self.engine,
            stop=self.stop,
            listener=self.events.append,
        )

    def table(self, name: str) -> Parts:
        """Return the path of a table in the test's namespace."""
        return ("main", self.space, name)

    def pipeline(self, **reads: str) -> Pipeline:
        """Return a pipeline of steps by table name, each with the space-separated names of its inputs."""
        steps = tuple(
            StepDeclaration(
                table=self.table(name), body=Sql(text=" ".join(f"main.{self.space}.{each}" for each in inputs.split()))
            )
            for name, inputs in reads.items()
        )
        return Pipeline(name=self.space, catalog="main", steps=steps)

    def run(self, pipeline: Pipeline, **options: object) -> RunResult:
        """Run a pipeline."""
        return start(pipeline, self.means(), directory=Path(), options=RunOptions(**{"lease_s": 2, **options}))  # type: ignore[arg-type]

    def main(self, name: str) -> int | None:
        """Return the `main` snapshot of a table; None if it is empty or does not exist."""
        heads = heads_of(self.client, self.table(name))
        return None if heads is None else heads.main

    def refs(self, name: str) -> set[str]:
        """Return all branches and tags of a table."""
        heads = heads_of(self.client, self.table(name))
        assert heads is not None, name
        return set(heads.refs)

    def renewed(self) -> PipelineRig:
        """Return the same rig for another process: not stopped, and without events."""
        return PipelineRig(
            client=self.client,
            heartbeat_client=self.heartbeat_client,
            space=self.space,
            engine=FakeEngine(client=self.client),
        )


@pytest.fixture
def rig(client: Client, heartbeat_client: Client, space: str) -> PipelineRig:
    """Return a rig over the server."""
    return PipelineRig(client=client, heartbeat_client=heartbeat_client, space=space, engine=FakeEngine(client=client))
