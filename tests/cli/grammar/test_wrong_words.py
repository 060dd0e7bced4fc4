# SPDX-License-Identifier: Apache-2.0
"""The answers to wrong commands: each says what is wrong, and proposes a command that exists.

`wrong_commands.txt` has a wrong command line, the message, and the next step, each on its line. A change of a text is
read by a person: `LIMNOS_TEST_WRONG_COMMANDS=FILE` writes the answers of this version to a file.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from cyclopts import CycloptsError
from cyclopts.exceptions import CoercionError

from limnos.cli import guesses, output, sentences
from limnos.cli.command_tree import build
from limnos.cli.errors import UsageError
from limnos.cli.grammar import reading
from limnos.cli.grammar.reading import resolve
from limnos.manifests.installed import installed_rooms
from tests.cli.conftest import Run
from tests.installed import ALL_ROOMS, has_room

pytestmark = pytest.mark.slow


class WrongCommand(NamedTuple):
    """A wrong command line, the expected message, and the expected next step."""

    typed: str
    message: str
    hint: str


def read_wrong_commands() -> list[WrongCommand]:
    """Read the cases, three lines each with an empty line between them."""
    text = (Path(__file__).parents[1] / "wrong_commands.txt").read_text(encoding="utf-8")
    blocks = [block.splitlines() for block in text.strip().split("\n\n")]
    return [WrongCommand(first.removeprefix("$ limnos "), message, hint.strip()) for first, message, hint in blocks]


ELSEWHERE = frozenset({"cp", "create", "grant"})
"""Words for what other programs do, where the path is of no use; the answer to `grant` names what is missing."""
WRONG = read_wrong_commands()
ANSWERS = os.environ.get("LIMNOS_TEST_WRONG_COMMANDS")
"""The file for the answers of this version; read here, because tests run without the product's variables."""


def first_command(hint: str) -> str:
    """Return the command in quotes at the beginning of a hint, without the program's name."""
    for at, char in enumerate(hint):
        if at and char == "'" and hint[at + 1 : at + 2] in {"", " ", ",", ";"}:
            try:
                return " ".join(shlex.quote(word) for word in shlex.split(hint[1:at])[1:])
            except ValueError:  # a quote of an argument
                continue
    return ""


def commands_in(text: str) -> list[str]:
    """Return each command that a message or a hint proposes, without the program's name."""
    if text.startswith("limnos "):  # a command with quotes of the shell itself stands alone
        return [text.removeprefix("limnos ")]
    starts = [at for at in range(len(text)) if text.startswith("'limnos ", at)]
    return [command for at in starts if (command := first_command(text[at:]))]


def problem_of(command: str) -> str | None:
    """Return why a command line is refused before it runs; None if it is a command. Placeholders such as NAME count as
    values of any type.
    """
    try:
        tokens, _ = output.take_options(resolve(shlex.split(command)))
        if tokens and not tokens[0].startswith("-") and tokens[-1] != "--help":
            build().parse_args(tokens, exit_on_error=False, print_error=False)
    except CoercionError:
        return None
    except (UsageError, CycloptsError) as error:
        return str(error)
    return None


@pytest.mark.room(*ALL_ROOMS)
@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.typed)
def test_wrong_command_is_answered_by_the_command_to_type(
    run: Run, monkeypatch: pytest.MonkeyPatch, wrong: WrongCommand
) -> None:
    """A wrong command is a usage error that says what is wrong, and the next step is a command that exists."""
    monkeypatch.setenv("LIMNOS_OUTPUT", "table")
    done = run(*shlex.split(wrong.typed))

    message, _, hint = done.err.strip().removeprefix("error: ").partition("\n  next: ")
    if ANSWERS:
        with Path(ANSWERS).open("a", encoding="utf-8") as answers:
            answers.write(f"$ limnos {wrong.typed}\n{message}\n  {hint}\n\n")
    assert (done.code, message, hint) == (2, wrong.message, wrong.hint)
    assert {each: problem_of(each) for each in commands_in(hint) if problem_of(each)} == {}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.typed)
