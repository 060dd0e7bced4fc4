# SPDX-License-Identifier: Apache-2.0
"""`python -m conformance.cluster [--minutes 10] [--no-connect]`: four kinds of work on one standalone cluster of Spark.

A master and two workers of two task slots each are started from the installed PySpark. Runs of a pipeline, statements
of SQL++, maintenance by a leased executor, and reads of system tables have a slot each. One worker is killed with
SIGKILL and started again, later the other one. Afterwards a Spark Connect server on the same cluster executes runs and
maintenance, and loses a worker, too. Compared are: the rows of each run with a plain computation, the rows of rewritten
tables and of the dataset, and the system table with the export. All logs, event logs, command lines and web pages are
searched for tokens. The exit code is 1 if something differs, starves, or shows a token.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from conformance.cluster.kinds import (
    PIPELINE,
    ROWS,
    MaintenanceOperations,
    PipelineRuns,
    SqlppStatements,
    SystemReads,
    WorkKind,
    inherited,
    of_user,
)
from conformance.cluster.watches import CoreWatch, TokenSearch
from limnos.client import Client
from tests.integration.live import LiveServer, serving
from tests.pipeline.run.test_kills import Driver
from tests.spark.cluster import SparkCluster, cluster, connect_server, environment, free_port

_JAVA: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of Java that need less CPU in short programs."""
SHARE: Final = {
    "spark.cores.max": "1",
    "spark.executor.memory": "512m",
    "spark.driver.memory": "600m",
    "spark.executor.extraJavaOptions": _JAVA,
    "spark.driver.extraJavaOptions": _JAVA,
}
"""The settings of each application: one of the cluster's four task slots."""
_OF_ENGINE: Final = ("spark.driver.memory", "spark.driver.extraJavaOptions")
"""Settings that the engine of SQL++ sets itself."""
LOCAL: Final = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
ENGINE_WAIT_S: Final = 15
OUTAGE_S: Final = 40.0
"""For how long a killed worker is away; longer than statements of SQL++ wait for an executor."""
RECOVERY_S: Final = 240.0
"""In how many seconds after a worker is back each kind must have done a unit."""
STARVED_S: Final = 60.0
"""For how many seconds longer than a worker is away an application may have no core."""
TOKEN_S: Final = 7200
APPLICATIONS: Final = {
    "limnos-pipeline": "pipelines",
    "limnos-sqlpp": "SQL++",
    "limnos-maintenance": "maintenance",
    "limnos-reader": "system tables",
}


@dataclass(frozen=True, kw_only=True)
class TrialPlace:
    """The directories of a trial."""

    data: Path
    logs: Path
    events: Path
    spark: Path
    files: Path


