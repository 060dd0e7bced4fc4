# SPDX-License-Identifier: Apache-2.0
"""A helper process over real forks: what a command gets, and what goes wrong."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from limnos.rooms.pipelines.cli.helper import client
from limnos.rooms.pipelines.cli.helper.client import ask
from limnos.rooms.pipelines.cli.helper.directory import open_directory
from limnos.rooms.pipelines.cli.helper.protocol import Answer, Kind, receive, send
from tests.rooms.pipelines.cli.helper.conftest import ASKED, COMMON, Helper, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")]

NO_PROGRAM = "raise SystemExit(9)"
"""A program that stands for a helper that cannot start: the helper of the tests is the only one."""


@pytest.fixture(autouse=True)
def _no_other_helper(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start no helper with the real command line where that of the tests has ended."""
    monkeypatch.setattr(client, "ENTRY", NO_PROGRAM)


def test_answer_has_exit_code_and_all_output(helper: Helper) -> None:
    """The answer has the exit code, and the output of the command, of its processes and of raw writes."""
    answer = helper.ask("say", "a", "b")

    assert answer is not None
    assert answer.exit_code == 7
    assert sorted(answer.output.decode().splitlines()) == ["from a process", "out: a b", "raw"]
    assert answer.errors.decode() == "err: ä\n"


def test_command_has_the_state_of_the_asking_process(helper: Helper, monkeypatch: pytest.MonkeyPatch) -> None:
    """Environment, working directory, umask and arguments are those of the asking process, not of the helper."""
    monkeypatch.setenv("TERM_COLOUR", "x")
    monkeypatch.setattr(sys, "argv", ["limnos", "state"])
    before = os.umask(0o027)
    try:
        answer = helper.ask("state")
    finally:
        os.umask(before)

    assert answer is not None
    assert answer.output.decode() == f"None {Path.cwd()} 27 ['limnos', 'state'] False {os.environ.get('HOME')}\n"


def test_second_command_sees_the_edited_module(helper: Helper, tmp_path: Path) -> None:
    """A module that a command has imported is imported anew by the next one."""
    values = []
    for value in ("1", "22"):
        (tmp_path / "customers.py").write_text(f"VALUE = {value}")
        answer = helper.ask("module", "customers")
        values.append(answer and answer.output)

    assert values == [b"1\n", b"22\n"]


