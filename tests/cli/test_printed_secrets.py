# SPDX-License-Identifier: Apache-2.0
"""No command prints a secret, in any of its failures. Expected failures print no traceback.

Each command fails in one way here; with LIMNOS_TEST_SECRETS=all every command fails in every way.
"""

from __future__ import annotations

import errno
import gc
import inspect
import io
import json
import logging
import os
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cyclopts import App

from limnos.cli import command_tree, common, main
from limnos.config.report import variable_name
from limnos.telemetry import logs
from tests.client.test_session import free_port
from tests.config.test_secrets import PLANTED
from tests.installed import has_room

TOKEN = "lim_7_planted-token-of-a-caller"
SECRETS = (TOKEN, "planted-flag", "planted-property", *(each for _, parts in PLANTED.values() for each in parts))
WHOLE = os.environ.get("LIMNOS_TEST_SECRETS") == "all"
Break = Callable[[pytest.MonkeyPatch, Path], list[str]]


def commands() -> list[tuple[str, ...]]:
    """Every executable command, by its words."""
    command_list: list[tuple[str, ...]] = []

    def walk(app: App, words: tuple[str, ...]) -> None:
        names = [name for name in app if not name.startswith("-")]
        if not names or app.default_command is not None:
            command_list.append(words)
        for name in names:
            walk(app[name], (*words, name))

    for name in command_tree.COMMANDS:
        walk(command_tree.build(name)[name], (name,))
    return command_list


COMMANDS = commands()


def arguments(words: tuple[str, ...]) -> list[str]:
    """Return a value for each required argument of a command."""
    app = command_tree.build(words[0])
    for word in words:
        app = app[word]
    called = app.default_command
    if called is None:
        return []
    parameters = inspect.signature(called).parameters
    needed = [
        each
        for each in parameters.values()
        if each.kind in {each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD} and each.default is each.empty
    ]
    return ["nowhere"] * len(needed)


