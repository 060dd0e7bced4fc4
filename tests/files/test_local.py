# SPDX-License-Identifier: Apache-2.0
"""Local files: written once, read completely, missing after a delete, with any name that the operating system
allows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.fs
import pytest
from pyiceberg.io.pyarrow import PyArrowFileIO

from limnos.files import FileStore, store_for
from limnos.model.errors import (
    AlreadyExists,
    BadRequest,
    MissingFile,
    NoSpace,
    ServiceUnavailable,
    StorageFailed,
    TooLarge,
)

NAMES = ["plain", "a b", "c%20d", "100%", "é ü", "日本", "🦆", "x:y", "q?x#y", "...", "-", "\\", "'\"", "a+b", "~"]


@pytest.fixture
def files() -> FileStore:
    """The store of local files."""
    return store_for("file:///", {})


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("prefix", ["", "file:", "file://"])
def test_a_file_round_trips_under_any_name(files: FileStore, tmp_path: Path, name: str, prefix: str) -> None:
    """The text after `file:` is the path itself: parent directories are created, and nothing is decoded."""
    files.write_new(f"{prefix}{tmp_path}/{name}/metadata/{name}.json", b"{}")

    assert files.read(f"{prefix}{tmp_path}/{name}/metadata/{name}.json") == b"{}"
    assert (tmp_path / name / "metadata" / f"{name}.json").read_bytes() == b"{}"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("existing_directory", ["", "t", "t/metadata"])
def test_the_first_file_of_a_table_makes_its_directories(
    files: FileStore, tmp_path: Path, name: str, existing_directory: str
) -> None:
    """Writing the first file of a table creates its missing directories, at any depth."""
    root = tmp_path / "warehouse" / name
    (root / existing_directory if existing_directory else tmp_path).mkdir(parents=True, exist_ok=True)

    files.write_new(f"file://{root}/t/metadata/{name}.json", b"{}", first=True)

    assert (root / "t" / "metadata" / f"{name}.json").read_bytes() == b"{}"


def test_uncreatable_directory_reports_system_error(files: FileStore) -> None:
    """If a directory cannot be created, even directly below the root of the file system, the operating system's error
    is reported.
    """
    with pytest.raises(StorageFailed):
        files.write_new("/proc/limnos/x.json", b"{}", first=True)
    with pytest.raises((StorageFailed, AlreadyExists)):
        files.write_new("/proc/version", b"{}", first=True)


@pytest.mark.parametrize("name", ["plain", "a b", "c%20d", "é ü"])
def test_pyiceberg_opens_written_file(files: FileStore, tmp_path: Path, name: str) -> None:
    """PyIceberg's default reader opens the file at the same location to which it was written."""
    location = f"file:{tmp_path}/{name}/v1.json"
    files.write_new(location, b"body")
    scheme, netloc, path = PyArrowFileIO.parse_location(location)

    assert PyArrowFileIO().fs_by_scheme(scheme, netloc).open_input_file(path).read() == b"body"
    assert pyarrow.fs.LocalFileSystem().open_input_file(path).read() == b"body"


def test_a_file_is_never_overwritten(files: FileStore, tmp_path: Path) -> None:
    """A second write to a name is refused, and the first one's bytes do not change."""
    location = f"{tmp_path}/v1.json"
    files.write_new(location, b"first")

    with pytest.raises(AlreadyExists, match="write under a fresh name") as caught:
        files.write_new(location, b"second")
    assert caught.value.kind == "file"
    assert files.read(location) == b"first"


def test_exactly_one_concurrent_writer_succeeds(files: FileStore, tmp_path: Path) -> None:
    """Of concurrent writers of one name, which also create its parent directories, exactly one succeeds, and the file
    has its bytes.
    """
    location = f"{tmp_path}/deep/er/v1.json"

    def attempt(number: int) -> int | None:
        try:
            files.write_new(location, str(number).encode())
        except AlreadyExists:
            return None
        return number

    with ThreadPoolExecutor(8) as pool:
        winners = [number for number in pool.map(attempt, range(32)) if number is not None]

    assert [files.read(location)] == [str(number).encode() for number in winners]


def test_failed_write_deletes_its_file(files: FileStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the disk is full, the error allows a retry, and no incomplete file remains."""

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(NoSpace, match="No space left on device"):
        files.write_new(f"{tmp_path}/v1.json", b"body")
    assert list(tmp_path.iterdir()) == []


def test_short_writes_are_continued(files: FileStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the operating system writes few bytes at a time, all bytes are written."""
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, bytes(data[:3])))
    files.write_new(f"{tmp_path}/v1.json", b"0123456789")

    assert files.read(f"{tmp_path}/v1.json") == b"0123456789"


