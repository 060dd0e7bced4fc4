# SPDX-License-Identifier: Apache-2.0
"""Jobs of scheduled pipelines: the command of a job, with the schedule's files and a token of its user.

Must not know when a pipeline is due (`services.runs.schedule_starts`). The job's process runs `limnos pipeline run`,
confined like any job, and reaches this server over HTTP. The token exists while the job runs: the store has its hash,
and the process its text. Decision record 0304.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from limnos.access.authentication import ANONYMOUS, hash_secret, new_secret, token_text
from limnos.app.engine_files import EngineFiles, FilesNotReady, engine_files_of
from limnos.app.engine_settings import engine_settings, local_directories, local_url, make_writable_directories
from limnos.app.request_defaults import warehouse_of
from limnos.config.settings import Settings
from limnos.confinement.file_tree import TEMPORARY
from limnos.formats.schedule_files import files_decode
from limnos.model.entities import Token
from limnos.model.errors import LimnosError
from limnos.model.jobs import TemplateJob
from limnos.model.permits import upkeep_permit
from limnos.model.principals import TokenPurpose, TokenTrust
from limnos.rooms.jobs.app.job_commands import PATH, JobNotRunnable, JobSettings
from limnos.rooms.jobs.app.job_keeper import JobCommand
from limnos.services.identity.users import check_token_holder
from limnos.services.request.node_services import NodeServices
from limnos.spark.files import SparkFiles
from limnos.spark.jars import CACHE_VARIABLE, cache_directory
from limnos.store.activity.schedules import schedule_with_files_read
from limnos.store.objects.node_reads import node_read
from limnos.store.tx import Tx
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.schedules")
TOKEN_MS: Final = 600_000
"""The lifetime of a job's token without an extension, in milliseconds."""
EXTEND_EVERY_S: Final = 120.0
"""The time between two extensions of a token, in seconds."""
FILES_WITHIN_S: Final = 600.0
"""Seconds to wait for the archives of Spark and a Java runtime."""
PASSED_ON: Final = ("PATH", "PYTHONPATH", "JAVA_HOME")
"""Variables of the server that its pipelines get: they find Python's packages and Java as the server does."""
DIRECTORY: Final = "pipeline"
COMMAND: Final = "limnos.cli.main"
_PERMIT: Final = upkeep_permit("limnos")


