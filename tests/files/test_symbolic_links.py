# SPDX-License-Identifier: Apache-2.0
"""Files named by a caller: a symbolic link leads neither out of the roots nor into the server's own directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from limnos.files import AllowedStorage, allow_everything, local, read_within, real_path, refuse_alias
from limnos.model.errors import BadRequest, MissingFile, TooLarge


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with a file in it, and a file beside the root."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "in").write_bytes(b"in")
    (tmp_path / "out").write_bytes(b"out")
    return tmp_path / "root"


def read(root: Path, name: str, *, allowed: AllowedStorage | None = None) -> bytes:
    """Read a file of the root."""
    return read_within(f"file://{root}/{name}", [f"file://{root}"], allowed or allow_everything(), bytes_max=10)


@pytest.mark.parametrize("target", ["out", "none", "root/../out", "."])
def test_link_out_of_root_is_missing_file(root: Path, tmp_path: Path, target: str) -> None:
    """A link out of the root is reported as a missing file, whatever its target is."""
    (root / "link").symlink_to(tmp_path / target)

    with pytest.raises(MissingFile) as out:
        read(root, "link")
    with pytest.raises(MissingFile) as none:
        read(root, "none")
    assert out.value.message == none.value.message.replace("/none", "/link")


def test_links_within_are_followed(root: Path, tmp_path: Path) -> None:
    """Links within the root are followed, also if the root itself is a link's target. If a link's target is missing,
    the error has the requested name.
    """
    (tmp_path / "alias").symlink_to(root)
    (root / "link").symlink_to("in")
    (root / "broken").symlink_to("none")

    assert read(root, "link") == read(tmp_path / "alias", "link") == read(tmp_path / "alias", "in") == b"in"
    with pytest.raises(MissingFile, match="/broken"):
        read(root, "broken")


def test_link_into_server_directory_reaches_only_allowed_part(root: Path) -> None:
    """A link into the server's own directory is followed only to the allowed part of it, also if the directory is
    within a root.
    """
    for name in ("own", "own/open"):
        (root / name).mkdir()
        (root / name / "file").write_bytes(b"own")
    (root / "link").symlink_to("own/file")
    (root / "open").symlink_to("own/open/file")
    allowed_storage = AllowedStorage(
        (f"file://{root}",), own_directories=(f"file://{root}/own",), open_within=(f"file://{root}/own/open",)
    )

    assert read(root, "open", allowed=allowed_storage) == b"own"
    with pytest.raises(MissingFile):
        read(root, "link", allowed=allowed_storage)


def test_read_limit_applies_through_links(root: Path) -> None:
    """The size limit applies to reads through links, too."""
    (root / "large").write_bytes(bytes(11))

    with pytest.raises(TooLarge):
        read(root, "large")


def test_location_through_link_to_other_location_is_refused(root: Path, tmp_path: Path) -> None:
    """A location that leads through a link to another location within the roots is refused. A link to a root, or out of
    all roots, is accepted.
    """
    (root / "deep").mkdir()
    (root / "link").symlink_to(root / "in")
    (root / "way").symlink_to(root)
    (root / "away").symlink_to(tmp_path / "out")
    (tmp_path / "entry").symlink_to(root)
    roots = [f"file://{root}", f"file://{tmp_path}/entry", "s3://lake"]

    for name in ("root/in", "root/none/x", "root/deep", "entry/in", "root/away"):
        refuse_alias(f"file://{tmp_path}/{name}", roots)
    for name in ("root/link", "root/way/in", "root/way/deep/x", "entry/link"):
        with pytest.raises(BadRequest, match="symbolic link"):
            refuse_alias(f"file://{tmp_path}/{name}", roots)


@pytest.mark.parametrize("name", ["in", "none", "link/in", "link/none", "loop", "broken", "in (deleted)", "pipe", "."])
@pytest.mark.parametrize("has_proc", [True, False])
def test_real_path_equals_that_of_the_standard_library(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str, *, has_proc: bool
) -> None:
    """Paths of files, missing files, links, loops and pipes are resolved as `os.path.realpath` does, also without
    /proc.
    """
    (root / "link").symlink_to(root.parent / "root")
    (root / "loop").symlink_to("loop")
    (root / "broken").symlink_to("none")
    (root / "in (deleted)").write_bytes(b"")
    os.mkfifo(root / "pipe")
    if not has_proc:
        monkeypatch.setattr(local, "_PATH_ONLY", None)

    assert real_path(f"file://{root}/{name}".removesuffix("/.")) == f"file://{os.path.realpath(root / name)}"
