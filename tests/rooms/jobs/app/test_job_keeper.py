# SPDX-License-Identifier: Apache-2.0
"""The keeper of a job as root and as an ordinary user, and on a machine that allows no namespaces."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from limnos.rooms.jobs.app.job_keeper import EXITED, JobCommand, JobExit, JobLimits
from limnos.sources.wire import COUNT, LENGTH, pack

NOBODY = 65534
ORDINARY = f"import os\nos.setgroups([])\nos.setgid({NOBODY})\nos.setuid({NOBODY})\n" if os.geteuid() == 0 else ""
"""Code that makes the keeper an ordinary user's process."""
NO_NAMESPACES = """
from pathlib import Path
from limnos.confinement import namespaces
namespaces._enter_user_namespace(0, "user namespaces")
for kind in ("pid", "user"):
    Path(f"/proc/sys/user/max_{kind}_namespaces").write_text("0", encoding="utf-8")
"""
"""Code after which the kernel gives the keeper no more namespaces."""
LOOKS = """#!/bin/sh
id -u
ls /proc | grep -c "^[0-9]"
for path in "$1" "$1/token"; do chmod 777 "$path" 2>/dev/null && echo changed; test -e "$path" && echo seen; done
touch "$HOME/own" /tmp/x /dev/shm/x && echo written
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that an ordinary user may read, with a program and the server's data."""
    path = Path(tempfile.mkdtemp(prefix="limnos-keeper-"))
    try:
        for name in ("data", "scratch", "programs"):
            (path / name).mkdir()
        (path / "data" / "token").write_text("secret")
        (path / "programs" / "looks.sh").write_text(LOOKS)
        for each in (path, *path.rglob("*")):
            each.chmod(0o777)
        yield path
    finally:
        shutil.rmtree(path)


def run_keeper(place: Path, setup: str, *, must_be_confined: bool = True) -> JobExit:
    """Let a keeper process run the program of `place` to its end. `setup` is code that runs before."""
    command = JobCommand(
        argv=(str(place / "programs" / "looks.sh"), str(place / "data")),
        environment={"PATH": "/usr/bin:/bin", "HOME": str(place / "scratch")},
        scratch=str(place / "scratch"),
        copies=(),
        readable=(str(place),),
        writable=(),
        closed=(str(place / "data"),),
        user=None,
        must_be_confined=must_be_confined,
        timeout_s=300.0,
        grace_s=1.0,
        output_max=1000,
        limits=JobLimits(network=False),
    )
    code = f"from limnos.rooms.jobs.app.job_keeper import main\n{setup}\nmain()"
    ours, theirs = socket.socketpair()
    with ours, subprocess.Popen([sys.executable, "-c", code], stdin=theirs) as keeper:
        theirs.close()
        ours.sendall(pack([msgspec.msgpack.encode(command)]))
        with ours.makefile("rb") as answers:
            answers.read(COUNT.size)
            (size,) = LENGTH.unpack(answers.read(LENGTH.size))
            job_exit = msgspec.msgpack.decode(answers.read(size), type=JobExit)
        assert keeper.wait() == 0
    return job_exit


@pytest.mark.parametrize("setup", ["", ORDINARY], ids=["own", "ordinary"])
def test_job_sees_no_files_and_processes_of_server(place: Path, setup: str) -> None:
    """A job of root's server and of an ordinary user's server sees its own processes, its directory and its program,
    and no file of the server's data.
    """
    job_exit = run_keeper(place, setup)

    assert (job_exit.why, job_exit.exit_code) == (EXITED, 0), job_exit
    user, processes, *others = job_exit.stdout.decode().split()
    assert user == str(NOBODY if setup else os.geteuid())
    assert int(processes) <= 5, "the first process, the shell, ls, grep"
    assert others == ["seen", "written"], "the closed directory is an empty one that cannot be changed"


def test_job_is_refused_on_a_machine_without_namespaces(place: Path) -> None:
    """If the kernel gives no namespaces, the job does not start: its message says what is missing and names the setting
    that allows it. With that setting the job runs.
    """
    refused_exit = run_keeper(place, NO_NAMESPACES)
    job_exit = run_keeper(place, NO_NAMESPACES, must_be_confined=False)

    assert refused_exit.exit_code is None
    assert "this machine does not allow" in refused_exit.why
    assert "user.max_user_namespaces" in refused_exit.why
    assert "jobs.confined" in refused_exit.why
    assert (job_exit.why, job_exit.exit_code) != (EXITED, None)
