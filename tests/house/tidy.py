# SPDX-License-Identifier: Apache-2.0
"""The rules of tidiness as pure functions: source text in, complaints out.

Each rule takes a `SourceFile` or a set of them and returns sentences with the place, the problem and the alternative.
test_tidy.py applies them to the tree and shows that each can fail. Knows nothing of pytest.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

SOURCE_STATEMENTS_MAX = 325
FILE_STATEMENTS_MAX = 550
FUNCTION_STATEMENTS_MAX = 50
"""Sizes are statements and not lines, so that nothing is packed to fit them. Docstrings are not counted."""
POSITIONAL_MAX = 2

UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|NotImplementedError)\b")
FOREIGN_PATH = re.compile(r"(?<![\w.$}*-])/(?:work|root|farm)/\w")
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
PURE_ROOMS = frozenset({"names", "model", "formats", "sqlpp"})
TERMINAL_ROOMS = frozenset({"cli"})

CLI_MAY_IMPORT = frozenset({"cli", "client", "config", "manifests", "model", "names", "sqlpp"})
"""Rooms of the base install. Other rooms need an extra and increase the start time: `limnos list` must not load a
server.
"""

CLI_MAY_IMPORT_OUTSIDE = frozenset(
    {"cyclopts", "rich", "httpx2", "msgspec", "prompt_toolkit", "pydantic", "pydantic_settings"}
)


@dataclass(frozen=True)
class SourceFile:
    """One Python file: its path relative to the repository, and its text."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return ast.parse(self.text, filename=self.path)

    @cached_property
    def module(self) -> str:
        """The dotted name: `src/limnos/store/tables.py` is `limnos.store.tables`; `__init__` is omitted."""
        return self.path.removeprefix("src/").removesuffix(".py").replace("/", ".").removesuffix(".__init__")

    @property
    def room(self) -> str:
        """The first part below `limnos`; empty for the package itself."""
        parts = self.module.split(".")
        return parts[1] if len(parts) > 1 else ""

    @property
    def generated(self) -> bool:
        """Return whether a tool wrote the file."""
        return self.path.endswith("_pb2.py")


