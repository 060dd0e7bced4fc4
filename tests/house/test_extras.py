# SPDX-License-Identifier: Apache-2.0
"""At its top every module imports only packages of its own extras, so a wheel with one extra works.

Imports inside a function, below TYPE_CHECKING, or with a handler for their absence may be missing.
`conformance/installs` shows the same by installing the wheel.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.house.one_pass import PRODUCT, Look
from tests.house.tidy import SourceFile

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
NEEDS: Mapping[str, frozenset[str]] = {
    module: frozenset(extras.split())
    for module, extras in {
        "limnos": "",
        "limnos.pipeline": "pipelines",
        "limnos.pipeline.engine": "spark",
        "limnos.pipeline.run": "spark",
        "limnos.rooms.sqlpp.engine": "spark",
        "limnos.spark": "spark",
        "limnos.spark.lance": "spark lance",
        "limnos.pipeline.engine.lance": "spark lance",
        "limnos.access": "server",
        "limnos.app": "server",
        "limnos.files": "server",
        "limnos.formats": "server",
        "limnos.http": "server",
        "limnos.rooms": "server",
        "limnos.rooms.connectors.manifest": "",
        "limnos.rooms.console.manifest": "",
        "limnos.rooms.console.cli": "",
        "limnos.rooms.exchange.manifest": "",
        "limnos.rooms.exchange.cli": "",
        "limnos.rooms.gravitino.manifest": "",
        "limnos.rooms.jobs.manifest": "",
        "limnos.rooms.jobs.cli": "",
        "limnos.rooms.lance.manifest": "",
        "limnos.rooms.lance.cli": "",
        "limnos.rooms.maintenance.manifest": "",
        "limnos.rooms.maintenance.cli": "",
        "limnos.rooms.maintenance.engine": "spark",
        "limnos.rooms.pipelines.manifest": "",
        "limnos.rooms.pipelines.cli": "",
        "limnos.rooms.search.manifest": "",
        "limnos.rooms.search.cli": "",
        "limnos.rooms.sqlpp.manifest": "",
        "limnos.rooms.sqlpp.cli": "",
        "limnos.rooms.sqlpp.language": "",
        "limnos.services": "server",
        "limnos.sources": "server",
        "limnos.store": "server",
        "limnos.telemetry": "server",
        "limnos.testing": "server",
        "limnos.view": "server",
        "limnos.model.proto": "server",
        "limnos.model.records": "server",
        "limnos.model.stored_records": "server",
        "limnos.rooms.sqlpp.language.declarations": "server",
        "limnos.rooms.lance.app.adapter": "server lance",
        "limnos.rooms.lance.sources": "server lance",
        "limnos.store.backends.gate_connection": "server postgres",
        "limnos.store.backends.write_connections": "server postgres",
        "limnos.store.backends.postgres": "server postgres",
        "limnos.store.backends.postgres_session": "server postgres",
        "limnos.store.backends.postgres_snapshots": "server postgres",
        "limnos.store.backends.read_connections": "server postgres",
        "limnos.store.backends.postgres_errors": "server postgres",
        "limnos.rooms.connectors.sources.kafka": "server kafka",
        "limnos.rooms.connectors.sources.kafka_errors": "server kafka",
        "limnos.rooms.connectors.sources.metastore": "server hive",
        "limnos.sources.catalogs.glue_catalog": "server s3",
        "limnos.sources.catalogs.hive_catalog": "server hive",
        "limnos.sources.catalogs.metastore_connections": "server hive",
        "limnos.sources.catalogs.metastore_errors": "server hive",
        "limnos.rooms.connectors.sources.metastore_tables": "server hive",
        "limnos.rooms.connectors.sources.mysql": "server mysql",
    }.items()
}
"""The extras of each module; the longest name counts, and modules that are not listed work in the base install."""
SHARED = {"google.protobuf": "protobuf", "google.auth": "google-auth", "google.oauth2": "google-auth"}
"""Namespace packages that several distributions share."""


def needs(module: str, table: Mapping[str, frozenset[str]] = NEEDS) -> frozenset[str]:
    """Return the extras of a module."""
    parts = module.split(".")
    return next(table[name] for end in range(len(parts), 0, -1) if (name := ".".join(parts[:end])) in table)


def top_imports(source: SourceFile) -> frozenset[str]:
    """Return the modules that are imported together with a file."""
    return frozenset(imported_at_top(source.tree))


AT_TOP = Look(top_imports, *PRODUCT)


def imported_at_top(tree: ast.AST) -> Iterator[str]:
    """Return the modules that are imported together with a module, `from a import b` as `a.b`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.expr)
            or _is_for_types(node)
            or (isinstance(node, ast.Try) and any(_takes_absence(each) for each in node.handlers))
        ):
            continue
        else:
            yield from imported_at_top(node)


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def _takes_absence(handler: ast.ExceptHandler) -> bool:
    return (
        handler.type is not None and re.search("ImportError|ModuleNotFoundError", ast.unparse(handler.type)) is not None
    )


