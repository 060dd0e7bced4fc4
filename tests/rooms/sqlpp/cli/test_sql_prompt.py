# SPDX-License-Identifier: Apache-2.0
"""`limnos sql` on a terminal: multi-line input, completion, history, underlined errors, Ctrl-C and Ctrl-D, tested by
key strokes.
"""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pexpect
import pytest

from tests.cli.query_service import FakeQueryService, serving

pytestmark = pytest.mark.integration
PATIENCE_S = 300
_PAINT = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|[\x00\x07\r]")
Shell = Callable[..., "pexpect.spawn[str]"]


@pytest.fixture
def service() -> Iterator[FakeQueryService]:
    """The fake query service."""
    with serving() as running_service:
        yield running_service


@pytest.fixture
def shell(service: FakeQueryService, tmp_path: Path) -> Iterator[Shell]:
    """Start shells in a terminal, with a home directory of the test's own."""
    running: list[pexpect.spawn[str]] = []

    def start(*words: str) -> pexpect.spawn[str]:
        environment = {
            **{name: value for name, value in os.environ.items() if not name.upper().startswith("LIMNOS_")},
            "TERM": "xterm",
            "HOME": str(tmp_path),
            "XDG_STATE_HOME": str(tmp_path / "state"),
            "PROMPT_TOOLKIT_NO_CPR": "1",
        }
        command = ["-m", "limnos.cli.main", "sql", "--uri", service.uri, "--user", "ana", *words]
        child = pexpect.spawn(
            sys.executable,
            command,
            env=environment,
            encoding="utf-8",
            timeout=PATIENCE_S,
            dimensions=(40, 160),
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # background jobs ignore SIGINT
        )
        running.append(child)
        child.expect_exact("Ctrl-D exits")
        child.expect(">")
        return child

    yield start
    for child in running:
        child.close(force=True)


def read_output(child: Any) -> str:  # noqa: ANN401 - pexpect has no types
    """Return the output before the last expected text, without colors."""
    return _PAINT.sub("", child.before)


def test_statement_continues_until_a_semicolon(shell: Shell, service: FakeQueryService) -> None:
    """Input continues over several lines until a semicolon ends the statement. Then the rows are printed as a table,
    and the next prompt appears.
    """
    child = shell()

    child.send("select value {'answer': x, 'text': ';'}\r")
    child.send("from [41, 42] x\r")
    child.send("where x > 41;\r")
    child.expect(r"1 rows, [0-9.]+ s")

    assert re.search(r"answer +text", read_output(child))
    assert re.search(r"42 +;", read_output(child))
    assert [body["statement"] for body in service.asked] == [
        "select value {'answer': x, 'text': ';'}\nfrom [41, 42] x\nwhere x > 41;"
    ]


def test_prompt_shows_the_dataverse_in_use(shell: Shell, service: FakeQueryService) -> None:
    """The prompt shows the dataverse of the command line, later that of the last USE. Every statement is sent with
    it.
    """
    child = shell("--dataverse", "sales.west")
    child.send("use sales.east;\r")
    child.expect_exact("sales.east>")
    child.send("select 1;\r")
    child.expect("1 rows")

    first, *later = service.asked
    assert first["statement"] == "use sales.west;"
    assert [body["dataverse"] for body in later] == [["sales", "west"], ["sales", "east"]]


COMPLETED = {
    "select value 1 from sales.east.orde": ("sales.east.orders", "select value 1 from sales.east.orders;"),
    "select value 1 from orde": ("orders", "select value 1 from orders;"),
    "select value 1 from `ord": ("`order items`", "select value 1 from `order items`;"),
    "select value 1 from `sa": ("`sales.x`", "select value 1 from `sales.x`.t;"),
    "SELEC": ("SELECT", "SELECT;"),
    "selec": ("select", "select;"),
}
"""The typed text, the offered completion, and the statement that is sent when the first offer is accepted."""


def test_names_and_keywords_are_completed(shell: Shell, service: FakeQueryService) -> None:
    """Completion offers datasets with their dataverse, datasets of the dataverse in use by their name, quoted where
    needed, and keywords in the typed case.
    """
    child = shell("--dataverse", "sales.east")

    for typed, (offered, _) in COMPLETED.items():
        for _ in range(20):  # names may not have been read yet
            child.send(typed)
            child.expect_exact(typed[-4:])
            if child.expect_exact([offered, pexpect.TIMEOUT], timeout=2) == 0:
                break
            child.send("\x03")
        child.send("\t;\r")
        child.expect_exact("error")
        child.expect_exact("sales.east>")

    assert [body["statement"] for body in service.asked[1:]] == [whole for _, whole in COMPLETED.values()]


def test_error_is_underlined_and_the_shell_continues(shell: Shell) -> None:
    """An error is shown as message, line, and a mark under the word."""
    child = shell()
    child.send("select value 1 +\rnope;\r")
    child.expect_exact("^^^^")

    assert "error: ASX1073" in read_output(child)
    assert "   2 | nope;" in read_output(child)
    child.send("select 5;\r")
    child.expect("1 rows")


def test_ctrl_c_ends_the_statement_and_not_the_shell(shell: Shell, service: FakeQueryService) -> None:
    """Ctrl-C cancels the statement by its id. The shell prints the error and accepts the next statement."""
    child = shell()
    child.send("select forever();\r")
    while not service.waiting:
        pass
    child.sendintr()
    child.expect_exact("ASX0041: The request was cancelled")
    child.expect_exact("Default>")
    child.send("select 6;\r")
    child.expect("1 rows")

    assert service.cancelled == [service.asked[0]["client_context_id"]]


def test_ctrl_c_discards_a_line_and_ctrl_d_exits(shell: Shell, service: FakeQueryService) -> None:
    """Ctrl-C discards the typed line. Ctrl-D exits with code 0."""
    child = shell()
    child.send("select 1")
    child.expect_exact("select 1")
    child.send("\x03")
    child.expect_exact("Default>")
    child.send("\x04")
    child.expect(pexpect.EOF)
    child.close()

    assert (child.exitstatus, service.asked) == (0, [])


def test_history_outlives_the_shell(shell: Shell, service: FakeQueryService, tmp_path: Path) -> None:
    """The up arrow recalls a statement of an earlier shell. Only the owner can read the history file."""
    child = shell()
    child.send("select 123;\r")
    child.expect("1 rows")
    child.send("\x04")
    child.expect(pexpect.EOF)

    child = shell()
    child.send("\x1b[A")
    child.expect_exact("123;")
    child.send("\r")
    child.expect("1 rows")

    assert [body["statement"] for body in service.asked] == ["select 123;"] * 2
    assert (tmp_path / "state" / "limnos" / "sql_history").stat().st_mode & 0o777 == 0o600


def test_backslash_commands_work_and_unknown_one_is_an_error(shell: Shell) -> None:
    """Backslash commands: help, another output format, and an error for an unknown command; one of
    another shell is answered by the statement.
    """
    child = shell()
    child.send("\\help\r")
    child.expect_exact("\\format table|json ")
    child.expect_exact("Default>")
    child.send("\\format json\r")
    child.expect_exact("Default>")
    child.send("select value {'a': 1};\r")
    child.expect_exact('"a": 1')
    child.send("\\nope\r")
    child.expect_exact("not a command of the shell")
    child.send(".tables\r")
    child.expect_exact("d.DatasetName from Metadata.`Dataset` d' lists tables")
    child.send("\\quit\r")
    child.expect(pexpect.EOF)
