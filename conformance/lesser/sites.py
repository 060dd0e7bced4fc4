# SPDX-License-Identifier: Apache-2.0
"""Uses of actions in services and routes, the lesser action for each, and an import hook that can lower one use at a
time.

May import the standard library and `limnos.access`. `install` must run before any of the changed modules is imported.
"""

from __future__ import annotations

import ast
import importlib.machinery
import sys
from collections import Counter
from collections.abc import Iterator
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from limnos.access.actions import Action
from limnos.access.policy import POLICY, SERVER_ACTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType, ModuleType

    from limnos.model.kinds import Kind

PACKAGES: Final = ("limnos.services", "limnos.http", "limnos.rooms")
SITE: Final = "_site"
"""The attribute of a use's value with its number."""
LESSER: Final = "_lesser"
"""The attribute of a use's value with its lesser action."""
_COMPOSED: Final = {"kind_action": 1, "actions_named": 0}
"""Functions that return the action `<kind>_<verb>` of kinds, with the position of their argument `verb`."""
_HOOK: Final = "__lesser_use__"
_SPECIAL: Final = {
    "catalog_create": "catalog_list",
    "metalake_create": "metalake_load",
    "privilege_grant": "role_load",
    "role_assign": "role_list",
    "group_members": "group_load",
    "job_cancel": "job_load",
    "job_run": "job_template_load",
    "user_manage": "user_list",
    "group_manage": "group_list",
    "undrop": "catalog_load",
    "protect": "catalog_load",
    "unprotect": "catalog_load",
    "owner_set": "metadata_load",
    "webhook_manage": "metalake_load",
    "audit_read": "metalake_load",
    "metalake_export": "metalake_load",
    "table_register": "table_list",
    "model_link": "model_load",
    "table_exists": "table_list",
    "view_exists": "view_list",
}


class Site(NamedTuple):
    """One use: its number, its position, the required action, the lesser action, and whether it is evaluated at
    import. A composed use stands for the actions `*_drop` of several kinds, each of which has a lesser one.
    """

    number: int
    path: str
    line: int
    column: int
    action: str
    lesser: str
    is_early: bool
    asks: tuple[str, ...]
    """The actions that are required together with it before a route reads a long body; empty for uses in other
    decisions.
    """
    key: str
    """Its file, the function around it and its action, with a number from the second such use on: stable when lines
    move.
    """

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.action} -> {self.lesser}"


def lesser_of(word: str) -> str | None:
    """Return an action of the same kind that a weaker right allows; None if there is none, or its rule is the same.

    Lists are decided item by item, so they have none.
    """
    if Action(word) in SERVER_ACTIONS or word.endswith("_list"):
        return None
    kind, _, verb = word.rpartition("_")
    candidates = [
        _SPECIAL.get(word),
        f"{kind}_list" if verb == "create" else None,
        f"{kind}_load",
        f"{kind}_see",
        f"{kind}_may_probe",
        f"{kind}_list",
    ]
    known = {each.word: each for each in Action}
    for each in candidates:
        if each in known and each != word and POLICY[known[each]] != POLICY[Action(word)]:
            return each
    return None


def sites(source: Path) -> list[Site]:
    """Find every use in the packages below `source` that can be lowered, in the order of the files."""
    uses: list[Site] = []
    for package in PACKAGES:
        for path in sorted((source / package.replace(".", "/")).rglob("*.py")):
            name = path.relative_to(source).as_posix()
            counts: Counter[str] = Counter()
            tree = ast.parse(path.read_text(encoding="utf-8"))
            doors = set(_doors(tree))
            for node, function, beside in _uses(tree):
                word = _word_of(node)
                lesser = "the lesser one of the kind" if word.startswith("*") else lesser_of(word)
                if lesser is None or word == "*_list":
                    continue
                key = " ".join((name.removeprefix("limnos/"), *filter(None, [function]), word))
                counts[key] += 1
                key += f" #{counts[key]}" if counts[key] > 1 else ""
                is_early = not function or function.startswith("=")
                key = key.replace("=", "")
                is_door = "http" in name.split("/") and (is_early or node.lineno in doors)
                asks = beside if is_door and isinstance(node, ast.Attribute) else ()
                uses.append(
                    Site(
                        number=len(uses),
                        path=name,
                        line=node.lineno,
                        column=node.col_offset,
                        action=word,
                        lesser=lesser,
                        is_early=is_early,
                        asks=asks,
                        key=key,
                    )
                )
    return uses


def _uses(
    node: ast.AST, function: str = "", beside: tuple[str, ...] = ()
) -> Iterator[tuple[ast.Attribute | ast.Call, str, tuple[str, ...]]]:
    """Find uses, the function around each, and the words of its tuple.

    The function is empty for a module's own lines, and `=name` for a default.
    """
    if isinstance(node, ast.Tuple):
        beside = tuple(Action[each.attr].word for each in node.elts if is_use(each))  # type: ignore[attr-defined]
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST):
                continue
            around = function
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                around = ".".join(filter(None, (function.removeprefix("="), node.name)))
                if name != "body" and (not function or function.startswith("=")):
                    around = f"={around}"
            elif isinstance(node, ast.Lambda) and name == "body":
                around = function.removeprefix("=") or "lambda"
            if is_use(child) or is_composed(child):
                yield child, around, beside  # type: ignore[misc]
            yield from _uses(child, around, beside)


