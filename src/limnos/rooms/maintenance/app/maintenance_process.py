# SPDX-License-Identifier: Apache-2.0
"""The server's own executor of maintenance: a process with Spark, started when operations wait, which ends when idle.

Must not know operations. The process uses the server over HTTP, as any executor does. Its token only allows it to lease
operations. The process reads the token from its standard input, and the server revokes it when the process ends.
"""

from __future__ import annotations

import asyncio
import importlib.util
import os
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from limnos.access.authentication import hash_secret, new_secret, token_text
from limnos.access.confinement import LEASES_ALONE
from limnos.app.engine_files import FilesNotReady, engine_files_of
from limnos.app.engine_scratch import ScratchDirectory
from limnos.app.engine_settings import (
    PASSED_ON,
    engine_settings,
    local_directories,
    local_url,
    make_writable_directories,
)
from limnos.app.node_builder import allowed_storage_of
from limnos.app.work_poller import WorkPoller
from limnos.config.settings import Settings
from limnos.config.values import spark_settings
from limnos.model.entities import Token
from limnos.model.permits import upkeep_permit
from limnos.model.principals import TokenPurpose, TokenTrust
from limnos.services.request.node_services import NodeServices
from limnos.store.activity.rewrites import metalake_due
from limnos.telemetry.logs import get_logger
from limnos.telemetry.metrics import Counter

log = get_logger("limnos.maintenance")
MODULE: Final = "limnos.rooms.maintenance.engine.child"
TOKEN_MS: Final = 600_000
"""The lifetime of the process's token without an extension, in milliseconds."""
EXTEND_EVERY_S: Final = 120.0
"""The time between two extensions of the token, in seconds."""
ENDS_WITHIN_S: Final = 5.0
FILES_WITHIN_S: Final = 600.0
"""Seconds to wait for the archives of Spark and a Java runtime."""
STARTS = Counter("limnos_maintenance_executor_starts_total", "Starts of the server's executor of maintenance.", ())


class MaintenanceProcess(WorkPoller):
    """Runs the executor of maintenance in a child process while operations wait, one process at a time.

    The token of the process is extended while the process lives.
    """

    works = "maintenance"
    poll_s = 10.0

    def __init__(self, services: NodeServices, settings: Settings, *, uri: str) -> None:
        super().__init__(services.loops)
        self.services = services
        self._writable = tuple(local_directories(allowed_storage_of(settings).roots))
        self._closed = (str(Path(settings.server.data).absolute()),)
        self._start = {
            "uri": uri,
            "master": settings.maintenance.executor_master,
            "config": spark_settings(settings.maintenance.executor_conf),
            "writable": self._writable,
            "closed": self._closed,
        }
        self._files = engine_files_of(settings)
        self._environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
        self._environment |= engine_settings(settings)
        self._permit = upkeep_permit("limnos")

    async def run(self) -> None:
        """Poll and start processes until cancelled, at first after a pause: a process needs the server to listen."""
        await asyncio.sleep(self.poll_s)
        await super().run()

    async def _take(self) -> None:
        """Start the process if operations wait and no process is running."""
        if self._held:
            return
        now_ms = self.services.store.time.now_ms()
        metalake = await self.services.gate.look_up(lambda: metalake_due(now_ms))
        if metalake is not None:
            self._begin(self._run(metalake))

    async def _run(self, metalake: str) -> None:
        """Run the process until it ends, with its own token, which is revoked afterwards.

        The server fetches its files, because the process confines itself. If they are not ready, a later round tries
        again.
        """
        try:
            files = await self._files.get(within_s=FILES_WITHIN_S)
        except FilesNotReady as error:
            log.warning("the executor of maintenance waits for its files", reason=error.message)
            return
        secret = new_secret()
        token = await self.services.store.submit(
            self._permit,
            lambda tx: tx.tokens.create(
                user=min(self.services.rules.service_admins),
                name="maintenance executor",
                secret_hash=hash_secret(secret),
                expires_at=tx.now_ms + TOKEN_MS,
                trust=TokenTrust.PROVEN,
                purpose=TokenPurpose.OPERATION,
                table_id=LEASES_ALONE,
            ),
        )
        STARTS[()] += 1
        extending = asyncio.create_task(self._extend(token))
        scratch: ScratchDirectory | None = None
        try:
            scratch = await asyncio.to_thread(ScratchDirectory)
            make_writable_directories(self._writable, closed=self._closed)
            start = {
                **self._start,
                "metalake": metalake,
                "token": token_text(token.id, secret),
                "scratch": scratch.path,
                "jars": files.jars,
                "java_home": files.java_home,
                "java_runtime": files.java_runtime,
            }
            await self._process(msgspec.json.encode(start) + b"\n", scratch.path)
        except OSError as error:
            log.warning("the executor of maintenance could not be started", reason=str(error))
        finally:
            extending.cancel()
            if scratch is not None:
                await asyncio.shield(asyncio.to_thread(scratch.remove))
            await asyncio.shield(self._revoke(token))

    async def _extend(self, token: Token) -> None:
        """Extend the token of the process regularly, until this coroutine is cancelled."""
        while True:
            await asyncio.sleep(EXTEND_EVERY_S)
            try:
                await self.services.store.submit(
                    self._permit, lambda tx: tx.tokens.extend(token.id, expires_at=tx.now_ms + TOKEN_MS)
                )
            except Exception as error:  # noqa: BLE001 - the next round tries again
                log.warning("the token of the executor of maintenance was not extended", error=str(error))

    async def _process(self, start: bytes, scratch: str) -> None:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            MODULE,
            stdin=asyncio.subprocess.PIPE,
            stdout=sys.stderr,
            stderr=sys.stderr,
            env=self._environment | {"TMPDIR": scratch},
            start_new_session=True,
        )
        try:
            if process.stdin is not None:
                process.stdin.write(start)
                await process.stdin.drain()
            code = await process.wait()
            log.info("the executor of maintenance ended", exit_code=code)
        finally:
            if process.stdin is not None:
                process.stdin.close()
            with suppress(TimeoutError, ProcessLookupError):
                async with asyncio.timeout(ENDS_WITHIN_S):
                    await process.wait()
            if process.returncode is None:
                process.kill()

    async def _revoke(self, token: Token) -> None:
        with suppress(Exception):  # the token expires by itself
            await self.services.store.submit(self._permit, lambda tx: tx.tokens.revoke(token))


def maintenance_process_of(
    settings: Settings, services: NodeServices, *, bound: socket.socket
) -> MaintenanceProcess | None:
    """Return the server's executor of maintenance; None if it is disabled, or if PySpark or a service admin is
    missing.
    """
    if settings.maintenance.executor != "local":
        return None
    if importlib.util.find_spec("pyspark") is None or not services.rules.service_admins:
        log.warning(
            "maintenance.executor is local, which needs the extra spark and a service admin: the executor does not"
            " start"
        )
        return None
    return MaintenanceProcess(services, settings, uri=local_url(bound))
