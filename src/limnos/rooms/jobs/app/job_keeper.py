# SPDX-License-Identifier: Apache-2.0
"""The keeper process of one job: starts it confined, retains the end of its output, and kills its remaining processes.

Must not know stores or templates. It terminates the job on request, at its time limit, and when the server process
ends. The job runs in namespaces of its own (`confinement.namespaces`), whose first process is a child of this process;
all others end with it. On a machine without namespaces, and if the settings allow that, orphaned processes of the job
become children of this process, so that it can kill them.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import resource
import select
import shutil
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, NoReturn

import msgspec

from limnos.confinement.file_rules import SYSTEM, FileRules
from limnos.confinement.file_tree import TEMPORARY
from limnos.confinement.landlock import confine
from limnos.confinement.namespaces import (
    become_user,
    close_network,
    enter_namespaces,
    enter_pid_namespace,
    obstacle,
    obstacle_text,
    run_first_process,
)
from limnos.confinement.system_calls import die_with_parent, drop_capabilities, forbid_new_privileges
from limnos.sources.wire import Wire

ALONE_S: Final = 1.0
"""Seconds that a job has to end after the server has ended."""
PIECE: Final = 1 << 16
_SUBREAPER: Final = 36
_NICE: Final = 10
_WIRE_FD: Final = 0
_SWEEP_S: Final = 2.0
STATUS_BYTES: Final = 4
UNCONFINED: Final = "a job that cannot be confined is refused while jobs.confined is on"


class JobLimits(msgspec.Struct, frozen=True):
    """Resource limits of each process of a job (None: unlimited), and whether it may use the network."""

    memory_bytes: int | None = None
    cpu_s: int | None = None
    file_bytes: int | None = None
    network: bool = True


class JobCommand(msgspec.Struct, frozen=True, kw_only=True):
    """The command of a job, its user, and the paths that it may use. `copies` are files copied into its directory."""

    argv: tuple[str, ...]
    environment: dict[str, str]
    scratch: str
    copies: tuple[str, ...]
    readable: tuple[str, ...]
    writable: tuple[str, ...]
    closed: tuple[str, ...]
    user: str | None
    must_be_confined: bool
    timeout_s: float
    grace_s: float
    output_max: int
    limits: JobLimits = JobLimits()


class JobExit(msgspec.Struct, frozen=True, kw_only=True):
    """The exit of a job's process. `why` is `EXITED`, or the reason why the process was terminated or did not start.

    The exit code is negative after a signal.
    """

    why: str
    exit_code: int | None
    stdout: bytes
    stderr: bytes
    stdout_bytes: int
    stderr_bytes: int


EXITED, CANCELLED, TIMED_OUT, NOT_STARTED = "exited", "cancelled", "timed out", "not started"


class OutputTail:
    """The last bytes of an output stream, and the total count of its bytes."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.total = 0
        self._kept = b""

    def add(self, piece: bytes) -> None:
        """Append a chunk of output, and discard bytes beyond the retained size."""
        self.total += len(piece)
        self._kept = (self._kept + piece)[-self.most :]

    def end(self) -> bytes:
        """Return the retained last bytes."""
        return self._kept


class _ChildProcess(NamedTuple):
    """The first process of a job, or the job itself if it has no namespaces, and the read ends of its pipes."""

    pid: int
    stdout: int
    stderr: int
    status: int
    """The job's status as waitpid returns it (4 bytes), from the first process of its namespace."""


class _Pipes(NamedTuple):
    """The write ends of the pipes of a job that starts."""

    stdout: int
    stderr: int
    failure: int
    status: int


def main() -> None:
    """Run one job's command, and report its exit to the server process."""
    wire = Wire()
    work = msgspec.msgpack.decode(wire.receive()[0], type=JobCommand)
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    streams = {"stdout": OutputTail(work.output_max), "stderr": OutputTail(work.output_max)}
    try:
        child = _start(work)
    except OSError as error:
        why, code = f"{NOT_STARTED}: {error.strerror or error}", None
    else:
        why, code = _watch(child, work, streams=streams)
    out, err = streams["stdout"], streams["stderr"]
    with suppress(OSError):  # the server has ended
        wire.send(
            [
                msgspec.msgpack.encode(
                    JobExit(
                        why=why,
                        exit_code=code,
                        stdout=out.end(),
                        stderr=err.end(),
                        stdout_bytes=out.total,
                        stderr_bytes=err.total,
                    )
                )
            ]
        )


