# SPDX-License-Identifier: Apache-2.0
"""The server's own executor of maintenance: its token lives as long as the process."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from limnos.app.engine_files import EngineFiles
from limnos.config.server import ServerSection
from limnos.config.settings import Settings
from limnos.model.entities import Token
from limnos.rooms.maintenance.app import maintenance_process
from limnos.rooms.maintenance.app.maintenance_process import MODULE, TOKEN_MS, MaintenanceProcess
from limnos.spark.files import SparkFiles
from limnos.store.identity.tokens import token_read
from tests.http.driver import DriverNode, node_at
from tests.rooms.maintenance.services.histories import MovedClock

STEPS_MAX = 10_000


class LongProcess(MaintenanceProcess):
    """An executor whose process works for ten hours: each time that its token was extended, the clock moves on."""

    clock: MovedClock
    text = ""
    was_valid = False

    async def _process(self, start: bytes, scratch: str) -> None:
        assert Path(scratch).is_dir()
        self.text = str(msgspec.json.decode(start)["token"])
        for _ in range(75):
            self.clock.at_ms += TOKEN_MS * 4 // 5
            await self._until_extended()
        self.was_valid = not (await self._token()).is_over(self.clock.at_ms)

    async def _until_extended(self) -> None:
        for _ in range(STEPS_MAX):
            if (await self._token()).expires_at == self.clock.at_ms + TOKEN_MS:
                return
            await asyncio.sleep(0.001)
        raise AssertionError("the token was not extended")

    async def _token(self) -> Token:
        token_id = int(self.text.split("_")[1])
        token = await self.services.gate.look_up(lambda: token_read(token_id))
        assert token is not None
        return token


def test_token_is_extended_while_the_process_lives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The token of the process is valid for ten minutes, and is extended while the process lives, here for ten hours.
    It is revoked when the process ends.
    """
    monkeypatch.setattr(maintenance_process, "EXTEND_EVERY_S", 0.001)
    with node_at(tmp_path / "data") as node:
        settings = Settings(server=ServerSection(data=str(tmp_path / "data")))
        process = LongProcess(node.built.services, settings, uri="http://127.0.0.1:1")
        process._files = EngineFiles(lambda _: SparkFiles((), "", ""))
        process.clock = node.built.services.store.time = MovedClock(node.built.services.store.time.now_ms())
        node.runner.run(process._run("lake"))

        assert process.was_valid
        assert node.runner.run(process._token()).revoked is True
        assert whoami(node, process.text) == 401


def whoami(node: DriverNode, token: str) -> int:
    """Return the status of a request with a token."""
    return node.get("/api/limnos/v1/whoami", user=None, authorization=f"Bearer {token}").status


@pytest.mark.integration
def test_process_reports_an_unreachable_server_in_a_line(tmp_path: Path) -> None:
    """A process whose server does not answer ends with a line on standard error, not with a traceback."""
    start = {
        "uri": "http://127.0.0.1:1",
        "metalake": "lake",
        "token": "lim_1_x",
        "master": "local[1]",
        "scratch": str(tmp_path),
    }
    with subprocess.Popen(
        [sys.executable, "-P", "-m", MODULE], stdin=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(msgspec.json.encode(start) + b"\n")
        process.stdin.flush()  # and kept open: the process ends with its input
        lines = process.stderr.read()

    assert process.returncode == 1
    assert b"the executor of maintenance ends: " in lines
    assert b"Traceback" not in lines
