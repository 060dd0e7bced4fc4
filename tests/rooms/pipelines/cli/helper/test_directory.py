# SPDX-License-Identifier: Apache-2.0
"""The directory of helper processes: whose it is, its locks, and its key."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from limnos.rooms.pipelines.cli.helper.directory import DirectoryRefused, open_directory


def _environment(base: Path) -> dict[str, str]:
    return {"XDG_RUNTIME_DIR": str(base)}


def test_directory_and_its_files_are_the_users_alone(tmp_path: Path) -> None:
    """The directory has mode 700 and its files mode 600, whatever the umask is; each process reads the same key."""
    before = os.umask(0)
    try:
        first, second = open_directory(_environment(tmp_path)), open_directory(_environment(tmp_path))
        secrets = {first.secret(), second.secret()}
        lock = first.lock("a")
    finally:
        os.umask(before)

    assert first.path.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in first.path.iterdir()} == {0o600}
    assert len(secrets) == 1
    assert lock is not None
    assert second.lock("a") is None


def test_directory_of_temporary_files_has_the_users_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without XDG_RUNTIME_DIR, the name in the directory of temporary files has the user's id."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    paths = {open_directory(each).path for each in ({}, {"XDG_RUNTIME_DIR": "here"})}

    assert paths == {tmp_path / f"limnos-pipeline-helper-{os.geteuid()}"}


def test_symbolic_link_is_refused(tmp_path: Path) -> None:
    """A symbolic link at the directory's place is refused, also one to a directory of the user."""
    (tmp_path / "own").mkdir(mode=0o700)
    (tmp_path / "limnos-pipeline-helper").symlink_to(tmp_path / "own")

    with pytest.raises((DirectoryRefused, OSError)):
        open_directory(_environment(tmp_path))

    assert list((tmp_path / "own").iterdir()) == []


@pytest.mark.parametrize("mode", [0o701, 0o710, 0o755, 0o777])
def test_directory_that_others_may_enter_is_refused(tmp_path: Path, mode: int) -> None:
    """A directory that existed with rights for others is refused, and stays as it is."""
    (tmp_path / "limnos-pipeline-helper").mkdir()
    (tmp_path / "limnos-pipeline-helper").chmod(mode)

    with pytest.raises(DirectoryRefused, match="open to other users"):
        open_directory(_environment(tmp_path))


def test_directory_of_another_user_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory whose owner is not the user is refused."""
    open_directory(_environment(tmp_path)).close()
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)

    with pytest.raises(DirectoryRefused, match="of another user"):
        open_directory(_environment(tmp_path))


def test_damaged_key_is_refused(tmp_path: Path) -> None:
    """A key of another length is refused, because names made with it would be guessable."""
    directory = open_directory(_environment(tmp_path))
    (directory.path / "key").write_bytes(b"short")

    with pytest.raises(DirectoryRefused, match="damaged"):
        directory.secret()
