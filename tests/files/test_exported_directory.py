# SPDX-License-Identifier: Apache-2.0
"""Exported directories appear as a whole, at an empty location, and leave no files if they are discarded."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from limnos.files import ExportedDirectory
from limnos.files.exported_directory import HIDDEN, STALE_S
from limnos.model.errors import NotEmpty, StorageFailed


def _files(base: Path) -> dict[str, bytes]:
    return {str(path.relative_to(base)): path.read_bytes() for path in base.rglob("*") if path.is_file()}


def _write(exported: ExportedDirectory, *names: str) -> None:
    exported.open(names)
    exported.write(b"a")
    exported.write(b"b")
    exported.close()


def test_export_is_published_at_once(tmp_path: Path) -> None:
    """Before the export is published no directory has its name, also with missing parents. Afterwards no temporary file
    remains.
    """
    exported = ExportedDirectory(f"file://{tmp_path}/x/out")
    exported.begin()
    _write(exported, "a", "b", "part-0")
    _write(exported, "part-1")

    assert not (tmp_path / "x" / "out").exists()
    exported.publish()
    exported.discard()
    assert _files(tmp_path) == {"x/out/a/b/part-0": b"ab", "x/out/part-1": b"ab"}


def test_empty_target_directory_is_replaced(tmp_path: Path) -> None:
    """An empty directory at the target is replaced."""
    (tmp_path / "out").mkdir()
    exported = ExportedDirectory(f"file://{tmp_path}/out")
    exported.begin()
    _write(exported, "part-0")
    exported.publish()

    assert _files(tmp_path) == {"out/part-0": b"ab"}


def test_nonempty_target_is_refused(tmp_path: Path) -> None:
    """A directory with files is refused, at the beginning of the export or at its end if they were added meanwhile. A
    file with the target's name is refused, too.
    """
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(NotEmpty):
        ExportedDirectory(f"file://{tmp_path}/file").begin()
    exported = ExportedDirectory(f"file://{tmp_path}/out")
    exported.begin()
    _write(exported, "part-0")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "theirs").write_bytes(b"x")
    with pytest.raises(NotEmpty):
        ExportedDirectory(f"file://{tmp_path}/out").begin()
    with pytest.raises(NotEmpty):
        exported.publish()
    exported.discard()

    assert _files(tmp_path) == {"file": b"x", "out/theirs": b"x"}
    assert not list(tmp_path.glob(f"{HIDDEN}*"))


def test_files_of_killed_export_are_deleted_after_a_day(tmp_path: Path) -> None:
    """The hidden files of a killed export are deleted by another export after a day, and not before."""
    killed = ExportedDirectory(f"file://{tmp_path}/out")
    killed.begin()
    _write(killed, "part-0")
    (hidden,) = tmp_path.glob(f"{HIDDEN}*")
    other = ExportedDirectory(f"file://{tmp_path}/other")
    other.begin()
    assert hidden.exists()
    at = hidden.stat().st_mtime - STALE_S - 60
    os.utime(hidden, (at, at))
    ExportedDirectory(f"file://{tmp_path}/third").begin()

    assert not hidden.exists()
    assert not (tmp_path / "out").exists()


def test_error_for_uncreatable_directory_has_reason(tmp_path: Path) -> None:
    """If the directory cannot be created, the error has the reason."""
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(StorageFailed):
        ExportedDirectory(f"file://{tmp_path}/file/out").begin()


def test_export_fails_if_its_hidden_directory_is_deleted(tmp_path: Path) -> None:
    """If the hidden directory is deleted meanwhile (for example by a node with a wrong clock), the export fails instead
    of publishing incomplete files.
    """
    exported = ExportedDirectory(f"file://{tmp_path}/out")
    exported.begin()
    _write(exported, "a", "part-0")
    (hidden,) = tmp_path.glob(f"{HIDDEN}*")
    shutil.rmtree(hidden)

    with pytest.raises(StorageFailed):
        _write(exported, "a", "part-1")
    with pytest.raises(StorageFailed):
        exported.publish()
    assert not list(tmp_path.iterdir())