def _doors(tree: ast.AST) -> Iterator[int]:
    """Find the lines with the actions that routes require before they read a long body: `asks=…`, as an argument or a
    name.
    """
    for node in ast.walk(tree):
        is_argument = isinstance(node, ast.keyword) and node.arg == "asks"
        is_name = isinstance(node, ast.Assign) and [getattr(each, "id", "") for each in node.targets] == ["asks"]
        if is_argument or is_name:
            yield from (each.lineno for each in ast.walk(node) if is_use(each))  # type: ignore[attr-defined]


def is_use(node: ast.AST) -> bool:
    """Return whether a node reads a member of Action."""
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "Action"
        and node.attr in Action.__members__
    )


def is_composed(node: ast.AST) -> bool:
    """Return whether a node composes actions from a kind and a verb."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _COMPOSED


def _word_of(node: ast.Attribute | ast.Call) -> str:
    """Return the action of a use; of a composed one `*_<verb>`, or `*` if the verb is not constant."""
    if isinstance(node, ast.Attribute):
        return Action[node.attr].word
    verb = node.args[_COMPOSED[node.func.id]]  # type: ignore[attr-defined]
    return f"*_{verb.value}" if isinstance(verb, ast.Constant) else "*"


class Planter(ast.NodeTransformer, MetaPathFinder):
    """Loads modules with a separate value at each use, so that one of them can be lowered later, wherever it was
    assigned.
    """

    def __init__(self, source: Path, uses: Sequence[Site]) -> None:
        self.source = source
        self.numbers = {(each.path, each.line, each.column): each for each in uses}
        self.found = list(uses)
        self.values: dict[tuple[int, str], Action] = {}
        self.planted: set[int] = set()
        self.reached: set[int] = set()
        self.at = ""

    def use(self, number: int, required: Action | dict[Kind, Action]) -> Action | dict[Kind, Action]:
        """Return the value of a use of one action, or of the actions of several kinds."""
        if isinstance(required, dict):
            return {kind: self._value(number, action) for kind, action in required.items()}
        return self._value(number, required)

    def _value(self, number: int, required: Action) -> Action:
        if not self.found[number].is_early:
            self.reached.add(number)
        word = lesser_of(required.word)
        if word is None:
            return required
        value = self.values.get((number, required.word))
        if value is None:
            value = self.values[number, required.word] = _copied(required, Action(word), number)
            self._set_identities()
        return value

    def plant(self, *numbers: int) -> None:
        """Lower uses in this process."""
        self.planted.update(numbers)
        self._set_identities()

    def restore(self, *numbers: int) -> None:
        """Restore the required actions."""
        self.planted.difference_update(numbers)
        self._set_identities()

    def _set_identities(self) -> None:
        for (number, required), value in self.values.items():
            action = vars(value)[LESSER] if number in self.planted else Action(required)
            vars(value).update(_identity(action))

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Load the packages' modules with this loader."""
        if not fullname.startswith(PACKAGES):
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.origin is not None and spec.origin.endswith(".py"):
            spec.loader = _Loader(fullname, spec.origin, self)
        return spec

    def changed(self, text: bytes, path: str) -> ast.Module:
        """Parse a module, and insert the hook at each of its uses."""
        self.at = Path(path).relative_to(self.source).as_posix()
        tree = self.visit(ast.parse(text, path))
        return ast.fix_missing_locations(tree)  # type: ignore[no-any-return]

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Compare uses by value, because they are not members of the enum."""
        if any(is_use(each) for each in (node.left, *node.comparators)):
            swapped = {ast.Is: ast.Eq, ast.IsNot: ast.NotEq}
            node.ops = [swapped.get(type(each), type(each))() for each in node.ops]
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Insert the hook at a use of one action."""
        return self._hooked(node) if is_use(node) else self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Insert the hook at a composed use."""
        return self._hooked(node) if is_composed(node) else self.generic_visit(node)

    def _hooked(self, node: ast.Attribute | ast.Call) -> ast.AST:
        site = self.numbers.get((self.at, node.lineno, node.col_offset))
        if site is None:
            return self.generic_visit(node)
        return ast.copy_location(ast.Call(ast.Name(_HOOK, ast.Load()), [ast.Constant(site.number), node], []), node)


def _identity(action: Action) -> dict[str, object]:
    return {name: vars(action)[name] for name in ("_name_", "_value_", "word", "kinds")}


def _copied(action: Action, lesser: Action, number: int) -> Action:
    """Return a value that equals a member of the enum, and has the number of its use and its lesser action."""
    value = str.__new__(Action, action.word)
    vars(value).update(vars(action), **{SITE: number, LESSER: lesser})
    return value


def compare_by_value() -> None:
    """Compare actions by their current value, so that the value of a use can be changed."""
    Action.__hash__ = lambda self: hash(self._value_)  # type: ignore[method-assign, assignment]
    Action.__eq__ = lambda self, other: self._value_ == getattr(other, "_value_", other)  # type: ignore[method-assign, assignment]
    Action.__ne__ = lambda self, other: self._value_ != getattr(other, "_value_", other)  # type: ignore[method-assign, assignment]


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
    """From here on, load the packages' modules with hooks."""
    planter = Planter(source, sites(source))
    compare_by_value()
    sys.meta_path.insert(0, planter)
    return planter
