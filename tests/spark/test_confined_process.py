# SPDX-License-Identifier: Apache-2.0
"""Processes with Spark see the server's processes and data neither by path nor by number."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

NOBODY = 65534
ORDINARY = f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})" if os.geteuid() == 0 else ""
SCRIPT = """
import json, logging, os, resource, signal, sys
from limnos.confinement.file_rules import FileRules
from limnos.spark.confined_process import confine_spark_process
server, home, ending = int(sys.argv[1]), sys.argv[2], sys.argv[3]
BECOME_USER
confine_spark_process(FileRules(readable=(), writable=(home + "/work",), closed=(home + "/data",)))

def attempt(work):
    try:
        return str(work())
    except OSError as error:
        return type(error).__name__

print(json.dumps({
    "prlimit": attempt(lambda: resource.prlimit(server, resource.RLIMIT_NOFILE)),
    "stat": attempt(lambda: os.stat(home + "/data/token")),
    "chmod": attempt(lambda: os.chmod(home, 0o700)),
    "write": attempt(lambda: open(os.path.join(home, "work", "x"), "w").write("x")),
    "temporary": attempt(lambda: open("/tmp/x", "w").write("x")),
}), flush=True)
if ending == "waits":
    signal.pause()
elif ending == "signal":
    os.killpg(0, signal.SIGKILL)
os._exit(7)
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A directory that every user may use, with the server's data and a directory of tables."""
    for name in ("data", "work"):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(0o777)
    (tmp_path / "data" / "token").write_text("secret")
    for each in (tmp_path, *tmp_path.parents):
        if each.is_relative_to("/tmp") and each != Path("/tmp"):
            each.chmod(0o755)
    return tmp_path


@contextmanager
def confined(home: Path, ending: str, become_user: str = "") -> Iterator[subprocess.Popen[bytes]]:
    """Start a confined process in a session of its own, as the server does."""
    script = SCRIPT.replace("BECOME_USER", become_user)
    command = [sys.executable, "-c", script, str(os.getpid()), str(home), ending]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as process:
        yield process


@pytest.mark.parametrize("become_user", ["", ORDINARY], ids=["own", "ordinary"])
def test_confined_process_reaches_no_process_and_data_of_server(home: Path, become_user: str) -> None:
    """Neither root's nor an ordinary user's process finds the server or its data. Its directories can be written, and
    its exit code is that of the started process.
    """
    with confined(home, "exits", become_user) as process:
        output, _ = process.communicate()

    assert process.returncode == 7
    assert json.loads(output) == {
        "prlimit": "ProcessLookupError",
        "stat": "FileNotFoundError",
        "chmod": "None",
        "write": "1",
        "temporary": "1",
    }
    assert (home / "work" / "x").read_text() == "x"
    assert home.stat().st_mode & 0o777 == 0o755, "it changed a directory of its own tree"


@pytest.mark.parametrize("ending", ["waits", "signal"])
def test_all_processes_end_together(home: Path, ending: str) -> None:
    """If the started process is killed, or the confined one kills itself, no process holds the pipe any more."""
    with confined(home, ending) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        if ending == "waits":
            process.send_signal(signal.SIGKILL)
        assert process.stdout.read() == b"", "the end of the pipe: all have ended"

    assert process.returncode == -signal.SIGKILL


@pytest.mark.room("maintenance")
def test_executor_of_maintenance_is_confined(home: Path) -> None:
    """The executor of maintenance runs in namespaces of its own, where the server's data have no path."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        start = {
            "uri": f"http://127.0.0.1:{server.getsockname()[1]}",
            "metalake": "lake",
            "token": "t",
            "master": "local[1]",
            "scratch": str(home / "work"),
            "closed": [str(home / "data")],
        }
        command = [sys.executable, "-P", "-m", "limnos.rooms.maintenance.engine.child"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as process:
            assert process.stdin is not None
            process.stdin.write(json.dumps(start).encode() + b"\n")
            process.stdin.flush()
            connection, _ = server.accept()  # it leases operations: so it is confined
            descendants = psutil.Process(process.pid).children(recursive=True)
            seen = {each.pid: namespace(each.pid) for each in descendants}
            trees = {each.pid: Path(f"/proc/{each.pid}/root{home}/data/token").exists() for each in descendants}
            process.stdin.close()
            connection.close()

    assert len(seen) == 2, "the first process of the namespace, and the executor"
    assert namespace(os.getpid()) not in seen.values()
    assert not any(trees.values())


def namespace(pid: int) -> str:
    """Return the PID namespace of a process."""
    return str(Path(f"/proc/{pid}/ns/pid").readlink())
