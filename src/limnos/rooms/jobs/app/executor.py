# SPDX-License-Identifier: Apache-2.0
"""The local job executor: takes jobs from the store, runs each in its own process, and records their results.

A node leases the jobs that it runs. If a lease expires, the job is recorded as failed and never restarted, because its
progress is unknown. Access was checked when the job was requested.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Final, NamedTuple

import msgspec

from limnos.app.work_poller import WorkPoller
from limnos.app.worker_process import WorkerProcess
from limnos.config.settings import Settings
from limnos.model.errors import CannotStart
from limnos.model.jobs import (
    CANCELLED,
    CANCELLING,
    FAILED,
    LOST_MESSAGE,
    STOPPED_MESSAGE,
    SUCCEEDED,
    JobOutput,
    TemplateJob,
)
from limnos.model.permits import upkeep_permit
from limnos.rooms.jobs.app.job_commands import JobNotRunnable, JobSettings, job_command, job_settings_of
from limnos.rooms.jobs.app.job_confinement import job_obstacle, obstacle_text
from limnos.rooms.jobs.app.job_keeper import CANCELLED as KEPT_CANCELLED
from limnos.rooms.jobs.app.job_keeper import EXITED, TIMED_OUT, JobCommand, JobExit
from limnos.rooms.jobs.app.scheduled_pipelines import ScheduledPipelines, scheduled_pipelines_of
from limnos.services.request.concurrency.lease_holders import new_holder
from limnos.services.request.node_services import NodeServices
from limnos.services.runs.job_rules import JOB_RULES, PIPELINE, JobWork, work_parse
from limnos.store.activity.template_jobs import jobs_due
from limnos.store.tx import Tx
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Counter

log = get_logger("limnos.jobs")
BEAT_S: Final = 4.0
LEASE_MS: Final = 15_000
LEAVES_WITHIN_S: Final = 3.0
"""Seconds that a job's keeper process has to end its children after its socket was closed."""
LOST_AT_ONCE: Final = 100
REPORT_ATTEMPTS: Final = 10
"""The number of attempts, one second apart, to record a job's end. After that the lease expires."""
KEEPER: Final = "limnos.rooms.jobs.app.job_keeper"
JOBS = Counter("limnos_jobs_total", "Jobs of templates that this node ran, by outcome.", ("outcome",))


class JobEnd(NamedTuple):
    """The final state of a job, with its message, exit code and output."""

    state: str
    message: str | None = None
    exit_code: int | None = None
    output: JobOutput = JobOutput()


