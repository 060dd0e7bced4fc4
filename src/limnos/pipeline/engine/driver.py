"""Spark as a runner sees it: sessions for steps that run at the same time, pins, task counts, an early end.

Job: give each step under way a session of its own, and turn what Spark and Iceberg raise into the few failures that a
runner knows. May import this room's values, `client`, `model` and PySpark. It must not know of servers, nor of the order
of steps.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from pyspark.errors import AnalysisException

from limnos.model.errors import LimnosError
from limnos.pipeline.engine.inputs import reads_of
from limnos.pipeline.engine.lineage import Lineage, of_tables, report
from limnos.pipeline.engine.metadata import is_classic
from limnos.pipeline.engine.raised import failure_of
from limnos.pipeline.engine.reading import pinned, reads
from limnos.pipeline.engine.steps import carry_out
from limnos.pipeline.failures import StepError
from limnos.pipeline.run.stop import Stopped

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from limnos.client import Client
    from limnos.pipeline.context import StepContext
    from limnos.pipeline.declaration import Parts, Pipeline, Step
    from limnos.pipeline.outcomes import Outcome, Pin

logger = logging.getLogger(__name__)

Session: TypeAlias = "SparkSession"
"""So that rooms without Spark can say what they pass on."""

_RETRIES = {"rest.client.max-retries": "60"}
"""A catalog that answers 503 is asked again for half a minute; Iceberg's own 5 tries take eight seconds."""


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """Tasks of a step's Spark jobs: done, of how many known so far."""

    done: int = 0
    total: int = 0


class SparkEngine:
    """Carries steps out in sessions beside the one it is given, whose settings they take over."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._classic = is_classic(spark)
        self._lock = threading.Lock()
        self._free: list[SparkSession] = []
        self._busy: dict[str, SparkSession] = {}
        self._told: dict[str, TaskCounts] = {}
        self._lineages: dict[str, Lineage] = {}

    def ship(self, pipeline: Pipeline, *, directory: Path) -> None:
        """Give the pipeline's Python files to the executors, where its functions' own functions run."""
        for name in pipeline.python_files:
            path = str(directory / name)
            if self._classic:
                self._spark.sparkContext.addPyFile(path)
            else:
                self._spark.addArtifacts(path, pyfile=True)

    def reads(self, pipeline: Pipeline) -> Mapping[str, frozenset[Parts]]:
        """The tables that each step reads, by the step's name."""
        return reads_of(self._spark, pipeline)

    def pins(self, tables: Iterable[Parts]) -> dict[Parts, Pin]:
        """The snapshot of each table as it is now, and of those that views name. Raises NotFound, Unsupported."""
        return pinned(self._spark, sorted(tables))

    def lost(self, pins: Mapping[Parts, Pin]) -> frozenset[Parts]:
        """Those whose pinned state cannot be had any longer."""
        return frozenset(table for table in pins if not self._is_there(table, pins))

    def carry_out(self, step: Step, *, context: StepContext) -> Outcome:
        """Carry one step out, on its branch, in a session that no other step uses meanwhile."""
        with self._session(step) as spark, _told():
            return carry_out(spark, step, context=context, hear=self._hear(step))

    def tell(self, client: Client, step: Step, *, pipeline: str, run: str, tables: Sequence[Parts]) -> None:
        """Tell the server what a published step's rows came from."""
        lineage = self._lineages.get(step.name) or of_tables(tables)
        report(client, pipeline=pipeline, run_id=run, step=step.name, target=step.table, lineage=lineage)

    def _hear(self, step: Step) -> Callable[[Lineage], None]:
        def hear(lineage: Lineage) -> None:
            self._lineages[step.name] = lineage

        return hear

    def tasks(self, step: str) -> TaskCounts:
        """How far Spark is with a step that is under way."""
        with self._lock:
            spark = self._busy.get(step)
        if spark is None or not self._classic:
            return self._told.get(step, TaskCounts())
        try:
            return _counted(spark, step)
        except Exception:
            logger.debug("no task counts from Spark", exc_info=True)
            return TaskCounts()

    def halt(self) -> None:
        """End what is under way: its jobs fail, and its steps with them."""
        with self._lock:
            busy = list(self._busy.values())
        for spark in busy:
            try:
                spark.interruptAll()
            except Exception:
                logger.debug("Spark did not take an interrupt", exc_info=True)

    def _is_there(self, table: Parts, pins: Mapping[Parts, Pin]) -> bool:
        known = pins if pins[table].fingerprint is not None else {table: pins[table]}
        try:
            return table in reads(self._spark, known)
        except LimnosError:
            return False

    @contextmanager
    def _session(self, step: Step) -> Iterator[SparkSession]:
        with self._lock:
            spark = self._free.pop() if self._free else None
        spark = spark or self._another()
        with self._lock:
            self._busy[step.name] = spark
        if self._classic:
            _activate(spark)
            spark.sparkContext.setJobGroup(step.name, f"limnos: {step.name}", interruptOnCancel=True)
        else:
            spark.registerProgressHandler(self._listening(step.name))
        try:
            yield spark
        finally:
            with self._lock:
                del self._busy[step.name]
                if self._classic:
                    self._free.append(spark)

    def _another(self) -> SparkSession:
        """A session beside ours: the same Spark, the same settings, catalogs of its own."""
        if not self._classic:
            connected: Any = self._spark
            cloned: SparkSession = connected.cloneSession()
            return cloned
        other = self._spark.newSession()
        known = other.conf.getAll
        for key, value in self._spark.conf.getAll.items():
            if key.startswith("spark.sql.") and known.get(key) != value:
                with suppress(AnalysisException):  # fixed for all sessions of this Spark
                    other.conf.set(key, value)
        for name in _catalogs(self._spark.conf.getAll):
            for key, value in _RETRIES.items():
                other.conf.set(f"spark.sql.catalog.{name}.{key}", value)
        return other

    def _listening(self, step: str) -> Any:  # noqa: ANN401 - Spark Connect's own protocol for a function
        def hear(*, stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:  # noqa: ANN401, ARG001
            listed = list(stages or ())
            self._told[step] = TaskCounts(
                done=sum(each.num_completed_tasks for each in listed), total=sum(each.num_tasks for each in listed)
            )

        return hear


@contextmanager
def _told() -> Iterator[None]:
    """Raise what Spark raises as a failure of ours."""
    try:
        yield
    except (StepError, Stopped, KeyboardInterrupt):
        raise
    except Exception as error:
        raise failure_of(error) from error


def _activate(spark: SparkSession) -> None:
    """Make it this thread's session: Iceberg's own helpers look a table up in the catalogs of the thread's."""
    machine: Any = spark._jvm  # noqa: SLF001
    machine.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)  # noqa: SLF001


def _catalogs(settings: Mapping[str, str]) -> list[str]:
    """The Iceberg catalogs of a session that are spoken to by REST."""
    prefix, suffix = "spark.sql.catalog.", ".type"
    return [
        key.removeprefix(prefix).removesuffix(suffix)
        for key, value in settings.items()
        if key.startswith(prefix) and key.endswith(suffix) and value == "rest"
    ]


def _counted(spark: SparkSession, group: str) -> TaskCounts:
    tracker = spark.sparkContext.statusTracker()
    done = total = 0
    for job_id in tracker.getJobIdsForGroup(group):
        job = tracker.getJobInfo(job_id)
        for stage_id in job.stageIds if job is not None else ():
            stage = tracker.getStageInfo(stage_id)
            if stage is not None:
                done += stage.numCompletedTasks
                total += stage.numTasks
    return TaskCounts(done, total)