def _start(work: JobCommand) -> _ChildProcess:
    """Fork a child that executes the job as its user, in namespaces of its own.

    Raises OSError if the child cannot start, with the child's reason, or if the machine has no namespaces and the
    settings require them.
    """
    account = None if work.user is None else _account(work.user)
    _prepare_directory(work, account)
    is_isolated = True
    if not work.must_be_confined:
        is_isolated = not obstacle(account, network=work.limits.network)
    if is_isolated:
        try:
            enter_pid_namespace(account)
        except OSError as error:
            raise OSError(error.errno, f"{obstacle_text(error)} ({UNCONFINED})") from None
    reads, writes = zip(*(os.pipe() for _ in _Pipes._fields), strict=True)
    pid = os.fork()
    if pid == 0:
        pipes = _Pipes(*writes)
        with suppress(OSError):  # systems without this file have no preference
            Path("/proc/self/oom_score_adj").write_text("1000", encoding="utf-8")
        if is_isolated:
            _run_isolated(work, account, pipes=pipes)
        _execute(work, account, pipes=pipes, is_isolated=False)
    for end in writes:
        os.close(end)
    out, err, failure, status = reads
    with os.fdopen(failure, "rb") as reader:
        reason = reader.read()
    if reason:
        os.waitpid(pid, 0)
        raise OSError(0, reason.decode(errors="replace"))
    return _ChildProcess(pid, out, err, status)


def _account(name: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(name)
    except KeyError:
        raise OSError(0, f"this machine has no user {name}, the value of jobs.user") from None


def _prepare_directory(work: JobCommand, account: pwd.struct_passwd | None) -> None:
    """Copy files into the job's directory, and make the job's user the owner of the directory and the copies."""
    paths = [Path(work.scratch), *(Path(work.scratch) / Path(each).name for each in work.copies)]
    for source, target in zip(work.copies, paths[1:], strict=True):
        shutil.copyfile(source, target)
        target.chmod(0o700)
    if account is not None:
        for each in paths:
            os.chown(each, account.pw_uid, account.pw_gid)


def _run_isolated(work: JobCommand, account: pwd.struct_passwd | None, *, pipes: _Pipes) -> NoReturn:
    """Enter the job's namespaces as their first process, start the job, and report its status.

    Reports an error over the pipe `failure`. Never returns. Its end ends all processes of the job.
    """
    try:
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, _WIRE_FD)  # the socket to the server is the keeper's
        die_with_parent()
        os.setsid()
        enter_namespaces(_file_rules(work), network=work.limits.network)
        child = os.fork()
        if child == 0:
            _execute(work, account, pipes=pipes, is_isolated=True)
        for end in (pipes.stdout, pipes.stderr, pipes.failure):
            os.close(end)
        os.write(pipes.status, run_first_process(child).to_bytes(STATUS_BYTES, "big"))
    except BaseException as error:  # noqa: BLE001 - the parent reports it
        text = obstacle_text(error) if isinstance(error, OSError) else str(error)
        _report(f"{text} ({UNCONFINED})", pipes.failure)
    finally:
        os._exit(0)


def _execute(work: JobCommand, account: pwd.struct_passwd | None, *, pipes: _Pipes, is_isolated: bool) -> NoReturn:
    """Drop all privileges, confine the process, and execute the job, in the forked child process.

    Reports an error over the pipe `failure`. Never returns.
    """
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (pipes.stdout, 1), (pipes.stderr, 2)):
            os.dup2(source, target)
        os.chdir(work.scratch)
        os.umask(0o077)
        _limit(work.limits)
        if not is_isolated and not work.limits.network:
            close_network(account)
        if account is not None and account.pw_uid != os.geteuid():
            become_user(account)
        drop_capabilities()
        forbid_new_privileges()
        die_with_parent()
        confine(_file_rules(work, temporary=TEMPORARY if is_isolated else ()))
        os.execve(work.argv[0], work.argv, work.environment)  # noqa: S606 - no shell: a program that the settings allow
    except BaseException as error:  # noqa: BLE001 - the parent reports it
        text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        _report(f"{text}: {work.argv[0]}", pipes.failure)
    finally:
        os._exit(127)


def _report(text: str, failure: int) -> None:
    with suppress(OSError):
        os.write(failure, text.encode()[:1000])


