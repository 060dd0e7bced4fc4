# SPDX-License-Identifier: Apache-2.0
"""`python scripts/without_room.py ROOM [PYTEST ARGUMENT…]`: delete a room from a copy of the tree, test the rest.

Copies the files of the work tree, without the room's folders below src/limnos/rooms and tests/rooms and without the
packages that its manifest names, and runs pytest there. Without arguments it runs a sample, as `make test` does. Tests
that need the room are left out by `tests/installed.py`; those of tests/house, which hold rules about all rooms, too.
The exit code is that of pytest.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from limnos.manifests.installed import installed_rooms

ROOT: Final = Path(__file__).parents[1]
SAMPLE: Final = ("-q", "-n", "2", "--dist", "loadgroup", "--sampled")


def room_folders(room: str) -> tuple[str, ...]:
    """Return the folders of a room, from the root, each with a slash at its end. Raises SystemExit for an unknown
    room.
    """
    manifests = {each.name: each for each in installed_rooms().manifests}
    if room not in manifests:
        sys.exit(f"{room}: no such room; one of {', '.join(sorted(manifests))}")
    packages = [f"limnos.rooms.{room}", *manifests[room].packages]
    folders = [package.removeprefix("limnos.").replace(".", "/") for package in packages]
    return tuple(f"{top}/{folder}/" for folder in folders for top in ("src/limnos", "tests"))


def own_files() -> Iterator[str]:
    """Yield the files of the work tree that git knows or would add, from the root."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    yield from filter(None, listed.stdout.split("\0"))


def copy_without(folders: tuple[str, ...], target: Path) -> int:
    """Copy the work tree without some folders. Returns the number of files left out."""
    left_out = 0
    for name in own_files():
        source = ROOT / name
        if not source.is_file():
            continue
        if name.startswith(folders):
            left_out += 1
            continue
        copy = target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, copy, follow_symlinks=False)
    (target / ".venv").symlink_to(ROOT / ".venv")
    return left_out


def main() -> int:
    """Copy, test, and return pytest's exit code."""
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} ROOM [PYTEST ARGUMENT...]")
    room, *arguments = sys.argv[1:]
    folders = room_folders(room)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder).resolve() / "tree"
        print(f"without {room}: {copy_without(folders, tree)} files left out ({', '.join(folders)})", flush=True)
        command = [sys.executable, "-m", "pytest", "--ignore", "tests/house", *(arguments or SAMPLE)]
        part = {"LIMNOS_TEST_PART": str(int(commit, 16)), **os.environ}
        environment = {**part, "PYTHONPATH": str(tree / "src")}
        return subprocess.run(command, cwd=tree, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
