# SPDX-License-Identifier: Apache-2.0
"""The names that users and operators see: settings, commands, metrics, error codes and routes, collected from the code.

test_tidy.py compares each with its page of docs/. Collects by importing if the code has a list, else from the syntax
tree, and routes of the admin API from openapi/.
"""

from __future__ import annotations

import ast
import importlib
import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

from cyclopts import App

from tests.house import tidy
from tests.house.one_pass import PRODUCT, Look
from tests.house.tidy import SourceFile

Collector = Callable[[], set[str]]
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})


def settings() -> set[str]:
    """Every setting as `section.key`."""
    from limnos.config.settings import keys

    return set(keys())


def commands() -> set[str]:
    """Every command as the words after `limnos`, from the cyclopts App of `limnos.cli.command_tree`."""
    apps = [
        value for value in vars(importlib.import_module("limnos.cli.command_tree")).values() if isinstance(value, App)
    ]
    below = {id(app[name]) for app in apps for name in app if not name.startswith("-")}
    return {words for app in apps if id(app) not in below for words in commands_of(app)}


def commands_of(app: App, before: str = "") -> Iterator[str]:
    """Yield the words of each executable command, including those in groups."""
    for name in app:
        if name.startswith("-"):
            continue
        words = f"{before} {name}".strip()
        below = list(commands_of(app[name], words))
        yield from below or [words]


def routes(source: SourceFile) -> set[str]:
    """Every route as `METHOD /path`: a method next to a path in one call or tuple of the room http."""
    if source.room != "http":
        return set()
    rows = [[*node.args, *(each.value for each in node.keywords)] for node in source.nodes(ast.Call)]
    rows += [node.elts for node in source.nodes(ast.Tuple)]
    return {f"{method} {path}" for row in rows for method, path in _pairs(row)}


def _pairs(parts: list[ast.expr]) -> Iterator[tuple[str, str]]:
    """Yield each method with the path next to it."""
    texts = [part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else "" for part in parts]
    for method, path in pairwise(texts):
        if method in METHODS and path.startswith("/"):
            yield method, path


def own_routes() -> set[str]:
    """Every route of the admin API, from its committed document, because most are written with a shared prefix."""
    document = json.loads((Path(__file__).parents[2] / "openapi" / "admin.json").read_text(encoding="utf-8"))
    return {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}


METRICS = Look(tidy.metric_names, *PRODUCT)
CODES = Look(tidy.error_codes, *PRODUCT)
ROUTES = Look(routes, *PRODUCT)


def _of_all(look: Look[set[str]]) -> set[str]:
    return set().union(*look.results.values())


COLLECTORS: dict[str, tuple[Collector, str]] = {
    "settings": (settings, "docs/reference/settings.md"),
    "commands": (commands, "docs/reference/cli.md"),
    "metrics": (lambda: _of_all(METRICS), "docs/reference/metrics.md"),
    "error codes": (lambda: _of_all(CODES), "docs/reference/errors.md"),
    "routes": (lambda: _of_all(ROUTES), "docs/reference/routes.md"),
    "routes of the own API": (own_routes, "docs/reference/routes.md"),
}
"""The collected names, and the page that must document them."""