class Trial:
    """The server, the cluster, the four kinds of work, and the watches beside them."""

    def __init__(self, place: TrialPlace, *, say: Callable[[str], None]) -> None:
        self.place, self.say = place, say
        self.faults: list[str] = []
        self.kinds: list[WorkKind] = []
        self.ports = {name: free_port() for name in (*APPLICATIONS.values(), "Spark Connect")}
        self.restarted_at = 0.0
        self.outage_s = 0.0
        """The longest time from a worker's kill until the master knew it again."""

    def check(self, holds: bool, fault: str) -> None:
        """Print a fault, and count it."""
        if not holds:
            self.faults.append(fault)
            self.say(f"  FAULT {fault}")

    def conf(self, kind: str) -> dict[str, str]:
        """Return the settings of a kind's application."""
        return {**SHARE, **LOCAL, "spark.ui.port": str(self.ports[kind])}

    def engine_settings(self, master: str) -> dict[str, str]:
        """Return the settings of the server by which the engine of SQL++ runs on the cluster."""
        own = {key: value for key, value in self.conf("SQL++").items() if key not in _OF_ENGINE}
        own["spark.ui.enabled"] = "true"  # to search its pages
        return {
            "LIMNOS__ENGINE__MASTER": master,
            "LIMNOS__ENGINE__MEMORY": SHARE["spark.driver.memory"],
            "LIMNOS__ENGINE__CONF": ",".join(map("=".join, own.items())),
            "LIMNOS__ENGINE__EXECUTOR_WAIT_S": str(ENGINE_WAIT_S),
        }

    def driver_environment(self) -> dict[str, str]:
        """Return the environment of drivers: a settings file with an event log, as on a cluster."""
        directory = self.place.files / "conf"
        directory.mkdir()
        lines = {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": self.place.events.as_uri(),
            "spark.sql.shuffle.partitions": "2",
        }
        text = "".join(f"{key} {value}\n" for key, value in lines.items())
        (directory / "spark-defaults.conf").write_text(text)
        self.say("spark-defaults.conf of drivers: " + ", ".join(f"{key} {value}" for key, value in lines.items()))
        return {**inherited(), **environment(SPARK_CONF_DIR=str(directory))}

    def set_up(self, server: LiveServer, workers: SparkCluster) -> None:
        """Create users with the rights of their kind of work, tokens that expire, and the objects."""
        with Client(server.uri, token=server.token) as admin:
            for name in ("nightly", "care"):
                admin.namespaces.create(f"main.{name}")
            for user, namespace in (("etl", "nightly"), ("analyst", "shop")):
                admin.users.add(user)
                admin.roles.create(user)
                admin.roles.grant_to_user(user, [user])
                admin.roles.allow(user, ["use_catalog"], on="main", kind="catalog")
                if namespace == "nightly":
                    admin.owners.set("main.nightly", user, kind="namespace")
                    admin.roles.allow(user, ["run_job", "register_job_template"], on="lake", kind="metalake")
                else:
                    admin.roles.allow(user, ["create_schema"], on="main", kind="catalog")
            tokens = {
                user: admin.tokens.create(user=user, name="cluster", expires_in_s=TOKEN_S).token
                for user in ("etl", "analyst", "admin")
            }
        file = self.place.files / "nightly.yaml"
        file.write_text(PIPELINE.replace("ROWS", str(ROWS)))
        drivers = self.driver_environment()

        def common(user: str, kind: str) -> dict[str, object]:
            return {
                "server": of_user(server, tokens[user]),
                "master": workers.master,
                "conf": self.conf(kind),
                "logs": self.place.logs,
                "environment": drivers,
            }

        statements = SqlppStatements(**common("analyst", "SQL++"))  # type: ignore[arg-type]
        statements.prepare()
        maintenance = MaintenanceOperations(**common("admin", "maintenance"))  # type: ignore[arg-type]
        maintenance.prepare()
        self.kinds = [
            PipelineRuns(file=file, **common("etl", "pipelines")),  # type: ignore[arg-type]
            statements,
            maintenance,
            SystemReads(**common("admin", "system tables")),  # type: ignore[arg-type]
        ]

    def kill(self, workers: SparkCluster, number: int) -> None:
        """Kill a worker with its executors, and start it again after `OUTAGE_S` seconds."""
        executors, began = workers.kill_worker(number), time.monotonic()
        self.say(f"worker {number} killed with {executors} executors; units so far: {self._units()}")
        time.sleep(OUTAGE_S)
        workers.start_worker(number)
        self.restarted_at = time.monotonic()
        self.outage_s = max(self.outage_s, self.restarted_at - began)
        self.say(f"worker {number} is back after {self.restarted_at - began:.0f} s; units so far: {self._units()}")

    def play(self, workers: SparkCluster, *, seconds: float) -> None:
        """Let all kinds work beside each other, and kill each worker once."""
        for kind in self.kinds:
            kind.begin()
        began = time.monotonic()
        while not all(kind.units or kind.faults for kind in self.kinds) and time.monotonic() < began + 300:
            time.sleep(1)
        self.say(f"each kind has done a unit after {time.monotonic() - began:.0f} s: {self._units()}")
        began = time.monotonic()
        for number in (0, 1):
            self._wait_until(began + seconds * (number + 1) / 3)
            self.kill(workers, number)
            until = time.monotonic() + RECOVERY_S
            while not all(self._has_worked(kind) for kind in self.kinds) and time.monotonic() < until:
                time.sleep(1)
        self._wait_until(began + seconds)
        for kind in self.kinds:
            kind.over.set()
        for kind in self.kinds:
            kind.end()

    def report(self, cores: CoreWatch) -> None:
        """Compare the results, and print each kind's units and longest wait."""
        waits = {APPLICATIONS.get(name, name): seconds for name, seconds in cores.longest.items()}
        self.say(f"applications with cores at one time: {cores.together}; most cores each: {dict(cores.most)}")
        for kind in self.kinds:
            kind.compare()
            wait_s = waits.get(kind.name, 0.0)
            self.say(
                f"{kind.name}: {kind.units} units, the longest took {kind.longest_s:.0f} s; longest wait for a core"
                f" {wait_s:.0f} s; {len(kind.waits)} waits reported"
            )
            for text in dict.fromkeys(kind.waits):
                self.say(f"    {text}")
            for fault in kind.faults:
                self.check(False, f"{kind.name}: {fault}")
            self.check(self._has_worked(kind), f"{kind.name} did nothing after the last worker was back")
            self.check(wait_s < self.outage_s + STARVED_S, f"{kind.name} had no core for {wait_s:.0f} s")
        self.check(any(kind.waits for kind in self.kinds), "no kind reported that it waited")

    def _has_worked(self, kind: WorkKind) -> bool:
        return bool(kind.faults) or any(each > self.restarted_at for each in kind.done_at)

    def _units(self) -> str:
        return ", ".join(f"{kind.name} {kind.units}" for kind in self.kinds)

    def _wait_until(self, moment: float) -> None:
        while time.monotonic() < moment and not all(kind.faults for kind in self.kinds):
            time.sleep(0.5)


