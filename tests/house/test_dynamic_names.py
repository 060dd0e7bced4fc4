# SPDX-License-Identifier: Apache-2.0
"""Names that the code looks up in a dynamically imported module exist. Neither imports nor types would show a missing
one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib import import_module

from tests.house.one_pass import PRODUCT, Look
from tests.house.tidy import SourceFile, functions

LOADERS = frozenset({"import_extra", "import_module"})


def loaded(node: ast.AST | None, constants: dict[str, str]) -> str:
    """Return the module in a call of a loader, by a string or a constant of its module; empty for every other node."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in LOADERS:
        return ""
    first = node.args[0] if node.args else None
    if isinstance(first, ast.Constant):
        return str(first.value)
    return constants.get(first.id, "") if isinstance(first, ast.Name) else ""


def assigned(body: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield the names, with their values, that single assignments below a node set."""
    for node in ast.walk(body):
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        value = node.value if isinstance(node, (ast.Assign, ast.AnnAssign)) else None
        if value is not None:
            yield from ((target.id, value) for target in targets if isinstance(target, ast.Name))


def looked_up(source: SourceFile) -> set[tuple[str, str]]:
    """Return each module that a file loads by name, with a name that it looks up in it."""
    if not any(loader in source.text for loader in LOADERS):
        return set()
    constants = {name: str(value.value) for name, value in assigned(source.tree) if isinstance(value, ast.Constant)}
    scopes = list(functions(source))
    returned_modules = {
        each.name: loaded(last.value, constants) for each in scopes if isinstance(last := each.body[-1], ast.Return)
    }
    looked_up_names = set()
    for scope in scopes:
        local_modules = {
            name: module
            for name, value in assigned(scope)
            if (
                module := loaded(value, constants)
                or returned_modules.get(getattr(getattr(value, "func", None), "id", ""), "")
            )
        }
        for node in ast.walk(scope):
            if isinstance(node, ast.Attribute):
                owner = node.value
                module = local_modules.get(owner.id, "") if isinstance(owner, ast.Name) else loaded(owner, constants)
                looked_up_names |= {(module, node.attr)} if module.startswith("limnos.") else set()
    return looked_up_names


LOOKED_UP = Look(looked_up, *PRODUCT)


def test_names_of_loaded_modules_exist() -> None:
    """Every name that a command looks up in a dynamically loaded room is defined there."""
    looked_up_names = set[tuple[str, str]]().union(*LOOKED_UP.results.values())

    assert len(looked_up_names) > 20
    assert (
        sorted(f"{module}.{name}" for module, name in looked_up_names if not hasattr(import_module(module), name)) == []
    )


def test_dynamically_loaded_names_are_detected() -> None:
    """A name is found after the call, after a variable, and if a constant names the module."""
    text = (
        'ROOM = "limnos.a"\n'
        "def start():\n"
        '    run = import_extra(ROOM, extra="x").gone\n'
        '    rules = import_extra("limnos.b", extra="x")\n'
        "    return rules.lost(run.other)\n"
    )

    assert looked_up(SourceFile("src/limnos/cli/a.py", text)) == {("limnos.a", "gone"), ("limnos.b", "lost")}
