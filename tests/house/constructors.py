# SPDX-License-Identifier: Apache-2.0
"""Records of more than four fields are built by keyword: finds their classes, and calls and patterns by position.

A record is a NamedTuple, a dataclass, a msgspec Struct, or a class whose `__init__` takes its values by position.
Dataclasses and structs say `kw_only=True`, which mypy and the interpreter hold; a NamedTuple cannot say it, so calls
are found here, by resolving imports. Swapped neighbours of one type are no error to anybody else.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from tests.house.tidy import SourceFile

FIELDS_MAX = 4
_STRUCTS = frozenset({"msgspec.Struct", "msgspec.structs.Struct"})
_TUPLES = frozenset({"typing.NamedTuple"})
_DATACLASSES = frozenset({"dataclasses.dataclass"})


@dataclass(frozen=True, kw_only=True)
class Record:
    """A class of the repository that is built from its fields."""

    source: SourceFile
    node: ast.ClassDef
    kind: str
    """`tuple`, `struct`, `dataclass` or `class`."""
    fields: tuple[str, ...]
    """The arguments of its constructor in order, inherited ones first."""
    named: frozenset[str]
    """Those of them that the constructor takes by keyword alone."""
    is_keyword_only: bool

    @property
    def is_large(self) -> bool:
        """Return whether the record has so many fields that it is built by keyword."""
        return len(self.fields) > FIELDS_MAX


@dataclass
class _Module:
    source: SourceFile
    imports: dict[str, str] = field(default_factory=dict)
    classes: dict[str, list[ast.ClassDef]] = field(default_factory=dict)
    calls: list[tuple[ast.Call | ast.MatchClass, str]] = field(default_factory=list)
    """Calls and patterns with positional arguments, and the name of the class around each."""

    def read(self, node: ast.AST, owner: str) -> None:
        """Collect imports, classes and calls below a node."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                self.imports |= {item.asname: item.name for item in child.names if item.asname}
            elif isinstance(child, ast.ImportFrom) and child.module:
                self.imports |= {item.asname or item.name: f"{child.module}.{item.name}" for item in child.names}
            elif isinstance(child, ast.ClassDef):
                self.classes.setdefault(child.name, []).append(child)
            elif (isinstance(child, ast.Call) and child.args) or (isinstance(child, ast.MatchClass) and child.patterns):
                self.calls.append((child, owner))
            self.read(child, child.name if isinstance(child, ast.ClassDef) else owner)