class ScheduledPipelines:
    """Builds the commands of jobs of schedules. `uri` is the address at which this machine reaches the server."""

    def __init__(self, services: NodeServices, settings: Settings, *, uri: str) -> None:
        self._services = services
        self._uri = uri
        self._roots = tuple(local_directories([warehouse_of(settings)]))
        self._files: EngineFiles = engine_files_of(settings)
        self._settings = engine_settings(settings)

    @asynccontextmanager
    async def command(self, plan: JobSettings, job: TemplateJob, *, scratch: str) -> AsyncIterator[JobCommand]:
        """Yield the command of a job, whose token ends with the block.

        Raises JobNotRunnable if the schedule was deleted or is another user's, its user gets no token, or Spark's files
        are missing.
        """
        services = self._services
        row = await services.gate.look_up(lambda: schedule_with_files_read(job.template_id))
        metalake = await services.gate.look_up(lambda: node_read(job.metalake_id))
        if row is None or metalake is None or (row[0].user, row[0].user_id) != (job.user, job.user_id):
            raise JobNotRunnable("The schedule was deleted or replaced before this job started")
        schedule, text = row
        make_writable_directories(plan.writable, closed=plan.closed)
        require_storage(plan, self._roots)
        try:
            spark = await self._files.get(within_s=FILES_WITHIN_S)
        except FilesNotReady as error:
            raise JobNotRunnable(error.message) from None
        directory = Path(scratch) / DIRECTORY
        await asyncio.to_thread(write_files, directory, files_decode(text))
        conf = msgspec.json.decode(await self._conf(job), type=dict[str, str])
        arguments = ("pipeline", "run", str(directory / schedule.terms.file), "--due", conf["due"])
        async with self._token(job, trust=TokenTrust(schedule.trust)) as token:
            environment = {
                "LIMNOS_URI": self._uri,
                "LIMNOS_METALAKE": metalake.name,
                "LIMNOS_OUTPUT": "table",
                **({} if token is None else {"LIMNOS_TOKEN": token}),
            }
            yield self._command(plan, job, scratch=scratch, arguments=arguments, more=environment, spark=spark)

    async def _conf(self, job: TemplateJob) -> str:
        return await self._services.store.submit(_PERMIT, lambda tx: tx.template_jobs.conf(job.id))

    def _command(
        self,
        plan: JobSettings,
        job: TemplateJob,
        *,
        scratch: str,
        arguments: tuple[str, ...],
        more: Mapping[str, str],
        spark: SparkFiles,
    ) -> JobCommand:
        cache = self._settings.get(CACHE_VARIABLE) or str(cache_directory())
        environment = {
            "PATH": PATH,
            "LANG": os.environ.get("LANG", "C.UTF-8"),
            **{name: os.environ[name] for name in PASSED_ON if name in os.environ},
            **self._settings,
            CACHE_VARIABLE: cache,
            "HOME": scratch,
            "TMPDIR": scratch,
            "SPARK_LOCAL_DIRS": scratch,
            "JAVA_TOOL_OPTIONS": f"-Djava.io.tmpdir={scratch} -Duser.home={scratch} -XX:-UsePerfData",
            "LIMNOS_JOB_ID": job.uuid,
            **more,
        }
        readable_paths = (
            sys.prefix,
            sys.base_prefix,
            *sys.path,
            cache,
            *spark.jars,
            spark.java_home,
            spark.java_runtime,
        )
        return JobCommand(
            argv=(sys.executable, "-P", "-m", COMMAND, *arguments),
            environment=environment,
            scratch=scratch,
            copies=(),
            readable=(*plan.readable, *(str(Path(each).resolve()) for each in readable_paths if each)),
            writable=plan.writable,
            closed=plan.closed,
            user=plan.user,
            must_be_confined=plan.must_be_confined,
            timeout_s=plan.timeout_s,
            grace_s=plan.grace_s,
            output_max=plan.output_max,
            limits=plan.limits,
        )

    @asynccontextmanager
    async def _token(self, job: TemplateJob, *, trust: TokenTrust) -> AsyncIterator[str | None]:
        """Yield the text of a new token of the job's user, which is extended until the block ends, then revoked; None
        for the anonymous user.
        """
        if job.user == ANONYMOUS:
            yield None
            return
        services, secret = self._services, new_secret()

        def create(tx: Tx) -> Token:
            check_token_holder(services.rules, tx.principals.user_status(job.user), user=job.user)
            tx.tokens.forget_ended(job.user)
            return tx.tokens.create(
                user=job.user,
                name=f"job {job.uuid}",
                secret_hash=hash_secret(secret),
                expires_at=tx.now_ms + TOKEN_MS,
                trust=trust,
                purpose=TokenPurpose.WORK,
            )

        try:
            token = await services.store.submit(_PERMIT, create)
        except LimnosError as error:
            raise JobNotRunnable(error.message) from None
        extending = asyncio.create_task(self._extend(token))
        try:
            yield token_text(token.id, secret)
        finally:
            extending.cancel()
            with suppress(Exception):  # the token expires by itself
                await asyncio.shield(services.store.submit(_PERMIT, lambda tx: tx.tokens.revoke(token)))

    async def _extend(self, token: Token) -> None:
        """Extend a token regularly, until this coroutine is cancelled."""
        while True:
            await asyncio.sleep(EXTEND_EVERY_S)
            try:
                await self._services.store.submit(
                    _PERMIT, lambda tx: tx.tokens.extend(token.id, expires_at=tx.now_ms + TOKEN_MS)
                )
            except Exception as error:  # noqa: BLE001 - the next round tries again
                log.warning("the token of a scheduled pipeline was not extended", error=str(error))


def require_storage(plan: JobSettings, roots: Iterable[str]) -> None:
    """Raise JobNotRunnable if a directory that jobs may write to is missing, or if files of tables would be written to
    the job's own temporary directory and be lost at its end.
    """
    writable = [Path(each).resolve() for each in plan.writable]
    for each in writable:
        if not each.is_dir():
            raise JobNotRunnable(f"There is no directory {each}, which jobs.writable names: create it")
    for root in map(Path, roots):
        path = root.resolve()
        is_temporary = any(path.is_relative_to(each) for each in TEMPORARY)
        if is_temporary and not any(path.is_relative_to(each) for each in writable):
            raise JobNotRunnable(
                f"Tables in {root} cannot be written, because jobs have a temporary directory of their own: add it to"
                " jobs.writable, or keep tables elsewhere"
            )


def write_files(directory: Path, files: Mapping[str, bytes]) -> None:
    """Write the files of a schedule below a new directory, readable for the user of the job."""
    directory.mkdir(mode=0o755)
    for path, content in files.items():
        target = directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)


def scheduled_pipelines_of(settings: Settings, services: NodeServices, *, bound: socket.socket) -> ScheduledPipelines:
    """Build the commands of scheduled pipelines for a server's settings."""
    return ScheduledPipelines(services, settings, uri=local_url(bound))
