# SPDX-License-Identifier: Apache-2.0
"""Files in the directory of a pipeline's file: SQL files and Python modules.

Reads the files that a declaration names. They must be inside that directory, so that it is self-contained. Must not
know the use of the files. Raises `ValueError` with a message for the user; the caller adds the position.
"""

from __future__ import annotations

import ast
import difflib
import itertools
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")
TEXT_BYTES_MAX = 1_000_000
FILES_LOOKED_AT = 1_000
"""The largest number of files among which one with a similar name is looked for."""


def is_url(written: str) -> bool:
    """Return whether a path as written is a URL, such as `s3://lake/orders.csv`."""
    return _URL.match(written) is not None


def files_are_missing(written: str, *, directory: Path) -> bool:
    """Return whether a path or pattern of local files matches nothing.

    Returns False for URLs and for patterns that only Spark understands (`{}`, `[]`, backslash), because they are not
    checked.
    """
    if is_url(written) or set("{}[]\\") & set(written):
        return False
    path = Path(written)
    root = Path(path.anchor) if path.is_absolute() else directory
    pattern = str(path.relative_to(path.anchor)) if path.is_absolute() else str(path)
    return next(root.glob(pattern), None) is None


@dataclass(frozen=True, slots=True)
class FunctionArgument:
    """An argument of a step's or source's Python function: its name, and whether it has no default."""

    name: str
    required: bool


@dataclass(frozen=True, slots=True)
class PipelineDirectory:
    """The directory of a pipeline's file. It resolves the paths and modules that the file names."""

    directory: Path

    def inside(self, written: str) -> Path:
        """Resolve a path inside the directory. Raises ValueError if it is outside, absolute, a URL or missing."""
        path = Path(written)
        if path.is_absolute() or is_url(written):
            raise ValueError(f"'{written}' is not inside the pipeline's directory: write a path relative to its file")
        result = (self.directory / path).resolve()
        if not result.is_relative_to(self.directory.resolve()):
            raise ValueError(f"'{written}' is outside of the pipeline's directory; move it to that directory or below")
        if not result.exists():
            raise ValueError(f"there is no '{written}' in {self.directory}{self._nearest(path)}")
        return result

    def _nearest(self, path: Path) -> str:
        """Return a clause with the file of the most similar name, in the directory that was meant or its neighbours."""
        parent = self.directory / path.parent
        folder = parent if parent.is_dir() else self.directory
        names = [str(each.relative_to(self.directory)) for each in itertools.islice(folder.iterdir(), FILES_LOOKED_AT)]
        near = difflib.get_close_matches(str(path), sorted(names), n=1)
        return f"; did you mean '{near[0]}'?" if near else ""

    def text(self, written: str) -> str:
        """Read a UTF-8 file inside the directory.

        Raises ValueError if it is outside or missing, too large (`TEXT_BYTES_MAX`) or not UTF-8.
        """
        path = self.inside(written)
        try:
            if path.is_dir():
                raise ValueError(f"'{written}' is a directory: name a file in it")
            if path.stat().st_size > TEXT_BYTES_MAX:
                raise ValueError(f"'{written}' has more than {TEXT_BYTES_MAX:,} bytes")
            return path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(
                f"'{written}' is not UTF-8 text: byte {error.start} can't be read; save the file as UTF-8"
            ) from None
        except OSError as error:
            raise ValueError(f"'{written}' can't be read: {error.strerror}") from None

    def module(self, name: str) -> Path | None:
        """Find the file of a Python module inside the directory; returns None for an installed module.

        Raises ValueError if there is neither. Nothing is imported.
        """
        base = self.directory.joinpath(*name.split("."))
        for path in (base.with_suffix(".py"), base / "__init__.py"):
            if path.is_file():
                self.inside(str(path.relative_to(self.directory)))
                return path
        top = name.partition(".")[0]
        if not (self.directory / top).is_dir() and find_spec(top) is not None:
            return None
        raise ValueError(
            f"there is no module '{name}': neither {base.with_suffix('.py').name} beside the file nor installed"
        )

    def shipped_path(self, name: str) -> str | None:
        """Return the part of a module that is shipped to executors: its file or its top-level package.

        The path is relative to the directory. Returns None for an installed module.
        """
        path = self.module(name)
        if path is None:
            return None
        return path.relative_to(self.directory).parts[0]

    def arguments(self, function: str) -> tuple[FunctionArgument, ...] | None:
        """Return the arguments of `module:name`, read from the module's source.

        Returns None if the module is installed, or if a call or an import defines the function. Nothing is imported.
        Raises ValueError if the module or function is missing, or the source is not Python.
        """
        module, _, name = function.partition(":")
        path = self.module(module)
        if path is None:
            return None
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
        except (SyntaxError, UnicodeDecodeError) as error:
            line = getattr(error, "lineno", None)
            raise ValueError(f"{path}{f':{line}' if line else ''}: not Python: {error}") from None
        return _arguments(tree, name, module=module)


def _arguments(tree: ast.Module, name: str, *, module: str) -> tuple[FunctionArgument, ...] | None:
    functions = [node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    result = next((node for node in reversed(functions) if node.name == name), None)
    if result is None:
        if any(name in _bound_names(node) for node in tree.body):
            return None  # defined by a call or an import: only running it would show its arguments
        near = difflib.get_close_matches(name, [node.name for node in functions], n=1)
        raise ValueError(f"{module} has no function '{name}'" + (f"; did you mean '{near[0]}'?" if near else ""))
    arguments = result.args
    plain = [*arguments.posonlyargs, *arguments.args]
    needed = len(plain) - len(arguments.defaults)
    keyword_arguments = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return (
        *(FunctionArgument(one.arg, required=index < needed) for index, one in enumerate(plain)),
        *(FunctionArgument(one.arg, required=default is None) for one, default in keyword_arguments),
    )


def _bound_names(node: ast.stmt) -> frozenset[str]:
    """Return the names that a statement binds by assignment or import."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return frozenset(alias.asname or alias.name for alias in node.names)
    return frozenset(
        each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
    )