def test_answer_keeps_the_paths_that_were_typed(wrong: WrongCommand) -> None:
    """Each path that was typed is in the answer, whole or below its catalog: no proposal is about another object."""
    paths = [word for word in shlex.split(wrong.typed) if re.fullmatch(r"(?:main|models)\.[\w.]+", word)]
    answer = f"{wrong.message} {wrong.hint}".replace("`", "")

    if "--help' explains" in wrong.hint or wrong.typed.split()[0] in ELSEWHERE:
        return
    lost = [path for path in paths if path.rstrip(".").partition(".")[2] not in answer]

    assert lost == []


OFF = {
    "pipelines": ("run p.yaml", "backfill p.yaml", "runs", "lineage main.raw.t downstream", "dbt run p.yaml"),
    "sqlpp": ("select 1", "truncate main.raw.t", "query", "drop index name"),
    "search": ("frobnicate lake", "show table/trips", "show trips"),
    "jobs": ("jobs", "submit job x"),
    "exchange": ("dump lake", "load lake.db"),
}
"""Rooms, and command lines whose answers propose their commands."""


@pytest.mark.parametrize("room", [each for each in OFF if has_room(each)])
def test_no_command_of_an_absent_room_is_proposed(tmp_path: Path, room: str) -> None:
    """Without a room, no answer to a wrong command proposes one of its commands."""
    manifest = next(each for each in installed_rooms().manifests if each.name == room)
    names = [each.name for each in manifest.commands] + [f"{each.verb} {each.kind}" for each in manifest.operations]
    program = f"import sys\nfrom limnos.cli.main import main\nfor typed in {OFF[room]!r}: main(typed.split())"
    variables = {
        "LIMNOS__ROOMS__OFF": room,
        "LIMNOS_PROFILES": str(tmp_path / "own.json"),
        "LIMNOS_URI": "http://[::1]:1",
    }
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **variables}, capture_output=True, text=True, check=True
    )

    answers = [json.loads(line)["error"] for line in done.stderr.splitlines()]
    assert len(answers) == len(OFF[room])
    proposals = [command for each in answers for command in commands_in(each.get("hint", ""))]
    assert [each for each in proposals if any(f"{each} ".startswith(f"{name} ") for name in names)] == []


def test_corpus_has_200_commands_and_no_text_of_the_parser() -> None:
    """The corpus has at least 200 commands, each once; no answer has the parser's words or a syntax tree."""
    answers = " ".join(f"{wrong.message} {wrong.hint}" for wrong in WRONG)

    assert len({wrong.typed for wrong in WRONG}) == len(WRONG) >= 200
    assert [word for word in ("Unused Tokens", "Unknown option", "Expected", 'parameter "') if word in answers] == []


def test_guess_table_has_150_words_and_names_commands_that_exist() -> None:
    """The table has far more than 150 words, and each leads to a command that exists, with placeholders for what was
    not typed.
    """
    problems = {
        phrase: problem_of(shlex.join(command))
        for phrase in guesses.guess_table()
        if (guess := guesses.command_for([*phrase.split(), "main.raw.trips", "main.raw.other"])) is not None
        and (command := guess[0])[0] not in {"create", "--help", "--version"}
    }
    refused = {
        phrase: text
        for phrase, text in problems.items()
        if text and "argument too many" not in text and "Unused" not in text
    }

    assert len(guesses.guess_table()) >= 150
    assert refused == {}


@pytest.mark.parametrize("line", sentences.typed_lines(), ids=" ".join)
def test_line_of_another_tool_is_no_command_and_its_proposal_is_one(
    monkeypatch: pytest.MonkeyPatch, line: list[str]
) -> None:
    """Each line of the table is refused without the table, so that no command is taken away; its proposal is taken,
    and has each argument of the line.
    """
    proposal = sentences.proposal_for(line)
    assert proposal is not None
    problem = problem_of(shlex.join(proposal.command))
    answer = f"{proposal.note} {' '.join(proposal.command)}"
    with monkeypatch.context() as patch:
        patch.setattr(reading, "check_sentence", lambda _: None)
        refusal = problem_of(shlex.join(line))

    assert (problem, refusal is None) == (None, False)
    assert [each for each in line if "." in each and "://" not in each and each not in answer] == []
