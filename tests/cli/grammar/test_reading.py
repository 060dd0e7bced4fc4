# SPDX-License-Identifier: Apache-2.0
"""What is typed as the command that performs it: every operation, every group, verbs and kinds in either order."""

from __future__ import annotations

import contextlib
import shlex

import pytest
from cyclopts.exceptions import CoercionError

from limnos.cli.command_tree import build
from limnos.cli.errors import UsageError
from limnos.cli.grammar.reading import resolve
from limnos.cli.operations import COMMANDS, GROUPS, OPERATIONS
from tests.installed import is_absent_command

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: f"{each.verb} {each.kind}")
def test_every_operation_is_performed_by_a_command(operation: object) -> None:
    """Each operation's command takes the arguments that its help page prints."""
    assert isinstance(operation, type(OPERATIONS[0]))
    arguments = operation.arguments.replace("[", "").replace("]", "").split()
    tokens = resolve([operation.verb, operation.kind, *arguments])
    with contextlib.suppress(CoercionError):  # an id that is a number
        build().parse_args(tokens, exit_on_error=False, print_error=False)

    assert tokens[: len(operation.command.split())] == operation.command.split()


def test_groups_equal_those_of_the_parser() -> None:
    """The groups of the grammar and their commands are those of the parser."""
    tree = build()
    words = dict.fromkeys(GROUPS, tree)
    for group in GROUPS:
        for word in group.split():
            words[group] = words[group][word]

    assert {group: {name for name in app if not name.startswith("-")} for group, app in words.items()} == {
        group: set(commands) for group, commands in GROUPS.items()
    }
    assert {name for name in tree if not name.startswith("-")} == set(COMMANDS)


TYPED = [
    ("list tables main.raw", "list --only table main.raw"),
    ("list --output json tables main.raw", "list --only table --output json main.raw"),
    ("--output json list tables main.raw", "list --only table --output json main.raw"),
    ("--user ana user list", "user list --user ana"),
    ("--user audit audit", "audit --user audit"),
    ("user --output=json list", "user list --output=json"),
    ("create user ben", "user add ben"),
    ("user create ben", "user add ben"),
    ("user add ben", "user add ben"),
    ("table list main", "list --only table main"),
    ("namespace create main.a", "create namespace main.a"),
    ("ls", "list"),
    ("search trips", "find trips"),
    ("describe main", "show main"),
    ("mv a.b a.c", "rename a.b a.c"),
    ("drop a.b", "delete a.b"),
    ("drop table main.a.t", "delete --kind table main.a.t"),
    ("show schema main.a", "show --kind namespace main.a"),
    ("ls lance", "list lance"),
    ("list lance /data", "lance list /data"),
    ("run pipeline p.yaml", "pipeline run p.yaml"),
    ("check storage main", "storage check main"),
    ("trash ls main", "trash list main"),
    ("jobs run nightly", "job run nightly"),
    ("LIST Tables main", "list --only table main"),
    ("show `user`", "show `user`"),
    ("show user --kind catalog", "show user --kind catalog"),
    ("list users --user users", "user list --user users"),
    ("delete secret bot 7", "user secret end bot 7"),
    ("sql -c list", "sql -c list"),
    ("job register x -- list", "job register x -- list"),
    ("import x --as copy", "import x --into copy"),
    ("import x --as=copy --ids keep", "import x --into=copy --ids keep"),
    ("import x --into copy --as ana", "import x --into copy --as ana"),
    ("help", "--help"),
    ("help list", "list --help"),
    ("man audit", "audit --help"),
    ("list -h", "list --help"),
    ("set owner main.raw ana --kind namespace", "owner set main.raw ana --kind namespace"),
    ("disable catalog finance", "catalog disable finance"),
    ("list users --help", "user list --help"),
    ("set owner --help", "owner set --help"),
    ("show model --help", "show --kind model --help"),
    ("user", "user --help"),
]
"""Typed lines, and the commands that they are."""


@pytest.mark.parametrize("typed, command", [each for each in TYPED if not is_absent_command(each[1].split())])
def test_typed_line_becomes_its_command(typed: str, command: str) -> None:
    """Verbs and kinds in either order, flags anywhere, other spellings and any case give the same command."""
    assert shlex.join(resolve(shlex.split(typed))) == shlex.join(shlex.split(command))


def test_quoted_phrase_is_read_as_words() -> None:
    """A phrase in quotes as the only argument is read as its words."""
    assert resolve(["list tables", "main"]) == ["list", "--only", "table", "main"]
    with pytest.raises(UsageError, match="'show' is for one object"):
        resolve(["show tables"])
