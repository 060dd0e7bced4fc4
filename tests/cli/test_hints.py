"""Hints without a server: what they repeat of the command line, and what they must not."""

from __future__ import annotations

import pytest

from limnos.cli import hints
from limnos.cli.hints import Typed, hint_for
from limnos.cli.main import app
from limnos.client.errors import ConflictError, DeniedError, NotFoundError, UnavailableError
from tests.cli.test_docs import commands_of


def test_switches_are_known() -> None:
    """The flags taken for ones without a value are those of the commands: else a value would be read as a path, or a path as a value."""
    switches = {
        name
        for _, command in commands_of(app)
        for argument in command.assemble_argument_collection(parse_docstring=True)
        for name in argument.names
        if name.startswith("--") and argument.token_count()[0] == 0
    }

    assert switches - hints._FLAGS_ALONE == set()


@pytest.mark.parametrize("tokens,words", [
    (["drop", "--yes", "main.a"], ("drop", "main.a")),
    (["drop", "--uri", "http://h", "main.a", "--purge"], ("drop", "main.a")),
    (["ls", "--metalake=sea", "main"], ("ls", "main")),
])  # fmt: skip
def test_words_are_told_from_flags(tokens: list[str], words: tuple[str, ...]) -> None:
    """A flag's value is no word of the command, and a switch has none."""
    assert Typed(tokens).words == words


def test_whom_one_talks_to_is_repeated() -> None:
    """The next command goes to the same server, metalake and caller, quoted for a shell; a token is not shown again."""
    typed = Typed(
        ["drop", "main.`a b`", "--uri", "http://h:1", "--metalake=sea", "--token", "s3cret", "--token-file", "my file"]
    )
    error = NotFoundError("no such thing", status=404, code="not-found")

    hint = hint_for(error, typed)

    assert hint == "'limnos ls main --uri http://h:1 --metalake=sea --token-file 'my file'' shows what is there"
    assert "s3cret" not in typed.again("--force") + Typed(["drop", "main", "--token=s3cret"]).again("--force")


def test_path_that_is_none_is_left_out() -> None:
    """A path that cannot be read gives a hint without it."""
    error = NotFoundError("no such thing", status=404, code="not-found")

    assert hint_for(error, Typed(["ls", "main..a"])) == "'limnos ls' shows what is there"


def test_full_metalake_is_looked_into_by_name() -> None:
    """What is in a metalake is listed with that metalake as the one that is meant."""
    error = ConflictError("in use", status=409, code="in-use")

    hint = str(hint_for(error, Typed(["drop", "sea", "--kind", "metalake"])))

    assert "'limnos ls --metalake sea'" in hint
    assert "'limnos drop sea --kind metalake --force'" in hint


@pytest.mark.parametrize("sent,expected", [(True, "in a moment"), (False, "limnos server start")])
def test_silence_is_told_apart(sent: bool, expected: str) -> None:
    """Whether nobody listens or somebody was too busy leads to different steps."""
    assert expected in str(hint_for(UnavailableError("x", sent=sent), Typed()))


def test_refusal_without_a_decision_says_who_one_is() -> None:
    """A refusal that names no action points to the caller."""
    hint = hint_for(DeniedError("User ana is disabled", status=403), Typed(["ls", "--user", "ana"]))

    assert hint == "'limnos whoami --user ana' shows who you are"
