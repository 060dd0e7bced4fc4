# SPDX-License-Identifier: Apache-2.0
"""A helper process of the tests, and a client that asks it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from limnos.cli.common import CommonFlags
from limnos.rooms.pipelines.cli.helper.client import HelperWish, ask
from limnos.rooms.pipelines.cli.helper.directory import open_directory
from limnos.rooms.pipelines.cli.helper.identity import helper_key
from limnos.rooms.pipelines.cli.helper.protocol import Answer

ASKED = HelperWish(flag=True)
COMMON = CommonFlags(uri="http://127.0.0.1:9", user="ana")


class Helper:
    """A running helper process for this process's key."""

    def __init__(self, process: subprocess.Popen[bytes], key: str) -> None:
        self.process = process
        self.key = key

    def ask(self, *tokens: str) -> Answer | None:
        """Let it answer a command line, as a command does."""
        return ask(tokens, wish=ASKED, common=COMMON)


def own_key() -> str:
    """Return the key of this process's helper."""
    directory = open_directory(os.environ)
    try:
        return helper_key(directory.secret(), environ=os.environ, access=COMMON.access_identity(os.environ))
    finally:
        directory.close()


def _listens(key: str) -> bool:
    """Return whether a helper of this key takes connections. It closes one without a request."""
    directory = open_directory(os.environ)
    try:
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(directory.address(key))
    except OSError:
        return False
    finally:
        directory.close()
    return True


def wait_for(path: Path) -> None:
    """Wait until a file has content."""
    deadline = time.monotonic() + 60
    while not (path.is_file() and path.read_bytes()):
        assert time.monotonic() < deadline, path
        time.sleep(0.02)


@pytest.fixture
def helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Helper]:
    """A helper of the tests' commands, in a directory of the test's own."""
    run = tmp_path / "run"
    run.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(run))
    monkeypatch.chdir(tmp_path)
    key = own_key()
    program = [sys.executable, str(Path(__file__).with_name("program.py")), key, "120"]
    with (tmp_path / "errors").open("wb") as errors, subprocess.Popen(program, stderr=errors) as process:
        try:
            deadline = time.monotonic() + 60
            while not _listens(key):
                assert process.poll() is None, (tmp_path / "errors").read_text()
                assert time.monotonic() < deadline
                time.sleep(0.02)
            yield Helper(process, key)
        finally:
            process.kill()
