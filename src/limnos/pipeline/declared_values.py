# SPDX-License-Identifier: Apache-2.0
"""Values of which all declarations of pipelines consist: names of tables, constants, and positions in files."""

from __future__ import annotations

from typing import NamedTuple

Scalar = str | int | float | bool | None
Parts = tuple[str, ...]
"""The parts of a name. A table's first part is its catalog."""


class SourcePosition(NamedTuple):
    """A position in a source file; line and column count from one. For Python it is the function's first line."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        """Return `file:line:column`, which editors and terminals open."""
        return f"{self.file}:{self.line}:{self.column}"
