# SPDX-License-Identifier: Apache-2.0
"""What a process in namespaces can still reach, started by root and by an ordinary user.

The tests use separate processes, because confinement cannot be undone.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest

NOBODY = 65534
ORDINARY = f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})" if os.geteuid() == 0 else ""
SCRIPT = """
import json, os, resource, socket, sys
from pathlib import Path
from limnos.confinement.file_rules import SYSTEM, FileRules

from limnos.confinement.namespaces import enter_namespaces, enter_pid_namespace, run_first_process
from limnos.confinement.system_calls import drop_capabilities, forbid_new_privileges
server, home, abstract, port, network = int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5] == "on"
BECOME_USER
rules = FileRules(readable=(*SYSTEM, home + "/read", home + "/link"), writable=(home + "/write", home + "/data/own"), closed=(home + "/data", home + "/read/shut"))

def attempt(work):
    try:
        return str(work())
    except OSError as error:
        return type(error).__name__

def connect(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as client:
        client.connect(address)
        return "connected"

def attack():
    drop_capabilities()
    forbid_new_privileges()
    secret = home + "/data/token"
    own = socket.create_server(("127.0.0.1", 0))
    yield "prlimit", lambda: resource.prlimit(server, resource.RLIMIT_NOFILE)
    yield "kill", lambda: os.kill(server, 0)
    yield "affinity", lambda: os.sched_getaffinity(server)
    yield "processes", lambda: len([each for each in os.listdir("/proc") if each.isdigit()])
    yield "stat", lambda: os.stat(secret)
    yield "beside", lambda: os.stat(home + "/beside")
    yield "list", lambda: os.listdir(home + "/data")
    yield "chmod", lambda: os.chmod(home + "/read/file", 0o777)
    yield "utime", lambda: os.utime(home + "/read/file", (1, 1))
    yield "setxattr", lambda: os.setxattr(home + "/read/file", "user.x", b"1")
    yield "read", lambda: Path(home + "/read/file").read_text()
    yield "link", lambda: Path(home + "/link/file").read_text()
    yield "write", lambda: Path(home + "/write/x").write_text("x")
    yield "own data", lambda: Path(home + "/data/own/x").write_text("x")
    yield "shut", lambda: os.stat(home + "/read/shut/token")
    yield "write shut", lambda: Path(home + "/read/shut/x").write_text("x")
    attempt(lambda: Path(home + "/data/x").write_text("x"))
    yield "root", lambda: os.mkdir("/new")
    yield "kernel", lambda: Path("/proc/sys/vm/swappiness").write_text("60")
    yield "socket", lambda: connect(socket.AF_UNIX, home + "/socket")
    yield "own network", lambda: connect(socket.AF_INET, own.getsockname())
    yield "host network", lambda: connect(socket.AF_INET, ("127.0.0.1", port))
    yield "abstract", lambda: connect(socket.AF_UNIX, chr(0) + abstract)

is_nested = enter_pid_namespace()
first = os.fork()
if first == 0:
    enter_namespaces(rules, network=network)
    child = os.fork()
    if child == 0:
        print(json.dumps({name: attempt(work) for name, work in attack()}), flush=True)
        if os.fork() == 0:
            while True:
                os._exit(0) if os.fork() else None
        os._exit(0)
    os._exit(os.waitstatus_to_exitcode(run_first_process(child)))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(first, 0)[1]))
"""


@pytest.fixture
def home() -> Iterator[Path]:
    """A directory that every user may use, with readable, writable and closed parts."""
    with tempfile.TemporaryDirectory(prefix="limnos-namespaces-") as name:
        path = Path(name)
        for part in ("read", "write", "data/own", "read/shut", "hidden"):
            (path / part).mkdir(parents=True)
        for part in ("read/file", "data/token", "read/shut/token", "beside", "hidden/file"):
            (path / part).write_text("text")
        (path / "link").symlink_to("hidden")
        for each in (path, *path.rglob("*")):
            if not each.is_symlink():
                each.chmod(0o777)
        yield path


@pytest.mark.parametrize("network", ["on", "off"])
@pytest.mark.parametrize("become_user", ["", ORDINARY], ids=["own", "ordinary"])
def test_process_in_namespaces_reaches_only_what_it_may(home: Path, become_user: str, network: str) -> None:
    """It finds no process, attribute or socket outside, and changes none inside of readable directories. Its writable
    directories, temporary directories and its own loopback interface work. A process that it leaves ends with it.
    """
    with ExitStack() as stack:
        abstract = f"limnos-{uuid4().hex}"
        for name in (str(home / "socket"), f"\0{abstract}"):
            listener = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            listener.bind(name)
            listener.listen()
        (home / "socket").chmod(0o777)
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        arguments = [str(os.getpid()), str(home), abstract, str(server.getsockname()[1]), network]
        script = SCRIPT.replace("BECOME_USER", become_user)
        done = subprocess.run([sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=False)
        # `run` returns at the end of the output: no process that is left holds it

    assert done.returncode == 0, done.stderr
    outcomes = json.loads(done.stdout)
    ok = {name: outcomes.pop(name) for name in ("read", "link", "write", "own data", "own network")}
    assert ok == {"read": "text", "link": "text", "write": "1", "own data": "1", "own network": "connected"}
    assert outcomes.pop("host network") == ("connected" if network == "on" else "ConnectionRefusedError")
    assert outcomes.pop("abstract") == ("connected" if network == "on" else "ConnectionRefusedError")
    assert outcomes.pop("processes") == "2"
    assert outcomes.pop("list") == "['own']"
    for name in ("prlimit", "kill", "affinity"):
        assert outcomes.pop(name) == "ProcessLookupError", name
    for name in ("stat", "beside", "shut", "socket"):
        assert outcomes.pop(name) == "FileNotFoundError", name
    assert set(outcomes.values()) <= {"OSError", "PermissionError"}, outcomes
    assert not (home / "data" / "x").exists(), "it was written to a directory of the process's own tree"
    assert set(outcomes) == {"chmod", "utime", "setxattr", "write shut", "root", "kernel"}
