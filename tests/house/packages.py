# SPDX-License-Identifier: Apache-2.0
"""Sizes of the packages, and the number of imports from one package of a room to another.

`python -m tests.house.packages` prints the numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from tests.house.imports import imports_of

SRC = Path(__file__).parents[2] / "src"
FILES_MAX = 30
LINES_MAX = 6_000
ROOMS = ("services", "store", "http", "cli", "client", "rooms")
"""The rooms whose packages have limits on their size."""
KERNEL = "request"
"""The package of services on which all others are built. Imports of it are not counted."""
CROSS_EDGES_MAX = 168


class PackageSize(NamedTuple):
    """A folder of modules: its path below src, and its number of files and lines."""

    path: str
    files: int
    lines: int


def package_sizes(source: Path) -> Iterator[PackageSize]:
    """Yield the sizes of the packages in each room of `ROOMS`; inner packages count separately."""
    for room in ROOMS:
        files = sorted((source / "limnos" / room).rglob("*.py"), key=lambda file: file.parent)
        for folder, members in groupby(files, key=lambda file: file.parent):
            texts = (file.read_text(encoding="utf-8") for file in members)
            lines = [len(text.splitlines()) - text.startswith("# SPDX-") for text in texts]
            yield PackageSize(folder.relative_to(source).as_posix(), len(lines), sum(lines))


def oversized(source: Path) -> list[str]:
    """Return the packages with more files or lines than allowed."""
    return [
        f"{each.path}: {each.files} files, {each.lines} lines; {FILES_MAX} and {LINES_MAX} at most"
        for each in package_sizes(source)
        if each.files > FILES_MAX or each.lines > LINES_MAX
    ]


def cross_edges(imports: Mapping[str, set[str]], room: str = "services") -> list[tuple[str, str]]:
    """Return the imports from a module in one package of a room to a module in another, without those of the kernel.

    Each pair of modules counts once, including imports for types.
    """
    return sorted(
        (module, known)
        for module, every in imports.items()
        for known in every
        if (own := _package(module, room)) and (other := _package(known, room)) and KERNEL != other != own
    )


def _package(module: str, room: str) -> str:
    """Return the package of a room that contains a module; empty for a module outside of the room."""
    parts = module.split(".")
    return parts[2] if parts[:2] == ["limnos", room] and len(parts) > 2 else ""


def main() -> None:
    """Print the packages by size, and the imports between packages of services by pair of packages."""
    for size in sorted(package_sizes(SRC), key=lambda each: (-each.files, -each.lines)):
        print(f"{size.files:4} files {size.lines:6} lines  {size.path}")
    edges = cross_edges(imports_of(SRC))
    pairs = Counter((_package(module, "services"), _package(known, "services")) for module, known in edges)
    for (own, other), count in pairs.most_common():
        print(f"{count:4} {own} -> {other}")
    print(f"{len(edges):4} imports cross the walls of services")


if __name__ == "__main__":
    main()
