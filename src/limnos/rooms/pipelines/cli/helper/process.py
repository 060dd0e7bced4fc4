# SPDX-License-Identifier: Apache-2.0
"""The helper process: it waits for requests, and answers one after the other by a fork of itself.

It has one thread, no connection to a server or a machine, and no output. It ends when it was idle for some minutes,
when its socket was removed, and when the installed files have changed. Machines end with it, because it holds their
standard inputs. Must not know what a command does.
"""

from __future__ import annotations

import importlib
import os
import selectors
import signal
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from limnos.rooms.pipelines.cli.helper.child import ChildFiles, Execute, read_reports, run_request
from limnos.rooms.pipelines.cli.helper.directory import DirectoryRefused, HelperDirectory, open_directory
from limnos.rooms.pipelines.cli.helper.identity import are_unchanged, fingerprint, loaded_files
from limnos.rooms.pipelines.cli.helper.protocol import (
    LENGTH_MAX,
    Answer,
    Kind,
    ProtocolError,
    Request,
    close_all,
    decode_request,
    peer_user,
    receive,
    send,
)

if TYPE_CHECKING:
    from limnos.spark.machine import MachineAddress

LOCKED = 3
"""The exit code if another helper has this key."""
FULL = 4
"""The exit code if the user has as many helpers as are allowed."""
_HELPERS_MAX = 4
_QUEUE_MAX = 16
_READ_S = 5.0
_ALIVE_S = 2.0
_GRACE_S, _LIVE_GRACE_S = 3.0, 120.0
"""How long an abandoned command may take to end: a live one drops its branches."""
_USES_MAX = 200
"""A machine is replaced after so many commands."""
_PRELOADED = (
    "limnos.cli.command_tree",
    "limnos.rooms.pipelines.cli.pipeline_checks",
    "limnos.rooms.pipelines.cli.pipelines",
    "limnos.cli.hints.failed_calls",
    "limnos.client",
    "limnos.pipeline.file",
    "limnos.pipeline.environments",
    "limnos.pipeline.checks",
    "limnos.pipeline.plan",
    "limnos.pipeline.engine.launch",
    "limnos.pipeline.engine.preview",
    "limnos.pipeline.run.options",
    "py4j.java_gateway",
    "pyspark.sql",
)
_PRELOADED_IF_INSTALLED = "pyspark.testing"
"""What PySpark imports at the first value that it passes to Java: with it pandas, if that is installed."""


@dataclass(slots=True)
class _Machine:
    """A machine that a fork has started. It ends when `standard_input` is closed."""

    address: MachineAddress
    standard_input: int
    uses: int = 0


@dataclass(slots=True, kw_only=True)
class _Task:
    """A request, and the fork that answers it once it has begun."""

    peer: socket.socket
    request: Request
    descriptors: list[int]
    pid: int = 0
    pidfd: int = -1
    report: int = -1
    captured: tuple[int, int] = (-1, -1)
    machine_pipes: dict[str, int] = field(default_factory=dict)
    kill_at: float | None = None


