# SPDX-License-Identifier: Apache-2.0
"""The asking side: a command is answered by the user's helper process, or does its work itself.

No answer is printed before it is complete. Whatever goes wrong with the helper, the command does the work itself, and
only says so if the user asked for the helper. Ctrl-C ends the helper's work, too.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Annotated, Final, Literal, TextIO

from cyclopts import Parameter

from limnos.cli.command_line import typed_tokens
from limnos.cli.common import CommonFlags
from limnos.cli.failures import StoppedError, UsageError
from limnos.rooms.pipelines.cli.helper.directory import DirectoryRefused, HelperDirectory, open_directory
from limnos.rooms.pipelines.cli.helper.identity import CREDENTIALS, fingerprint, helper_key
from limnos.rooms.pipelines.cli.helper.protocol import (
    Answer,
    Kind,
    ProtocolError,
    Request,
    decode_answer,
    encode_words,
    peer_user,
    receive,
    send,
)

HelperFlag = Annotated[
    bool | None,
    Parameter(
        env_var="LIMNOS_PIPELINE_HELPER",
        help="Use a resident helper process, which keeps Java running; the default is yes on a terminal.",
    ),
]
HELPER_PROCESS: Final = "__pipeline-helper__"
"""The first argument of a helper process; the key and the idle time in seconds follow."""
_IDLE_S = 300.0
_START_S = 60.0
_LOCKED_S = 5.0
_SILENCE_S = 20.0
_POLL_S = 0.02
_LOCKED = 3
ENTRY: Final = "import sys; from limnos.cli.main import main; sys.exit(main())"
"""The program of a process with the command line."""
_STARTED: list[subprocess.Popen[bytes]] = []
"""Helpers that this process has started; they outlive it."""
_SPARK_OF_USER = ("SPARK_CONF_DIR", "SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "PYSPARK_GATEWAY_PORT")
"""Variables with which Spark's settings are not only ours: such a Spark is started for each command."""


class _Retry(Exception):
    """Raised if the helper has ended, or is of other code: a new one may answer."""