def connect_part(trial: Trial, workers: SparkCluster) -> None:
    """Execute a run and maintenance over a Spark Connect server on the cluster, and kill a worker in the middle."""
    runs = next(kind for kind in trial.kinds if isinstance(kind, PipelineRuns))
    maintenance = next(kind for kind in trial.kinds if isinstance(kind, MaintenanceOperations))
    config = {
        **SHARE,
        "spark.cores.max": "2",
        "spark.executor.cores": "1",
        "spark.ui.port": str(trial.ports["Spark Connect"]),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": trial.place.events.as_uri(),
        "spark.sql.catalog.main.token": "set on each session",
        "spark.sql.catalog.maintained.token": "set on each session",
    }
    trial.say("settings of the Spark Connect server: " + ", ".join(f"{key}={value}" for key, value in config.items()))
    directory = trial.place.logs / "connect"
    directory.mkdir()
    with connect_server(directory, config=config, master=workers.master) as connect:
        runs.where = ("--connect", connect.address)
        maintenance.where = ("--master", connect.address)
        for kind in (runs, maintenance):
            kind.over.clear()
        maintenance.executor = None
        before = runs.units, maintenance.units
        for kind in (runs, maintenance):
            kind.begin()
        until = time.monotonic() + 300
        while not (runs.units > before[0] and maintenance.units > before[1]) and time.monotonic() < until:
            time.sleep(1)
        trial.kill(workers, 0)
        while not (trial._has_worked(runs) and trial._has_worked(maintenance)) and time.monotonic() < until + 200:
            time.sleep(1)
        for kind in (runs, maintenance):
            kind.over.set()
        for kind in (runs, maintenance):
            kind.end()
        done = runs.units - before[0], maintenance.units - before[1]
    for kind, count in zip((runs, maintenance), done, strict=True):
        trial.check(count > 1, f"over Spark Connect: {kind.name} did {count} units")
        for fault in kind.faults:
            trial.check(False, f"over Spark Connect: {kind.name}: {fault}")
    trial.say(f"over Spark Connect: {done[0]} runs and {done[1]} operations, beside a killed worker")