class HelperProcess:
    """The helper of a key. `serve` returns when it ends."""

    def __init__(self, directory: HelperDirectory, key: str, *, idle_s: float, execute: Execute) -> None:
        self._directory, self._key, self._idle_s, self._execute = directory, key, idle_s, execute
        self._selector = selectors.DefaultSelector()
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._queue: deque[_Task] = deque()
        self._active: _Task | None = None
        self._machines: dict[str, _Machine] = {}
        self._fingerprint = ""
        self._files: dict[str, str] = {}
        self._is_ending = False
        self._lock = -1
        self._inode: int | None = None
        self._last_use = time.monotonic()

    def serve(self, lock: int) -> None:
        """Answer requests until the end. `lock` is held while the socket is there."""
        self._lock = lock
        self._directory.remove_socket(self._key)
        self._listener.bind(self._directory.address(self._key))
        self._listener.listen(_QUEUE_MAX)
        self._inode = self._directory.socket_inode(self._key)
        self._fingerprint = fingerprint()
        for name in _PRELOADED:
            importlib.import_module(name)
        with suppress(ImportError):
            importlib.import_module(_PRELOADED_IF_INSTALLED)
        self._files = loaded_files()
        if fingerprint() != self._fingerprint:
            return
        self._selector.register(self._listener, selectors.EVENT_READ, self._accept)
        self._last_use = time.monotonic()
        while not self._is_over():
            for event, _ in self._selector.select(timeout=_ALIVE_S):
                callback: Callable[[], None] = event.data
                callback()
            self._tick()

    def close(self) -> None:
        """Give up the socket and the key, and end the machines."""
        self._stop_listening()
        for name in list(self._machines):
            self._drop_machine(name)

    def _is_over(self) -> bool:
        if self._active is not None or self._queue:
            return False
        if time.monotonic() - self._last_use > self._idle_s:
            return True
        return self._is_ending or self._directory.socket_inode(self._key) != self._inode

    def _accept(self) -> None:
        peer, _ = self._listener.accept()
        peer.settimeout(_READ_S)
        try:
            if peer_user(peer) != os.geteuid():
                raise ProtocolError("another user")
            kind, body, descriptors = receive(peer)
        except (ProtocolError, OSError):
            peer.close()
            return
        try:
            if kind is not Kind.REQUEST:
                raise ProtocolError("not a request")
            request = decode_request(body)
            if len(descriptors) != (3 if request.is_live else 0):
                raise ProtocolError("a request with the wrong number of files")
        except ProtocolError:
            close_all(descriptors)
            peer.close()
            return
        self._enter(_Task(peer=peer, request=request, descriptors=descriptors))

    def _enter(self, task: _Task) -> None:
        """Queue a request, or refuse it: one with other code ends this helper."""
        if task.request.fingerprint != self._fingerprint or not are_unchanged(self._files):
            self._stop_listening()
            self._finish(task, Kind.STALE)
        elif len(self._queue) >= _QUEUE_MAX:
            self._finish(task, Kind.FAILED)
        else:
            self._queue.append(task)
            self._selector.register(task.peer, selectors.EVENT_READ, lambda: self._read_task(task))
            self._tell(task, Kind.ACCEPTED)
            if self._active is not None:
                self._tell(task, Kind.WAITING)
            self._start_next()

    def _stop_listening(self) -> None:
        """Give up the socket and the key, so that a new helper can begin while the last requests are answered."""
        if self._is_ending:
            return
        self._is_ending = True
        with suppress(KeyError):
            self._selector.unregister(self._listener)
        self._listener.close()
        if self._directory.socket_inode(self._key) == self._inode:
            self._directory.remove_socket(self._key)
        self._directory.unlock(self._key, self._lock)

    def _start_next(self) -> None:
        if self._active is not None or not self._queue:
            return
        task = self._active = self._queue.popleft()
        report, task_report = os.pipe()
        pipes = {name: os.pipe() for name in ("parser", "spark")}
        streams = task.descriptors or [os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), *_memory_files()]
        addresses = {name: each.address for name, each in self._machines.items()}
        helper = os.getpid()
        task.pid = os.fork()
        if task.pid == 0:
            os.setpgid(0, 0)
            self._selector.close()
            for peer in (self._listener, task.peer, *(each.peer for each in self._queue)):
                peer.close()
            files = ChildFiles(
                standard_input=streams[0],
                output=streams[1],
                errors=streams[2],
                report=task_report,
                machine_inputs={name: pipe[0] for name, pipe in pipes.items()},
            )
            run_request(task.request, helper=helper, files=files, addresses=addresses, execute=self._execute)
        close_all([task_report, streams[0], *(pipe[0] for pipe in pipes.values())])
        if task.request.is_live:
            close_all(streams[1:])
        else:
            task.captured = (streams[1], streams[2])
        task.descriptors = []
        task.report = report
        task.machine_pipes = {name: pipe[1] for name, pipe in pipes.items()}
        task.pidfd = os.pidfd_open(task.pid)
        self._selector.register(task.pidfd, selectors.EVENT_READ, lambda: self._end_task(task))

    def _read_task(self, task: _Task) -> None:
        """Pass the asking process's signal on; if it has gone, end the command."""
        try:
            kind, _, descriptors = receive(task.peer)
            close_all(descriptors)
        except (ProtocolError, OSError):
            self._abandon(task)
            return
        number = {Kind.INTERRUPT: signal.SIGINT, Kind.TERMINATE: signal.SIGTERM}.get(kind)
        if number is None:
            self._abandon(task)
        elif task.pid:
            _kill(task, number)

    def _abandon(self, task: _Task) -> None:
        self._selector.unregister(task.peer)
        if task is not self._active:
            self._queue.remove(task)
            close_all(task.descriptors)
            task.peer.close()
            return
        is_live = task.request.is_live
        _kill(task, signal.SIGTERM if is_live else signal.SIGINT)
        task.kill_at = time.monotonic() + (_LIVE_GRACE_S if is_live else _GRACE_S)

    def _tick(self) -> None:
        now = time.monotonic()
        task = self._active
        if task is None:
            return
        if task.kill_at is not None and now > task.kill_at:
            _kill(task, signal.SIGKILL)
        if now - self._last_use >= _ALIVE_S:
            self._last_use = now
            for each in (task, *self._queue):
                if each.kill_at is None:
                    self._tell(each, Kind.ALIVE)

    def _tell(self, task: _Task, kind: Kind, *, document: object = None) -> None:
        """Send a message; a process that has gone, or does not read, is noticed by its connection's end."""
        try:
            send(task.peer, kind, document=document)
        except (OSError, ProtocolError):
            with suppress(OSError):
                task.peer.shutdown(socket.SHUT_RDWR)

    def _end_task(self, task: _Task) -> None:
        """Take the result of a fork that has ended, answer, and begin with the next request."""
        from limnos.spark.machine import MachineAddress

        self._selector.unregister(task.pidfd)
        os.close(task.pidfd)
        if not task.request.is_live:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(task.pid, signal.SIGKILL)  # processes that the command has left
        _, status = os.waitpid(task.pid, 0)
        reports = read_reports(_read_all(task.report))
        code = next((each.exit_code for each in reports if each.exit_code is not None), None)
        is_whole = status == 0 and code is not None
        for one in reports:
            if one.machine in task.machine_pipes:
                self._drop_machine(one.machine)
                address = MachineAddress(one.port, one.secret, one.settings)
                self._machines[one.machine] = _Machine(address, task.machine_pipes.pop(one.machine))
        close_all(list(task.machine_pipes.values()))
        for name, each in list(self._machines.items()):
            each.uses += 1
            if not is_whole or each.uses >= _USES_MAX:
                self._drop_machine(name)
        answer = _answer_of(task, code) if is_whole and code is not None else None
        close_all([each for each in task.captured if each >= 0])
        if task.kill_at is None:
            self._selector.unregister(task.peer)
        self._active = None
        self._last_use = time.monotonic()
        self._finish(task, Kind.FAILED if answer is None else Kind.DONE, document=answer)
        self._start_next()

    def _drop_machine(self, name: str) -> None:
        machine = self._machines.pop(name, None)
        if machine is not None:
            os.close(machine.standard_input)

    def _finish(self, task: _Task, kind: Kind, *, document: object = None) -> None:
        self._tell(task, kind, document=document)
        close_all(task.descriptors)
        task.peer.close()


