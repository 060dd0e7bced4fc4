# SPDX-License-Identifier: Apache-2.0
"""Every source file begins with the line of the licence that LICENSE and the package's metadata state."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from scripts.add_licence import LICENCE, ROOT, add_licence, has_licence, source_files


def test_source_files_begin_with_the_licence() -> None:
    """No source file lacks the line; `make fix` adds it."""
    files = list(source_files())

    assert len(files) > 2500
    assert [file.relative_to(ROOT).as_posix() for file in files if not has_licence(file)] == []


@pytest.mark.parametrize("start", ["", "#!/bin/sh\n", '"""A module."""\n'], ids=["empty", "program", "module"])
def test_line_is_added_once_after_the_interpreter(start: str, tmp_path: Path) -> None:
    """A file without the line is reported; the line is added behind `#!`, and the rest stays."""
    file = tmp_path / "a.py"
    file.write_text(start, encoding="utf-8")

    assert not has_licence(file)
    add_licence(file)
    assert has_licence(file)
    assert file.read_text(encoding="utf-8").replace(f"# {LICENCE}\n", "") == start


def test_licence_is_the_one_of_the_package() -> None:
    """The line, the metadata of the package, and the text in LICENSE name one licence."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert LICENCE.endswith(f": {project['license']}")
    assert "Apache License\n" in (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert "Version 2.0" in (ROOT / "LICENSE").read_text(encoding="utf-8")
