# SPDX-License-Identifier: Apache-2.0
"""One attempt of a run, from its first step to its end.

Executes steps in order, records their outcomes, publishes all by one commit, and repeats steps whose table another
client wrote concurrently. Must not know Spark. Either the attempt's end is in the run's record, or the run's lease
expires.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from limnos.client import Client
from limnos.client.errors import ClientError, ConflictError, DeniedError, NoSpaceError, NotFoundError, UnavailableError
from limnos.names import display
from limnos.pipeline.context import StepContext, branch_name
from limnos.pipeline.declaration import StepDeclaration
from limnos.pipeline.declared_values import SourcePosition
from limnos.pipeline.failures import DataBroken, StepAway, StepError
from limnos.pipeline.modified_steps import step_states
from limnos.pipeline.outcomes import StepBranch, StepOutcome
from limnos.pipeline.problems import step_position
from limnos.pipeline.run import record_json
from limnos.pipeline.run.attempt import AttemptWork, StepEngine
from limnos.pipeline.run.commit import MovedOutput, PublishResult, publish, report_lineages
from limnos.pipeline.run.events import Listener, ProgressBoard, RunEvent, TaskProgress, ignore_event
from limnos.pipeline.run.failure_reasons import end_reason_of, error_text, explain_failure, missing_grants
from limnos.pipeline.run.heartbeat import HeartbeatThread, superseded_message
from limnos.pipeline.run.refs import clear_branches, drop_new_tables
from limnos.pipeline.run.result import EndReason, RunResult
from limnos.pipeline.run.retries import RetryPolicy
from limnos.pipeline.run.schedule import run_schedule, steps_after
from limnos.pipeline.run.stop import RunStopped, StopSignal
from limnos.pipeline.side_tables import tables_of

logger = logging.getLogger(__name__)

_AWAY_TRIES = 5
_WAITS_REPORTED = 2
"""At which heartbeat in a row the wait of a step for a cluster is reported."""
_COMPLETE = ("published", "held")
"""The states in which all steps of a run are complete."""
"""The maximum number of times that a step is repeated because a response was lost although the server is reachable."""


@dataclass(slots=True)
class _AttemptTimes:
    """Seconds by phase of the attempt, for the run's record."""

    began: float = field(default_factory=time.monotonic)
    steps: float = 0.0
    publishing: float = 0.0


