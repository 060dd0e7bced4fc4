# SPDX-License-Identifier: Apache-2.0
"""Spark for the runner: sessions for concurrent steps, pins, task counts, cancellation.

Gives each running step its own session, and converts errors of Spark and Iceberg to the runner's errors. Must not know
servers or the order of steps.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from limnos.model.errors import BadRequest, LimnosError
from limnos.pipeline.engine.connection import access_of, client_errors, set_lance_access
from limnos.pipeline.engine.inputs import reads_of
from limnos.pipeline.engine.loops import read_loop
from limnos.pipeline.engine.metadata import is_classic
from limnos.pipeline.engine.pinned_reads import pin_tables, reads
from limnos.pipeline.engine.python_files import ship_files
from limnos.pipeline.engine.session_pool import SparkSessions, active
from limnos.pipeline.engine.sources import has_changed, pin_of
from limnos.pipeline.engine.spark_failures import failure_of
from limnos.pipeline.engine.steps import carry_out
from limnos.pipeline.failures import StepError
from limnos.pipeline.lance_outputs import lance_catalogs
from limnos.pipeline.run.stop import RunStopped
from limnos.pipeline.source_declarations import RegistrationSource, StorageSource, SystemTableSource
from limnos.spark.cluster import NO_EXECUTOR, has_executor
from limnos.spark.session import register_system

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from limnos.pipeline.context import StepContext
    from limnos.pipeline.declaration import LoopRows, Pipeline, QueryLoop, StepDeclaration
    from limnos.pipeline.declared_values import Parts, Scalar
    from limnos.pipeline.outcomes import ReadPin, StepOutcome
    from limnos.spark.lance.server_access import ServerAccess

logger = logging.getLogger(__name__)

_STEPS_AT_ONCE = 4
_OF_SERVER = (SystemTableSource, StorageSource, RegistrationSource)
"""The kinds of sources whose tasks ask the server."""

Session: TypeAlias = "SparkSession"
"""The type of a Spark session, for modules that do not import Spark."""


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """Task counts of a step's Spark jobs: `done` tasks, and the `total` of all tasks submitted so far."""

    done: int = 0
    total: int = 0