@pytest.fixture(autouse=True)
def _logs() -> Iterator[None]:
    """Restore the log handlers, which commands replace."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    logs._configure_least()


@contextmanager
def answering(answer: Callable[[BaseHTTPRequestHandler], tuple[int, bytes]]) -> Iterator[str]:
    """Serve the same answer for every request."""

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            status, body = answer(self)
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = _answer  # noqa: N815 - as the library calls them

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def echo(request: BaseHTTPRequestHandler) -> tuple[int, bytes]:
    """Answer with an error that contains the whole request."""
    message = f"no: {request.path} {dict(request.headers)} postgresql://u:planted-password@h/d"
    return 500, json.dumps(
        {"code": 1002, "type": "RuntimeException", "message": message, "error": {"message": message, "code": 500}}
    ).encode()


@pytest.fixture(scope="module")
def echoing() -> Iterator[str]:
    """A server whose answers repeat the request."""
    with answering(echo) as uri:
        yield uri


@pytest.fixture(scope="module")
def babbling() -> Iterator[str]:
    """A server that is not Limnos, and repeats the credential."""
    with answering(lambda request: (200, f"<html>{request.headers['authorization']}".encode())) as uri:
        yield uri


def _raise(error: Exception) -> Callable[..., object]:
    def call(*_: object, **__: object) -> object:
        raise error

    return call


def _both(patch: pytest.MonkeyPatch, error: Exception) -> None:
    """Replace a function with one that raises, for clients and for settings."""
    patch.setattr(common.CommonFlags, "client", _raise(error))
    patch.setattr("limnos.config.load", _raise(error))


def _unforeseen(patch: pytest.MonkeyPatch, _folder: Path) -> list[str]:
    _both(patch, KeyError(f"{TOKEN} planted-password"))
    return []


def _disk(patch: pytest.MonkeyPatch, folder: Path) -> list[str]:
    _both(patch, OSError(errno.ENOSPC, f"No space left on device of {TOKEN}", str(folder)))
    return []


def _setting(name: str, value: str) -> Break:
    def planted(patch: pytest.MonkeyPatch, _folder: Path) -> list[str]:
        patch.setenv(name, value)
        return []

    return planted


def _file(patch: pytest.MonkeyPatch, folder: Path) -> list[str]:
    (folder / "profiles.json").write_text('{"used": "planted-property", "profiles": {"planted')
    (folder / "profiles.json").chmod(0o600)
    patch.setenv("LIMNOS_PROFILES", str(folder / "profiles.json"))
    patch.delenv("LIMNOS_TOKEN")
    patch.delenv("LIMNOS_URI")
    return []


def _directory(patch: pytest.MonkeyPatch, folder: Path) -> list[str]:
    (folder / "file").write_text("x")
    patch.setenv("LIMNOS__SERVER__DATA", str(folder / "file"))
    return []


def _words(*words: str) -> Break:
    return lambda _patch, _folder: list(words)


BREAKS: dict[str, Break] = {
    "server away": _words(),
    "unknown flag": _words("--databse=postgresql://ana:planted-password@h/d", "--tokn", "x", "--token=planted-flag"),
    "too many words": _words("x", "x", "x", "x", "x", "postgresql://ana:planted-password@h/d"),
    "wrong value": _words(
        "--timeout", "postgresql://ana:planted-password@h/d", "--property", "s3.secret-access-key=planted-property"
    ),
    "two credentials": _words("--token", "planted-flag", "--user", "ana"),
    "wrong setting": _setting("LIMNOS__DATABASE__POOL_MAX", "none"),
    "wrong database": _setting("LIMNOS__DATABASE__URL", "postgresql://ana:planted-password/x@127.0.0.1:9/lake"),
    "file in the way": _directory,
    "broken file": _file,
    "disk full": _disk,
    "unforeseen": _unforeseen,
    "server echoes": _words("ECHO"),
    "server babbles": _words("BABBLE"),
    "no TLS": _words("TLS"),
}
"""Ways in which commands fail: invalid settings, arguments, files and servers."""
CASES = [(words, name) for words in COMMANDS for name in BREAKS]
ALONE = {("demo",), ("spark", "jars")}
"""Commands that need no server, settings or credential, and so fail only by their arguments."""
if not WHOLE:
    CASES = [(words, list(BREAKS)[at % len(BREAKS)]) for at, words in enumerate(COMMANDS)]


@pytest.mark.parametrize("words,how", CASES, ids=lambda each: " ".join(each) if isinstance(each, tuple) else each)
def test_a_failing_command_prints_no_secret(  # noqa: PLR0917 - of pytest
    words: tuple[str, ...],
    how: str,
    echoing: str,
    babbling: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """The output of a failing command contains no secret, on any stream. Only unexpected exceptions print a
    traceback.
    """
    if words == ("export",) and how == "server babbles":
        how = "server echoes"  # `export` writes the server's answer unchanged
    if words in ALONE and how not in {"unknown flag", "too many words"}:
        how = "unknown flag"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    if has_room("pipelines"):  # waits for no server
        monkeypatch.setattr("limnos.pipeline.run.retries.RetryPolicy.call", lambda _, request: request())
    for key, (value, _) in PLANTED.items():
        monkeypatch.setenv(variable_name(key), value)
    monkeypatch.setenv("LIMNOS_TOKEN", TOKEN)
    monkeypatch.setenv("LIMNOS_URI", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("LIMNOS__SERVER__LISTEN", f"127.0.0.1:{free_port()}")
    more = BREAKS[how](monkeypatch, tmp_path)
    uris = {"ECHO": echoing, "BABBLE": babbling, "TLS": babbling.replace("http:", "https:")}
    if more and more[0] in uris:
        monkeypatch.setenv("LIMNOS_URI", uris[more.pop()])

    code = main.main([*words, *arguments(words), *more])
    if words == ("server", "start"):  # sockets that would otherwise be closed at the end of the process
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()

    output = "".join(capfd.readouterr())
    assert [secret for secret in SECRETS if secret in output] == []
    assert ("Traceback" in output) <= (how == "unforeseen"), output
    if how in {"unknown flag", "too many words"}:
        assert code != 0


def test_command_list_covers_every_group() -> None:
    """The list of commands contains the commands of every group."""
    assert len(COMMANDS) > 90
    assert {words[0] for words in COMMANDS} == set(command_tree.COMMANDS)