def _file_rules(work: JobCommand, temporary: tuple[str, ...] = ()) -> FileRules:
    """Return the files of the job; `temporary` are the temporary directories of its own file tree."""
    return FileRules(
        readable=(*SYSTEM, *work.readable),
        writable=(work.scratch, *work.writable),
        closed=work.closed,
        temporary=temporary,
    )


def _limit(limits: JobLimits) -> None:
    """Limit resources, and give the job a lower priority.

    Raises OSError if the kernel refuses one of them.
    """
    bounds = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_DATA: limits.memory_bytes,
        resource.RLIMIT_CPU: limits.cpu_s,
        resource.RLIMIT_FSIZE: limits.file_bytes,
    }
    for name, most in bounds.items():
        if most is not None:
            hard = resource.getrlimit(name)[1]
            new_limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(name, (new_limit, new_limit))
    os.nice(_NICE)


def _watch(child: _ChildProcess, work: JobCommand, *, streams: dict[str, OutputTail]) -> tuple[str, int | None]:
    """Read the job's output until it has ended, then kill its remaining processes. Returns the reason and the exit
    code.
    """
    poll = select.poll()
    tails = {child.stdout: streams["stdout"], child.stderr: streams["stderr"]}
    for descriptor in (_WIRE_FD, *tails):
        os.set_blocking(descriptor, False)
        poll.register(descriptor, select.POLLIN)
    ending = _JobTermination(child.pid, until=time.monotonic() + work.timeout_s, grace_s=work.grace_s)
    status: int | None = None
    while status is None:
        for descriptor, _ in poll.poll(50):
            if descriptor == _WIRE_FD:
                poll.unregister(descriptor)
                has_server_ended = os.read(descriptor, PIECE) == b""
                ending.begin(CANCELLED, grace_s=ALONE_S if has_server_ended else work.grace_s)
            elif not _read(descriptor, tails[descriptor]):
                poll.unregister(descriptor)
        ending.check_deadlines()
        number, raw = os.waitpid(child.pid, os.WNOHANG)
        status = _exit_code(child, raw) if number else None
    sweep(lambda: [_read(descriptor, tail) for descriptor, tail in tails.items()])
    os.set_blocking(_WIRE_FD, True)
    return ending.why, status


def _exit_code(child: _ChildProcess, raw: int) -> int:
    """Return the job's exit code: as the first process of its namespace wrote it, else of the child itself."""
    status_bytes = os.read(child.status, STATUS_BYTES)
    os.close(child.status)
    return os.waitstatus_to_exitcode(int.from_bytes(status_bytes, "big") if status_bytes else raw)


def _read(descriptor: int, tail: OutputTail) -> bool:
    """Read available output. Returns False at the end of the stream."""
    with suppress(BlockingIOError):
        piece = os.read(descriptor, PIECE)
        tail.add(piece)
        return piece != b""
    return True


class _JobTermination:
    """The state of a job's termination: SIGTERM at the time limit or on request, then SIGKILL after a grace period."""

    def __init__(self, pid: int, *, until: float, grace_s: float) -> None:
        self.pid = pid
        self._grace_s = grace_s
        self.why = EXITED
        self._until = until
        self._kills_at: float | None = None

    def begin(self, why: str, *, grace_s: float) -> None:
        """Send SIGTERM to the job, unless its termination has already begun."""
        if self._kills_at is None:
            self.why, self._kills_at = why, time.monotonic() + grace_s
            self._signal(signal.SIGTERM)

    def check_deadlines(self) -> None:
        """Terminate the job if its time limit has passed, and kill it if the grace period after SIGTERM has passed."""
        now = time.monotonic()
        if now > self._until:
            self.begin(TIMED_OUT, grace_s=self._grace_s)
        if self._kills_at is not None and now > self._kills_at:
            self._signal(signal.SIGKILL)

    def _signal(self, name: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, name)


def sweep(meanwhile: Callable[[], object]) -> None:
    """Kill all remaining processes of the job, which are children of this process, for at most `_SWEEP_S` seconds.

    `meanwhile` is called repeatedly, to read their output.
    """
    until = time.monotonic() + _SWEEP_S
    while time.monotonic() < until:
        meanwhile()
        for pid in _children():
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        try:
            number, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            break
        if not number:
            time.sleep(0.01)
    meanwhile()


def _children() -> list[int]:
    """Return the ids of this process's children."""
    results = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[1]) == os.getpid():
                    results.append(int(entry.name))
    return results


if __name__ == "__main__":
    main()
    sys.exit(0)
