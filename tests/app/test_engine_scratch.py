# SPDX-License-Identifier: Apache-2.0
"""Scratch directories of engines: each engine has its own, and the next start deletes those of killed servers."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from limnos.app.engine_scratch import OWNER, PREFIX, ScratchDirectory, remove_stale

MAKE = (
    "import sys, time; from limnos.app.engine_scratch import ScratchDirectory; s = ScratchDirectory(); open(s.path +"
    " '/spilled', 'w').close(); print(s.path, flush=True); time.sleep(600)"
)


@pytest.fixture(autouse=True)
def _own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def test_scratch_directory_is_private_and_deleted_with_content(tmp_path: Path) -> None:
    """A scratch directory is accessible to its user only, and is deleted with its content."""
    scratch = ScratchDirectory()
    Path(scratch.path, "deep").mkdir()

    assert Path(scratch.path).stat().st_mode & 0o777 == 0o700
    scratch.remove()
    assert list(tmp_path.iterdir()) == []


def test_scratch_directory_of_killed_server_is_deleted(tmp_path: Path) -> None:
    """The directory of a running process is not deleted. After the process was killed, the next check deletes it."""
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", MAKE], stdout=subprocess.PIPE, text=True, env=environment) as other:
        try:
            assert other.stdout is not None
            theirs = Path(other.stdout.readline().strip())
            own = ScratchDirectory()

            assert (remove_stale(), theirs.exists()) == (0, True)
        finally:
            other.kill()
    assert (remove_stale(), theirs.parent.exists()) == (1, False)
    assert Path(own.path).exists()
    own.remove()


def test_foreign_files_and_directories_are_not_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory without the file that names its owner, a link, a file, and another user's directory are not
    deleted.
    """
    plain, elsewhere = tmp_path / f"{PREFIX}plain", tmp_path / "elsewhere"
    for directory in (plain, elsewhere):
        directory.mkdir()
    (elsewhere / OWNER).touch()
    (tmp_path / f"{PREFIX}link").symlink_to(elsewhere)
    (tmp_path / f"{PREFIX}file").touch()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / OWNER).touch()
    before = sorted(tmp_path.rglob("*"))

    assert remove_stale() == 0
    (plain / OWNER).touch()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert remove_stale() == 0
    assert sorted(tmp_path.rglob("*")) == sorted([*before, plain / OWNER])


def test_failed_creation_removes_partial_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a directory cannot be created completely, as on a full disk, nothing of it remains."""

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)

    with pytest.raises(OSError, match="No space left"):
        ScratchDirectory()
    assert list(tmp_path.iterdir()) == []
