# SPDX-License-Identifier: Apache-2.0
"""The rules of tidiness as pure functions: source text in, complaints out.

Each rule takes a `SourceFile` or a set of them and returns sentences with the place, the problem and the alternative.
test_tidy.py applies them to the tree and shows that each can fail. Knows nothing of pytest.
"""

from __future__ import annotations

import ast
import re
import sys
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

SOURCE_STATEMENTS_MAX = 325
FILE_STATEMENTS_MAX = 550
FUNCTION_STATEMENTS_MAX = 50
"""Sizes are statements and not lines, so that nothing is packed to fit them. Docstrings are not counted."""
POSITIONAL_MAX = 2

UNFINISHED_WORDS = ("TODO", "FIXME", "XXX", "NotImplementedError")
UNFINISHED = re.compile(rf"\b({'|'.join(UNFINISHED_WORDS)})\b")
FOREIGN_FOLDERS = tuple(f"/{name}/" for name in ("work", "root", "farm"))
FOREIGN_PATH = re.compile(rf"(?<![\w.$}}*-])(?:{'|'.join(FOREIGN_FOLDERS)})\w")
FORMATTER_OFF = re.compile(r"#\s*fmt:\s*(skip|off)")
METRIC = re.compile(r"limnos_[a-z0-9]+(?:_[a-z0-9]+)*")

BANNED: Mapping[str, str] = {
    "print": "write to the log (telemetry); only cli speaks on the terminal",
    "eval": "parse the text",
    "exec": "call a function",
    "os.system": "subprocess.run with a list of words",
    "os.popen": "subprocess.run with a list of words",
    "pickle.load": "msgspec or Protobuf: pickle runs what it reads",
    "pickle.loads": "msgspec or Protobuf: pickle runs what it reads",
    "datetime.datetime.utcnow": "datetime.now(UTC): a time without a zone is nobody's time",
    "datetime.datetime.utcfromtimestamp": "datetime.fromtimestamp(seconds, UTC)",
    "asyncio.get_event_loop": "asyncio.get_running_loop",
    "tempfile.mktemp": "tempfile.mkstemp",
    "logging.basicConfig": "the set-up in telemetry",
}
CLOCK: Mapping[str, str] = dict.fromkeys(
    ("time.time", "time.time_ns", "datetime.datetime.now", "datetime.date.today"),
    "take the moment as a parameter: a pure room has no clock",
)
PURE_ROOMS = frozenset({"names", "model", "formats", "language"})
TERMINAL_ROOMS = frozenset({"cli"})
ROOM_PARTS = 4
"""The parts of the path of a module at the top of an optional room, such as `limnos/rooms/jobs/server.py`."""

CLI_MAY_IMPORT = frozenset({"cli", "client", "config", "language", "manifests", "model", "names"})
"""Rooms of the base install. Other rooms need an extra and increase the start time: `limnos list` must not load a
server.
"""

CLI_MAY_IMPORT_OUTSIDE = frozenset(
    {"cyclopts", "rich", "httpx2", "msgspec", "prompt_toolkit", "pydantic", "pydantic_settings"}
)


_WITHOUT_NODES = frozenset(
    ["arg", "asname", "attr", "conversion", "ctx", "id", "is_async", "kind", "level", "module", "op", "ops", "simple"]
)
"""Fields of syntax nodes that lead to no node, or to contexts and operators, which no rule reads."""
_CHILD_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {ast.Constant: (), ast.Name: ()}
"""The fields of each class of nodes that lead to others; filled when a class is first seen."""
Node = TypeVar("Node", bound=ast.AST)


