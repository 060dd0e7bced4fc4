# SPDX-License-Identifier: Apache-2.0
"""A process that reads and changes planted tables as an engine or an executor of maintenance does, without Landlock.

Its arguments are the role, a directory and the names of cases. It prints a line of JSON for each case: what reached the
listener, and which classes were constructed.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from msgspec import structs

from limnos.client.operation.maintenance_values import LeasedOperation
from limnos.rooms.maintenance.engine.actions import SparkRunner
from limnos.rooms.sqlpp.engine.sessions import StatementSessions
from limnos.rooms.sqlpp.engine.statements import run_job
from limnos.rooms.sqlpp.engine.wire import EngineStart
from limnos.rooms.sqlpp.language.jobs import CompactionOptions, DatasetRef, EngineJob, SnapshotPin
from tests.integration.live import LiveServer
from tests.rooms.sqlpp.engine.live_engine import EngineDataverse
from tests.rooms.sqlpp.engine.planted_tables import (
    CANARY,
    CASES,
    NAMESPACE,
    TIMER,
    Ground,
    Listener,
    Plant,
    dump,
    listening,
    serve,
)
from tests.scripted_server import ScriptedServer, scripted

MANY: Final = "(select value {'id': i, 'v': i} from range(100, 300) as i)"


class Engine:
    """Statements in the Java process of an engine."""

    def __init__(self, server: ScriptedServer, directory: Path) -> None:
        uri = f"http://127.0.0.1:{server.port}"
        scratch = directory / "scratch"
        scratch.mkdir()
        self.sessions = StatementSessions(
            EngineStart(
                uri=uri,
                metalake="lake",
                master="local[3]",
                memory="1g",
                slots=3,
                statements_max=4,
                scratch=str(scratch),
                readable=(),
                writable=(),
                closed=(),
            )
        )
        self.sessions.begin()
        self.machine: Any = self.sessions._spark._jvm  # type: ignore[union-attr]
        live: Any = LiveServer(uri=uri, token="t", data=directory, pid=0, process=None)  # type: ignore[arg-type]
        self.dataverse = EngineDataverse(live, None, (NAMESPACE,))  # type: ignore[arg-type]

    def jobs(self, catalog: str, planted: Plant) -> Iterator[EngineJob]:
        """Yield the statements over the table of a catalog."""
        asking = self.dataverse
        pin = SnapshotPin(1, planted.load["metadata"]["snapshots"][0]["manifest-list"])
        path = (catalog, NAMESPACE, "t")
        asking.refs = {"t": DatasetRef(path=path, type="closed { id: bigint, v: bigint }", key=(("id",),), pin=pin)}
        yield asking.job("select value t from t as t")
        yield asking.job("select value t from t as t where t.id = 1")
        yield asking.job("select count(*) as n, t.v as v from t as t group by t.v")
        yield asking.job("{'id': 77, 'v': 1}", "insert", target="t")
        yield asking.job(MANY, "insert", target="t")
        yield asking.job("select value t from t as t where t.v >= 1", "delete", target="t")
        options = CompactionOptions(
            target_bytes=64 << 20,
            expires_before_ms=1 << 60,
            retained_after_ms=0,
            states_max=1,
            debris_before_ms=1 << 40,
        )
        yield structs.replace(asking.job("1", target="t"), kind="compact", plan=b"", compaction=options)

    def run(self, catalog: str, planted: Plant) -> Iterator[str]:
        """Run all statements. Yields a text for each, with its result or error."""
        for job in self.jobs(catalog, planted):
            try:
                with self.sessions.of(job) as spark:
                    rows = list(run_job(spark, job, parts=2, stop=lambda: None))
                yield f"{len(rows)} rows"
            except Exception as error:
                yield f"{type(error).__name__}: {error}"[:300]


class Executor:
    """Operations in the Java process of an executor of maintenance."""

    def __init__(self, server: ScriptedServer, _directory: Path) -> None:
        self.runner = SparkRunner(f"http://127.0.0.1:{server.port}", metalake="lake", master="local[2]")
        self.runner._running_session()
        self.machine: Any = self.runner._spark._jvm  # type: ignore[union-attr]

    def run(self, catalog: str, _planted: Plant) -> Iterator[str]:
        """Run all operations. Yields the end of each."""
        rewrites = {"rewrite-all": "true"}
        options = {"compact": rewrites, "deletes": rewrites, "manifests": {}, "statistics": {}}
        for at, (kind, each) in enumerate(options.items()):
            operation = LeasedOperation(
                operation=at, kind=kind, catalog=catalog, path=(NAMESPACE, "t"), token="t", options=each
            )
            yield str(self.runner.run(operation))[:300]


def is_loaded(machine: Any, name: str) -> bool:  # noqa: ANN401 - Java objects
    """Return whether Spark's class loader has loaded a class."""
    loader = machine.java.lang.Thread.currentThread().getContextClassLoader()
    find = machine.java.lang.Class.forName("java.lang.ClassLoader").getDeclaredMethod(
        "findLoadedClass", _types(machine)
    )
    find.setAccessible(True)
    while loader is not None:
        if find.invoke(loader, _objects(machine, name)) is not None:
            return True
        loader = loader.getParent()
    return False


def _types(machine: Any) -> Any:  # noqa: ANN401
    array = machine.java.lang.reflect.Array.newInstance(machine.java.lang.Class.forName("java.lang.Class"), 1)
    machine.java.lang.reflect.Array.set(array, 0, machine.java.lang.Class.forName("java.lang.String"))
    return array


def _objects(machine: Any, name: str) -> Any:  # noqa: ANN401
    array = machine.java.lang.reflect.Array.newInstance(machine.java.lang.Class.forName("java.lang.Object"), 1)
    machine.java.lang.reflect.Array.set(array, 0, name)
    return array


def timers(machine: Any) -> int:  # noqa: ANN401
    """Return how many timers without a name have been constructed."""
    field = machine.java.lang.Class.forName(TIMER).getDeclaredField("nextSerialNumber")
    field.setAccessible(True)
    return int(field.get(None))


def try_case(at: int, name: str, listener: Listener, *, server: ScriptedServer, ground: Ground, role: Any) -> None:  # noqa: ANN401
    """Plant a case, run everything over it, and print what happened."""
    planted = CASES[name](ground)
    serve(server, "t", planted, catalog=f"c{at}")
    before, was_loaded = timers(role.machine), is_loaded(role.machine, CANARY)
    ends = list(role.run(f"c{at}", planted))
    loaded = [CANARY] if is_loaded(role.machine, CANARY) and not was_loaded else []
    loaded += [TIMER] * (timers(role.machine) - before)
    print(dump({"case": name, "connections": listener.connections, "classes": loaded, "ends": ends}), flush=True)
    listener.connections.clear()


def main() -> None:
    """Run the cases that the arguments name."""
    role_name, directory, *names = sys.argv[1:]
    with contextlib.ExitStack() as stack:
        server, listener = stack.enter_context(scripted()), stack.enter_context(listening())
        role = (Engine if role_name == "engine" else Executor)(server, Path(directory))
        planted = Ground(Path(directory), 0).plant()
        serve(server, "t", planted, catalog="fine")
        print(dump({"case": "", "ends": list(role.run("fine", planted))}), flush=True)
        for at, name in enumerate(names):
            ground = Ground(Path(directory), listener.port)
            try_case(at, name, listener, server=server, ground=ground, role=role)


if __name__ == "__main__":
    main()