def unreachable_part(trial: Trial) -> None:
    """A run whose master does not answer is refused at once."""
    runs = next(kind for kind in trial.kinds if isinstance(kind, PipelineRuns))
    where = ("--master", f"spark://127.0.0.1:{free_port()}")
    began = time.monotonic()
    driver = Driver(runs.server, "run", str(runs.file), "--param", "day=1", where=where, environment=runs.environment)
    driver.process.wait(timeout=120)
    driver._reader.join(timeout=10)
    text = "".join(driver.errors)
    trial.check("No Spark master accepts connections" in text, f"a run without a master says {text[-300:]}")
    trial.say(f"a run without a master is refused after {time.monotonic() - began:.0f} s: {text.strip()[-160:]}")


@contextmanager
def opened(place: TrialPlace, *, say: Callable[[str], None]) -> Iterator[tuple[Trial, SparkCluster]]:
    """Start the cluster and the server, and set everything up."""
    trial = Trial(place, say=say)
    with cluster(place.spark, cores=2) as workers:
        settings = trial.engine_settings(workers.master)
        say("settings of the server: " + ", ".join(f"{key}={value}" for key, value in settings.items()))
        for kind in APPLICATIONS.values():
            settings_text = " ".join(f"--conf '{key}={value}'" for key, value in trial.conf(kind).items())
            if kind != "SQL++":
                say(f"settings of {kind}: --master {workers.master} {settings_text}")
        with serving(place.data, "--allow-root", str(place.files), env=settings) as server:
            trial.set_up(server, workers)
            try:
                yield trial, workers
            finally:
                for kind in trial.kinds:
                    kind.close()


def run(directory: Path, *, seconds: float, connect: bool, say: Callable[[str], None]) -> Sequence[str]:
    """Play the whole trial in a directory. Returns the faults."""
    names = ("data", "logs", "events", "spark", "files")
    for name in names[1:]:
        (directory / name).mkdir()
    place = TrialPlace(**{name: directory / name for name in names})
    with ExitStack() as stack:
        trial, workers = stack.enter_context(opened(place, say=say))
        pages = [f"http://127.0.0.1:{port}" for port in trial.ports.values()]
        search = stack.enter_context(TokenSearch(own_pages=workers.pages, application_pages=pages))
        with CoreWatch(workers.pages[0]) as cores:
            trial.play(workers, seconds=seconds)
        trial.report(cores)
        if connect:
            connect_part(trial, workers)
            for kind in trial.kinds:
                kind.compare()
                for fault in kind.faults:
                    trial.check(False, f"{kind.name}: {fault}")
        unreachable_part(trial)
    report_tokens(trial, search)
    return trial.faults


def report_tokens(trial: Trial, search: TokenSearch) -> None:
    """Search all files of logs and events, and print what was searched."""
    place = trial.place
    search.read_files(place.logs, place="logs")
    search.read_files(place.spark, place="logs")
    search.read_files(place.events, place="event logs")
    for each in place.data.parent.glob("data.*.log"):
        search.read(each.read_text(errors="replace"), place="logs", where=each.name)
    for name in ("command lines", "environments", "pages of applications", "event logs", "logs"):
        trial.check(search.places[name] > 0, f"no {name} were searched")
    for fault in sorted(search.faults):
        trial.check(False, fault)
    trial.say("searched for tokens: " + ", ".join(f"{count:,} {name}" for name, count in search.places.items()))


def main() -> int:
    """Play the trial, and print the result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--no-connect", action="store_true", help="leave Spark Connect out")
    options = parser.parse_args()
    began = time.monotonic()

    def say(line: str) -> None:
        print(f"{time.monotonic() - began:5.0f} s  {line}", flush=True)

    with tempfile.TemporaryDirectory(prefix="cluster-") as temporary:
        directory = Path(temporary).resolve()
        faults = run(directory, seconds=options.minutes * 60, connect=not options.no_connect, say=say)
    say("nothing lost, nobody starved, no token visible" if not faults else f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
