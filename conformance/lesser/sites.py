"""Uses of actions in services and routes, the lesser action for each, and an import hook through which one use at a time is lowered.

May import the standard library and `limnos.access`. `install` must run before any of the modules that it changes is imported.
"""

from __future__ import annotations

import ast
import importlib.machinery
import os
import sys
from collections.abc import Iterator
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from limnos.access.actions import Action
from limnos.access.policy import POLICY, SERVER_ACTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType, ModuleType

PACKAGES: Final = ("limnos.services", "limnos.http")
PLANT: Final = "LIMNOS_LESSER_PLANT"
"""The number of the use that a process lowers from its start on: for those that are read when a module is loaded."""
_HOOK: Final = "__lesser_use__"
_SPECIAL: Final = {
    "catalog_create": "catalog_list", "metalake_create": "metalake_load", "privilege_grant": "role_load", "role_assign": "role_load",
    "group_members": "group_load", "job_cancel": "job_load", "job_run": "job_template_load", "user_manage": "user_load", "group_manage": "group_load",
    "undrop": "catalog_load", "protect": "catalog_load", "unprotect": "catalog_load", "owner_set": "metadata_load", "webhook_manage": "metalake_load",
    "audit_read": "metalake_load", "metalake_export": "metalake_load", "table_register": "table_list", "model_link": "model_load",
}  # fmt: skip


class Site(NamedTuple):
    """One use: its number, where it is, what is asked for, the lesser action, and whether it is read when its module is loaded."""

    number: int
    path: str
    line: int
    column: int
    action: str
    lesser: str
    is_early: bool

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.action} -> {self.lesser}"


def lesser_of(word: str) -> str | None:
    """Return an action of the same kind that a weaker right allows; None where there is none, or its rule is the same.

    Lists are decided item by item, so they have none.
    """
    if Action(word) in SERVER_ACTIONS or word.endswith("_list"):
        return None
    kind, _, verb = word.rpartition("_")
    found = [
        _SPECIAL.get(word),
        f"{kind}_list" if verb == "create" else None,
        f"{kind}_load",
        f"{kind}_see",
        f"{kind}_may_probe",
        f"{kind}_list",
    ]
    known = {each.word: each for each in Action}
    for each in found:
        if each in known and each != word and POLICY[known[each]] != POLICY[Action(word)]:
            return each
    return None


def sites(source: Path) -> list[Site]:
    """Find every use in the packages below `source`, in the order of the files, that can be lowered."""
    found: list[Site] = []
    for package in PACKAGES:
        for path in sorted((source / package.replace(".", "/")).rglob("*.py")):
            name = path.relative_to(source).as_posix()
            for node, is_early in _uses(ast.parse(path.read_text(encoding="utf-8")), is_early=True):
                lesser = lesser_of(Action[node.attr].word)
                if lesser is not None:
                    word = Action[node.attr].word
                    found.append(Site(len(found), name, node.lineno, node.col_offset, word, lesser, is_early))
    return found


def _uses(node: ast.AST, *, is_early: bool) -> Iterator[tuple[ast.Attribute, bool]]:
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST):
                continue
            if is_use(child):
                yield child, is_early  # type: ignore[misc]
            within = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and name == "body"
            yield from _uses(child, is_early=is_early and not within)


def is_use(node: ast.AST) -> bool:
    """Say whether a node reads a member of Action."""
    return (
        isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Action"
        and node.attr in Action.__members__
    )  # fmt: skip


class Planter(ast.NodeTransformer, MetaPathFinder):
    """Loads modules with each use going through `use`, which notes it and lowers the one that is planted."""

    def __init__(self, source: Path, found: Sequence[Site]) -> None:
        self.source = source
        self.numbers = {(each.path, each.line, each.column): each for each in found}
        self.found = list(found)
        self.planted: int | None = int(os.environ[PLANT]) if PLANT in os.environ else None
        self.reached: set[int] = set()
        self.at = ""

    def use(self, number: int, action: Action) -> Action:
        """Return what is asked for here now."""
        self.reached.add(number)
        return Action(self.found[number].lesser) if number == self.planted else action

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:  # fmt: skip
        """Take over the modules of the packages."""
        if not fullname.startswith(PACKAGES):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin is not None and spec.origin.endswith(".py"):
            spec.loader = _Loader(fullname, spec.origin, self)
        return spec

    def changed(self, text: bytes, path: str) -> ast.Module:
        """Parse a module, and put the hook around each of its uses."""
        self.at = Path(path).relative_to(self.source).as_posix()
        tree = self.visit(ast.parse(text, path))
        return ast.fix_missing_locations(tree)  # type: ignore[no-any-return]

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Put the hook around a use."""
        site = self.numbers.get((self.at, node.lineno, node.col_offset)) if is_use(node) else None
        if site is None:
            return self.generic_visit(node)
        hook = ast.Name(_HOOK, ast.Load())
        return ast.copy_location(ast.Call(hook, [ast.Constant(site.number), node], []), node)


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, name: str, path: str, planter: Planter) -> None:
        super().__init__(name, path)
        self._planter = planter

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return compile(self._planter.changed(self.get_data(path), path), path, "exec", dont_inherit=True)

    def exec_module(self, module: ModuleType) -> None:
        vars(module)[_HOOK] = self._planter.use
        super().exec_module(module)


def install(source: Path) -> Planter:
    """Load the packages' modules with hooks from here on."""
    planter = Planter(source, sites(source))
    sys.meta_path.insert(0, planter)
    return planter
