# SPDX-License-Identifier: Apache-2.0
"""A command line that talks to a fake server, in this process."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from limnos.cli.main import main
from tests.client.fake import FakeServer, running


@dataclass(frozen=True)
class CommandResult:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    @property
    def result(self) -> object:
        """Standard output as JSON."""
        return json.loads(self.out)

    @property
    def rows(self) -> list[dict[str, object]]:
        """The rows of a list, from standard output as JSON."""
        rows: list[dict[str, object]] = json.loads(self.out)
        return rows

    @property
    def error(self) -> dict[str, object]:
        """The error that was written to standard error as JSON."""
        document: dict[str, dict[str, object]] = json.loads(self.err)
        return document["error"]


Run = Callable[..., CommandResult]


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Remove environment variables of the product, and sessions, of the user who runs the tests."""
    for name in [name for name in os.environ if name.upper().startswith("LIMNOS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("LIMNOS_PROFILES", str(tmp_path / "profiles" / "own.json"))


@pytest.fixture
def fake() -> Iterator[FakeServer]:
    """A server that knows no route until the test adds some."""
    with running() as server:
        yield server


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command line as it is."""

    def call(*words: str) -> CommandResult:
        code = main(words)
        captured = capsys.readouterr()
        return CommandResult(code, captured.out, captured.err)

    return call


@pytest.fixture
def limnos(run: Run, fake: FakeServer) -> Run:
    """Run a command against the fake as user ana, with JSON output unless the arguments name another format."""

    def call(*words: str) -> CommandResult:
        return run(*words, "--uri", fake.uri, *([] if "--user" in words or "--token" in words else ["--user", "ana"]))

    return call
