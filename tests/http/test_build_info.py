# SPDX-License-Identifier: Apache-2.0
"""What a server says about its build."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from limnos.http.build_info import UNKNOWN, BuildInfo, installed_extras, read_build_info

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_build_file_is_read(tmp_path: Path) -> None:
    """The commit and the time are those of the file; without a file both are unknown."""
    file = tmp_path / "build.json"
    assert read_build_info(file) == BuildInfo(UNKNOWN, UNKNOWN)

    file.write_text('{"commit": "abc", "built_at": "2026-11-27T00:00:00+00:00"}')

    assert read_build_info(file) == BuildInfo("abc", "2026-11-27T00:00:00+00:00")


def test_extra_with_a_missing_library_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every extra of the package is listed where all libraries are installed; without one library its extra is not."""
    extras = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert installed_extras() == sorted(extras.keys() - {"all"})

    monkeypatch.setitem(sys.modules, "botocore", None)

    assert "s3" not in installed_extras()
    assert "server" in installed_extras()