class Records:
    """The records of a set of files, found by the names that other files import them by."""

    def __init__(self, sources: Iterable[SourceFile]) -> None:
        self._modules = {source.module: _Module(source) for source in sources}
        for module in self._modules.values():
            module.read(module.source.tree, "")
        self._known: dict[str, Record | None] = {}

    @cached_property
    def large(self) -> list[Record]:
        """The records of more than four fields."""
        names = (f"{name}.{owner}" for name, module in self._modules.items() for owner in module.classes)
        return [record for name in names if (record := self._record(name)) and record.is_large]

    def by_position(self, source: SourceFile) -> Iterator[tuple[ast.Call | ast.MatchClass, Record]]:
        """Yield the calls and patterns of a file that give a large record's fields by position."""
        module = self._modules[source.module]
        for node, owner in module.calls:
            called = node.func if isinstance(node, ast.Call) else node.cls
            if isinstance(called, ast.Name) and called.id == "cls" and owner:
                called = ast.Name(owner)
            name = self._name(called, module)
            if name and (record := self._record(name)) and record.is_large:
                yield node, record

    def _name(self, node: ast.expr, module: _Module) -> str:
        """Return the dotted name of the class that an expression names; empty for anything else."""
        if isinstance(node, ast.Subscript):
            return self._name(node.value, module)
        if isinstance(node, ast.Attribute):
            head = self._name(node.value, module)
            return self._origin(f"{head}.{node.attr}") if head else ""
        if not isinstance(node, ast.Name):
            return ""
        if node.id in module.classes:
            return f"{module.source.module}.{node.id}"
        return self._origin(module.imports.get(node.id, node.id))

    def _origin(self, name: str) -> str:
        """Follow a name through the modules that import it to export it."""
        for _ in range(5):
            head, _, last = name.rpartition(".")
            module = self._modules.get(head)
            if module is None or last in module.classes or last not in module.imports:
                break
            name = module.imports[last]
        return name

    def _record(self, name: str) -> Record | None:
        if name not in self._known:
            self._known[name] = None  # a class that inherits from itself is not one
            self._known[name] = self._read(name)
        return self._known[name]

    def _read(self, name: str) -> Record | None:
        head, _, last = name.rpartition(".")
        module = self._modules.get(head)
        if module is None or len(module.classes.get(last, ())) != 1:
            return None
        (node,) = module.classes[last]
        bases = [self._name(base, module) for base in node.bases]
        parents = [record for base in bases if (record := self._record(base))]
        options, kind = self._kind(node, module, bases=bases, parents=parents)
        init = _init(node)
        if init is not None:
            arguments = [each.arg for each in (*init.args.posonlyargs, *init.args.args)][1:]
            return Record(
                source=module.source,
                node=node,
                kind="class",
                fields=tuple(arguments),
                named=frozenset(),
                is_keyword_only=False,
            )
        if not kind:
            return None
        keyword_only = options.get("kw_only", False) or (kind == "class" and any(p.is_keyword_only for p in parents))
        own = {} if kind == "class" else dict(_fields(node))
        named = {each for parent in parents for each in parent.named}
        named |= {name for name, is_named in own.items() if is_named or keyword_only}
        names = dict.fromkeys([each for parent in reversed(parents) for each in parent.fields] + list(own))
        fields = tuple(sorted(names, key=named.__contains__))
        return Record(
            source=module.source,
            node=node,
            kind=kind,
            fields=fields,
            named=frozenset(named),
            is_keyword_only=keyword_only,
        )

    def _kind(
        self, node: ast.ClassDef, module: _Module, *, bases: list[str], parents: list[Record]
    ) -> tuple[dict[str, bool], str]:
        """Return the options of the class statement, and the kind of record."""
        for decorator in node.decorator_list:
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            if self._name(called, module) in _DATACLASSES:
                return _options(decorator.keywords if isinstance(decorator, ast.Call) else []), "dataclass"
        if _STRUCTS & set(bases) or any(parent.kind == "struct" for parent in parents):
            return _options(node.keywords), "struct"
        if _TUPLES & set(bases):
            return {}, "tuple"
        return {}, parents[0].kind if parents and parents[0].kind == "tuple" else "class" if parents else ""


def _options(keywords: Iterable[ast.keyword]) -> dict[str, bool]:
    return {each.arg: bool(each.value.value) for each in keywords if each.arg and isinstance(each.value, ast.Constant)}


def _init(node: ast.ClassDef) -> ast.FunctionDef | None:
    return next((each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None)


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, bool]]:
    """Yield the annotated names that the constructor takes, and whether it takes them by keyword alone."""
    is_named = False
    for each in node.body:
        is_named |= isinstance(each, ast.AnnAssign) and ast.unparse(each.annotation).endswith("KW_ONLY")
        if not isinstance(each, ast.AnnAssign) or not isinstance(each.target, ast.Name):
            continue
        keywords = each.value.keywords if isinstance(each.value, ast.Call) else []
        options = _options(keywords)
        annotation = ast.unparse(each.annotation)
        if "ClassVar" not in annotation and not annotation.endswith("KW_ONLY") and options.get("init", True):
            yield each.target.id, is_named or options.get("kw_only", False)


def built_by_position(records: Records, source: SourceFile) -> list[str]:
    """Report calls and patterns that give a large record's fields by position."""
    return [
        f"{source.path}:{node.lineno} {record.node.name}: has {len(record.fields)} fields; name each"
        for node, record in records.by_position(source)
        if not _from_row(node, source)
    ]


def not_keyword_only(records: Records, sources: Iterable[SourceFile]) -> list[str]:
    """Report large dataclasses and structs without `kw_only=True`, but for those that the store builds of a row."""
    from_rows = {
        record.node for source in sources for node, record in records.by_position(source) if _from_row(node, source)
    }
    return [
        f"{record.source.path}:{record.node.lineno} {record.node.name}: {len(record.fields)} fields; add kw_only=True"
        for record in records.large
        if record.kind in ("dataclass", "struct") and not record.is_keyword_only and record.node not in from_rows
    ]


def _from_row(node: ast.Call | ast.MatchClass, source: SourceFile) -> bool:
    """Return whether it is `Record(*row)` in the store, where a statement lists the fields in order."""
    if not source.path.startswith("src/limnos/store/") or not isinstance(node, ast.Call):
        return False
    return len(node.args) == 1 and isinstance(node.args[0], ast.Starred) and not node.keywords