class SparkEngine:
    """Executes steps in sessions that share the settings of the session `spark`. Call `close` before stopping `spark`.

    While `is_stopped` returns true, calls do not wait for an unreachable Spark Connect server. `access` is the access
    to Lance tables and system tables; by default that of the session's catalogs.
    """

    def __init__(
        self,
        spark: SparkSession,
        *,
        is_stopped: Callable[[], bool] = lambda: False,
        access: ServerAccess | None = None,
    ) -> None:
        self._spark = spark
        self._access = access
        self._classic = is_classic(spark)
        self._lance_catalogs: frozenset[str] = frozenset()
        self._sessions = SparkSessions(spark, is_stopped=is_stopped)
        self._lock = threading.Lock()
        self._busy: dict[str, SparkSession] = {}
        self._reported: dict[str, TaskCounts] = {}
        self._idle: set[str] = set()
        """Steps of whose submitted tasks a Spark Connect server runs none."""

    def ship(self, pipeline: Pipeline, *, directory: Path) -> None:
        """Send the pipeline's Python files to the executors, where Python functions run.

        Call it after the pipeline's functions were imported. Raises BadRequest for a file that Spark cannot send.
        """
        ship_files(self._spark, [directory / name for name in pipeline.python_files])

    def reads(self, pipeline: Pipeline) -> Mapping[str, frozenset[Parts]]:
        """Return the tables that each step reads, by the step's name."""
        with _spark_errors_before_run(self._spark):
            self._lance_catalogs = self._find_lance_catalogs()
            return reads_of(self._spark, pipeline, lance_catalogs=self._lance_catalogs)

    def pins(self, tables: Iterable[Parts]) -> dict[Parts, ReadPin]:
        """Return pins of the tables' current snapshots, and pins of the tables that views read.

        Raises NotFound for a missing table, and UnsupportedOperation for a table that is neither an Iceberg table nor
        a Lance table, or a view that cannot be pinned.
        """
        with _spark_errors_before_run(self._spark):
            sorted_tables = sorted(tables)
            pins = pin_tables(self._spark, [each for each in sorted_tables if each[0] not in self._lance_catalogs])
            return pins | self._lance_pins([each for each in sorted_tables if each[0] in self._lance_catalogs])

    def find_lost_tables(self, pins: Mapping[Parts, ReadPin]) -> frozenset[Parts]:
        """Return the tables whose pinned snapshot or view definition is no longer available."""
        with _spark_errors_before_run(self._spark):
            return frozenset(table for table in pins if not self._is_there(table, pins))

    def loop_rows(self, pipeline: Pipeline, loop: QueryLoop, *, parameters: Mapping[str, Scalar]) -> LoopRows:
        """Return the rows of a loop's query over published tables, sorted. Raises BadRequest for a query that is not
        allowed, for one with too many rows, and if a table does not exist.
        """
        with _spark_errors_before_run(self._spark):
            self._lance_catalogs = self._find_lance_catalogs()
            return read_loop(
                self._spark,
                loop,
                pipeline=pipeline,
                parameters=parameters,
                pins=self.pins,
                lance_catalogs=self._lance_catalogs,
            )

    def source_pins(self, pipeline: Pipeline, names: frozenset[str], *, directory: Path) -> dict[str, ReadPin]:
        """Return pins of those of the named sources that are pinned when a run starts: topics.

        Raises BadRequest for a topic that cannot be read.
        """
        with _spark_errors_before_run(self._spark):
            pins = (pin_of(self._spark, each, directory=directory) for each in pipeline.sources if each.name in names)
            return {pin.name: pin for pin in pins if pin is not None}

    def find_changed_sources(
        self, pipeline: Pipeline, pins: Mapping[str, ReadPin], *, directory: Path
    ) -> Mapping[str, bool | None]:
        """Return for each pinned source whether its content has changed; None if that cannot be determined without
        reading it.
        """
        with _spark_errors_before_run(self._spark):
            return {
                source.name: has_changed(self._spark, source, pinned=pins[source.name], directory=directory)
                for source in pipeline.sources
                if source.name in pins
            }

    def carry_out(self, step: StepDeclaration, *, context: StepContext) -> StepOutcome:
        """Execute one step on its branch, in a session that no other step uses at the same time. Raises StepError, and
        RunStopped by `context.check`.
        """
        with self._session(step) as spark, _spark_errors_in_step():
            if any(isinstance(each.kind, _OF_SERVER) for each in context.pipeline.sources):
                register_system(spark, self._require_access())
            if context.lance_catalogs and self._classic:
                set_lance_access(spark, self._require_access())
            if step.table[0] not in context.lance_catalogs:
                return carry_out(spark, step, context=context)
            from limnos.pipeline.engine.lance.execution import carry_out_lance  # noqa: PLC0415 - loads Lance's library

            return carry_out_lance(spark, step, context=context, access=self._require_access())

    def steps_at_once(self) -> int:
        """Return 4. On a local Spark at most one more than its cores, which work while one step waits for a commit:
        further steps would only compete for them.
        """
        if not self._classic or not str(self._spark.sparkContext.master).startswith("local"):
            return _STEPS_AT_ONCE
        return min(_STEPS_AT_ONCE, self._spark.sparkContext.defaultParallelism + 1)

    def tasks(self, step: str) -> TaskCounts:
        """Return the counts of done and submitted Spark tasks of a running step."""
        with self._lock:
            spark = self._busy.get(step)
        if spark is None or not self._classic:
            return self._reported.get(step, TaskCounts())
        try:
            return _count_tasks(spark, step)
        except Exception:
            logger.debug("no task counts from Spark", exc_info=True)
            return TaskCounts()

    def wait_reason(self, step: str) -> str | None:
        """Return why no task of a running step runs: a cluster without an executor for the session, or a Spark Connect
        server whose tasks wait; None if tasks run, or none has been submitted.
        """
        if not self._classic:
            if step not in self._idle:
                return None
            return "no task of the step runs: the Spark Connect server has no free cores, or no executor"
        tasks = self.tasks(step)
        try:
            if tasks.done >= tasks.total or has_executor(self._spark):
                return None
        except Exception:
            logger.debug("no executors from Spark", exc_info=True)
            return None
        return f"the cluster at {self._spark.sparkContext.master} has no executor for the run: {NO_EXECUTOR}"

    def halt(self) -> None:
        """Cancel all running jobs; their steps fail."""
        self._sessions.give_up()
        with self._lock:
            busy = list(self._busy.values())
        self._sessions.interrupt(busy)

    def close(self) -> None:
        """Close the sessions that the engine opened, but not the session that was passed to it."""
        self._sessions.close()

    def _require_access(self) -> ServerAccess:
        """Return the access to Lance tables and system tables, which is read once. Raises as `access_of` does."""
        self._access = self._access or access_of(self._spark)
        return self._access

    def _find_lance_catalogs(self) -> frozenset[str]:
        """Return the catalogs of Lance tables that the caller may see; none for a session without a Limnos server, and
        over Spark Connect.
        """
        try:
            access = self._require_access()
        except BadRequest:
            return frozenset()
        with client_errors(), access.client() as client:
            return lance_catalogs({one.name: one.provider for one in client.catalogs.list()})

    def _lance_pins(self, tables: Sequence[Parts]) -> dict[Parts, ReadPin]:
        if not tables:
            return {}
        from limnos.pipeline.engine.lance.reading import pin_lance_table  # noqa: PLC0415 - loads Lance's library

        access = self._require_access()
        return {table: pin_lance_table(access, table) for table in tables}

    def _is_there(self, table: Parts, pins: Mapping[Parts, ReadPin]) -> bool:
        if pins[table].lance is not None:
            from limnos.pipeline.engine.lance.reading import has_pinned  # noqa: PLC0415 - loads Lance's library

            return has_pinned(self._require_access(), pins[table])
        known = pins if pins[table].fingerprint is not None else {table: pins[table]}
        try:
            return table in reads(self._spark, known)
        except LimnosError:
            return False

    @contextmanager
    def _session(self, step: StepDeclaration) -> Iterator[SparkSession]:
        with self._sessions.borrow() as spark:
            with self._lock:
                self._busy[step.name] = spark
            try:
                with self._counting_tasks(spark, step.name):
                    yield spark
            finally:
                with self._lock:
                    del self._busy[step.name]

    @contextmanager
    def _counting_tasks(self, spark: SparkSession, step: str) -> Iterator[None]:
        """Count the tasks of the session's jobs for the step."""
        if self._classic:
            spark.sparkContext.setJobGroup(step, f"limnos: {step}", interruptOnCancel=True)
            yield
            return
        listening = self._listening(step)
        spark.registerProgressHandler(listening)
        try:
            yield
        finally:
            spark.removeProgressHandler(listening)
            self._idle.discard(step)

    def _listening(self, step: str) -> Any:  # noqa: ANN401 - Spark Connect's own protocol for a function
        def report_progress(*, stages: Any, inflight_tasks: int, operation_id: str | None, done: bool) -> None:  # noqa: ANN401, ARG001
            listed = list(stages or ())
            self._reported[step] = TaskCounts(
                done=sum(each.num_completed_tasks for each in listed),
                total=sum(each.num_tasks for each in listed),
            )
            is_idle = not done and not inflight_tasks and self._reported[step].done < self._reported[step].total
            (self._idle.add if is_idle else self._idle.discard)(step)

        return report_progress


@contextmanager
def _spark_errors_before_run(spark: SparkSession) -> Iterator[None]:
    """Convert Spark's errors before a run's first step to StepError; LimnosErrors pass unchanged."""
    try:
        with active(spark):
            yield
    except LimnosError:
        raise
    except Exception as error:
        raise failure_of(error) from error


@contextmanager
def _spark_errors_in_step() -> Iterator[None]:
    """Convert errors in the body of a `with`, except RunStopped, to StepError, by `spark_failures.failure_of`."""
    try:
        yield
    except (StepError, RunStopped, KeyboardInterrupt):
        raise
    except Exception as error:
        raise failure_of(error) from error


def _count_tasks(spark: SparkSession, group: str) -> TaskCounts:
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
