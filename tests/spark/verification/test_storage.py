# SPDX-License-Identifier: Apache-2.0
"""Files of one object: sizes and contents below its locations, and nothing elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from limnos.model.errors import InvalidTable, MissingFile, OutsideRoots, TooLarge, UnsupportedOperation
from limnos.spark.verification import storage as storage_module
from limnos.spark.verification.storage import (
    DIRECTORY,
    MISSING,
    OUTSIDE,
    FileState,
    TableStorage,
    files_for,
    location_key,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A table's directory with a file, a directory, and a secret file beside it."""
    (tmp_path / "table" / "data").mkdir(parents=True)
    (tmp_path / "table" / "data" / "file").write_bytes(b"12345")
    (tmp_path / "secret").write_bytes(b"secret")
    return tmp_path / "table"


@pytest.fixture
def storage(root: Path) -> TableStorage:
    """The reader of the table's files."""
    return files_for([f"file://{root}"], {})


def test_states_say_size_or_problem(root: Path, storage: TableStorage) -> None:
    """A file has its size in each spelling of its location; others are missing, a directory, or outside."""
    spellings = [f"file://{root}/data/file", f"file:{root}/data/file", f"{root}/data/file", f"{root}//data/file"]
    problems = [f"{root}/none", f"{root}/data/file/below", f"{root}/data", f"{root}-other/file", f"{root}/../secret"]

    assert storage.states(spellings) == [FileState(5)] * 4
    assert [each.problem for each in storage.states(problems)] == [MISSING, MISSING, DIRECTORY, OUTSIDE, OUTSIDE]


@pytest.mark.parametrize("name", ["%2e%2e/secret", "..%2fsecret", "data/.\t./.\t./secret", "data\\..\\..\\secret"])
def test_hidden_dot_segments_are_outside(root: Path, storage: TableStorage, name: str) -> None:
    """A name that some reader follows out of the location is not looked at."""
    assert storage.states([f"{root}/{name}"]) == [FileState(None, OUTSIDE)]


def test_links_are_followed_inside_alone(root: Path, storage: TableStorage) -> None:
    """A link within the location has the size of its target. One that leads out, and a cycle, have none."""
    (root / "inside").symlink_to(root / "data" / "file")
    (root / "outside").symlink_to(root.parent / "secret")
    (root / "directory").symlink_to(root.parent)
    (root / "cycle").symlink_to(root / "cycle")
    states = storage.states([f"{root}/inside", f"{root}/outside", f"{root}/directory/secret", f"{root}/cycle"])

    assert states[:3] == [FileState(5), FileState(None, OUTSIDE), FileState(None, OUTSIDE)]
    assert states[3].size is None
    with pytest.raises(OutsideRoots):
        storage.read(f"{root}/outside", bytes_max=10)


def test_read_is_bounded(root: Path, storage: TableStorage) -> None:
    """A file is read up to a size. A directory, a missing file and a special file are errors of their own."""
    assert storage.read(f"{root}/data/file", bytes_max=5) == b"12345"
    with pytest.raises(TooLarge, match="more than 4 bytes"):
        storage.read(f"{root}/data/file", bytes_max=4)
    with pytest.raises(InvalidTable, match="a directory"):
        storage.read(f"{root}/data", bytes_max=5)
    with pytest.raises(MissingFile):
        storage.read(f"{root}/none", bytes_max=5)
    (root / "zeros").symlink_to("/dev/zero")
    with pytest.raises(OutsideRoots):
        storage.read(f"{root}/zeros", bytes_max=5)


def test_all_reads_of_an_object_are_bounded(root: Path, storage: TableStorage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sizes of the files that are read are added up: after too many bytes no file is opened."""
    monkeypatch.setattr(storage_module, "BYTES_MAX", 10)
    for _ in range(3):
        storage.read(f"{root}/data/file", bytes_max=5)
    with pytest.raises(TooLarge, match="more than 10 bytes"):
        storage.read(f"{root}/data/file", bytes_max=5)


def test_store_without_credentials_is_refused() -> None:
    """Executors read no S3 without credentials, and no other store."""
    for location in ("s3://bucket/table", "gs://bucket/table", "abfs://box@host/table", "oss://bucket/t", "x"):
        with pytest.raises(UnsupportedOperation):
            files_for([location], {})


def test_spellings_of_a_location_have_one_key() -> None:
    """Spellings of different clients are the same file."""
    assert len({location_key(each) for each in ("/a/b", "file:/a/b", "file:///a/b", "//a/b", "/a//b/")}) == 1
    assert len({location_key(each) for each in ("s3://b/k", "s3a://b/k", "s3n://b/k/")}) == 1
    assert location_key("s3://b/k") != location_key("gs://b/k")
