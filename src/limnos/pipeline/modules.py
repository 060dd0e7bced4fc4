# SPDX-License-Identifier: Apache-2.0
"""Python modules in pipelines' directories: imports that run the current code, and the code of a function as text.

Pipelines may have modules of the same name, and a file may change between two runs of one process. So the modules of
other directories are removed before an import, and those of the same directory are imported again for each run. The
code is recorded when it is imported, because the file may change while the imported code is in use. Must not know
declarations or Spark.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import importlib.util
import inspect
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

_SOURCES = "__limnos_sources__"
"""The name of a module's attribute with the code of its directory."""


@dataclass(frozen=True, slots=True)
class DirectoryCode:
    """The modules that a pipeline imported from its directory, with their text at the time of the import."""

    directory: Path
    others: frozenset[str]
    """The modules that were imported before by somebody else. They stay."""
    texts: dict[str, str] = field(default_factory=dict)

    def find_imported(self) -> dict[str, types.ModuleType]:
        """Return the imported modules that are files of the directory, by name."""
        modules = {name: module for name, module in list(sys.modules.items()) if name not in self.others}
        return {name: module for name, module in modules.items() if self._has(name, module)}

    def _has(self, name: str, module: types.ModuleType) -> bool:
        base = self.directory.joinpath(*name.split("."))
        return getattr(module, "__file__", None) in {str(base) + ".py", str(base / "__init__.py")}

    def text(self, module: str) -> str | None:
        """Return the text of a module, from its file if it is not imported yet; None if it is not in the directory."""
        if module in self.texts:
            return self.texts[module]
        base = self.directory.joinpath(*module.split("."))
        for path in (base.with_suffix(".py"), base / "__init__.py"):
            with contextlib.suppress(OSError, ValueError):
                return path.read_text(encoding="utf-8")
        return None


_CURRENT: list[DirectoryCode] = []
"""The directory of the pipeline that was loaded or bound last; at most one."""


def enter_directory(directory: Path, *, again: bool) -> None:
    """Put a directory at the head of `sys.path`, and remove the modules of other pipelines' directories.

    The directory stays there, because functions may import from it while they run. With `again`, its own modules are
    removed too, so that the next import runs the code that is there now. Functions that were imported before keep
    their code.
    """
    here = directory.resolve()
    if _CURRENT and (again or _CURRENT[0].directory != here):
        for name in _CURRENT.pop().find_imported():
            del sys.modules[name]
    if not _CURRENT:
        _CURRENT.append(DirectoryCode(here, others=frozenset(sys.modules)))
    sys.path[:] = [str(here), *(entry for entry in sys.path if entry != str(here))]
    importlib.invalidate_caches()


def import_module(name: str, directory: Path) -> types.ModuleType:
    """Import a module of the directory, or an installed module."""
    enter_directory(directory, again=False)
    code, writes = _CURRENT[0], sys.dont_write_bytecode
    sys.dont_write_bytecode = True  # a cached module counts as current if size and second of its file are the same
    try:
        return importlib.import_module(name)
    finally:
        sys.dont_write_bytecode = writes
        for new, module in code.find_imported().items():
            if new not in code.texts:
                with contextlib.suppress(OSError, ValueError):
                    code.texts[new] = Path(str(module.__file__)).read_text(encoding="utf-8")
                setattr(module, _SOURCES, code)


def imported_modules() -> tuple[types.ModuleType, ...]:
    """Return the modules that were imported from the directory of the pipeline that was loaded or bound last."""
    return tuple(_CURRENT[0].find_imported().values()) if _CURRENT else ()


def code_of(function: Callable[..., object]) -> str:
    """Return the code of a function: of its module, and of the modules of the same directory that it imports.

    Comments and layout are left out. Of a function that was not imported from a pipeline's directory (a notebook's, an
    installed package's), it is the compiled code of the function and of the functions and values that it names.
    """
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    names: dict[str, object] = getattr(function, "__globals__", {})
    code = names.get(_SOURCES)
    if not isinstance(code, DirectoryCode):
        return "\n".join(_compiled_code(function, seen=set()))
    return _code_text(str(names.get("__name__")), code)


def code_of_file(module: str, directory: Path) -> str | None:
    """Return the text that `code_of` would return for a function of a module, without importing it.

    Returns None if the module is not in the directory.
    """
    return _code_text(module, DirectoryCode(directory.resolve(), others=frozenset())) or None


def _code_text(module: str, code: DirectoryCode) -> str:
    texts: dict[str, str] = {}
    _collect(module, code, texts=texts)
    return "\n".join(f"# {name}\n{text}" for name, text in sorted(texts.items()))


def _collect(name: str, code: DirectoryCode, *, texts: dict[str, str]) -> None:
    """Add the text of a module and of the modules that it imports from the directory to `texts`."""
    text = code.text(name)
    if name in texts or text is None:
        return
    try:
        tree = ast.parse(text)
    except SyntaxError:
        texts[name] = text
        return
    texts[name] = ast.unparse(tree)
    is_package = code.directory.joinpath(*name.split("."), "__init__.py").is_file()
    package = name if is_package else name.rpartition(".")[0]
    for imported in _imports(tree, package=package):
        parts = imported.split(".")
        for length in range(1, len(parts) + 1):
            _collect(".".join(parts[:length]), code, texts=texts)


def _imports(tree: ast.Module, *, package: str) -> Iterator[str]:
    """Yield the names of all modules that the code may import, also those imported inside functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([base] if base else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _compiled_code(function: object, *, seen: set[int]) -> Iterator[str]:
    code = getattr(function, "__code__", None)
    if code is None:
        yield f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__name__)}"
        return
    if id(code) in seen:
        return
    seen.add(id(code))
    yield from _parts_of(code)
    values = [
        *(getattr(function, "__defaults__", None) or ()),
        *(getattr(function, "__kwdefaults__", None) or {}).values(),
    ]
    with contextlib.suppress(ValueError):  # an empty cell
        values += [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    names = getattr(function, "__globals__", {})
    for value in [*values, *(names[name] for name in sorted(_names_of(code)) if name in names)]:
        if isinstance(value, types.FunctionType) and value.__globals__ is names:
            yield from _compiled_code(value, seen=seen)
        elif isinstance(value, (str, bytes, int, float, bool, tuple, type(None))):
            yield repr(value)


def _parts_of(code: types.CodeType) -> Iterator[str]:
    yield code.co_code.hex()
    yield repr(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _parts_of(constant)
        else:  # the order of a set differs between processes
            yield repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant)


def _names_of(code: types.CodeType) -> set[str]:
    nested = (each for each in code.co_consts if isinstance(each, types.CodeType))
    return set(code.co_names).union(*(_names_of(each) for each in nested))
