# SPDX-License-Identifier: Apache-2.0
"""Deletion of a whole directory, on a disk and in an object store, without adjacent directories."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from limnos.files import delete_directory, directories


class Objects:
    """A fake object store that lists and deletes."""

    def __init__(self, *names: str) -> None:
        self.names = list(names)

    def below(self, location: str) -> Iterator[str]:
        """List a directory."""
        return iter([name for name in self.names if name.startswith(f"{location}/")])

    def delete(self, location: str) -> None:
        """Delete a file."""
        self.names.remove(location)


def test_local_directory_is_deleted_without_its_sibling(tmp_path: Path) -> None:
    """Every file below the directory is deleted and its sibling is not. Deleting a missing directory is no error."""
    for name in ("a/f", "a/b/g", "ab/h"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")

    delete_directory(f"file://{tmp_path}/a", {})
    delete_directory(f"file://{tmp_path}/a", {})

    assert [str(each.relative_to(tmp_path)) for each in sorted(tmp_path.rglob("*")) if each.is_file()] == ["ab/h"]


def test_object_store_directory_is_deleted_without_its_sibling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every object below the directory is deleted. An object with the directory's name as text prefix is not."""
    store = Objects("s3://b/a/f", "s3://b/a/b/g", "s3://b/ab/h")
    monkeypatch.setattr(directories, "store_for", lambda _location, _properties: store)

    delete_directory("s3://b/a", {})

    assert store.names == ["s3://b/ab/h"]