def read_sources(root: Path, *folders: str) -> list[SourceFile]:
    """Read every Python file below the folders, sorted by path, without generated ones."""
    files = sorted(file for folder in folders for file in (root / folder).rglob("*.py"))
    sources = [SourceFile(file.relative_to(root).as_posix(), file.read_text(encoding="utf-8")) for file in files]
    return [source for source in sources if not source.generated]


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield every function and method, nested ones included."""
    return (node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)))


# --------------------------------------------------------------------------------------- one file at a time


def statements(tree: ast.AST) -> int:
    """Count the statements below a node, nested ones included, without docstrings and the node itself."""
    return sum(
        isinstance(node, ast.stmt) and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for node in ast.walk(tree)
        if node is not tree
    )


def too_long_file(source: SourceFile) -> list[str]:
    """A file of the product has at most 325 statements, any other 550."""
    most = SOURCE_STATEMENTS_MAX if source.path.startswith("src/") else FILE_STATEMENTS_MAX
    size = statements(source.tree)
    return [f"{source.path}: {size} statements, at most {most}; split it by topic"] if size > most else []


def switched_off_formatter(source: SourceFile) -> list[str]:
    """The formatter decides in every line."""
    return [
        f"{source.path}:{number}: the formatter is switched off; name a value or shorten the call"
        for number, line in enumerate(source.text.splitlines(), 1)
        if FORMATTER_OFF.search(line)
    ]


def too_long_function(source: SourceFile) -> list[str]:
    """A function has at most 50 statements."""
    return [
        f"{source.path}:{node.lineno} {node.name}: {size} statements, at most {FUNCTION_STATEMENTS_MAX}; name a part"
        " of it"
        for node in functions(source.tree)
        if (size := statements(node)) > FUNCTION_STATEMENTS_MAX
    ]


def no_opening(source: SourceFile) -> list[str]:
    """Every module begins with a paragraph: its job, what it may import, what it must not know."""
    return [] if ast.get_docstring(source.tree) else [f"{source.path}: no opening docstring; say the module's job"]


def unfinished(source: SourceFile) -> list[str]:
    """The source has no marks of unfinished work."""
    return [
        f"{source.path}:{number} {hit[0]}: finish it, or list it in docs/STATE.md"
        for number, line in enumerate(source.text.splitlines(), 1)
        if (hit := UNFINISHED.search(line))
    ]


def banned_call(source: SourceFile) -> list[str]:
    """Report calls that have a better replacement."""
    names = _imported_names(source.tree)
    calls = ((node.lineno, _dotted(node.func, names)) for node in ast.walk(source.tree) if isinstance(node, ast.Call))
    rules = _banned_in(source)
    return [f"{source.path}:{line} {name}: use instead {rules[name]}" for line, name in calls if name in rules]


def _banned_in(source: SourceFile) -> dict[str, str]:
    rules = dict(BANNED)
    if source.room in TERMINAL_ROOMS:
        del rules["print"]
    if source.room in PURE_ROOMS:
        rules.update(CLOCK)
    return rules


def _imported_names(tree: ast.AST) -> dict[str, str]:
    """Map each local name of an import to its dotted name."""
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update({item.asname: item.name for item in node.names if item.asname})
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.update({item.asname or item.name: f"{node.module}.{item.name}" for item in node.names})
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
        return len(parts) == 1 or parts[1] in CLI_MAY_IMPORT or parts[1].startswith("__")
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


def untold_test(source: SourceFile) -> list[str]:
    """Every test states its expected result in its docstring."""
    return [
        f"{source.path}:{node.lineno} {node.name}: no docstring; state the expectation in one sentence"
        for node in functions(source.tree)
        if node.name.startswith("test_") and not ast.get_docstring(node)
    ]


def skipped_test(source: SourceFile) -> list[str]:
    """No test is skipped, expected to fail, or dependent on software of the machine."""
    words = {"skip", "skipif", "xfail", "importorskip"}
    names = _imported_names(source.tree)
    return [
        f"{source.path}:{node.lineno} {name}: make the test run everywhere, or take it out"
        for node in ast.walk(source.tree)
        if isinstance(node, (ast.Attribute, ast.Name))
        and (name := _dotted(node, names)).startswith("pytest.")
        and name.rpartition(".")[2] in words
    ]


def foreign_path(source: SourceFile) -> list[str]:
    """The source has no path of a particular machine."""
    return [
        f"{source.path}:{number} names a place on one machine: {hit[0]}…"
        for number, line in enumerate(source.text.splitlines(), 1)
        if (hit := FOREIGN_PATH.search(line))
    ]


# -------------------------------------------------------------------------------------- the tree as a whole


def dead_modules(sources: Iterable[SourceFile], entries: Iterable[str]) -> list[str]:
    """Every module is imported by another one or is an entry point; packages count by their modules."""
    sources = list(sources)
    used = set(entries)
    for source in sources:
        used |= {name for name in _mentioned_modules(source) if name != source.module}
    return [
        f"{source.path}: nothing imports it; use it, delete it, or name it as an entry point"
        for source in sources
        if source.module not in used and not source.path.endswith("__init__.py")
    ]


def _mentioned_modules(source: SourceFile) -> Iterator[str]:
    """Yield each dotted name that an import, or a string such as `limnos.app.server:main`, may refer to."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            yield from (item.name for item in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{item.name}" for item in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("limnos."):
            yield node.value.partition(":")[0]


def metric_names(sources: Iterable[SourceFile]) -> set[str]:
    """Collect the names of metrics: whole strings of the form `limnos_…` in telemetry and in declarations."""
    return {
        node.value
        for source in sources
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and METRIC.fullmatch(node.value)
    }


def error_codes(sources: Iterable[SourceFile]) -> set[str]:
    """Collect the stable codes: `code = "…"` in the body of a class."""
    return {
        node.value.value
        for source in sources
        for owner in ast.walk(source.tree)
        if isinstance(owner, ast.ClassDef)
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

    def look(node: ast.AST, within: str, *, method: bool) -> None:
        for child in ast.iter_child_nodes(node):
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


def too_many_by_position(sources: Iterable[SourceFile], known: Mapping[str, int]) -> list[str]:
    """Report functions with more than two positional arguments that are not on the list, and outdated entries of the
    list.
    """
    counts = {name: count for source in sources for name, count in by_position(source).items()}
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
