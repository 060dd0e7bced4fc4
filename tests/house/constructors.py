# SPDX-License-Identifier: Apache-2.0
"""Records of more than four fields are built by keyword: finds their classes, and calls and patterns by position.

A record is a NamedTuple, a dataclass, a msgspec Struct, or a class whose `__init__` takes its values by position.
Dataclasses and structs say `kw_only=True`, which mypy and the interpreter hold; a NamedTuple cannot say it, so calls
are found here, by resolving imports. Swapped neighbours of one type are no error to anybody else.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from tests.house.tidy import SourceFile

FIELDS_MAX = 4
_STRUCTS = frozenset({"msgspec.Struct", "msgspec.structs.Struct"})
_TUPLES = frozenset({"typing.NamedTuple"})
_DATACLASSES = frozenset({"dataclasses.dataclass"})
_ROOTS = frozenset({"limnos", "tests", "conformance", "bench", "scripts", "examples"})
"""The packages whose modules a file may name in full."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """A class of the repository that is built from its fields."""

    path: str
    line: int
    name: str
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


@dataclass(frozen=True, kw_only=True)
class ClassSummary:
    """What a class statement says about its constructor; names of other classes as the file spells them."""

    line: int
    last_line: int
    bases: list[str]
    options: dict[str, bool]
    """The keywords of the class statement that are constants."""
    decorators: list[tuple[str, dict[str, bool]]]
    arguments: list[str] | None
    """The positional arguments of `__init__`; None without one."""
    fields: dict[str, bool]
    """The annotated names that the constructor takes, and whether it takes them by keyword alone."""


@dataclass(frozen=True, kw_only=True)
class CallSummary:
    """A call or a pattern that has positional arguments."""

    line: int
    name: str
    """The called name as the file spells it; `cls` is replaced by the class around it."""
    is_row: bool
    """Whether its only argument is `*row`."""


@dataclass(frozen=True, kw_only=True)
class FileSummary:
    """The imports, classes and calls of a file, without its syntax tree."""

    path: str
    imports: dict[str, str]
    classes: dict[str, list[ClassSummary]]
    calls: list[CallSummary]


def summarize(source: SourceFile) -> FileSummary:
    """Return what the rules read of a file; calls of names that are neither imported nor classes are left out."""
    imports = {item.asname: item.name for node in source.nodes(ast.Import) for item in node.names if item.asname}
    for origin in source.nodes(ast.ImportFrom):
        imports |= {item.asname or item.name: f"{origin.module}.{item.name}" for item in origin.names}
    classes: dict[str, list[ClassSummary]] = {}
    for node in source.nodes(ast.ClassDef):
        classes.setdefault(node.name, []).append(_class_summary(node))
    lines = [(each.line, each.last_line, name) for name, every in classes.items() for each in every]
    known = {*imports, *classes, *_ROOTS}
    calls = []
    waiting: list[ast.Call | ast.MatchClass] = [*source.nodes(ast.Call), *source.nodes(ast.MatchClass)]
    for call in waiting:
        name = _spelling(call.func if isinstance(call, ast.Call) else call.cls)
        if name == "cls":
            name = max(((first, each) for first, last, each in lines if first <= call.lineno <= last), default=(0, ""))[
                1
            ]
        if (call.args if isinstance(call, ast.Call) else call.patterns) and name.partition(".")[0] in known:
            calls.append(CallSummary(line=call.lineno, name=name, is_row=_takes_row(call)))
    return FileSummary(path=source.path, imports=imports, classes=classes, calls=calls)


def _class_summary(node: ast.ClassDef) -> ClassSummary:
    calls = [each if isinstance(each, ast.Call) else ast.Call(each, [], []) for each in node.decorator_list]
    init = next((each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None)
    return ClassSummary(
        line=node.lineno,
        last_line=node.end_lineno or node.lineno,
        bases=[_spelling(base) for base in node.bases],
        options=_options(node.keywords),
        decorators=[(_spelling(each.func), _options(each.keywords)) for each in calls],
        arguments=[each.arg for each in (*init.args.posonlyargs, *init.args.args)][1:] if init else None,
        fields=dict(_fields(node)),
    )


def _spelling(node: ast.expr) -> str:
    """Return the dotted name that an expression names, without an index; empty for anything else."""
    if isinstance(node, ast.Subscript):
        return _spelling(node.value)
    if isinstance(node, ast.Attribute):
        return f"{head}.{node.attr}" if (head := _spelling(node.value)) else ""
    return node.id if isinstance(node, ast.Name) else ""


def _takes_row(node: ast.Call | ast.MatchClass) -> bool:
    if not isinstance(node, ast.Call):
        return False
    return len(node.args) == 1 and isinstance(node.args[0], ast.Starred) and not node.keywords


class Records:
    """The records of a set of files, found by the names that other files import them by."""

    def __init__(self, files: Iterable[FileSummary]) -> None:
        self._files = {SourceFile(file.path, "").module: file for file in files}
        self._known: dict[str, Record | None] = {}

    @cached_property
    def large(self) -> list[Record]:
        """The records of more than four fields."""
        names = (f"{module}.{name}" for module, file in self._files.items() for name in file.classes)
        return [record for name in names if (record := self._record(name)) and record.is_large]

    def by_position(self, file: FileSummary) -> Iterator[tuple[CallSummary, Record]]:
        """Yield the calls and patterns of a file that give a large record's fields by position."""
        for call in file.calls:
            name = self._name(call.name, file)
            if name and (record := self._record(name)) and record.is_large:
                yield call, record

    def _name(self, spelling: str, file: FileSummary) -> str:
        """Return the dotted name of the class that a file spells in some way."""
        head, _, rest = spelling.partition(".")
        if head in file.classes:
            name = f"{SourceFile(file.path, '').module}.{head}"
        else:
            name = self._origin(file.imports.get(head, head))
        for part in rest.split(".") if rest else ():
            name = self._origin(f"{name}.{part}")
        return name

    def _origin(self, name: str) -> str:
        """Follow a name through the modules that import it to export it."""
        for _ in range(5):
            head, _, last = name.rpartition(".")
            file = self._files.get(head)
            if file is None or last in file.classes or last not in file.imports:
                break
            name = file.imports[last]
        return name

    def _record(self, name: str) -> Record | None:
        if name not in self._known:
            self._known[name] = None  # a class that inherits from itself is not one
            self._known[name] = self._read(name)
        return self._known[name]

    def _read(self, name: str) -> Record | None:
        head, _, last = name.rpartition(".")
        file = self._files.get(head)
        if file is None or len(file.classes.get(last, ())) != 1:
            return None
        (statement,) = file.classes[last]
        bases = [self._name(base, file) for base in statement.bases]
        parents = [record for base in bases if (record := self._record(base))]
        options, kind = self._kind(statement, file, bases=bases, parents=parents)
        if statement.arguments is not None:
            kind, names, named, keyword_only = "class", statement.arguments, frozenset[str](), False
        elif not kind:
            return None
        else:
            is_plain = kind == "class"
            keyword_only = options.get("kw_only", False) or (is_plain and any(p.is_keyword_only for p in parents))
            own = {} if is_plain else statement.fields
            named = frozenset(
                [each for parent in parents for each in parent.named]
                + [each for each, is_named in own.items() if is_named or keyword_only]
            )
            every = dict.fromkeys([each for parent in reversed(parents) for each in parent.fields] + list(own))
            names = sorted(every, key=named.__contains__)
        return Record(
            path=file.path,
            line=statement.line,
            name=last,
            kind=kind,
            fields=tuple(names),
            named=named,
            is_keyword_only=keyword_only,
        )

    def _kind(
        self, statement: ClassSummary, file: FileSummary, *, bases: list[str], parents: list[Record]
    ) -> tuple[dict[str, bool], str]:
        """Return the options of the class statement, and the kind of record."""
        for spelling, options in statement.decorators:
            if self._name(spelling, file) in _DATACLASSES:
                return options, "dataclass"
        if _STRUCTS & set(bases) or any(parent.kind == "struct" for parent in parents):
            return statement.options, "struct"
        if _TUPLES & set(bases):
            return {}, "tuple"
        return {}, parents[0].kind if parents and parents[0].kind == "tuple" else "class" if parents else ""


