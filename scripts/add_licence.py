# SPDX-License-Identifier: Apache-2.0
"""Add the line of the licence to the source files that lack it: `make fix`.

The line stands first, or second after `#!`. Generated files are left alone. tests/house/test_licence.py reads the same
files.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
LICENCE: Final = "SPDX-License-Identifier: Apache-2.0"
COMMENTS: Final = {
    **dict.fromkeys((".py", ".sh"), "# {}"),
    **dict.fromkeys((".proto", ".js", ".java", ".go", ".rs"), "// {}"),
    ".css": "/* {} */",
}
"""How each language writes a comment of one line."""
FOLDERS: Final = ("src", "proto", "scripts", "tests", "conformance", "bench", "examples")


def source_files(root: Path = ROOT) -> Iterator[Path]:
    """Yield every source file that people write."""
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*")):
            if file.suffix in COMMENTS and not file.name.endswith("_pb2.py") and file.is_file():
                yield file


def licence_line(file: Path) -> str:
    """Return the line of the licence in the language of a file."""
    return COMMENTS[file.suffix].format(LICENCE)


def has_licence(file: Path) -> bool:
    """Return whether the line stands first, or second after `#!`."""
    with file.open(encoding="utf-8") as text:
        first = text.readline()
        line = text.readline() if first.startswith("#!") else first
    return line.rstrip("\n") == licence_line(file)


def add_licence(file: Path) -> None:
    """Write the line of the licence into a file that lacks it."""
    text = file.read_text(encoding="utf-8")
    start = text.index("\n") + 1 if text.startswith("#!") else 0
    file.write_text(f"{text[:start]}{licence_line(file)}\n{text[start:]}", encoding="utf-8")


def main() -> None:
    """Add the line to every file that lacks it, and print those files."""
    for file in source_files():
        if not has_licence(file):
            add_licence(file)
            sys.stdout.write(f"{file.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
