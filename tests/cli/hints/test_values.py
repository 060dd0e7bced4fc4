# SPDX-License-Identifier: Apache-2.0
"""Refused values are answered by the nearest one, and missing files by the file of a near name."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from limnos.cli.hints.typed_command import TypedCommand
from limnos.cli.hints.values import hint_for_file, hint_for_value

MASKS = "use one of replace-with-null, mask-to-fixed-value, show-first-4, show-last-4, sha-256-global"


@pytest.mark.parametrize(
    "message,typed,expected",
    [
        (
            f"There is no mask 'sha256': {MASKS}",
            "restriction set r main.a.t --mask x=sha256",
            "--mask x=sha-256-global",
        ),
        (f"There is no mask 'null': {MASKS}", "restriction set r main.a.t --mask=x=null", "--mask=x=replace-with-null"),
        (f"There is no mask 'show-lst-4': {MASKS}", "restriction set r main.a.t --mask x=show-lst-4", "x=show-last-4"),
        ("A preview must have 1 to 200 rows, not 500", "head main.a.t --limit=500", "limnos head main.a.t --limit=200"),
        ("The table has no column 'z'", "head main.a.t --columns z", "limnos show main.a.t"),
        (
            "Catalog m of provider model cannot contain filesets: choose one",
            "create fileset m.a.f",
            "limnos create catalog NAME --type fileset",
        ),
        (
            "'tabel' is not a kind that can be searched: kinds are view, table",
            "find kind:tabel",
            "limnos find kind:table",
        ),
        (
            "Catalog iceberg cannot have the provider iceberg: use one of lakehouse-iceberg, fileset; Lance",
            "create catalog iceberg --provider iceberg",
            "'limnos create catalog iceberg --provider lakehouse-iceberg'",
        ),
        (
            "Catalog c cannot have the provider lance: use one of lakehouse-iceberg, lakehouse-generic; Lance",
            "create catalog c --provider=lance",
            "'limnos create catalog c --provider=lakehouse-generic'",
        ),
        (
            "Catalog c cannot have the provider filest: use one of lakehouse-iceberg, fileset; Lance",
            "create catalog c --provider filest",
            "'limnos create catalog c --provider fileset'",
        ),
        (
            "Catalog c cannot have the provider quantum: use one of lakehouse-iceberg, fileset; Lance",
            "create catalog c --provider quantum",
            "leave --provider out for Iceberg tables",
        ),
        ("The setting audit.export has no location: set it", "audit export", "limnos audit export LOCATION"),
    ],
)
def test_refused_value_is_answered_by_a_command_that_takes_it(message: str, typed: str, expected: str) -> None:
    """The hint is the typed command with the value that is meant, or the command that has the values."""
    assert expected in str(hint_for_value(message, TypedCommand(shlex.split(typed))))


def test_message_about_no_value_has_no_hint() -> None:
    """Other messages, and a mask that is near none, have no hint."""
    typed = TypedCommand(["restriction", "set", "r", "main.a.t", "--mask", "x=zzz"])

    assert hint_for_value(f"There is no mask 'zzz': {MASKS}", typed) is None
    assert hint_for_value("Table does not exist: a.t", typed) is None


def test_missing_file_is_answered_by_the_near_one(tmp_path: Path) -> None:
    """A pipeline with another ending, and a misspelt file, are found in the directory; a missing directory is named."""
    (tmp_path / "shop.yaml").touch()
    (tmp_path / "lake.db").touch()
    absent, misspelt = tmp_path / "shop.yml", tmp_path / "lkae.db"
    lost, bare = tmp_path / "none" / "shop.yml", tmp_path / "shop"

    def hint(message: str, *words: str) -> str | None:
        return hint_for_file(message, TypedCommand(words))

    reason = "can't be read: No such file or directory"
    assert hint(f"'{absent}' {reason}", "pipeline", "run", str(absent)) == (
        f"'limnos pipeline run {tmp_path / 'shop.yaml'}'"
    )
    assert hint(f"'{bare}' is not a pipeline: name a file", "pipeline", "run", str(bare)) == (
        f"'limnos pipeline run {tmp_path / 'shop.yaml'}'"
    )
    assert hint(f"{misspelt} {reason}", "server", "restore", str(misspelt)) == (
        f"'limnos server restore {tmp_path / 'lake.db'}'"
    )
    assert hint(f"'{lost}' {reason}", "pipeline", "run", str(lost)) == (
        f"there is no directory {tmp_path / 'none'}: check the path"
    )
    assert hint("'x' is not a pipeline: name a file", "pipeline", "run", "x") is None