@dataclass(frozen=True)
class SourceFile:
    """One Python file: its path relative to the repository, and its text."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return ast.parse(self.text, filename=self.path)

    def nodes(self, *kinds: type[Node]) -> Iterator[Node]:
        """Yield the nodes of the tree of some classes (not of their subclasses), those of each class from outer to
        inner.

        The tree is walked once, whatever is read of it.
        """
        for kind in kinds:
            yield from self._nodes_by_kind.get(kind, ())  # type: ignore[misc]  # the list has nodes of its key

    @cached_property
    def _nodes_by_kind(self) -> dict[type[ast.AST], list[ast.AST]]:
        nodes: list[ast.AST] = [self.tree]
        by_kind: dict[type[ast.AST], list[ast.AST]] = {}
        append, is_node = nodes.append, ast.AST
        for node in nodes:  # grows during the iteration
            kind = node.__class__
            if kind not in by_kind:
                by_kind[kind] = []
                _CHILD_FIELDS.setdefault(kind, tuple(name for name in kind._fields if name not in _WITHOUT_NODES))
            by_kind[kind].append(node)
            values = node.__dict__
            for name in _CHILD_FIELDS[kind]:
                value = values.get(name)
                if value.__class__ is list:
                    for each in value:
                        if isinstance(each, is_node):
                            append(each)
                elif isinstance(value, is_node):
                    append(value)
        return by_kind

    @cached_property
    def statement_lines(self) -> list[int]:
        """The line of each statement except docstrings, sorted."""
        lines = [
            node.lineno
            for kind, nodes in self._nodes_by_kind.items()
            if issubclass(kind, ast.stmt)
            for node in nodes
            if isinstance(node, ast.stmt) and not _is_text(node)
        ]
        return sorted(lines)

    @cached_property
    def module(self) -> str:
        """The dotted name: `src/limnos/store/tables.py` is `limnos.store.tables`; `__init__` is omitted."""
        return self.path.removeprefix("src/").removesuffix(".py").replace("/", ".").removesuffix(".__init__")

    @property
    def room(self) -> str:
        """The package below `limnos`, or the package of an optional room that is called like one; empty for the package
        `limnos` itself.
        """
        parts = self.path.removeprefix("src/").split("/")
        if parts[1:2] == ["rooms"] and len(parts) > ROOM_PARTS:
            return parts[3]
        return self.module.split(".")[1] if "." in self.module else ""

    @property
    def generated(self) -> bool:
        """Return whether a tool wrote the file."""
        return self.path.endswith("_pb2.py")


def read_sources(root: Path, *folders: str) -> list[SourceFile]:
    """Read every Python file below the folders, sorted by path, without generated ones."""
    files = sorted(file for folder in folders for file in (root / folder).rglob("*.py"))
    sources = [SourceFile(file.relative_to(root).as_posix(), file.read_text(encoding="utf-8")) for file in files]
    return [source for source in sources if not source.generated]


def functions(source: SourceFile) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield every function and method, nested ones included."""
    yield from source.nodes(ast.FunctionDef)
    yield from source.nodes(ast.AsyncFunctionDef)


