# SPDX-License-Identifier: Apache-2.0
"""Sentences of the docstrings of installed packages: real text of different lengths, without a download."""

from __future__ import annotations

import ast
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_END_OF_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n\n")
_LENGTHS: Final = range(30, 401)
_DOCUMENTED: Final = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def sentences(number: int) -> list[str]:
    """Return `number` different sentences, in the same order for the same packages.

    Raises ValueError if the installed packages have fewer.
    """
    different: dict[str, None] = {}
    for docstring in _docstrings(Path(sysconfig.get_path("purelib"))):
        for part in _END_OF_SENTENCE.split(docstring):
            text = " ".join(part.split())
            if len(text) in _LENGTHS and text.isprintable():
                different[text] = None
        if len(different) >= number:
            return list(different)[:number]
    raise ValueError(f"the docstrings of the installed packages have {len(different):,} sentences, not {number:,}")


def _docstrings(directory: Path) -> Iterator[str]:
    for file in sorted(directory.rglob("*.py")):
        try:
            tree = ast.parse(file.read_bytes())
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, _DOCUMENTED) and (docstring := ast.get_docstring(node)):
                yield docstring
