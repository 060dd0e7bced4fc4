# SPDX-License-Identifier: Apache-2.0
"""Pipelines that come with the product: declarations over system tables, to run by name, or to copy and to change.

Must not know commands. Each is a file of this package, in which `CATALOG` stands for the catalog of its tables.
"""

from __future__ import annotations

import json
import re
from importlib.resources import files
from pathlib import Path
from typing import Final

from limnos.model.errors import BadRequest

_PREFIX: Final = "shipped:"
_CATALOG: Final = "main"
_PLACEHOLDER: Final = "CATALOG"
_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


def shipped_pipelines() -> dict[str, str]:
    """Return the comments of the pipelines by name."""
    names = sorted(each.name.removesuffix(".yaml") for each in files(__name__).iterdir() if each.name.endswith(".yaml"))
    return {name: _comment_of(_template(name)) for name in names}


def shipped_reference(path: str) -> tuple[str, str] | None:
    """Return the name and catalog that `shipped:NAME` (catalog main) or `shipped:NAME@CATALOG` means; None for the path
    of a file.
    """
    if not path.startswith(_PREFIX):
        return None
    name, _, catalog = path.removeprefix(_PREFIX).partition("@")
    return name, catalog or _CATALOG


def absolute_path(path: Path) -> Path:
    """Return the absolute path of a pipeline's file; the name of a shipped pipeline stays as it is."""
    return path if shipped_reference(str(path)) is not None else path.absolute()


def shipped_declaration(name: str, catalog: str) -> str:
    """Return the text of a pipeline's file, with its tables in a catalog. Raises BadRequest for an unknown name."""
    names = shipped_pipelines()
    if name not in names:
        raise BadRequest(f"No pipeline {name[:50]} comes with Limnos: there are {', '.join(names)}")
    catalog_text = catalog if _PLAIN.fullmatch(catalog) else json.dumps(catalog)
    return (
        _template(name)
        .replace(f"catalog: {_PLACEHOLDER}\n", f"catalog: {catalog_text}\n")
        .replace(_PLACEHOLDER, catalog)
    )


def _template(name: str) -> str:
    return files(__name__).joinpath(f"{name}.yaml").read_text(encoding="utf-8")


def _comment_of(text: str) -> str:
    lines = (line.removeprefix("comment: ") for line in text.splitlines() if line.startswith("comment: "))
    return next(lines, "")
