# SPDX-License-Identifier: Apache-2.0
"""`python scripts/without_room.py ROOM [PYTEST ARGUMENT…]`: delete a room from a copy of the tree, test the rest.

Copies the files of the work tree, without the room's folders below src/limnos/rooms and tests/rooms and without the
packages that its manifest names, and runs pytest there. Without arguments it runs a sample, as `make test` does. Tests
that need the room are left out by `tests/installed.py`; those of tests/house, which hold rules about all rooms, too.
The exit code is that of pytest.

`--turn` in place of ROOM takes two rooms, others for each commit. A server is started without each
(`conformance/run rooms`), and a small sample runs, of tests that start nothing: some minutes for both.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from limnos.manifests.installed import installed_rooms

ROOT: Final = Path(__file__).parents[1]
SAMPLE: Final = ("-q", "-n", "2", "--dist", "loadgroup", "--sampled")
SMALL: Final = (*SAMPLE, "--few", "-m", "not integration and not spark and not heavy")


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


def rooms_in_turn(rooms: Sequence[str], number: int) -> tuple[str, str]:
    """Return two rooms for a number. Numbers that follow each other give all pairs."""
    first = number % len(rooms)
    distance = 1 + number // len(rooms) % (len(rooms) - 1)
    return rooms[first], rooms[(first + distance) % len(rooms)]


def run_without(room: str, arguments: Sequence[str], number: int) -> int:
    """Run pytest on a copy of the tree without a room. Returns its exit code."""
    folders = room_folders(room)
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder).resolve() / "tree"
        print(f"without {room}: {copy_without(folders, tree)} files left out ({', '.join(folders)})", flush=True)
        command = [sys.executable, "-m", "pytest", "--ignore", "tests/house", *arguments]
        part = {"LIMNOS_TEST_PART": str(number), **os.environ}
        environment = {**part, "PYTHONPATH": str(tree / "src")}
        return subprocess.run(command, cwd=tree, env=environment, check=False).returncode


def main() -> int:
    """Copy, test, and return the exit code."""
    if len(sys.argv) < 2:
        sys.exit(f"usage: {sys.argv[0]} ROOM|--turn [PYTEST ARGUMENT...]")
    room, *arguments = sys.argv[1:]
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    number = int(commit, 16)
    if room != "--turn":
        return run_without(room, arguments or SAMPLE, number)
    rooms = rooms_in_turn([each.name for each in installed_rooms().manifests], number)
    print(f"this commit's rooms: {' and '.join(rooms)}", flush=True)
    start = subprocess.run([sys.executable, "-m", "conformance.rooms", *rooms], cwd=ROOT, check=False).returncode
    return max(start, *(run_without(each, arguments or SMALL, number) for each in rooms))


if __name__ == "__main__":
    sys.exit(main())
