# SPDX-License-Identifier: Apache-2.0
"""Hints for arguments that the client rejects."""

from __future__ import annotations

from limnos.cli.hints.arguments import hint_for_argument
from limnos.cli.hints.typed_command import TypedCommand


def test_hint_for_ambiguous_path_has_both_commands() -> None:
    """If a path is both a namespace and a view, the hint has both commands. For other argument errors there is no
    hint.
    """
    typed = TypedCommand(["delete", "main.a.v", "--yes"])

    hint = hint_for_argument("'main.a.v' is both a namespace and a view; name its kind", typed)

    assert hint == "'limnos delete main.a.v --yes --kind namespace', or 'limnos delete main.a.v --yes --kind view'"
    assert hint_for_argument("'main' is too short", typed) is None


def test_short_path_of_files_is_answered_with_the_list_of_filesets() -> None:
    """A name without catalog and namespace may be a file of this machine: no path is made from it."""
    hint = hint_for_argument(
        "'model.bin' is too short: give catalog.namespace.table", TypedCommand(["files", "model.bin"])
    )

    assert hint == "'limnos find kind:fileset' lists the filesets: a path is catalog.namespace.fileset"


def test_target_without_its_catalog_is_answered_with_it() -> None:
    """A rename to another catalog is answered by the target within the object's catalog: it may be a namespace."""
    typed = TypedCommand(["rename", "main.raw.trips", "old.trips"])

    hint = hint_for_argument("a table stays in its catalog: 'main' is not 'old'; give a target in it", typed)

    assert hint == "'limnos rename main.raw.trips main.old.trips', if old is a namespace"