class JobExecutor(WorkPoller):
    """Runs jobs on this machine. If the executor is cancelled, running jobs are terminated and recorded as failed."""

    works = "jobs"

    def __init__(
        self,
        services: NodeServices,
        plan: JobSettings,
        *,
        running_max: int,
        pipelines: ScheduledPipelines | None = None,
    ) -> None:
        super().__init__(services.loops)
        self.services = services
        self.plan = plan
        self.running_max = running_max
        self.pipelines = pipelines
        """Builds the commands of scheduled pipelines; None if this node runs none."""
        self.holder = new_holder()
        self._permit = upkeep_permit("limnos")
        self._wake_events: set[asyncio.Event] = set()

    def wake(self) -> None:
        """Poll the store, and the states of running jobs, now: a job was requested or cancelled."""
        super().wake()
        for event in self._wake_events:
            event.set()

    async def _take(self) -> None:
        """Record jobs whose lease has expired as failed, and start waiting jobs up to the limit."""
        services, capacity = self.services, self.running_max - len(self._held)
        now_ms = services.store.time.now_ms()
        if not await services.gate.look_up(lambda: jobs_due(now_ms)):
            return
        for job in await services.store.submit(self._permit, lambda tx: tx.template_jobs.read_expired(LOST_AT_ONCE)):
            await self._record_end(job, JobEnd(job.display_state(now_ms + job.lease_ms), LOST_MESSAGE))
        if capacity <= 0:
            return
        claim = services.store.submit(
            self._permit, lambda tx: tx.template_jobs.claim(self.holder, limit=capacity, lease_ms=LEASE_MS)
        )
        await self._begin_leased(claim, lambda claimed: self._run_to_end(*claimed))

    def _begin(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        """Start a task. Its end wakes the poller, because its slot is then free for a waiting job."""
        task = super()._begin(work)
        task.add_done_callback(lambda _: WorkPoller.wake(self))
        return task

    async def _run_to_end(self, job: TemplateJob, text: str) -> None:
        """Run a job to its end and record the result in the store, whatever the outcome."""
        log.info("job started", job=job.uuid, user=job.user)
        try:
            end = await self._run(job, text)
        except asyncio.CancelledError:
            with suppress(Exception, asyncio.CancelledError):
                await self._try_record_end(job, JobEnd(FAILED, STOPPED_MESSAGE))
            raise
        except (JobNotRunnable, OSError) as error:
            end = JobEnd(FAILED, str(error)[:2000])
        except Exception as error:
            log.exception("job failed because of an error in the server", job=job.uuid)
            end = JobEnd(FAILED, f"The server could not run it: {type(error).__name__}")
        if end is not None:
            JOBS[end.state,] += 1
            log.info("job ended", job=job.uuid, state=end.state, exit_code=end.exit_code)
            await self._record_end(job, end)

    async def _run(self, job: TemplateJob, text: str) -> JobEnd | None:
        """Run the job in a process. Returns its final state, or None if another node has the job.

        Raises JobNotRunnable or OSError if the process cannot start.
        """
        scratch = await asyncio.to_thread(tempfile.mkdtemp, prefix="limnos-job-")
        worker: WorkerProcess | None = None
        event = asyncio.Event()
        self._wake_events.add(event)
        try:
            async with self._command(job, work_parse(text), scratch=scratch) as command:
                worker = WorkerProcess(KEEPER)
                await worker.send([msgspec.msgpack.encode(command)])
                job_exit = await self._wait(job, worker, event=event)
            return None if job_exit is None else end_of(job_exit, timeout_s=self.plan.timeout_s)
        except ConnectionError:
            return JobEnd(FAILED, "The process that kept it has ended")
        finally:
            self._wake_events.discard(event)
            if worker is not None:
                await worker.close(LEAVES_WITHIN_S)
            await asyncio.to_thread(shutil.rmtree, scratch, ignore_errors=True)

    @asynccontextmanager
    async def _command(self, job: TemplateJob, work: JobWork, *, scratch: str) -> AsyncIterator[JobCommand]:
        """Yield the command of a job. Raises JobNotRunnable."""
        if work.job_type != PIPELINE:
            yield job_command(self.plan, work, uuid=job.uuid, scratch=scratch)
        elif self.pipelines is None:
            raise JobNotRunnable(
                "The server that took it runs no scheduled pipelines: set jobs.pipelines on all of them"
            )
        else:
            async with self.pipelines.command(self.plan, job, scratch=scratch) as command:
                yield command

    async def _wait(self, job: TemplateJob, worker: WorkerProcess, *, event: asyncio.Event) -> JobExit | None:
        """Renew the lease until the job has ended. Returns its exit, or None if another node has the job.

        After a cancellation, sends the job's keeper process a request to terminate the job.
        """
        answer = asyncio.ensure_future(worker.receive())
        is_requested = False
        try:
            while not answer.done():
                state = await self._beat(job)
                if state is None:
                    return None
                if state == CANCELLING and not is_requested:
                    is_requested = True
                    await worker.send([b"end"])
                event.clear()
                ringing = asyncio.ensure_future(event.wait())
                await asyncio.wait((answer, ringing), timeout=BEAT_S, return_when=asyncio.FIRST_COMPLETED)
                ringing.cancel()
            return msgspec.msgpack.decode((await answer)[0], type=JobExit)
        finally:
            answer.cancel()

    async def _beat(self, job: TemplateJob) -> str | None:
        """Renew the job's lease and return its state; None if another node has the job.

        After an error of the store it returns the state at the start of the job; the next heartbeat tries again.
        """
        try:
            return await self.services.store.submit(self._permit, lambda tx: tx.template_jobs.beat(job.id, self.holder))
        except Exception as error:  # noqa: BLE001 - the next heartbeat tries again
            log.warning("a job's lease could not be renewed", job=job.uuid, error=str(error))
            return job.state

    async def _record_end(self, job: TemplateJob, end: JobEnd) -> None:
        """Record the result of a job in the store, with up to `REPORT_ATTEMPTS` attempts."""
        for _ in range(REPORT_ATTEMPTS):
            try:
                await self._try_record_end(job, end)
            except Exception as error:  # noqa: BLE001 - tried again
                log.warning("a job's end could not be recorded", job=job.uuid, error=str(error))
                await asyncio.sleep(1.0)
            else:
                return

    async def _try_record_end(self, job: TemplateJob, end: JobEnd) -> None:
        permit = upkeep_permit("limnos", zone=job.metalake_id)

        def finish(tx: Tx) -> bool:
            return tx.template_jobs.finish(
                job, end.state, message=end.message, exit_code=end.exit_code, output=end.output
            )

        if not await self.services.store.submit(permit, finish):
            log.warning("a job's lease now belongs to another node", job=job.uuid)


def executor_of(
    settings: Settings, services: NodeServices, *, bound: Callable[[], socket.socket] | None = None
) -> JobExecutor | None:
    """Build the job executor of a server's settings, and register its `wake` with the services; None if it is disabled.

    `bound` returns the socket on which scheduled pipelines reach this server. If this machine cannot confine jobs and
    the settings require it, the services refuse new jobs.

    Raises CannotStart if `jobs.user` is set and the server does not run as root.
    """
    if settings.jobs.executor == "off":
        return None
    if settings.jobs.user is not None and os.geteuid() != 0:
        raise CannotStart(
            f"Jobs cannot run as user {settings.jobs.user}",
            why="only a server started by root can change to another user",
            advice="start it as root, or leave out jobs.user",
        )
    if settings.jobs.user is None and os.geteuid() == 0:
        log.warning(
            "jobs run as root, without its capabilities but with access to its files below /etc: name another user in"
            " jobs.user"
        )
    reason = job_obstacle(settings)
    if reason:
        log.warning("jobs are refused", reason=obstacle_text(reason))
        JOB_RULES.put(services, JOB_RULES.of(services)._replace(is_confinable=False))
    pipelines = None
    if bound is not None and JOB_RULES.of(services).pipelines:
        pipelines = scheduled_pipelines_of(settings, services, bound=bound())
    executor = JobExecutor(
        services, job_settings_of(settings), running_max=settings.jobs.running_max, pipelines=pipelines
    )
    services.wake_executor = executor.wake
    return executor


def end_of(job_exit: JobExit, *, timeout_s: float) -> JobEnd:
    """Convert the exit that a job's keeper process reported to the job's final state, message and output."""
    output = JobOutput(_text(job_exit.stdout), _text(job_exit.stderr), job_exit.stdout_bytes, job_exit.stderr_bytes)
    if job_exit.why == KEPT_CANCELLED:
        return JobEnd(CANCELLED, None, job_exit.exit_code, output)
    if job_exit.why == TIMED_OUT:
        return JobEnd(
            FAILED,
            f"Ended after {timeout_s:g} seconds, the limit of jobs.timeout_s",
            job_exit.exit_code,
            output,
        )
    if job_exit.why != EXITED:
        return JobEnd(FAILED, job_exit.why, None, output)
    if job_exit.exit_code == 0:
        return JobEnd(SUCCEEDED, None, 0, output)
    code = job_exit.exit_code or 0
    return JobEnd(FAILED, f"Ended by signal {-code}" if code < 0 else f"Ended with exit code {code}", code, output)


def _text(piece: bytes) -> str:
    """Decode bytes to text without NUL characters, which PostgreSQL cannot store."""
    return piece.decode("utf-8", errors="replace").replace("\0", "\ufffd")