def serve(arguments: Sequence[str], execute: Execute) -> int:
    """Be the helper process of a key until it ends. Returns its exit code."""
    key, idle_s = arguments[0], float(arguments[1])
    os.umask(0o077)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        directory = open_directory(os.environ)
    except (DirectoryRefused, OSError):
        return 1
    lock = directory.lock(key)
    if lock is None:
        return LOCKED
    if not any(directory.lock(f"slot-{number}") is not None for number in range(_HELPERS_MAX)):
        return FULL
    helper = HelperProcess(directory, key, idle_s=idle_s, execute=execute)
    try:
        helper.serve(lock)
    finally:
        helper.close()
    return 0


def _memory_files() -> list[int]:
    return [os.memfd_create(name, os.MFD_CLOEXEC) for name in ("limnos-output", "limnos-errors")]


def _answer_of(task: _Task, exit_code: int) -> Answer | None:
    """Return the answer with the captured output; None if it is too long."""
    if task.request.is_live:
        return Answer(exit_code=exit_code)
    if sum(os.fstat(each).st_size for each in task.captured) > LENGTH_MAX - 4096:
        return None
    output, errors = (_read_whole(each) for each in task.captured)
    return Answer(exit_code=exit_code, output=output, errors=errors)


def _read_whole(descriptor: int) -> bytes:
    with os.fdopen(os.dup(descriptor), "rb") as file:
        file.seek(0)
        return file.read()


def _read_all(descriptor: int) -> bytes:
    """Read what a pipe has now, and close it: another process may still hold its other end."""
    os.set_blocking(descriptor, False)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        return file.read(1 << 16) or b""


def _kill(task: _Task, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        if number is signal.SIGKILL:
            os.killpg(task.pid, number)
        else:
            os.kill(task.pid, number)