@pytest.mark.parametrize("word", ["crash", "raise", "flood"])
def test_command_without_a_whole_answer_is_not_answered(
    helper: Helper, word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A killed command, an unexpected error and too much output give no answer, and nothing of them is printed."""
    answer = helper.ask(word)
    again = helper.ask("say", "still there")

    assert answer is None
    assert again is not None
    assert capsys.readouterr().err == "note: without the helper process: it could not run the command\n"


def test_killed_helper_gives_no_answer(helper: Helper, tmp_path: Path) -> None:
    """If the helper is killed during a command, there is no answer, and the command's process ends."""
    started = tmp_path / "started"

    def kill() -> None:
        wait_for(started)
        helper.process.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    answer = helper.ask("sleep", str(started))
    killer.join()

    assert answer is None
    _require_ended(int(started.read_text()))


def test_new_helper_follows_a_killed_one(helper: Helper, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a kill its socket remains, and the next command starts a new helper, which answers."""
    program = Path(__file__).with_name("program.py")
    run = f"import runpy, sys; del sys.argv[1]; runpy.run_path({str(program)!r}, run_name='__main__')"
    monkeypatch.setattr(client, "ENTRY", run)
    helper.process.kill()
    helper.process.wait()
    answer = helper.ask("say", "new")
    open_directory(os.environ).remove_socket(helper.key)

    assert answer is not None
    assert answer.exit_code == 7
    assert client._STARTED[-1].wait(30) == 0


def test_stopped_helper_gives_no_answer(helper: Helper, monkeypatch: pytest.MonkeyPatch) -> None:
    """A helper that is alive and silent is given up after a time."""
    monkeypatch.setattr(client, "_SILENCE_S", 1.0)
    helper.process.send_signal(signal.SIGSTOP)
    answer = helper.ask("say", "now")
    helper.process.send_signal(signal.SIGCONT)
    monkeypatch.setattr(client, "_SILENCE_S", 60.0)

    assert answer is None
    assert helper.ask("say", "later") is not None


def test_helper_of_other_code_never_answers(helper: Helper, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request with another fingerprint is refused, and the helper ends."""
    monkeypatch.setattr(client, "fingerprint", lambda: "of newer files")
    answer = helper.ask("say", "old")

    assert answer is None
    assert helper.process.wait(30) == 0


def test_second_command_waits_for_the_first(helper: Helper, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A command that comes during another one says so, and is answered after it."""
    started = tmp_path / "started"
    first = threading.Thread(target=lambda: helper.ask("sleep", str(started)))
    first.start()
    wait_for(started)

    def end() -> None:
        time.sleep(1)
        os.kill(int(started.read_text()), signal.SIGINT)

    ender = threading.Thread(target=end)
    ender.start()
    answer = helper.ask("say", "second")
    first.join()
    ender.join()

    assert answer is not None
    assert answer.exit_code == 7
    assert "waiting: the helper process answers another command" in capsys.readouterr().err


def test_closed_connection_ends_the_command(helper: Helper, tmp_path: Path) -> None:
    """If the asking process ends, as by Ctrl-C, its command ends, and the helper answers the next one."""
    started = tmp_path / "started"
    directory = open_directory(os.environ)
    peer = socket.socket(socket.AF_UNIX)
    peer.connect(directory.address(helper.key))
    send(peer, Kind.REQUEST, document=client._request(("sleep", str(started)), is_live=False))
    wait_for(started)
    peer.close()
    answer = helper.ask("say", "next")

    assert answer is not None
    _require_ended(int(started.read_text()))


def test_live_command_writes_to_the_streams_at_once(helper: Helper, tmp_path: Path) -> None:
    """A live command writes to the given files while it runs; its signal reaches it, and its exit code comes back."""
    started, output = tmp_path / "started", tmp_path / "output"
    directory = open_directory(os.environ)
    with socket.socket(socket.AF_UNIX) as peer, output.open("wb") as file:
        peer.connect(directory.address(helper.key))
        files = [file.fileno()] * 3
        request = client._request(("sleep", str(started)), is_live=True)
        send(peer, Kind.REQUEST, document=request, descriptors=files)
        wait_for(started)
        send(peer, Kind.INTERRUPT)
        kinds = []
        while not kinds or kinds[-1][0] is not Kind.DONE:
            kinds.append(receive(peer)[:2])

    assert output.read_text() == "interrupted\n"
    assert client.decode_answer(kinds[-1][1]) == Answer(exit_code=130)


@pytest.mark.parametrize(
    "data", [b"GET / HTTP/1.1\r\n\r\n", b"LMNH\x02\x01\x00\x00\x00\x00\x00\x00", b"", b"LMNH\x01\x01\x00\x00"]
)
def test_other_protocols_are_refused(helper: Helper, data: bytes) -> None:
    """A connection that does not speak this version is closed, and the helper answers the next one."""
    directory = open_directory(os.environ)
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(directory.address(helper.key))
        peer.sendall(data)
        peer.shutdown(socket.SHUT_WR)
        answer = b""
        with suppress(ConnectionResetError):
            answer = peer.recv(100)

    assert answer == b""
    assert helper.ask("say", "next") is not None


def test_helper_ends_without_its_socket(helper: Helper) -> None:
    """A helper whose socket was removed ends."""
    directory = open_directory(os.environ)
    directory.remove_socket(helper.key)

    assert helper.process.wait(30) == 0
    assert not (directory.path / f"{helper.key}.lock").exists()


def test_idle_helper_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A helper without requests ends after its idle time, and removes its socket; a second of the same key does not
    begin beside it.
    """
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    program = [sys.executable, str(Path(__file__).with_name("program.py")), "a" * 32, "1"]
    with subprocess.Popen(program) as first:
        socket_path = tmp_path / "limnos-pipeline-helper" / f"{'a' * 32}.sock"
        while not socket_path.exists():
            time.sleep(0.02)
        second = subprocess.run(program, check=False)

        assert first.wait(60) == 0
    assert second.returncode == 3
    assert not socket_path.exists()


def test_command_without_a_helper_does_its_work_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where no helper can start, or its directory is refused, there is no answer; on request the reason is printed."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    without = ask(("say",), wish=ASKED, common=COMMON)
    (tmp_path / "limnos-pipeline-helper").chmod(0o755)
    refused = ask(("say",), wish=replace(ASKED, flag=None), common=COMMON)

    assert (without, refused) == (None, None)
    assert capsys.readouterr().err == "note: without the helper process: it did not start\n"


def _require_ended(pid: int) -> None:
    deadline = time.monotonic() + 30
    while Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]:
        assert time.monotonic() < deadline
        time.sleep(0.05)
