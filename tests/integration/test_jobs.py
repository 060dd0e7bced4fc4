# SPDX-License-Identifier: Apache-2.0
"""Jobs of a real server: a killed server's job ends with it, and the next server reports its state."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from limnos.client import Client
from tests.integration.live import serving
from tests.processes import processes_of

pytestmark = [pytest.mark.integration, pytest.mark.room("jobs")]
WITHIN_S = 600
PROGRAM = "#!/bin/sh\ntrap '' TERM\ntouch \"$1/begun\"\nwhile :; do sleep 0.1; done\n"


def test_killed_server_ends_its_jobs(tmp_path: Path) -> None:
    """Killing the server ends its jobs, also one that ignores signals. The next server reports them as failed and runs
    the waiting ones.
    """
    programs, out = tmp_path / "programs", tmp_path / "out"
    programs.mkdir()
    out.mkdir()
    (programs / "stay.sh").write_text(PROGRAM)
    (programs / "stay.sh").chmod(0o755)
    settings = tmp_path / "limnos.toml"
    lines = [
        "[jobs]",
        'executor = "local"',
        "confined = false",
        f'allowed = ["{programs}", "/bin/true"]',
        f'writable = ["{out}"]',
        "running_max = 1",
    ]
    settings.write_text("\n".join(lines))

    with (
        serving(tmp_path / "data", "--config", str(settings)) as server,
        Client(server.uri, token=server.token) as client,
    ):
        client.job_templates.register(
            "stay", job_type="shell", executable=str(programs / "stay.sh"), fields={"arguments": [str(out)]}
        )
        client.job_templates.register("quick", job_type="shell", executable="/bin/true")
        stays, waits = client.jobs.run("stay").job_id, client.jobs.run("quick").job_id
        _until((out / "begun").exists)
        assert processes_of(programs / "stay.sh")
        assert client.jobs.get(waits).status == "queued"
        server.process.send_signal(signal.SIGKILL)
        server.process.wait()
    _until(lambda: not processes_of(programs / "stay.sh"))

    with (
        serving(tmp_path / "data", "--config", str(settings)) as server,
        Client(server.uri, token=server.token) as client,
    ):
        _until(lambda: client.jobs.get(stays).status == "failed" and client.jobs.result(stays).message)
        _until(lambda: client.jobs.get(waits).status == "succeeded")

        assert "stopped responding" in str(client.jobs.result(stays).message)


def _until(look: Callable[[], object]) -> None:
    """Wait until a condition is true."""
    until = time.monotonic() + WITHIN_S
    while time.monotonic() < until:
        if look():
            return
        time.sleep(0.05)
    raise AssertionError("it did not become so in time")
