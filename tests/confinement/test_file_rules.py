# SPDX-License-Identifier: Apache-2.0
"""The parts of directories that rules open."""

from __future__ import annotations

from pathlib import Path

from limnos.confinement.file_rules import FileRules, open_parts


def test_parent_of_closed_directory_is_opened_in_parts(tmp_path: Path) -> None:
    """If a directory contains a closed one, its other parts are accessible; links do not give access to the closed
    one.
    """
    for name in ("a/data/inner", "a/other", "b"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "a" / "link").symlink_to(tmp_path / "a" / "data")
    closed = [tmp_path / "a" / "data"]

    assert list(open_parts(tmp_path, closed)) == [tmp_path / "a" / "other", tmp_path / "b"]
    assert list(open_parts(tmp_path / "a" / "data" / "inner", closed)) == []
    assert list(open_parts(tmp_path / "a" / "link", closed)) == []
    assert list(open_parts(tmp_path / "nothing", closed)) == []


def test_closed_directory_inside_writable_one_stays_closed(tmp_path: Path) -> None:
    """A closed directory is left out of a writable one that contains it; a writable one inside of it is open."""
    for name in ("a/data/inner", "a/other"):
        (tmp_path / name).mkdir(parents=True)
    closed = (str(tmp_path / "a" / "data"),)

    outer = FileRules(readable=(), writable=(str(tmp_path / "a"),), closed=closed)
    inner = FileRules(readable=(), writable=(str(tmp_path / "a" / "data" / "inner"),), closed=closed)

    assert list(outer.writable_parts()) == [tmp_path / "a" / "other"]
    assert list(inner.writable_parts()) == [tmp_path / "a" / "data" / "inner"]