def _is_text(node: ast.stmt) -> bool:
    """Return whether a statement is a constant alone, as docstrings are."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


# --------------------------------------------------------------------------------------- one file at a time


def statements(tree: ast.AST) -> int:
    """Count the statements below a node, nested ones included, without docstrings and the node itself."""
    return sum(isinstance(node, ast.stmt) and not _is_text(node) for node in ast.walk(tree) if node is not tree)


def too_long_file(source: SourceFile) -> list[str]:
    """A file of the product has at most 325 statements, any other 550."""
    most = SOURCE_STATEMENTS_MAX if source.path.startswith("src/") else FILE_STATEMENTS_MAX
    size = len(source.statement_lines)
    return [f"{source.path}: {size} statements, at most {most}; split it by topic"] if size > most else []


def _matches(pattern: re.Pattern[str], source: SourceFile, *parts: str) -> Iterator[tuple[int, str]]:
    """Yield the number of the line and the text of each match of a pattern, each of which has one of the parts."""
    if any(part in source.text for part in parts):
        for hit in pattern.finditer(source.text):
            yield source.text.count("\n", 0, hit.start()) + 1, hit[0]


def switched_off_formatter(source: SourceFile) -> list[str]:
    """The formatter decides in every line."""
    return [
        f"{source.path}:{number}: the formatter is switched off; name a value or shorten the call"
        for number, _ in _matches(FORMATTER_OFF, source, "fmt:")
    ]


def too_long_function(source: SourceFile) -> list[str]:
    """A function has at most 50 statements."""
    lines = source.statement_lines
    return [
        f"{source.path}:{node.lineno} {node.name}: {size} statements, at most {FUNCTION_STATEMENTS_MAX}; name a part"
        " of it"
        for node in functions(source)
        # Only a function with as many statements between its first and last line is walked.
        if bisect_right(lines, node.end_lineno or 0) - bisect_left(lines, node.lineno) > FUNCTION_STATEMENTS_MAX
        and (size := statements(node)) > FUNCTION_STATEMENTS_MAX
    ]


def unfinished(source: SourceFile) -> list[str]:
    """The source has no marks of unfinished work."""
    return [
        f"{source.path}:{number} {words}: finish it, or list it in docs/STATE.md"
        for number, words in _matches(UNFINISHED, source, *UNFINISHED_WORDS)
    ]


def banned_call(source: SourceFile) -> list[str]:
    """Report calls that have a better replacement."""
    names = _imported_names(source)
    calls = ((node.lineno, _dotted(node.func, names)) for node in source.nodes(ast.Call))
    rules = _banned_in(source)
    return [f"{source.path}:{line} {name}: use instead {rules[name]}" for line, name in calls if name in rules]


def _banned_in(source: SourceFile) -> dict[str, str]:
    rules = dict(BANNED)
    if source.room in TERMINAL_ROOMS:
        del rules["print"]
    if source.room in PURE_ROOMS:
        rules.update(CLOCK)
    return rules


def _imported_names(source: SourceFile) -> dict[str, str]:
    """Map each local name of an import to its dotted name."""
    names: dict[str, str] = {}
    for node in source.nodes(ast.Import):
        names.update({item.asname: item.name for item in node.names if item.asname})
    for origin in source.nodes(ast.ImportFrom):
        names.update({item.asname or item.name: f"{origin.module}.{item.name}" for item in origin.names})
    return names


def _dotted(node: ast.expr, names: Mapping[str, str]) -> str:
    """Return the dotted name of an expression; empty for anything else."""
    if isinstance(node, ast.Name):
        return names.get(node.id, node.id)
    if isinstance(node, ast.Attribute) and (head := _dotted(node.value, names)):
        return f"{head}.{node.attr}"
    return ""


def eager_command(source: SourceFile) -> list[str]:
    """The command line imports the server's rooms, and libraries of extras, inside functions only."""
    if source.room != "cli":
        return []
    return [
        f"{source.path}:{line} imports {name} at the top: import it in the function that needs it"
        for line, name in _top_imports(source.tree.body)
        if not _in_base_install(name)
    ]


def _in_base_install(name: str) -> bool:
    parts = name.split(".")
    if parts[0] == "limnos":
        layers = parts[3:4] if parts[1:2] == ["rooms"] else parts[1:2]
        return len(parts) == 1 or bool(CLI_MAY_IMPORT.intersection(layers)) or parts[1].startswith("__")
    return parts[0] in sys.stdlib_module_names or parts[0] in CLI_MAY_IMPORT_OUTSIDE