def _options(keywords: Iterable[ast.keyword]) -> dict[str, bool]:
    return {each.arg: bool(each.value.value) for each in keywords if each.arg and isinstance(each.value, ast.Constant)}


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, bool]]:
    """Yield the annotated names that the constructor takes, and whether it takes them by keyword alone."""
    is_named = False
    for each in node.body:
        if not isinstance(each, ast.AnnAssign):
            continue
        annotation = ast.unparse(each.annotation)
        is_named |= annotation.endswith("KW_ONLY")
        if not isinstance(each.target, ast.Name):
            continue
        options = _options(each.value.keywords if isinstance(each.value, ast.Call) else [])
        if "ClassVar" not in annotation and not annotation.endswith("KW_ONLY") and options.get("init", True):
            yield each.target.id, is_named or options.get("kw_only", False)


def built_by_position(records: Records, file: FileSummary) -> list[str]:
    """Report calls and patterns that give a large record's fields by position."""
    return [
        f"{file.path}:{call.line} {record.name}: has {len(record.fields)} fields; name each"
        for call, record in records.by_position(file)
        if not _from_row(call, file)
    ]


def not_keyword_only(records: Records, files: Iterable[FileSummary]) -> list[str]:
    """Report large dataclasses and structs without `kw_only=True`, but for those that the store builds of a row."""
    from_rows = {record for file in files for call, record in records.by_position(file) if _from_row(call, file)}
    return [
        f"{record.path}:{record.line} {record.name}: {len(record.fields)} fields; add kw_only=True"
        for record in records.large
        if record.kind in ("dataclass", "struct") and not record.is_keyword_only and record not in from_rows
    ]


def _from_row(call: CallSummary, file: FileSummary) -> bool:
    """Return whether it is `Record(*row)` in the store, where a statement lists the fields in order."""
    return file.path.startswith("src/limnos/store/") and call.is_row
