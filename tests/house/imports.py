# SPDX-License-Identifier: Apache-2.0
"""Which modules import which, including imports for types."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.house.tidy import SourceFile


def imported(source: SourceFile) -> list[tuple[str, str]]:
    """Return each import of a file: `from a import b` as ("a", "b"), `import a` as ("a", "")."""
    pairs = [(alias.name, "") for node in source.nodes(ast.Import) for alias in node.names]
    return pairs + [(node.module or "", alias.name) for node in source.nodes(ast.ImportFrom) for alias in node.names]


def import_graph(imports: Mapping[str, Iterable[tuple[str, str]]]) -> dict[str, set[str]]:
    """Return which modules import which others; imports of each file by its path, as `imported` returns them."""
    by_module = {SourceFile(path, "").module: pairs for path, pairs in imports.items()}
    graph = {}
    for module, pairs in by_module.items():
        names = {inner if (inner := f"{origin}.{name}") in by_module else origin for origin, name in pairs}
        graph[module] = {name for name in names if name in by_module and name != module}
    return graph


def imports_of(folder: Path) -> dict[str, set[str]]:
    """Return which modules below a folder import which others."""
    return import_graph(
        {
            path: imported(SourceFile(path, file.read_text(encoding="utf-8")))
            for file in folder.rglob("*.py")
            for path in [file.relative_to(folder).as_posix()]
        }
    )