def _top_imports(body: Iterable[ast.stmt]) -> Iterator[tuple[int, str]]:
    """Yield line and dotted name of each import that runs when the module is loaded."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, item.name) for item in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            whole = node.module == "limnos"
            yield from ((node.lineno, f"limnos.{item.name}" if whole else node.module) for item in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test):
            yield from _top_imports([*node.body, *node.orelse])
        elif isinstance(node, ast.Try):
            yield from _top_imports([*node.body, *node.orelse, *node.finalbody])


def skipped_test(source: SourceFile) -> list[str]:
    """No test is skipped, expected to fail, or dependent on software of the machine."""
    if "skip" not in source.text and "xfail" not in source.text:
        return []
    words = {"skip", "skipif", "xfail", "importorskip"}
    names = _imported_names(source)
    return [
        f"{source.path}:{node.lineno} {name}: make the test run everywhere, or take it out"
        for node in (*source.nodes(ast.Attribute), *source.nodes(ast.Name))
        if (name := _dotted(node, names)).startswith("pytest.") and name.rpartition(".")[2] in words
    ]


def foreign_path(source: SourceFile) -> list[str]:
    """The source has no path of a particular machine."""
    return [
        f"{source.path}:{number} names a place on one machine: {path}…"
        for number, path in _matches(FOREIGN_PATH, source, *FOREIGN_FOLDERS)
    ]


# -------------------------------------------------------------------------------------- the tree as a whole


def dead_modules(mentions: Mapping[str, Collection[str]], entries: Iterable[str]) -> list[str]:
    """Every module is imported by another one or is an entry point; packages count by their modules.

    `mentions` has the modules that each file mentions, by its path (`mentioned_modules`).
    """
    used, modules = set(entries), {path: SourceFile(path, "").module for path in mentions}
    for path, names in mentions.items():
        used |= set(names) - {modules[path]}
    return [
        f"{path}: nothing imports it; use it, delete it, or name it as an entry point"
        for path, module in modules.items()
        if module not in used and not path.endswith("__init__.py")
    ]


def mentioned_modules(source: SourceFile) -> set[str]:
    """Return each dotted name that an import, or a string such as `limnos.app.server:main`, may refer to."""
    names = {item.name for node in source.nodes(ast.Import) for item in node.names}
    for node in source.nodes(ast.ImportFrom):
        names |= {node.module or "", *(f"{node.module}.{item.name}" for item in node.names)}
    return names | {text.partition(":")[0] for text in _texts(source) if text.startswith("limnos.")}


def _texts(source: SourceFile) -> Iterator[str]:
    """Yield the strings of a file."""
    return (node.value for node in source.nodes(ast.Constant) if isinstance(node.value, str))


def metric_names(source: SourceFile) -> set[str]:
    """Collect the names of metrics: whole strings of the form `limnos_…` in telemetry and in declarations."""
    return {text for text in _texts(source) if METRIC.fullmatch(text)}


def error_codes(source: SourceFile) -> set[str]:
    """Collect the stable codes: `code = "…"` in the body of a class."""
    return {
        node.value.value
        for owner in source.nodes(ast.ClassDef)
        for node in owner.body
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        and "code"
        in [ast.unparse(target) for target in (node.targets if isinstance(node, ast.Assign) else [node.target])]
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        and node.value.value
    }


def undocumented(names: Iterable[str], page: str, *, where: str) -> list[str]:
    """Every name is on the page between back quotes, alone or with following text (`server start [--data]`)."""
    quoted_texts = re.findall(r"`([^`\n]+)`", page)
    whole = set(quoted_texts) | {word for text in quoted_texts for word in _beginnings(text)}
    return [f"{where} does not mention `{name}`" for name in sorted(set(names)) if name not in whole]


def _beginnings(text: str) -> Iterator[str]:
    words = text.split(" ")
    return (" ".join(words[:count]) for count in range(1, len(words)))


def _for_statements(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether it is a function of SQL++ (`@scalar`), whose arguments a statement passes by position."""
    calls = (each.func for each in node.decorator_list if isinstance(each, ast.Call))
    return any(isinstance(each, ast.Name) and each.id == "scalar" for each in calls)


def by_position(source: SourceFile) -> dict[str, int]:
    """Return the functions that take more than two positional arguments, `module:name` to their number, without self
    and cls.
    """
    counts: dict[str, int] = {}
    if not any(len(node.args.posonlyargs) + len(node.args.args) > POSITIONAL_MAX for node in functions(source)):
        return counts

    def look(node: ast.AST, within: str, *, method: bool) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                continue
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                names = (
                    [] if _for_statements(child) else [each.arg for each in (*child.args.posonlyargs, *child.args.args)]
                )
                count = len(names) - (method and names[:1] in (["self"], ["cls"]))
                if count > POSITIONAL_MAX:
                    counts[f"{source.module}:{within}{child.name}"] = count
                look(child, f"{within}{child.name}.", method=False)
            elif isinstance(child, ast.ClassDef):
                look(child, f"{within}{child.name}.", method=True)
            else:
                look(child, within, method=method)

    look(source.tree, "", method=False)
    return {} if source.generated else counts


def too_many_by_position(counts: Mapping[str, int], known: Mapping[str, int]) -> list[str]:
    """Report functions with more than two positional arguments that are not on the list, and outdated entries of the
    list.

    `counts` has the numbers of arguments that `by_position` returns for all files.
    """
    more = [
        f"{name}: {count} arguments by position: keyword-only after the second"
        for name, count in counts.items()
        if count > known.get(name, POSITIONAL_MAX)
    ]
    less = [
        f"{name}: no longer {count} by position: write the list anew (python -m tests.house.positional_functions)"
        for name, count in known.items()
        if counts.get(name, 0) < count
    ]
    return more + less
