# SPDX-License-Identifier: Apache-2.0
"""`limnos sql` on a terminal with a real server and a real engine, tested by key strokes."""

from __future__ import annotations

import os
import re
import signal
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from tests.integration.live import LiveServer, serving

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.heavy]

PATIENCE_S = 240
ENDED = r"[0-9]\.[0-9]{3} s"
"""The shell's output at the end of a statement."""
MADE = (
    "create dataverse sales.east; create type sales.east.Thing as { id: bigint }; create dataset"
    " sales.east.orders(sales.east.Thing) primary key id;"
)
LONG = "select value n from orders o, range(1, 1000000000) n where n < o.id;"
"""A statement that runs longer than any test waits, in the engine."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    """A server whose engine starts with the first statement over data."""
    with serving(tmp_path_factory.mktemp("shell") / "data") as running:
        yield running


@pytest.fixture
def child(server: LiveServer, tmp_path: Path) -> Iterator[pexpect.spawn[str]]:
    """A shell in a terminal."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.upper().startswith("LIMNOS_")},
        "TERM": "xterm",
        "HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "PROMPT_TOOLKIT_NO_CPR": "1",
    }
    command = ["-m", "limnos.cli.main", "sql", "--uri", server.uri, "--token-file", str(server.data / "admin.token")]
    running = pexpect.spawn(
        sys.executable,
        command,
        env=environment,
        encoding="utf-8",
        timeout=PATIENCE_S,
        dimensions=(40, 160),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # background jobs ignore SIGINT
    )
    running.expect_exact("Ctrl-D exits")
    running.expect_exact("Default>")
    yield running
    running.close(force=True)


def under_way(server: LiveServer) -> bool:
    """Return whether the server runs the long statement."""
    request = urllib.request.Request(
        f"{server.uri}/admin/requests/running", headers={"Authorization": f"Bearer {server.token}"}
    )
    with urllib.request.urlopen(request) as answer:
        return "range(1, 1000000000)" in answer.read().decode()


def test_shell_session_with_completion_cancel_and_history(child: pexpect.spawn[str], server: LiveServer) -> None:
    """DDL and DML over several lines, completion of a name, an underlined error, Ctrl-C that cancels a query but not
    the shell, history.
    """
    child.send(f"{MADE}\r")
    child.expect(ENDED)
    child.send("use sales.east;\r")
    child.expect(ENDED)
    child.expect_exact("sales.east>")
    child.send("insert into orders (\r")
    child.send("[{'id': 1}, {'id': 2, 'word': 'tea'}]\r")
    child.send(");\r")
    child.expect(ENDED)
    child.expect_exact("sales.east>")

    for _ in range(20):  # names may not have been read yet
        child.send("select value o.word from orde")
        child.expect_exact("orde")
        if child.expect_exact(["orders", pexpect.TIMEOUT], timeout=2) == 0:
            break
        child.send("\x03")
    child.send("\t o where o.id = 2;\r")
    child.expect_exact("tea")
    child.expect("1 rows, ")
    child.expect(ENDED)

    child.send("select value o from nothing_there o;\r")
    child.expect_exact("ASX1077")
    child.expect(r"\^{5,}")
    child.expect_exact("sales.east>")

    child.send(f"{LONG}\r")
    until = time.monotonic() + PATIENCE_S
    while not under_way(server):
        assert time.monotonic() < until
        time.sleep(0.05)
    child.sendintr()
    child.expect_exact("cancelled")
    child.expect_exact("sales.east>")
    while under_way(server):
        assert time.monotonic() < until
        time.sleep(0.05)

    child.send("\x1b[A\x1b[A\x1b[A")  # before the long and the invalid statement
    child.expect(re.escape("o.id = 2;"))
    child.send("\r")
    child.expect("1 rows")
    child.send("\x04")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
