# SPDX-License-Identifier: Apache-2.0
"""One command in a fork of the helper process, with the asking process's streams, environment and arguments.

Modules that a pipeline imports end with the fork, so the next command reads the files as they are then. The fork
reports to the helper by a pipe: machines that it started, and the exit code of a command that came to its end.
"""

from __future__ import annotations

import ctypes
import io
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

import msgspec

from limnos.rooms.pipelines.cli.helper.protocol import Request, decode_words

if TYPE_CHECKING:
    from limnos.spark.machine import MachineAddress, MachineLoan

Execute = Callable[[Sequence[str]], int]
"""Runs a command line. Raises unexpected errors."""
_PR_SET_PDEATHSIG = 1


class Report(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of the pipe: a machine that was started, or the exit code of the command."""

    machine: str | None = None
    port: int = 0
    secret: str = ""
    settings: str = ""
    exit_code: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChildFiles:
    """Open files of the fork: where output and errors go, the pipe of its reports, and input for new machines."""

    standard_input: int
    output: int
    errors: int
    report: int
    machine_inputs: Mapping[str, int]


class _Stream(io.TextIOWrapper):
    """A standard stream of the asking process, which may be a terminal although the output is kept until the end."""

    is_terminal = False

    def isatty(self) -> bool:
        return self.is_terminal


def run_request(
    request: Request,
    *,
    helper: int,
    files: ChildFiles,
    addresses: Mapping[str, MachineAddress],
    execute: Execute,
) -> NoReturn:
    """Run the command of a request, report, and end this process. Exit code 0 means that it came to its end.

    `helper` is the id of the process that forked this one.
    """
    from limnos.spark import machine

    try:
        _die_with(helper, signal.SIGTERM if request.is_live else signal.SIGKILL)
        _take_over(request, files)
        machine.lend(**{name: _machine_loan(name, files, address=addresses.get(name)) for name in ("parser", "spark")})
        exit_code = _exit_code(decode_words(request.tokens), execute)
        sys.stdout.flush()
        sys.stderr.flush()
        if request.is_live or machine.lent_machines_run():
            _report(files.report, Report(exit_code=exit_code))
            os._exit(0)
    except BaseException:  # noqa: BLE001 - the command does the work itself, and reports its own error
        os._exit(1)
    os._exit(1)


def read_reports(data: bytes) -> list[Report]:
    """Decode the lines of a fork's pipe; a line that it could not finish is left out."""
    reports = []
    for line in data.split(b"\n"):
        with suppress(msgspec.DecodeError):
            reports.append(msgspec.json.decode(line, type=Report))
    return reports


def _exit_code(tokens: Sequence[str], execute: Execute) -> int:
    """Run a command line. An interrupted command has come to its end: the parser of arguments exits then."""
    try:
        return execute(tokens)
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else 1


def _report(descriptor: int, report: Report) -> None:
    os.write(descriptor, msgspec.json.encode(report) + b"\n")


def _machine_loan(name: str, files: ChildFiles, *, address: MachineAddress | None) -> MachineLoan:
    from limnos.spark.machine import MachineLoan

    def on_start(started: MachineAddress) -> None:
        report = Report(machine=name, port=started.port, secret=started.secret, settings=started.settings)
        _report(files.report, report)

    return MachineLoan(address, files.machine_inputs[name], on_start)


def _take_over(request: Request, files: ChildFiles) -> None:
    """Give this process the streams, environment and arguments of the asking process."""
    encoding, errors = sys.stdout.encoding, (sys.stdout.errors, sys.stderr.errors)
    for source, target in ((files.standard_input, 0), (files.output, 1), (files.errors, 2)):
        os.dup2(source, target)
    os.umask(request.umask)
    os.environ.clear()
    os.environb.update(request.environment)
    if request.columns is not None:
        os.environ.setdefault("COLUMNS", str(request.columns))
        os.environ.setdefault("LINES", str(request.lines or 24))
    sys.argv[:] = decode_words(request.argv)
    sys.path[:] = decode_words(request.search_path)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 - a descriptor
    sys.stdout = _stream(1, encoding, errors=errors[0], is_terminal=request.is_terminal[0])
    sys.stderr = _stream(2, encoding, errors=errors[1], is_terminal=request.is_terminal[1])
    if (numpy_random := sys.modules.get("numpy.random")) is not None:
        numpy_random.seed()  # else each fork would draw the same numbers; Python's own generator does it by itself
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)


def _stream(descriptor: int, encoding: str, *, errors: str | None, is_terminal: bool) -> _Stream:
    raw = io.FileIO(descriptor, "w", closefd=False)
    stream = _Stream(io.BufferedWriter(raw), encoding=encoding, errors=errors, line_buffering=is_terminal)
    stream.is_terminal = is_terminal
    return stream


def _die_with(helper: int, number: signal.Signals) -> None:
    """Ask the kernel to send this process a signal when the helper ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(number))
    if os.getppid() != helper:
        os._exit(1)