class _NoAnswer(Exception):
    """Raised if the helper does not answer, with the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HelperWish:
    """Whether a command uses the helper: `flag` is the user's word, None without one.

    `default` says when it is used without a word. `is_live` passes the standard streams on: the command prints while it
    runs, and is not done again if the helper ends.
    """

    flag: bool | None
    default: Literal["terminal", "never", "always"] = "terminal"
    is_live: bool = False

    def holds(self, environ: Mapping[str, str]) -> bool:
        """Return whether to use the helper. Without the flag it is not used in scripts and builds, which run once."""
        if sys.platform != "linux" or HELPER_PROCESS in sys.orig_argv:
            return False
        if self.flag is not None:
            return self.flag
        on_terminal = self.default == "terminal" and sys.stdout.isatty() and not environ.get("CI")
        return on_terminal or self.default == "always"


def answer(wish: HelperWish, *, common: CommonFlags, master: str | None = None) -> int | None:
    """Let the helper answer the command line that runs, and print its answer.

    Args:
        wish: Whether to use the helper.
        common: The server and the credential, which select the helper.
        master: The Spark master of a command that needs a session.

    Returns:
        The exit code; None if the command must do its work itself.
    """
    tokens = typed_tokens.get()
    if not tokens or not wish.holds(os.environ):
        return None
    result = ask(tokens, wish=wish, common=common, master=master)
    if result is None:
        return None
    _write(sys.stderr, result.errors)
    _write(sys.stdout, result.output)
    return result.exit_code


def ask(tokens: Sequence[str], *, wish: HelperWish, common: CommonFlags, master: str | None = None) -> Answer | None:
    """Let the helper answer a command line. Returns None if it does not; says why if the user asked for the helper.

    Raises StoppedError if it ends during a live command.
    """
    try:
        return _ask(tokens, wish=wish, common=common, master=master)
    except (_NoAnswer, _Retry, DirectoryRefused, ProtocolError, OSError) as error:
        if wish.flag:
            reason = str(error) or type(error).__name__
            print(f"note: without the helper process: {reason}", file=sys.stderr)
        return None


def _ask(tokens: Sequence[str], *, wish: HelperWish, common: CommonFlags, master: str | None) -> Answer:
    if find_spec("pyspark") is None:
        raise _NoAnswer("PySpark is not installed")
    if master is not None and not master.startswith("local"):
        raise _NoAnswer(f"it has no Spark for {master}")
    if master is not None and (name := next((each for each in _SPARK_OF_USER if each in os.environ), None)):
        raise _NoAnswer(f"{name} is set")
    try:
        access = common.access_identity(os.environ)
    except (UsageError, StoppedError):
        raise _NoAnswer("the credential is not clear") from None
    request = _request(tokens, is_live=wish.is_live)
    with closing(open_directory(os.environ)) as directory:
        key = helper_key(directory.secret(), environ=os.environ, access=access)
        try:
            return _converse(_connect(directory, key), request, wish=wish)
        except _Retry:
            return _converse(_connect(directory, key), request, wish=wish)


def _request(tokens: Sequence[str], *, is_live: bool) -> Request:
    is_terminal = (sys.stdout.isatty(), sys.stderr.isatty())
    size = None
    with suppress(OSError, ValueError):
        size = os.get_terminal_size(sys.stdout.fileno()) if is_terminal[0] else None
    umask = os.umask(0o077)
    os.umask(umask)
    return Request(
        fingerprint=fingerprint(),
        tokens=encode_words(tokens),
        argv=encode_words(sys.argv),
        search_path=encode_words(sys.path),
        environment=tuple(os.environb.items()),
        umask=umask,
        is_terminal=is_terminal,
        columns=None if size is None else size.columns,
        lines=None if size is None else size.lines,
        is_live=is_live,
    )


def _connect(directory: HelperDirectory, key: str) -> socket.socket:
    """Connect to the helper, and start it if there is none. Raises _NoAnswer."""
    deadline = time.monotonic() + _START_S
    process: subprocess.Popen[bytes] | None = None
    while time.monotonic() < deadline:
        peer = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        peer.settimeout(_SILENCE_S if process is None else _START_S)  # a full queue is refused at once
        try:
            peer.connect(directory.address(key))
            if peer_user(peer) != os.geteuid():
                raise _NoAnswer("its process is of another user")
        except (FileNotFoundError, ConnectionRefusedError):
            peer.close()
        except BaseException:
            peer.close()
            raise
        else:
            return peer
        if process is None:
            process = _start(key)
        elif (code := process.poll()) is not None:
            if code != _LOCKED:
                raise _NoAnswer("it did not start" if code != _LOCKED + 1 else "four helpers run already")
            deadline = min(deadline, time.monotonic() + _LOCKED_S)
        time.sleep(_POLL_S)
    raise _NoAnswer("it did not start in time")


def _start(key: str) -> subprocess.Popen[bytes]:
    flags: list[str] = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # noqa: SLF001
    idle_s = os.environ.get("LIMNOS_PIPELINE_HELPER_IDLE_S", "")
    with suppress(ValueError):
        idle_s = str(max(1.0, float(idle_s)))
    process = subprocess.Popen(
        [sys.executable, *flags, "-P", "-c", ENTRY, HELPER_PROCESS, key, idle_s or str(_IDLE_S)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={name: value for name, value in os.environ.items() if name not in CREDENTIALS},
        start_new_session=True,
    )
    _STARTED.append(process)
    return process


def _converse(peer: socket.socket, request: Request, *, wish: HelperWish) -> Answer:
    """Send the request and wait for its answer. Raises _Retry before the helper has accepted it, else _NoAnswer."""
    is_accepted = False
    with closing(peer):
        streams = _standard_streams() if request.is_live else []
        try:
            send(peer, Kind.REQUEST, document=request, descriptors=streams)
            while True:
                kind, body = _next_message(peer, is_live=request.is_live and is_accepted)
                if kind is Kind.DONE:
                    return decode_answer(body)
                if kind is Kind.STALE:
                    raise _Retry("its code is not that of the installed files")
                if kind is Kind.FAILED:
                    raise _NoAnswer("it could not run the command")
                if kind is Kind.WAITING and (wish.flag or sys.stderr.isatty()):
                    print("waiting: the helper process answers another command", file=sys.stderr)
                is_accepted = True
                peer.settimeout(_SILENCE_S)
        except (ProtocolError, OSError, _NoAnswer) as error:
            if not is_accepted and not isinstance(error, TimeoutError):
                raise _Retry(str(error)) from error
            if request.is_live and is_accepted:
                hint = "look at 'limnos list runs', then resume the run with 'limnos pipeline resume RUN'"
                raise StoppedError("the helper process ended before the command did", hint=hint) from error
            raise _NoAnswer(str(error) or "it did not answer") from error


def _standard_streams() -> list[int]:
    """Return the descriptors of the standard streams. Raises _NoAnswer if one is closed or replaced."""
    try:
        return [each.fileno() for each in (sys.stdin, sys.stdout, sys.stderr)]
    except (AttributeError, OSError, ValueError):
        raise _NoAnswer("a standard stream is closed") from None


def _next_message(peer: socket.socket, *, is_live: bool) -> tuple[Kind, bytes]:
    """Receive a message. Ctrl-C is passed on to a live command, which ends by itself."""
    while True:
        try:
            kind, body, _ = receive(peer)
        except KeyboardInterrupt:
            if not is_live:
                raise
            send(peer, Kind.INTERRUPT)
        else:
            return kind, body


def _write(stream: TextIO, data: bytes) -> None:
    """Write bytes to a standard stream, which tests and callers may have replaced by text."""
    stream.flush()
    buffer = getattr(stream, "buffer", None)
    if buffer is None:
        stream.write(data.decode("utf-8", "backslashreplace"))
    else:
        buffer.write(data)
    stream.flush()