@pytest.mark.parametrize("below", ["absent.json", "no/such/parent.json", "file/below.json", "directory", "n" * 300])
def test_missing_file_message_matches_iceberg_readers(files: FileStore, tmp_path: Path, below: str) -> None:
    """The message about a missing file begins as Iceberg's readers expect, and has the location as it was given."""
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "directory").mkdir()
    location = f"file:{tmp_path}/{below}"

    with pytest.raises(MissingFile) as caught:
        files.read(location)
    assert caught.value.message.startswith(f"Failed to open input stream for file: {location}")
    assert files.exists(location) is False


def test_pipe_is_reported_as_missing_without_blocking(files: FileStore, tmp_path: Path) -> None:
    """A pipe or another special file is reported as missing, and reading it returns immediately."""
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(MissingFile, match="not a file"):
        files.read(f"{tmp_path}/pipe")


def test_deleted_file_does_not_exist(files: FileStore, tmp_path: Path) -> None:
    """A deleted file does not exist. Deleting it again is no error, also below a path that is no directory."""
    location = f"file://{tmp_path}/v1.json"
    files.write_new(location, b"")
    before = files.exists(location)
    for _ in range(2):
        files.delete(location)

    files.write_new(location, b"")
    files.delete(f"{location}/below")
    assert before is True
    assert files.exists(location) is True


def test_a_file_has_a_length(files: FileStore, tmp_path: Path) -> None:
    """The length of a file is in bytes, and can be 0. A missing file and a directory have no length."""
    for size in (0, 9):
        files.write_new(f"file://{tmp_path}/{size}", b"x" * size)

    assert [files.size(f"file://{tmp_path}/{name}") for name in ("0", "9", "gone", "9/below", "")] == [
        0,
        9,
        None,
        None,
        None,
    ]


def test_a_directory_is_never_deleted(files: FileStore, tmp_path: Path) -> None:
    """Deleting a directory is refused, and its content is not touched."""
    (tmp_path / "table").mkdir()
    (tmp_path / "table" / "data").write_bytes(b"x")

    with pytest.raises((StorageFailed, ServiceUnavailable), match="Could not delete"):
        files.delete(f"{tmp_path}/table")
    assert (tmp_path / "table" / "data").read_bytes() == b"x"


def test_file_over_read_limit_is_refused(files: FileStore, tmp_path: Path) -> None:
    """A file of the limit's length is read; a file with one byte more is refused."""
    files.write_new(f"{tmp_path}/ten", b"0123456789")

    assert files.read(f"{tmp_path}/ten", bytes_max=10) == b"0123456789"
    with pytest.raises(TooLarge, match="larger than 9 bytes"):
        files.read(f"{tmp_path}/ten", bytes_max=9)