class AttemptRunner:
    """Runs one attempt; use it once.

    `heartbeat_client` is a separate client for heartbeats, because `client` may be waiting for an answer.
    """

    def __init__(
        self,
        work: AttemptWork,
        engine: StepEngine,
        *,
        client: Client,
        heartbeat_client: Client,
        stop: StopSignal,
        listener: Listener = ignore_event,
    ) -> None:
        self.work = work
        self.engine = engine
        self.client = client
        self.stop = stop
        self.board = ProgressBoard(work.run, listener=listener)
        self.patience = RetryPolicy(work.options.away_s, stop=stop)
        self.times = _AttemptTimes()
        self._heartbeat = HeartbeatThread(
            heartbeat_client,
            run=work.run,
            attempt=work.attempt,
            lease_s=work.options.lease_s,
            stop=stop,
            progress=self._progress,
        )
        self._steps = {step.name: step for step in work.steps}
        self._states = step_states(work.pipeline)
        self._outcomes: dict[str, StepOutcome] = dict(work.done)
        self._tries: dict[str, int] = {}
        self._began: dict[str, float] = {}
        self._waits: dict[str, int] = {}
        """By step, at how many calls of `_progress` in a row it waited."""

    def perform(self) -> RunResult:
        """Run the attempt to its end. Errors are in the returned result."""
        with self._heartbeat:
            try:
                ended = self._through()
            except (RunStopped, KeyboardInterrupt) as error:
                ended = self._end_stopped(error)
            except DeniedError as error:
                ended = self._end(
                    "held",
                    EndReason.DENIED,
                    message=(
                        f"{error.message}{missing_grants(self.client, self.work, names=self._steps)}."
                        f" {self._how_to_publish()}"
                    ),
                )
            except NoSpaceError as error:
                ended = self._end(
                    "failed", EndReason.CODE, message=f"{error.message.rstrip('.')}; {self._how_to_go_on()}"
                )
            except UnavailableError as error:
                ended = self._unreachable_result(error)
            except ClientError as error:
                ended = self._end("failed", EndReason.CODE, message=error.message)
        self._report_phases(ended)
        self.board.tell(
            RunEvent(
                run=ended.run,
                state=ended.state,
                rows=ended.rows,
                seconds=ended.seconds,
                message=ended.message,
                further={"why": ended.why.value, "exit_code": ended.exit_code, "revision": ended.revision},
            )
        )
        return ended

    def _through(self) -> RunResult:
        todo = frozenset(self._steps) - frozenset(self._outcomes)
        for round_number in range(self.work.options.tries + 1):
            failed = self._execute_steps(todo)
            if failed is not None:
                return failed
            self.stop.check()
            if self.work.options.hold:
                return self._end("held", EndReason.DONE, message=f"all steps are complete; {self._how_to_publish()}")
            result = self._publish(again=round_number)
            if isinstance(result, PublishResult):
                return self._end_published(result)
            names = [each.who for each in result if each.is_dropped]
            if names or round_number == self.work.options.tries:
                return self._end_unpublished(result, missing_names=names)
            todo = self._steps_to_repeat(result)
        raise AssertionError("the last round returns")

    # ------------------------------------------------------------------------------------------ steps

    def _execute_steps(self, names: frozenset[str]) -> RunResult | None:
        """Execute the steps `names`. Returns None if all succeeded, else the run's result."""
        for name in names:
            self._outcomes.pop(name, None)
        needs = {name: self.work.needs[name] for name in self._steps if name in names}
        began = time.monotonic()
        at_once = self.work.options.at_once or self.engine.steps_at_once()
        carried = run_schedule(needs, self._run_step, at_once=at_once, stop=self.stop, halt=self.engine.halt)
        self.times.steps += time.monotonic() - began
        self.stop.check()
        if not carried.failed:
            return None
        for name in carried.waiting:
            self._tell(name, "skipped")
        return self._end_failed(carried.failed)

    def _run_step(self, name: str) -> None:
        step, began = self._steps[name], time.monotonic()
        self._began[name] = began
        self.stop.check()
        self._record(name, "running")
        self._tell(name, "running")
        try:
            outcome = self._execute_step(step)
        except DataBroken as error:
            self.stop.check()
            self._record(name, "failed", outcome=error.outcome, message=error.message)
            broken = {each.rule for each in error.broken}
            at = next((rule.at for rule in step.expectations if rule.name in broken), step.at)
            self._tell(name, "failed", outcome=error.outcome, began=began, message=error.message, at=at)
            raise
        except StepError as failure:
            self.stop.check()  # a cancelled step has not failed
            explained = explain_failure(self.client, self.work, step=step, outcomes=self._outcomes, error=failure)
            self._record(name, "failed", message=explained.message)
            at = step_position(step, explained.message)
            self._tell(name, "failed", began=began, message=explained.message, at=at)
            raise explained from failure
        message = self._message(name, outcome)
        self._record(name, "done", outcome=outcome, message=message)
        self._outcomes[name] = outcome
        self._tell(name, "done", outcome=outcome, began=began, message=message)

    def _message(self, name: str, outcome: StepOutcome) -> str | None:
        """Return the message of a finished step: how its inputs were read, or from which table it was copied."""
        if outcome.copied_from is not None:
            copied_from = outcome.copied_from
            return f"copied from {display.render(copied_from.table)}, as run {copied_from.run} published it"
        reason = outcome.computed_because or self.work.computed.get(name)
        if reason is not None:
            return f"computed, not copied: {reason}"
        return None if outcome.whole_because is None else f"read all of its inputs: {outcome.whole_because}"

    def _execute_step(self, step: StepDeclaration) -> StepOutcome:
        """Execute a step. Repeats it on another branch if the server was unreachable or executors were lost."""
        lost = 0
        while True:
            again = self._tries.get(step.name, 0)
            self._tries[step.name] = again + 1
            try:
                return self.engine.carry_out(step, context=self._context(again))
            except StepAway as error:
                self.stop.check()
                lost += 1
                if lost > _AWAY_TRIES:
                    raise
                logger.info("step %s: %s; it will run again when the server answers", step.name, error.message)
                self.patience.wait_for_server(self.client.whoami)

    def _context(self, again: int) -> StepContext:
        work = self.work
        branches = {outcome.branches[0].table: outcome.branches[0] for outcome in self._outcomes.values()}
        read = {pin.name: pin for outcome in self._outcomes.values() for pin in outcome.pins if pin.table is None}
        return StepContext(
            pipeline=work.pipeline,
            directory=work.directory,
            run=work.run,
            at=work.at,
            attempt=work.attempt,
            branch=branch_name(work.run, work.attempt, again=again),
            parameters=work.parameters,
            pins=work.pins,
            sources={**read, **work.source_pins},
            done_branches=branches,
            existing_tables=work.outputs.existing_tables,
            lance_catalogs=work.lance_catalogs,
            built=work.built,
            copied={
                outcome.branches[0].table: outcome.copied_from
                for outcome in self._outcomes.values()
                if outcome.copied_from is not None
            },
            full=work.options.full,
            check=self.stop.check,
        )

    def _record(self, name: str, state: str, *, outcome: StepOutcome | None = None, message: str | None = None) -> None:
        """Record a step's state at the server. Raises RunStopped if another attempt has taken over."""
        facts: record_json.OutcomeRecord = {}
        if outcome is not None:
            digest = record_json.step_digest(self.work.pipeline, self._steps[name])
            facts = record_json.encode_outcome(outcome, digest=digest, state=self._states[name])
        now_ms = time.time_ns() // 1_000_000
        try:
            self.patience.call(
                lambda: self.client.runs.step_put(
                    self.work.run,
                    name,
                    attempt=self.work.attempt,
                    state=state,
                    message=message,
                    started_at=now_ms if state == "running" else None,
                    ended_at=None if state == "running" else now_ms,
                    **facts,
                )
            )
        except (ConflictError, NotFoundError) as error:
            self.stop.request(EndReason.SUPERSEDED, superseded_message(self.work.run, error))
            self.stop.check()

    def _tell(
        self,
        name: str,
        state: str,
        *,
        outcome: StepOutcome | None = None,
        began: float | None = None,
        message: str | None = None,
        at: SourcePosition | None = None,
    ) -> None:
        self.board.tell(
            RunEvent(
                run=self.work.run,
                step=name,
                state=state,
                rows=None if outcome is None else outcome.rows,
                bytes=None if outcome is None else outcome.bytes,
                seconds=None if began is None else time.monotonic() - began,
                message=message,
                findings=() if outcome is None else tuple(record_json.encode_findings(outcome.findings)),
                further={} if at is None else {"position": str(at)},
            )
        )

    def _progress(self) -> Mapping[str, Mapping[str, object]]:
        """Read the task counts of running steps, pass them to the listener, and return the progress.

        A step that waits for a cluster at two calls in a row is reported, once until its tasks run.
        """
        for name in self.board.progress():
            self._report_wait(name)
            tasks = self.engine.tasks(name)
            began = self._began.get(name, time.monotonic())
            left_s = _left_s(tasks, seconds=time.monotonic() - began)
            self.board.tell(
                RunEvent(
                    run=self.work.run,
                    step=name,
                    state="running",
                    tasks_done=tasks.done,
                    tasks=tasks.total,
                    left_s=left_s,
                )
            )
        return self.board.progress()

    def _report_wait(self, name: str) -> None:
        reason = self.engine.wait_reason(name)
        count = self._waits[name] = 0 if reason is None else self._waits.get(name, 0) + 1
        if count == _WAITS_REPORTED:
            self._tell(name, "running", message=f"waits: {reason}")

    # ---------------------------------------------------------------------------------------- publish

    def _branches(self) -> list[StepBranch]:
        return [branch for name in self._steps for branch in self._outcomes[name].branches]

    def _publish(self, *, again: int) -> PublishResult | tuple[MovedOutput, ...]:
        began = time.monotonic()
        self.board.tell(RunEvent(run=self.work.run, state="publishing"))
        result = publish(
            self.client,
            self._branches(),
            run=self.work.run,
            attempt=self.work.attempt,
            again=again,
            patience=self.patience,
        )
        self.times.publishing += time.monotonic() - began
        return result

    def _steps_to_repeat(self, moved: tuple[MovedOutput, ...]) -> frozenset[str]:
        """Return the steps to repeat: the steps whose tables have changed, and their downstream steps."""
        tables = {each.branch.table for each in moved}
        own_steps = {
            name
            for name, outcome in self._outcomes.items()
            if any(branch.table in tables for branch in outcome.branches)
        }
        names = steps_after(frozenset(own_steps), self.work.needs)
        words = "; ".join(each.who for each in moved)
        self.board.tell(
            RunEvent(run=self.work.run, state="moved", message=f"{words}; running again: {', '.join(sorted(names))}")
        )
        return names

    def _end_published(self, published: PublishResult) -> RunResult:
        if self.work.attempt > 1 or any(tries > 1 for tries in self._tries.values()):
            self._clear(keep_tables=True)
        tables = [
            table
            for name, step in self._steps.items()
            for table in (step.table, *(branch.table for branch in self._outcomes[name].branches))
        ]
        names = ", ".join(map(display.render, dict.fromkeys(tables)))
        environment = self.work.pipeline.environment
        where = "" if environment is None else f" in environment {environment.name}"
        report_lineages(self.client, self._outcomes, pipeline=self.work.pipeline.name, run=self.work.run)
        return self._build_result(
            "published", EndReason.DONE, message=f"published {names}{where}", revision=published.revision
        )

    def _end_unpublished(self, moved: tuple[MovedOutput, ...], *, missing_names: list[str]) -> RunResult:
        words = "; ".join(missing_names or [each.who for each in moved])
        advice = (
            "start a new run, which creates it again"
            if missing_names
            else (
                f"nothing was published, and the branches are kept; 'limnos pipeline resume {self.work.run}' tries"
                " again"
            )
        )
        return self._end("failed", EndReason.MOVED, message=f"{words}; {advice}")

    # -------------------------------------------------------------------------------------------- end

    def _how_to_publish(self) -> str:
        run = self.work.run
        return f"'limnos pipeline publish {run}' publishes them, 'limnos delete run {run}' deletes them"

    def _how_to_go_on(self) -> str:
        return f"nothing was published; correct the cause, then 'limnos pipeline resume {self.work.run}'"

    def _end_failed(self, failed: Mapping[str, BaseException]) -> RunResult:
        for error in failed.values():
            if not isinstance(error, (StepError, ClientError)):
                raise error
        words = "; ".join(f"{name}: {error_text(error)}" for name, error in failed.items())
        why = end_reason_of(list(failed.values()))
        if why is EndReason.AWAY:
            return self._unreachable_result(next(iter(failed.values())))
        if why in (EndReason.CODE, EndReason.DENIED, EndReason.MOVED) and (
            grants := missing_grants(self.client, self.work, names=failed)
        ):
            # A table that is no longer visible is reported as missing.
            why, words = EndReason.DENIED, words + grants
        if why is EndReason.MOVED:
            return self._end(
                "failed",
                why,
                message=f"{words.rstrip('.')}. nothing was published; start a new run, which creates it again",
            )
        return self._end("failed", why, message=f"{words.rstrip('.')}; {self._how_to_go_on()}")

    def _end_stopped(self, error: BaseException) -> RunResult:
        self.engine.halt()
        why = error.why if isinstance(error, RunStopped) else EndReason.INTERRUPTED
        words = error.message if isinstance(error, RunStopped) else "interrupted"
        if why is EndReason.SUPERSEDED:
            return self._build_result("lost", why, message=words)
        # The stop signal must not end these last requests.
        self.patience = RetryPolicy(self.work.options.lease_s, stop=StopSignal())
        try:
            self._clear(keep_tables=False)
            words += "; its branches are dropped, and nothing was published"
        except ClientError as failure:
            words += f"; nothing was published. Its branches are still there: {failure.message}"
        return self._end("cancelled", why, message=words)

    def _unreachable_result(self, error: BaseException) -> RunResult:
        """Return the result for an unreachable server: the end cannot be recorded, so the lease expires."""
        message = (
            f"{error_text(error)}. When the server answers again: 'limnos show run {self.work.run}' shows whether it"
            " was published"
        )
        return self._build_result(
            "lost", EndReason.AWAY, message=f"{message}, 'limnos pipeline resume {self.work.run}' continues it"
        )

    def _end(self, state: str, why: EndReason, *, message: str) -> RunResult:
        """Record the end of the run and return its result."""
        run, attempt = self.work.run, self.work.attempt
        if state == "failed":
            self._hide_new_tables()
        try:
            self.patience.call(lambda: self.client.runs.finish(run, attempt=attempt, state=state, message=message))
        except (ConflictError, NotFoundError) as error:
            if why in (EndReason.CANCELLED, EndReason.INTERRUPTED):
                return self._build_result(state, why, message=message)
            return self._build_result("lost", EndReason.SUPERSEDED, message=superseded_message(run, error))
        except (UnavailableError, RunStopped) as error:
            logger.warning("the end of run %s could not be recorded: %s", run, error)
        return self._build_result(state, why, message=message)

    def _build_result(self, state: str, why: EndReason, *, message: str, revision: int | None = None) -> RunResult:
        return RunResult(
            run=self.work.run,
            pipeline=self.work.pipeline.name,
            attempt=self.work.attempt,
            state=state,
            why=why,
            message=message,
            revision=revision,
            rows=sum(outcome.rows for outcome in self._outcomes.values()) if state in _COMPLETE else 0,
            seconds=time.monotonic() - self.times.began,
        )

    def _report_phases(self, ended: RunResult) -> None:
        """Record the seconds by phase. An error is only logged, because the attempt has ended."""
        if ended.why in (EndReason.AWAY, EndReason.SUPERSEDED):
            return
        seconds = {"planning": self.work.planning_s, "steps": self.times.steps, "publishing": self.times.publishing}
        try:
            self.client.runs.beat(self.work.run, self.work.attempt, phases_s=record_json.encode_phases(seconds))
        except ClientError as error:
            logger.debug("the phases of run %s were rejected: %s", self.work.run, error)

    def _clear(self, *, keep_tables: bool) -> None:
        tables = {
            table: table in self.work.new and not keep_tables
            for step in self.work.steps
            for table in tables_of(self.work.pipeline, step)
        }
        self.patience.call(lambda: clear_branches(self.client, tables, run=self.work.run))

    def _hide_new_tables(self) -> None:
        """Drop the run's new tables: nothing of a failed run is visible. Resuming it restores them."""
        tables = [table for step in self.work.steps for table in tables_of(self.work.pipeline, step)]
        new = [table for table in dict.fromkeys(tables) if table in self.work.new]
        try:
            self.patience.call(lambda: drop_new_tables(self.client, new, run=self.work.run))
        except (ClientError, RunStopped) as error:
            logger.warning("the new tables of run %s are still there, without rows: %s", self.work.run, error)


def _left_s(tasks: TaskProgress, *, seconds: float) -> float | None:
    """Estimate the seconds left by the share of done tasks; None below 5 %."""
    share = tasks.done / tasks.total if tasks.total else 0.0
    return seconds * (1 - share) / share if share >= 0.05 else None
