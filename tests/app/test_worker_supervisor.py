# SPDX-License-Identifier: Apache-2.0
"""Several workers on one address: one ready line, all serve, dead ones are restarted, and all stop together."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from limnos.app.listening import CannotListen, listen
from limnos.config.server import ServerSection
from limnos.config.settings import Settings
from tests.integration.live import LIMNOS

pytestmark = pytest.mark.integration

WITHIN_S = 300
BROKEN = """
from limnos.app import serving
async def bootstrap(*_):
    raise RuntimeError("planted")
serving.bootstrap = bootstrap
"""


IMPATIENT = """
from limnos.app import worker_supervisor
worker_supervisor.BEATS_MISSED_MAX = 5
"""


@dataclass
class RunningSupervisor:
    """A supervisor, with methods for requests to its workers."""

    process: subprocess.Popen[str]
    uri: str
    data: Path
    log: Path

    def ask(self, path: str) -> tuple[str, bytes]:
        """Send a request on its own connection. Returns the part of the request id that names the process, and the
        body.
        """
        with urllib.request.urlopen(f"{self.uri}{path}", timeout=WITHIN_S) as answer:
            return answer.headers["x-request-id"][:12], answer.read()

    def answering(self, count: int) -> set[str]:
        """Send requests until this number of processes has answered."""
        answers: set[str] = set()
        until = time.monotonic() + WITHIN_S
        while len(answers) < count:
            assert time.monotonic() < until, self.log.read_text()
            answers.add(self.ask("/health/live")[0])
        return answers

    def pids(self) -> dict[int, int]:
        """Return the process id with which each worker was last started."""
        started = [json.loads(line) for line in self.log.read_text().splitlines() if '"worker started"' in line]
        return {line["worker"]: line["pid"] for line in started}

    def lines(self) -> list[dict]:
        """Return the lines of the log."""
        return [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]


@contextmanager
def workers(tmp_path: Path, count: int = 2, *, planted: str = "") -> Iterator[RunningSupervisor]:
    """Start this number of workers. At the end none remains, whatever happens."""
    data, log = tmp_path / "data", tmp_path / "log"
    command = [sys.executable, "-c", f"{planted}\nimport sys\nfrom limnos.cli.main import main\nsys.exit(main())"]
    command += ["server", "start", "--data", str(data), "--listen", "127.0.0.1:0", "--workers", str(count)]
    with (
        log.open("wb") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            uri = next((line[6:].strip() for line in process.stdout or () if line.startswith("ready ")), None)
            assert uri is not None, log.read_text()
            yield RunningSupervisor(process, uri, data, log)
        finally:
            process.terminate()
            try:
                process.wait(WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()


def wait_gone(pids: list[int]) -> None:
    """Wait until none of the processes exists."""
    until = time.monotonic() + WITHIN_S
    while any(Path(f"/proc/{pid}").exists() and "Z" not in state(pid) for pid in pids):
        assert time.monotonic() < until, f"still there: {pids}"
        time.sleep(0.01)


def state(pid: int) -> str:
    """Return the state letter of a process. Z means that it has ended and was not reaped yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "Z"


def listening_sockets(pid: int, port: int) -> set[str]:
    """Return the sockets that a process holds and that listen on a port."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    known = {f"socket:[{line[9]}]" for line in lines if line[3] == "0A" and int(line[1].rpartition(":")[2], 16) == port}
    sockets = set()
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            sockets.add(str(each.readlink()))
    return sockets & known


def test_worker_holds_only_its_own_listening_socket(tmp_path: Path) -> None:
    """Each worker listens on one socket that no other worker holds. The socket of a dead worker, with its queue of
    connections, is the supervisor's alone, so no connection waits in a queue that nobody serves.
    """
    with workers(tmp_path, 3) as running:
        port = int(running.uri.rpartition(":")[2])
        sockets = [listening_sockets(pid, port) for pid in running.pids().values()]
        supervised = listening_sockets(running.process.pid, port)

    assert [len(each) for each in sockets] == [1, 1, 1]
    assert set.union(*sockets) == supervised
    assert len(supervised) == 3


def test_all_serve_and_stop_together(tmp_path: Path) -> None:
    """The supervisor prints one ready line, every worker answers, and logs and metrics have its number. A stop ends all
    with exit code 0.
    """
    with workers(tmp_path) as running:
        seen = running.answering(2)
        metrics = running.ask("/metrics")[1].decode()
        pids = running.pids()
        running.process.terminate()
        code = running.process.wait(WITHIN_S)
        wait_gone(list(pids.values()))

    assert len(seen) == 2
    assert 'worker="1"' in metrics or 'worker="2"' in metrics
    assert code == 0
    assert {line["worker"] for line in running.lines() if line["event"] == "request"} == {1, 2}


PLANTED_ADDRESS = """
import sys
from limnos.rooms.sqlpp import server as room
engine_of = room.engine_of
def engine_with_address(settings, bound):
    print("engine at", bound.getsockname()[1], file=sys.stderr, flush=True)
    return engine_of(settings, bound)
