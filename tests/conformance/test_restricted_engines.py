# SPDX-License-Identifier: Apache-2.0
"""The checks of engines as restricted readers: hidden rows and values fail them, whatever limits a driver declares."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from conformance.engines import restricted
from conformance.engines.checks import Lake
from conformance.engines.driver import RESTRICTED, Levels
from conformance.engines.drivers.pyiceberg_driver import Engine as Witness
from conformance.engines.remote import CallRefused, Remote
from conformance.engines.rows import Row
from conformance.engines.story import Story
from limnos.model.restrictions import CLOSED_TO

ADVICE = f"IO Error: no file /{CLOSED_TO}/snap.avro"


class ScriptedEngine(Remote):
    """An engine with an answer for each verb; an exception is raised."""

    def __init__(self, answers: dict[str, object], limits: dict[str, str]) -> None:
        super().__init__([], {}, Path())
        self.answers, self.limits = answers, limits

    def ask(self, verb: str, *arguments: object) -> object:
        """Return the answer; for `count` with a city the second one."""
        scripted = self.answers[verb]
        if isinstance(scripted, Exception):
            raise scripted
        return scripted[len(arguments) - 2] if isinstance(scripted, tuple) else scripted


class ScriptedWitness(Witness):
    """A witness that sees the unchanged table."""

    def snapshots(self, levels: Levels, name: str) -> list[int]:
        """Return the ids."""
        return [7, 8]

    def read(self, levels: Levels, name: str, columns: Sequence[str]) -> list[Row]:
        """Return all rows."""
        return [*restricted.FIRST, *restricted.SECOND]


def results(answers: dict[str, object], *, is_limited: bool = False) -> list[str]:
    """Return the results of an engine that reads rightly and is refused rightly, but for these answers."""
    right: dict[str, object] = {
        "be": None,
        "read": restricted.VISIBLE,
        "read_at": restricted.VISIBLE[:1],
        "count": (2, 0),
        "append": CallRefused(ADVICE),
        "delete": CallRefused(ADVICE),
    }
    limits = {RESTRICTED: CLOSED_TO} if is_limited else {}
    lake = Lake(uri="http://h", admin="a", reader="r", work=Path())
    one = Story(
        "one", ScriptedEngine({**right, **answers}, limits), witness=ScriptedWitness(), lake=lake, warehouse="m"
    )
    restricted.tell(one)
    return [each.result for each in one.outcomes]


def test_visible_rows_and_refused_changes_pass() -> None:
    """The visible rows with masked values pass, and so do refusals that name the setting."""
    assert results({}) == ["ok"] * 6
    refused = dict.fromkeys(("read", "read_at", "count"), CallRefused(ADVICE))
    assert results(refused, is_limited=True) == ["client"] * 4 + ["ok"] * 2


@pytest.mark.parametrize("is_limited", [False, True])
@pytest.mark.parametrize(
    "verb, answer",
    [
        ("read", [[1, "Oslo-77"], [2, "xxxx-nn"]]),
        ("read", [*restricted.VISIBLE, [3, "xxxx-nn"]]),
        ("read", CallRefused(f"{ADVICE} where city = 'Lima-99'")),
        ("read", CallRefused("IO Error: 403")),
        ("read_at", restricted.VISIBLE),
        ("count", (3, 0)),
        ("count", (2, 1)),
    ],
)
def test_hidden_values_fail(verb: str, answer: object, *, is_limited: bool) -> None:
    """A hidden row, value or count fails, also in an error message, and so does a message without advice."""
    refused = dict.fromkeys(("read", "read_at", "count"), CallRefused(ADVICE)) if is_limited else {}

    assert results({**refused, verb: answer}, is_limited=is_limited).count("FAILED") >= 1


@pytest.mark.parametrize("verb", ["append", "delete"])
@pytest.mark.parametrize("answer", [None, CallRefused("no such file"), CallRefused(f"{ADVICE}: Rome-88")])
def test_changes_must_be_refused_with_the_reason(verb: str, answer: object) -> None:
    """A change that succeeds, fails for another reason, or shows a hidden value, fails the check."""
    assert results({verb: answer}).count("FAILED") == 1


def test_table_shows_engines_that_read() -> None:
    """The table has each engine's reads on a disk and in an object store, and the message of one that is refused."""
    outcomes = [
        restricted.Outcome("a", name, "ok")
        for name in (*restricted.READS, *(f"{each} (S3)" for each in restricted.READS))
    ]
    message = f"IOException: IO Error: Cannot open file '/{CLOSED_TO}/1': No such file"
    outcomes += [restricted.Outcome("b", name, "client", message) for name in restricted.READS]
    outcomes += [restricted.Outcome("c", restricted.READ, "ok"), restricted.Outcome("c", restricted.COUNT, "FAILED")]

    assert restricted.table(outcomes, {"a": "A 1"}).splitlines()[2:] == [
        "| A 1 | reads | reads |  |",
        f"| b | refused | not run | `Cannot open file '/{CLOSED_TO}` |",
        "| c | **failed** | not run |  |",
    ]