@cache
def brought(extras: frozenset[str]) -> frozenset[str]:
    """Return the names of the distributions in an installation with exactly these extras."""
    distributions: set[tuple[str, frozenset[str]]] = set()

    def add(name: str, wanted_extras: frozenset[str]) -> None:
        key = (name.lower().replace("_", "-"), wanted_extras)
        if key in distributions:
            return
        distributions.add(key)
        try:
            stated = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            return
        for text in stated:
            each = Requirement(text)
            if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in {"", *wanted_extras}):
                add(each.name, frozenset(each.extras))

    add("limnos", extras)
    return frozenset(name for name, _ in distributions)


@cache
def owners_of_packages() -> Mapping[str, list[str]]:
    """Return the distributions of each top-level package; cached, because the search is slow."""
    return metadata.packages_distributions()


def lacking(names: Iterable[str], extras: frozenset[str], *, imports: Mapping[str, frozenset[str]]) -> set[str]:
    """Return the libraries that importing some modules needs and these extras lack, with the importing modules."""
    owners, have = owners_of_packages(), brought(extras)
    open_, missing_libraries = list(names), set()
    seen = set(open_)
    while open_:
        module = open_.pop()
        for imported_module in imports.get(module, ()):
            if imported_module.startswith("limnos"):
                inner = next((each for each in _above(imported_module) if each in imports), None)
                for each in [] if inner is None else [*_above(inner)]:
                    if each in imports and each not in seen:
                        seen.add(each)
                        open_.append(each)
            elif not _is_there(imported_module, owners, have):
                missing_libraries.add(f"{module}: {imported_module}")
    return missing_libraries


def _above(module: str) -> list[str]:
    parts = module.split(".")
    return [".".join(parts[:end]) for end in range(len(parts), 0, -1)]


def _is_there(imported_module: str, owners: Mapping[str, list[str]], have: frozenset[str]) -> bool:
    top = imported_module.partition(".")[0]
    if top in sys.stdlib_module_names or top == "__future__":
        return True
    shared = next((SHARED[name] for name in _above(imported_module) if name in SHARED), None)
    return bool(have & ({shared} if shared else {each.lower().replace("_", "-") for each in owners.get(top, ())}))


@pytest.fixture(scope="module")
def imports() -> dict[str, frozenset[str]]:
    """Return the imports at the top of each module."""
    by_module = {SourceFile(path, "").module: names for path, names in AT_TOP.results.items()}
    return {name: names for name, names in by_module.items() if "migrations" not in name}


def test_modules_import_only_libraries_of_their_extras(imports: dict[str, frozenset[str]]) -> None:
    """No module imports at its top a library that its extras lack."""
    by_extras: dict[frozenset[str], list[str]] = {}
    for name in imports:
        by_extras.setdefault(needs(name), []).append(name)

    missing = {each for extras, names in by_extras.items() for each in lacking(names, extras, imports=imports)}

    assert len(imports) > 800
    assert missing == set()


def test_library_outside_extras_is_detected(imports: dict[str, frozenset[str]]) -> None:
    """A driver that is planted at the top of a server module is found, from every module that imports it."""
    planted = {**imports, "limnos.store.snapshots": imports["limnos.store.snapshots"] | {"asyncpg"}}

    name = "limnos.store.backends.sqlite"

    assert lacking([name], needs(name), imports=planted) == {"limnos.store.snapshots: asyncpg"}


def test_commands_name_the_extras_that_their_rooms_need() -> None:
    """Where a command loads a room, it names extras that cover the room's needs."""
    wrong, count = [], 0
    for file in SOURCE.glob("limnos/**/cli/**/*.py"):
        text = file.read_text(encoding="utf-8")
        constants = dict(re.findall(r'^(_?[A-Z]+) = "([\w.,]+)"$', text, re.MULTILINE))
        for module, extra in re.findall(r'import_extra\(("[\w.]+"|[A-Z]+), extra=("[\w,]+"|_?[A-Z]+)\)', text):
            name, extra_names = (constants[each] if each in constants else each.strip('"') for each in (module, extra))
            count += 1
            if name.startswith("limnos") and not brought(needs(name)) <= brought(frozenset(extra_names.split(","))):
                wrong.append(f"{file.name}: {name} needs {sorted(needs(name))}, not {extra_names}")

    assert count > 25
    assert wrong == []