room.engine_of = engine_with_address
"""


def test_engines_reach_the_worker_that_started_them(tmp_path: Path) -> None:
    """The engine of a worker gets an address at which only this worker answers: the files that its statements read are
    in the memory of that process.
    """
    with workers(tmp_path, planted=PLANTED_ADDRESS) as running:
        ports = re.findall(r"^engine at (\d+)$", running.log.read_text(), re.MULTILINE)
        own = [replace(running, uri=f"http://127.0.0.1:{port}") for port in ports]
        answering = [{each.ask("/health/live")[0] for _ in range(20)} for each in own]

    assert [len(each) for each in answering] == [1, 1]
    assert answering[0] != answering[1]


def test_the_store_is_migrated_and_filled_once(tmp_path: Path) -> None:
    """The first start of several workers creates one metalake, one catalog and one token for the admin."""
    with workers(tmp_path, 3) as running:
        token = (running.data / "admin.token").read_text().strip()
        headers = {"authorization": f"Bearer {token}"}
        request = urllib.request.Request(f"{running.uri}/api/limnos/v1/tokens", headers=headers)
        with urllib.request.urlopen(request, timeout=WITHIN_S) as answer:
            tokens = json.loads(answer.read())

    assert json.dumps(tokens).count("admin.token") == 1


def test_killed_worker_is_replaced_without_refused_connections(tmp_path: Path) -> None:
    """While a killed worker is restarted, every new connection is answered, and then the new worker serves."""
    with workers(tmp_path) as running:
        before = running.answering(2)
        os.kill(running.pids()[2], signal.SIGKILL)
        after: set[str] = set()
        until = time.monotonic() + WITHIN_S
        while not after - before:
            assert time.monotonic() < until, running.log.read_text()
            # A connection that the killed worker had accepted is reset. A refused connection would be another error.
            with suppress(ConnectionResetError, http.client.RemoteDisconnected):
                after.add(running.ask("/health/live")[0])
        deaths = [line for line in running.lines() if "died" in line["event"]]

    assert [line["worker"] for line in deaths] == [2]


def test_a_hung_worker_is_ended_and_replaced(tmp_path: Path) -> None:
    """A hanging worker is ended after some missed heartbeats, log and metrics report that, and a new worker replaces
    it.
    """
    with workers(tmp_path, planted=IMPATIENT) as running:
        before = running.answering(2)
        hung = running.pids()[2]
        os.kill(hung, signal.SIGSTOP)
        wait_gone([hung])
        after: set[str] = set()
        metrics_text = ""
        until = time.monotonic() + WITHIN_S
        while not after - before or 'worker="2"' not in metrics_text:
            assert time.monotonic() < until, running.log.read_text()
            with suppress(ConnectionResetError, http.client.RemoteDisconnected):
                after.add(running.ask("/health/live")[0])
                metrics_text = running.ask("/metrics")[1].decode()
        events = [(line["event"], line.get("pid")) for line in running.lines() if line.get("worker") == 2]

    assert ("worker hangs and is killed", hung) in events
    assert re.search(r'limnos_worker_starts{reason="hung",worker="2"} [1-9]', metrics_text)
    assert 'limnos_worker_starts{reason="first",worker="2"} 1.0' in metrics_text


def test_a_hung_worker_does_not_keep_the_others_from_stopping(tmp_path: Path) -> None:
    """After SIGTERM to the supervisor, a hanging worker is ended at the end of the drain time."""
    with workers(tmp_path) as running:
        running.answering(2)
        pids = running.pids()
        os.kill(pids[1], signal.SIGSTOP)
        running.process.terminate()
        code = running.process.wait(WITHIN_S)
        wait_gone(list(pids.values()))

    assert code == 0


def test_workers_end_with_their_supervisor(tmp_path: Path) -> None:
    """The workers of a killed supervisor stop by themselves."""
    with workers(tmp_path) as running:
        pids = list(running.pids().values())
        running.process.kill()
        running.process.wait(WITHIN_S)

        wait_gone(pids)


def test_failed_first_worker_start_ends_the_supervisor(tmp_path: Path) -> None:
    """If the first worker fails before it has served, the supervisor does not retry forever: it exits with code 1, and
    the log has the reason.
    """
    code = f"{BROKEN}\nimport sys\nfrom limnos.cli.main import main\nsys.exit(main())"
    command = [sys.executable, "-c", code, "server", "start", "--data", str(tmp_path / "data"), "--workers", "2"]

    done = subprocess.run(
        [*command, "--listen", "127.0.0.1:0"], capture_output=True, text=True, timeout=WITHIN_S, check=False
    )

    assert done.returncode == 1
    assert "planted" in done.stderr
    assert "ready" not in done.stdout


def test_second_server_cannot_bind_the_workers_address(tmp_path: Path) -> None:
    """A second server with any number of workers cannot bind the same address."""
    with workers(tmp_path) as running:
        address = running.uri.removeprefix("http://")
        with pytest.raises(CannotListen):
            listen(Settings(server=ServerSection(listen=address)))
        done = subprocess.run(
            [*LIMNOS, "server", "start", "--data", str(tmp_path / "other"), "--listen", address, "--workers", "2"],
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
        )

    assert done.returncode != 0
    assert address in done.stderr
