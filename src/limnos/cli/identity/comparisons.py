# SPDX-License-Identifier: Apache-2.0
"""Answers about rights of users as text: differences, missing privileges, and the effects of changes.

The server decides; this module formats the answers, with the command to type.
"""

from __future__ import annotations

import shlex
import sys
from typing import NamedTuple

import msgspec

from limnos.cli.common import CommonFlags
from limnos.cli.output import Format, Row, show_done, show_rows, visible
from limnos.client.identity.access import (
    AccessConsequence,
    ConsequenceLine,
    DifferingObject,
    MissingPrivileges,
    OwnRights,
    PrivilegeDenial,
)
from limnos.model.presets import PresetName
from limnos.names import display


class DiffQuestion(NamedTuple):
    """Two users to compare, on an object and below it."""

    user: str
    other: str
    path: str | None
    kind: str | None


class MissingQuestion(NamedTuple):
    """A user, and the preset that the user should have on an object."""

    user: str
    preset: PresetName
    path: str | None
    kind: str | None


def show_note(text: str) -> None:
    """Print a remark about the answer to standard error."""
    print(visible(text), file=sys.stderr)


def show_differences(question: DiffQuestion, common: CommonFlags) -> None:
    """Print the objects on which two users differ, over all pages."""
    objects: list[DifferingObject] = []
    after: str | None = None
    with common.client() as client:
        while True:
            page = client.access.diff(
                question.user, question.other, path=question.path or (), kind=question.kind, after=after, limit=1_000
            )
            objects += page.objects
            after = page.after
            if after is None:
                break
    if not page.enforced:
        show_note("access control is off: every request is allowed")
    if page.bounded:
        show_note(f"only the first {page.looked} objects were checked: name a catalog or namespace")
    if page.hidden:
        show_note(f"{page.hidden} differing objects are counted only: you may not see them")
    if common.output_format == "json":
        show_done("", msgspec.to_builtins(objects), output_format="json")
        return
    columns = ["path", "kind", f"only {question.user}", f"only {question.other}"]
    rows: list[Row] = [
        dict(
            zip(
                columns,
                (display.render(each.path) or common.metalake, each.kind, _rights(each.user), _rights(each.other)),
                strict=True,
            )
        )
        for each in objects
    ]
    empty = f"{question.user} and {question.other} may do the same there"
    show_rows(rows, columns, output_format=common.output_format, empty=empty)


def _rights(rights: OwnRights) -> str:
    """Return the levels, the actions where no level differs, and the restrictions."""
    restricted = [f"restricted by {name}" for name in rights.restrictions]
    return ", ".join([*(rights.may or rights.actions), *restricted])


def show_missing(question: MissingQuestion, common: CommonFlags) -> None:
    """Print the privileges that a user lacks for a preset on an object, and the commands that grant them."""
    with common.client() as client:
        answer = client.access.missing(question.preset, question.path or (), user=question.user, kind=question.kind)
    commands = _commands(question, answer)
    if common.output_format == "json":
        show_done("", {**msgspec.to_builtins(answer), "commands": commands}, output_format="json")
        return
    if not answer.enforced:
        show_note("access control is off: every request is allowed")
    if not answer.enabled:
        enable = shlex.join(["limnos", "user", "enable", answer.user])
        show_note(f"{answer.user} is disabled, so every request of theirs is refused: '{enable}'")
    for name in answer.restrictions:
        show_note(f"restriction {name} applies to {question.user}: rows are read by planned scans, and not changed")
    rows: list[Row] = [
        {
            "missing": each.privilege,
            "kind": each.object.kind,
            "object": each.object.name,
            "denied by": ", ".join(dict.fromkeys(denial.role for denial in each.denials)),
        }
        for each in answer.missing
    ]
    where = f"{answer.kind} {question.path or common.metalake}"
    empty = f"{question.user} has all of {question.preset} on {where}"
    show_rows(rows, ["missing", "kind", "object", "denied by"], output_format=common.output_format, empty=empty)
    if commands and common.output_format == "table":
        print("\nto grant it:")
        for command in commands:
            print(visible(f"  {command}"))


def _commands(question: MissingQuestion, answer: MissingPrivileges) -> list[str]:
    """Return the commands that give the user the preset: denials are revoked, then the preset is granted."""
    if not answer.missing:
        return []
    revocations = dict.fromkeys(
        _revocation(each.privilege, denial) for each in answer.missing for denial in each.denials
    )
    where = ["--on-metalake"] if question.path is None else [question.path, "--kind", answer.kind]
    grant = ["limnos", "grant", "--preset", question.preset, *where, "--to", f"user:{question.user}"]
    return [*revocations, shlex.join(grant)]


def _revocation(privilege: str, denial: PrivilegeDenial) -> str:
    on = denial.object
    if denial.restriction is not None:
        words = ["limnos", "restriction", "remove", denial.restriction, on.name, "--kind", on.kind]
        return shlex.join(words)
    where = ["--on-metalake"] if on.kind == "metalake" else ["--on", on.name, "--kind", on.kind]
    return shlex.join(["limnos", "revoke", privilege.lower(), "--deny", *where, "--from", f"role:{denial.role}"])


def show_consequence(consequence: AccessConsequence, *, output_format: Format) -> None:
    """Print the consequence of a change of rights: counts of users and objects by access level, and first names."""
    rows: list[Row] = [
        {
            "change": "gain" if each.gains else "lose",
            "level": each.level,
            "kind": each.kind,
            "users": each.users,
            "objects": each.objects,
            "who": _names(each),
        }
        for each in consequence.lines
    ]
    if output_format == "json":
        show_done("", msgspec.to_builtins(consequence), output_format="json")
        return
    users = "user" if consequence.gaining == 1 else "users"
    print(f"{consequence.gaining} {users} would gain and {consequence.losing} would lose access; nothing was changed")
    if consequence.bounded:
        print("there are more users or objects than were checked: the numbers are lower bounds")
    if rows:
        show_rows(rows, ["change", "level", "kind", "users", "objects", "who"], output_format="table")


def _names(line: ConsequenceLine) -> str:
    rest = line.users - len(line.names)
    return ", ".join(line.names) + (f" and {rest} more" if line.names and rest else "")
