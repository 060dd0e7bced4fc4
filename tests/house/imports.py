# SPDX-License-Identifier: Apache-2.0
"""Which modules import which, including imports for types."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator
from pathlib import Path


def imports_of(source: Path) -> dict[str, set[str]]:
    """Return which modules below a folder import which others."""
    files = {
        ".".join(path.with_suffix("").relative_to(source).parts).removesuffix(".__init__"): path
        for path in source.rglob("*.py")
    }
    return {
        name: {each for each in imported(path.read_text(encoding="utf-8"), files) if each != name}
        for name, path in files.items()
    }


def imported(text: str, known: Container[str]) -> Iterator[str]:
    """Return the known modules that a text imports."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield from (name for name in (inner if inner in known else node.module or "",) if name in known)