def test_missing_permission_error_has_reason_and_hint(
    files: FileStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For every call, missing permissions are StorageFailed with the system's reason and a hint."""

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    for name in ("open", "stat", "unlink"):
        monkeypatch.setattr(os, name, refuse)
    location = f"{tmp_path}/x"
    calls: list[Callable[[], object]] = [
        lambda: files.write_new(location, b""),
        lambda: files.read(location),
        lambda: files.exists(location),
        lambda: files.delete(location),
    ]

    for call in calls:
        with pytest.raises(StorageFailed, match=r"Permission denied\. Check that"):
            call()


def test_location_with_parent_segment_is_refused(files: FileStore, tmp_path: Path) -> None:
    """A location with a parent segment is refused before any file is touched."""
    (tmp_path / "secret").write_bytes(b"x")

    with pytest.raises(BadRequest, match="segment"):
        files.read(f"{tmp_path}/warehouse/../secret")


def test_listing_has_only_files_directly_in_directory(files: FileStore, tmp_path: Path) -> None:
    """A list has name, size and time of the files directly in a directory, without directories and links. A missing
    directory gives an empty list.
    """
    files.write_new(f"{tmp_path}/d/a", b"123")
    files.write_new(f"{tmp_path}/d/below/b", b"")
    (tmp_path / "d" / "link").symlink_to(tmp_path / "d" / "a")

    (entry,) = files.entries(f"{tmp_path}/d")

    assert (entry.name, entry.size) == ("a", 3)
    assert entry.modified_ms > 0
    assert files.entries(f"{tmp_path}/none") == []


def test_hard_link_is_created_once(files: FileStore, tmp_path: Path) -> None:
    """A hard link to a file is created once. If the name has the same bytes already it succeeds, else it is refused. A
    missing source or a link as source is a missing file.
    """
    for name, data in (("a", b"1"), ("same", b"1"), ("other", b"2")):
        files.write_new(f"{tmp_path}/{name}", data)
    (tmp_path / "link").symlink_to(tmp_path / "a")

    for _ in range(2):
        files.link_new(f"{tmp_path}/a", f"{tmp_path}/new")
    files.link_new(f"{tmp_path}/same", f"{tmp_path}/new")

    assert (tmp_path / "new").read_bytes() == b"1"
    with pytest.raises(AlreadyExists):
        files.link_new(f"{tmp_path}/other", f"{tmp_path}/new")
    for source in ("none", "link"):
        with pytest.raises(MissingFile):
            files.link_new(f"{tmp_path}/{source}", f"{tmp_path}/newer")


def test_link_is_retried_if_existing_name_disappears(
    files: FileStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the file with the name, or the source, disappears during the call, the link is created, or the source is
    reported as missing.
    """
    for name in ("a", "b"):
        files.write_new(f"{tmp_path}/{name}", b"1")
    link, interruptions = os.link, [lambda: None, (tmp_path / "b").unlink]

    def link_or_raise(source: str, target: str, *, follow_symlinks: bool) -> None:
        if interruptions:
            interruptions.pop(0)()
            raise FileExistsError
        link(source, target, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(os, "link", link_or_raise)
    with pytest.raises(MissingFile):
        files.link_new(f"{tmp_path}/b", f"{tmp_path}/new")
    interruptions.append(lambda: None)
    files.link_new(f"{tmp_path}/a", f"{tmp_path}/new")

    assert (tmp_path / "new").read_bytes() == b"1"


def test_a_file_is_moved(files: FileStore, tmp_path: Path) -> None:
    """A file is moved to a location whose directory is created. If the file was moved already, this is no error."""
    files.write_new(f"{tmp_path}/a", b"1")

    for _ in range(2):
        files.move(f"{tmp_path}/a", f"{tmp_path}/aside/b")

    assert (tmp_path / "aside" / "b").read_bytes() == b"1"
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("existing_file", ["a/b/f", "a/.hidden", "a"])
def test_location_with_file_at_or_below_is_not_empty(files: FileStore, tmp_path: Path, existing_file: str) -> None:
    """A location is not empty if a file is at it or anywhere below it. A file beside it does not count."""
    files.write_new(f"{tmp_path}/{existing_file}", b"")
    files.write_new(f"{tmp_path}/ab", b"")

    assert not files.is_empty(f"{tmp_path}/a")


def test_directories_alone_are_empty(files: FileStore, tmp_path: Path) -> None:
    """A missing location, and directories without files, are empty. A link counts as a file, whatever its target is."""
    absent = files.is_empty(f"{tmp_path}/a/b")
    (tmp_path / "a" / "b").mkdir(parents=True)
    directories = files.is_empty(f"{tmp_path}/a")
    (tmp_path / "a" / "b" / "link").symlink_to(tmp_path)
    linked = files.is_empty(f"{tmp_path}/a")
    (tmp_path / "top").symlink_to(tmp_path / "nothing")

    assert (absent, directories, linked, files.is_empty(f"{tmp_path}/top")) == (True, True, False, False)


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the paths for which size and time are read. A list of names reads none."""
    paths: list[str] = []
    look = os.lstat

    def lstat(path: str) -> os.stat_result:
        paths.append(str(path))
        return look(path)

    monkeypatch.setattr(os, "lstat", lstat)
    return paths


def test_selection_is_made_from_file_names(files: FileStore, tmp_path: Path, looked: list[str]) -> None:
    """The selection is made from all file names, without directories and links. A file that disappears meanwhile is
    omitted.
    """
    for name in ("a", "b", "c", "inner/d"):
        files.write_new(f"{tmp_path}/d/{name}", b"123")
    (tmp_path / "d" / "link").symlink_to(tmp_path / "d" / "a")
    seen: list[str] = []

    def choose(names: list[str]) -> list[str]:
        seen.extend(sorted(names))
        return ["b", "gone"]

    looked.clear()
    entries = files.list_selected(f"{tmp_path}/d", choose)

    assert seen == ["a", "b", "c"]
    assert [(each.name, each.size, each.modified_ms > 0) for each in entries] == [("b", 3, True)]
    assert looked == [f"{tmp_path}/d/b", f"{tmp_path}/d/gone"]
    assert files.list_selected(f"{tmp_path}/none", lambda names: names) == []


def test_check_for_files_stops_at_first_file(files: FileStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check for files reads a directory up to its first file. It enters subdirectories, but not links."""
    files.write_new(f"{tmp_path}/full/inner/file", b"")
    (tmp_path / "empty" / "inner").mkdir(parents=True)
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "way").symlink_to(tmp_path / "full")

    checks = [files.holds(f"{tmp_path}/{name}") for name in ("full", "empty", "linked", "none", "full/inner/file")]
    read: list[str] = []
    monkeypatch.setattr(os, "scandir", _counting(read, os.scandir))
    for name in range(9):
        (tmp_path / "full" / f"{name}").touch()

    assert checks == [True, False, False, False, False]
    assert files.holds(f"{tmp_path}/full")
    assert len(read) <= 2, "the directory `inner` and the first file at most"


def _counting(read: list[str], scandir: Callable[..., Any]) -> Callable[..., Any]:
    """Return a `scandir` that records which entries were read."""

    @contextmanager
    def counted(path: str) -> Iterator[Iterator[os.DirEntry[str]]]:
        with scandir(path) as entries:
            yield (read.append(each.name) or each for each in entries)  # type: ignore[func-returns-value]

    return counted
