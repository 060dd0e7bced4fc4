# SPDX-License-Identifier: Apache-2.0
"""A stopping server exits at the end of its drain time, even if a request hangs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

HANGS_S = 300
"""Far more than the slowest machine needs: what is not done by then never will be. No test measures speed by it."""
UNHINDERED_S = 120
"""A drain time that is reached only if something hangs."""
STUCK = {
    "a file that is never read": """
import sys, threading
from limnos.files.local import LocalFiles
def read(*_, **__):
    print("read begun", file=sys.stderr, flush=True)
    threading.Event().wait()
LocalFiles.read = read
""",
    "a store that is never closed": """
import asyncio
from limnos.store.backends.sqlite import SqliteStore
async def close(self):
    await asyncio.Event().wait()
SqliteStore.close = close
""",
    "a thread of the loop's own": """
import asyncio, threading
from limnos.store.backends.sqlite import SqliteStore
whole = SqliteStore.close
async def close(self):
    asyncio.get_running_loop().run_in_executor(None, threading.Event().wait)
    await whole(self)
SqliteStore.close = close
""",
    "the interpreter's own end": """
import sys, time
class Endless:
    def __del__(self, sleep=time.sleep):
        while True:
            sleep(60)
sys.endless = Endless()
""",
    "the loop itself": """
import sys, threading
from limnos.app import serving
from limnos.store.backends.sqlite import SqliteStore
settle = serving.settle_memory
def settled():
    settle()
    async def submit(*_, **__):
        print("held", file=sys.stderr, flush=True)
        threading.Event().wait()
    SqliteStore.submit = submit
serving.settle_memory = settled
""",
}
"""What hangs, by name. The code runs before the command."""


def start(data: Path, planted: str, log: Path, *, drain_s: float = 0.5) -> subprocess.Popen[str]:
    """Start a server with this drain time."""
    code = f"{planted}\nimport sys\nfrom limnos.cli.main import main\nsys.exit(main())"
    command = [sys.executable, "-c", code, "server", "start", "--data", str(data), "--listen", "127.0.0.1:0"]
    with log.open("wb") as errors:
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=os.environ | {"LIMNOS__SERVER__DRAIN_TIMEOUT_S": str(drain_s)},
        )


def ask(uri: str, token: str, path: str, body: object) -> None:
    """Send a request and wait for its answer."""
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    request = urllib.request.Request(
        f"{uri}/iceberg/v1/lake.main/{path}", data=json.dumps(body).encode(), headers=headers
    )
    urllib.request.urlopen(request, timeout=HANGS_S).close()


def begin_to_register(uri: str, data: Path, log: Path) -> threading.Thread:
    """Request the register of a table whose metadata file is never read completely. Returns when the file is being
    read.
    """
    token = (data / "admin.token").read_text().strip()
    ask(uri, token, "namespaces", {"namespace": ["a"]})
    body = {"name": "t", "metadata-location": f"file://{data}/warehouse/main/x.metadata.json"}
    return begin(uri, token, "namespaces/a/register", body, log=log, mark="read begun")


def begin(uri: str, token: str, path: str, body: object, *, log: Path, mark: str) -> threading.Thread:
    """Send a request that is never answered. Returns when the log says that it has begun."""

    def wait() -> None:
        with suppress(OSError, HTTPException):  # the connection is cut at any point
            ask(uri, token, path, body)

    asking = threading.Thread(target=wait)
    asking.start()
    until = time.monotonic() + HANGS_S
    while mark not in log.read_text():
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.01)
    return asking


@pytest.mark.parametrize("what", STUCK)
def test_hanging_server_exits_at_end_of_drain_time(what: str, tmp_path: Path) -> None:
    """After SIGTERM a server whose threads or store hang exits with code 0 at the end of its drain time. The log says
    what was still running.
    """
    data, log = tmp_path / "data", tmp_path / "log"
    with start(data, STUCK[what], log) as process:
        try:
            uri = next(line[6:].strip() for line in process.stdout or () if line.startswith("ready "))
            asking = begin_to_register(uri, data, log) if "file" in what else None
            if "loop itself" in what:
                token = (data / "admin.token").read_text().strip()
                asking = begin(uri, token, "namespaces", {"namespace": ["a"]}, log=log, mark="held")
            process.terminate()
            code = process.wait(HANGS_S)
        finally:
            process.kill()
    if asking is not None:
        asking.join()

    assert code == 0
    if "file" not in what and "interpreter" not in what:  # threads that read files are abandoned without a log line
        assert "the drain time is over" in log.read_text()
        assert "MainThread: " in log.read_text()


def test_idle_server_exits_before_end_of_drain_time(tmp_path: Path) -> None:
    """A stopping server without running requests exits before the end of its drain time, without a log line about
    it.
    """
    data, log = tmp_path / "data", tmp_path / "log"
    with start(data, "", log, drain_s=UNHINDERED_S) as process:
        try:
            next(line for line in process.stdout or () if line.startswith("ready "))
            process.terminate()
            code = process.wait(HANGS_S)
        finally:
            process.kill()

    assert code == 0
    assert "drain time" not in log.read_text()
