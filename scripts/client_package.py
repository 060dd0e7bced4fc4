# SPDX-License-Identifier: Apache-2.0
"""The distribution `limnos-client`: the command line and the client alone, from the same tree (decision record 0338).

It has the modules of the command line and of the client, with those that they import when they are imported. Each is
the same file as in the distribution `limnos`, so that installing that one over it leaves a whole installation.
"""

from __future__ import annotations

import ast
import json
import shutil
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

NAME: Final = "limnos-client"
PARTS: Final = ("access/actions.py", "cli", "client", "config", "manifests", "rooms/sqlpp/language/hints.py")
"""What is in it below `limnos`: packages, and modules that commands import only when they need them."""
ROOM_PARTS: Final = ("manifest.py", "cli", "client")
"""What it has of each room, below the room's folder."""
_BUILDER: Final = "hatchling"
_README: Final = """# limnos-client

The command line `limnos` and the Python client of [Limnos](https://pypi.org/project/limnos/), a metadata lake, without
its server: `limnos login`, `limnos list`, `limnos.client.connect()`. `pip install 'limnos[server]'` has all of it, and
is the one to install for a server, for pipelines and for `limnos demo`.
"""


def client_files(source: Path) -> list[Path]:
    """Return the files of the distribution below `source`, the folder `src`, sorted."""
    root = source / "limnos"
    own = [root / "__init__.py", root / "py.typed", *_files_below(root / each for each in PARTS)]
    rooms = sorted((root / "rooms").iterdir())
    own += _files_below(room / part for room in rooms for part in ROOM_PARTS)
    return sorted(_with_imports(own, source))


def _files_below(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from (each for each in path.rglob("*") if each.is_file() and each.suffix != ".pyc")
        elif path.is_file():
            yield path


def _with_imports(files: Iterable[Path], source: Path) -> set[Path]:
    """Return files with the modules of the product that they import at the level of the module, and all packages of
    these modules.
    """
    known, waiting = set[Path](), list(files)
    while waiting:
        file = waiting.pop()
        if file in known:
            continue
        known.add(file)
        if file.suffix != ".py":
            continue
        packages = [each / "__init__.py" for each in file.parents if each.is_relative_to(source / "limnos")]
        waiting += [each for each in packages if each.is_file()]
        names = _imported_names(ast.parse(file.read_bytes()).body)
        waiting += [module for name in names if (module := _module_file(name, source)) is not None]
    return known


def _imported_names(body: Iterable[ast.stmt]) -> Iterator[str]:
    """Yield the names of modules, and of what is imported from modules, outside of functions and of what only type
    checkers read.
    """
    for statement in body:
        if isinstance(statement, ast.Import):
            yield from (each.name for each in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.module:
            yield statement.module
            yield from (f"{statement.module}.{each.name}" for each in statement.names)
        elif isinstance(statement, ast.If):
            is_for_type_checkers = isinstance(statement.test, ast.Name) and statement.test.id == "TYPE_CHECKING"
            yield from _imported_names(() if is_for_type_checkers else (*statement.body, *statement.orelse))
        elif isinstance(statement, ast.Try):
            yield from _imported_names(statement.body)


def _module_file(name: str, source: Path) -> Path | None:
    """Return the file of a module of the product; None for other names."""
    if name.partition(".")[0] != "limnos":
        return None
    path = source.joinpath(*name.split("."))
    return next((each for each in (path.with_suffix(".py"), path / "__init__.py") if each.is_file()), None)


def write_project(root: Path, folder: Path, *, build_file: Mapping[str, str] | None = None) -> None:
    """Write the project of the distribution into a folder: its files, and a `pyproject.toml` with the version and
    the base dependencies of the project at `root`.

    `build_file` is the content of `limnos/build.json`: which commit is built, and when.
    """
    source = root / "src"
    for file in client_files(source):
        target = folder / "src" / file.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    if build_file is not None:
        (folder / "src/limnos/build.json").write_text(json.dumps(build_file) + "\n", encoding="utf-8")
    shutil.copyfile(root / "LICENSE", folder / "LICENSE")
    (folder / "README.md").write_text(_README, encoding="utf-8")
    stated = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    (folder / "pyproject.toml").write_text(_project_text(stated["project"]), encoding="utf-8")


def _project_text(stated: Mapping[str, object]) -> str:
    """Return the `pyproject.toml` of the distribution. JSON's texts and lists of texts are also those of TOML."""
    same = ("version", "requires-python", "license", "license-files", "keywords", "classifiers", "dependencies")
    values: dict[str, object] = {
        "name": NAME,
        "description": "The command line and the Python client of Limnos, a metadata lake, without its server.",
        "readme": "README.md",
        **{each: stated[each] for each in same},
    }
    lines = ["[project]", *(f"{name} = {json.dumps(value)}" for name, value in values.items())]
    authors = ", ".join(f"{{ name = {json.dumps(each['name'])} }}" for each in _tables(stated["authors"]))
    lines += [f"authors = [{authors}]"]
    for part in ("urls", "scripts"):
        table = stated[part]
        assert isinstance(table, dict)
        lines += ["", f"[project.{part}]", *(f"{name} = {json.dumps(value)}" for name, value in table.items())]
    lines += [
        "",
        "[build-system]",
        f'requires = ["{_BUILDER}"]',
        f'build-backend = "{_BUILDER}.build"',
        "",
        "[tool.hatch.build.targets.wheel]",
        'packages = ["src/limnos"]',
    ]
    return "\n".join(lines) + "\n"


def _tables(value: object) -> list[dict[str, str]]:
    assert isinstance(value, list)
    return value
