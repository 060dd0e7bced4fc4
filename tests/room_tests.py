# SPDX-License-Identifier: Apache-2.0
"""The tests of rooms: `python -m tests.room_tests lance` prints their modules, and `make test ROOM=lance` runs them.

No list is kept by hand. A room's sources are its package below `limnos.rooms` with its manifest, the packages that the
manifest names, and then every module that only modules of the room import or name. Its tests are those that mirror
these sources; those with the name of the room, or of a protocol of its manifest, in their path; and those in a folder
of tests/ that is called like a section of its settings. `python -m tests.room_tests --changed` prints the tests of each
room that differs from main. Knows nothing of pytest.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from limnos.manifests.installed import installed_rooms
from limnos.manifests.manifest import Manifest
from tests.house import tidy

ROOT = Path(__file__).parents[1]


def mentions(root: Path = ROOT) -> dict[str, set[str]]:
    """Return which modules of the package each module imports, or names in a string."""
    sources = tidy.read_sources(root, "src")
    modules = {source.module for source in sources}
    return {source.module: tidy.mentioned_modules(source) & modules - {source.module} for source in sources}


def entry_points(root: Path = ROOT) -> set[str]:
    """Return the modules that the programs of an install start."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {target.partition(":")[0] for target in project["scripts"].values()}


def own_modules(room: str, graph: Mapping[str, Iterable[str]]) -> set[str]:
    """Return the modules that no other part of the product imports or names."""
    importers = defaultdict(set, {entry: {"the install"} for entry in entry_points()})
    for module, names in graph.items():
        for name in names:
            importers[name].add(module)
    packages = [each for manifest in installed_rooms().manifests if manifest.name == room for each in manifest.packages]
    folders = (f"limnos.rooms.{room}.", *(f"{package}." for package in packages))
    own = {module for module in graph if f"{module}.".startswith(folders)}
    while more := {module for module, users in importers.items() if module not in own and users <= own}:
        own |= more
    return own


def words_of(manifest: Manifest) -> set[str]:
    """Return the words by which a path says that its tests are of the room."""
    names = {manifest.name, *(entry.name for entry in manifest.protocols)}
    return names | {name.removesuffix("s") for name in names if not name.endswith("ss")}


def tests_of(manifest: Manifest, graph: Mapping[str, Iterable[str]], tests: Iterable[str]) -> Iterator[str]:
    """Yield those of some test modules, given by their paths from the root, that are the room's."""
    own, words = own_modules(manifest.name, graph), words_of(manifest)
    sections = {entry.name for entry in manifest.settings}
    sources = {"/".join(module.split(".")[1:]) for module in own}
    for test in tests:
        *parts, name = test.removeprefix("tests/").removesuffix(".py").split("/")
        subject = name.removeprefix("test_")
        starts = {subject[:end] for end, sign in enumerate(f"{subject}_") if sign == "_"}
        mirrored = {"/".join([*parts, start]) for start in starts}
        mirrored |= {"/".join(parts[:end]) for end in range(2, len(parts) + 1)}
        if mirrored & sources or words & {*parts, *subject.split("_")} or sections & {*parts[:1]}:
            yield test


def test_modules() -> list[str]:
    """Return every module of tests by its path from the root."""
    return sorted(file.relative_to(ROOT).as_posix() for file in (ROOT / "tests").rglob("test_*.py"))


def modules_of(room: str) -> list[str]:
    """Return the test modules of a room. Raises SystemExit for an unknown room."""
    manifests = {each.name: each for each in installed_rooms().manifests}
    if room not in manifests:
        sys.exit(f"ROOM={room}: no such room; one of {', '.join(sorted(manifests))}")
    return list(tests_of(manifests[room], mentions(), test_modules()))


def changed_files(root: Path = ROOT) -> list[str]:
    """Return the files that differ from the newest common commit with main. Raises SystemExit without one."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"git {' '.join(words)}: {done.stderr.strip()}; name the room: make test ROOM=lance")
        return done.stdout

    base = git("merge-base", "HEAD", "main").strip()
    return [*git("diff", "--name-only", base).splitlines(), *git("ls-files", "-o", "--exclude-standard").splitlines()]


def changed_modules(changed: Iterable[str]) -> list[str]:
    """Return the test modules of the rooms of which a source or a test is among some files."""
    graph, tests = mentions(), test_modules()
    files, chosen = set(changed), set()
    for manifest in installed_rooms().manifests:
        own = set(tests_of(manifest, graph, tests))
        sources = {f"src/{module.replace('.', '/')}" for module in own_modules(manifest.name, graph)}
        if files & {*own, *(f"{each}.py" for each in sources), *(f"{each}/__init__.py" for each in sources)}:
            chosen |= own
    return sorted(chosen)


if __name__ == "__main__":
    names = changed_modules(changed_files()) if sys.argv[1] == "--changed" else modules_of(sys.argv[1])
    sys.stdout.write("".join(f"{name}\n" for name in names))
