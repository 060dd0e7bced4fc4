# SPDX-License-Identifier: Apache-2.0
"""All SQL statements of the store's modules, for tests that inspect each of them, also those added later."""

from __future__ import annotations

import ast
import pkgutil
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path

import limnos.store
from limnos.store.activity.audit import _FILTERS, _SCANNED, _end, _page, _select_period
from limnos.store.activity.feed import CHANGE_FILTERS, change_page
from limnos.store.objects.node_reads import _path_statement
from limnos.store.sql import Sql

BUILT_LATER = {
    **{
        f"activity.audit:_page({name})": _page((name, "after", "last") if name in _SCANNED else (name,))
        for name in _FILTERS
    },
    "activity.audit:_page(grant)": _page(("metalake_id", "action", "after", "last"), family="grant"),
    "activity.audit:_select_period": _select_period(("metalake_id", "action")),
    "activity.audit:_select_period(few)": _select_period(("metalake_id", "user"), is_few=True),
    "activity.audit:_select_period(since)": _select_period(
        ("metalake_id", "since", "until", "action"), has_rights=False
    ),
    **{
        f"activity.audit:_select_period(few {name})": _select_period(
            ("metalake_id", name, "since", "until"), is_few=True
        )
        for name in ("object_id", "path", "request_id")
    },
    "activity.feed:change_page": change_page(()),
    "activity.feed:change_page(all)": change_page(tuple(CHANGE_FILTERS)),
    "activity.audit:_end": _end(("metalake_id", "before")),
    "objects.node_reads:_path_statement": _path_statement(3),
}
"""The statements of functions that build one when they are first called."""
_PAGE = re.compile(r"\bLIMIT\s+(:(?P<limit>\w+)|\d+)(\s+OFFSET\s+:(?P<offset>\w+))?")


def statements() -> dict[str, Sql]:
    """Return each statement by the name of its module and variable; a statement with two names under the first."""
    by_identity: dict[int, tuple[str, Sql]] = {}
    for module in pkgutil.walk_packages(limnos.store.__path__, "limnos.store."):
        if ".migrations" not in module.name:
            for name, value in vars(import_module(module.name)).items():
                for part, statement in _statements_in(value):
                    by_identity.setdefault(
                        id(statement), (f"{module.name[len('limnos.store.') :]}:{name}{part}", statement)
                    )
    return dict(by_identity.values()) | BUILT_LATER


def _statements_in(value: object) -> Iterator[tuple[str, Sql]]:
    if isinstance(value, Sql):
        yield "", value
    items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, tuple | list) else ()
    for key, item in items:
        for part, statement in _statements_in(item):
            yield f"[{key}]{part}", statement


def cached_builders() -> set[str]:
    """Return the names of the store's cached functions that build a statement when they are called."""
    root = Path(limnos.store.__path__[0])
    names = set()
    for path in root.rglob("*.py"):
        for function in ast.walk(ast.parse(path.read_text())):
            if isinstance(function, ast.FunctionDef) and function.decorator_list and _builds_statement(function):
                names.add(f"{'.'.join(path.relative_to(root).with_suffix('').parts)}:{function.name}")
    return names


def _builds_statement(function: ast.FunctionDef) -> bool:
    return any(
        isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id == "Sql"
        for each in ast.walk(function)
    )


def is_paged(statement: Sql) -> bool:
    """Return whether a statement reads at most a number of rows."""
    return _PAGE.search(statement.text) is not None


def with_limits(statement: Sql) -> Sql:
    """Return a PostgreSQL statement with numbers in place of its limits, which the planner would otherwise guess."""

    def number(match: re.Match[str]) -> str:
        return "LIMIT 100" + (" OFFSET 10" if match["offset"] else "")

    return Sql(_PAGE.sub(number, statement.text))
