# SPDX-License-Identifier: Apache-2.0
"""Write the tables of docs/reference/errors.md and docs/reference/metrics.md from the code: codes and metrics with
their descriptions.

The JSON Schema of a pipeline's file, and the tables of docs/reference/pipeline-file.md, are written from its keys; the
table of docs/reference/object-kinds.md is written from the table of kinds, those of docs/reference/settings.md from the
settings, that of tests/README.md from the docstrings of the modules that tests share. Routes, commands and resources of
declared kinds in docs/reference/routes.md and docs/reference/cli.md are written from their declarations.

Usage: generate_docs.py [--check]. The text above the marker in each page is written by hand and kept.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, get_args

import msgspec

from limnos.access.policy import POLICY
from limnos.access.rules import Rule
from limnos.cli.exit_codes import TABLE as EXIT_CODES
from limnos.config.report import reference
from limnos.http.error_statuses import status_of
from limnos.http.iceberg import errors as iceberg_errors
from limnos.model import errors
from limnos.model.declared_kinds import DECLARED, DeclaredKind
from limnos.model.kind_table import ANY_CATALOG, KIND_TABLE
from limnos.model.kinds import Kind
from limnos.model.privileges import BINDS, Privilege, kind_word
from limnos.names.errors import InvalidName
from limnos.pipeline.compound_schemas import Cases, ListOf, MapOf, Record, RecordKey
from limnos.pipeline.file import build_schema_text
from limnos.pipeline.keys import FILE
from limnos.pipeline.node_schemas import NodeSchema
from limnos.rooms.gravitino.http import errors as gravitino_errors
from limnos.rooms.lance.http import errors as lance_errors
from limnos.rooms.sqlpp.http import errors as asterix_errors
from limnos.rooms.sqlpp.language.functions import ANY_NUMBER, FUNCTIONS, Function
from limnos.rooms.sqlpp.language.functions.absent import ABSENT
from limnos.rooms.sqlpp.services.statements import statement_kinds

ROOT = Path(__file__).parents[1]
MARKER = "<!-- Below here: written by `make docs` from the code. -->\n"
METRIC_CLASSES = frozenset({"Counter", "Gauge", "Histogram", "Summary"})


_DECLARES = re.compile(rf"^\s+code\b.*=|(?:{'|'.join(sorted(METRIC_CLASSES))})\(", re.MULTILINE)
"""What a module has that declares an error code or a metric."""


def trees(package: Path) -> list[tuple[str, ast.Module]]:
    """Parse every module of the package that may declare error codes or metrics; returns each with its package (first
    folder).
    """
    files = sorted(file for file in package.rglob("*.py") if not file.name.endswith("_pb2.py"))
    texts = ((file.relative_to(package).parts[0], file.read_text(encoding="utf-8")) for file in files)
    return [(folder, ast.parse(text)) for folder, text in texts if _DECLARES.search(text)]


ERROR_COLUMNS = ("code", "meaning", "own API", "Gravitino", "Iceberg", "Lance", "SQL++", "package")
_LOGGED_ONLY = frozenset({"cannot-start", "start-warning"})
"""Codes of the package `model` that no response has."""


def error_rows(parsed: Iterable[tuple[str, ast.Module]]) -> list[str]:
    """Return one row per class with a `code`: code, meaning (the docstring's first paragraph), statuses, package."""
    rows = [
        (
            code,
            " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split()),
            _statuses(node.name, code, package),
            package,
        )
        for package, tree in parsed
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and (code := _code(node))
    ]
    head = ["| " + " | ".join(ERROR_COLUMNS) + " |", "|" + "---|" * len(ERROR_COLUMNS)]
    return head + [
        f"| `{code}` | {_cell(meaning)} | {statuses} | {package} |"
        for code, meaning, statuses, package in sorted(set(rows))
    ]


_TAXONOMY: Final = {**vars(errors), "InvalidName": InvalidName}
"""The classes of errors by name."""


def _statuses(name: str, code: str, package: str) -> str:
    """Return the cells of an error's HTTP statuses: admin API, Gravitino with its code, Iceberg, Lance with its code,
    SQL++.

    A class of another package has none: where it is sent, its base class in the taxonomy determines the status.
    """
    class_ = _TAXONOMY.get(name) if package in ("model", "names") else None
    if class_ is None or code in _LOGGED_ONLY:
        return " | ".join(["–"] * 5)
    error: errors.LimnosError = class_.__new__(class_)
    error.__dict__.update(
        message=code, reason="empty-name", context={}, kind="table", retry_after_s=1, was_right=False, decision=None
    )
    iceberg = iceberg_errors.error_response(error, operation="load-table").status
    gravitino, gravitino_code, _ = gravitino_errors.classify(error)
    lance, lance_code = lance_errors.classify(error, "")
    return (
        f"{status_of(error)} | {gravitino}, {gravitino_code} | {iceberg} | {lance}, {lance_code} |"
        f" {asterix_errors.status_of(error)}"
    )


def metric_rows(parsed: Iterable[tuple[str, ast.Module]]) -> list[str]:
    """Return one row per `Counter("limnos_…", "help", (labels))` and the like: name, kind, labels, help."""
    rows = [
        (name, call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func), labels, help_text)
        for _, tree in parsed
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and getattr(call.func, "attr", getattr(call.func, "id", "")) in METRIC_CLASSES
        for name, help_text, labels in _metric(call)
    ]
    return [
        f"| `{name}` | {kind.lower()} | {', '.join(f'`{label}`' for label in labels)} | {_cell(help_text)} |"
        for name, kind, labels, help_text in sorted(rows)
    ]


def key_rows(file: Record) -> list[str]:
    """Return a heading and a table for each record of a pipeline's file, the outer ones first."""
    lines: list[str] = []
    listed_names: set[str] = set()
    waiting = [file]
    for record in waiting:  # grows during the iteration
        if record.name in listed_names:
            continue
        listed_names.add(record.name)
        lines += [
            "",
            f"### {record.name[0].upper()}{record.name[1:]}",
            "",
            "| key | what it is | for example |",
            "|---|---|---|",
        ]
        lines += [_key_row(name, key) for name, key in record.keys.items()]
        waiting += [inner for key in record.keys.values() for inner in _records(key.value_schema)]
    return lines[1:]


def _key_row(name: str, key: RecordKey) -> str:
    required = "" if not key.required else " *Required.*"
    default = f" Default: {key.default}." if key.default else ""
    return f"| `{name}` | {_cell(key.description)}{required}{default} | `{_cell(key.example)}` |"


def _records(schema: NodeSchema) -> list[Record]:
    """The nearest records that a schema leads to."""
    if isinstance(schema, Record):
        return [schema]
    if isinstance(schema, Cases):
        return list(schema.cases.values())
    inner = [schema.item] if isinstance(schema, ListOf) else [schema.value] if isinstance(schema, MapOf) else []
    return [record for each in inner for record in _records(each)]


def _code(owner: ast.ClassDef) -> str:
    """Return the stable code that a class body sets; empty for none."""
    for node in owner.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        named = any(isinstance(target, ast.Name) and target.id == "code" for target in targets)
        if named and isinstance(value := getattr(node, "value", None), ast.Constant) and isinstance(value.value, str):
            return value.value
    return ""


def _metric(call: ast.Call) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    texts = [argument.value for argument in call.args if isinstance(argument, ast.Constant)]
    if not texts or not str(texts[0]).startswith("limnos_"):
        return
    sequences = [argument for argument in call.args[2:] if isinstance(argument, (ast.Tuple, ast.List))]
    words = [*sequences, *(item.value for item in call.keywords if item.arg in {"labels", "labelnames"})]
    labels = [str(item.value) for node in words for item in getattr(node, "elts", []) if isinstance(item, ast.Constant)]
    yield str(texts[0]), str(texts[1]) if len(texts) > 1 else "", tuple(labels)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def statement_rows() -> list[str]:
    """Return one row per kind of statement: its words, its actions, and the required privileges of the policy."""
    rows = []
    for words, kind in sorted(statement_kinds()):
        does = ", ".join(f"`{action.word}`" for action in kind.takes) or "nothing"
        takes = "; ".join(dict.fromkeys(_describe_rule(POLICY[action]) for action in kind.takes)) or "membership"
        rows.append(f"| {words} | {does} | {takes} |")
    return rows


KIND_COLUMNS = (
    "kind",
    "type",
    "names",
    "in catalogs of",
    "privileges",
    "owner",
    "tagged",
    "protected",
    "restricted",
    "trash",
    "exported",
    "transaction",
    "SQL++",
)


def kind_rows() -> list[str]:
    """Return one row per kind of object, with the facts of its table row for users."""
    rows = ["| " + " | ".join(KIND_COLUMNS) + " |", "|" + "---|" * len(KIND_COLUMNS)]
    for kind in Kind:
        row = KIND_TABLE[kind]
        catalogs = tuple("any" if each == ANY_CATALOG else each for each in row.catalogs or ())
        privileges = tuple(word.upper() for word in row.privileges or ())
        aspects = (
            row.gravitino,
            row.name_space,
            catalogs,
            privileges,
            row.owned,
            row.attachable,
            row.protected,
            row.restricted,
            row.trash,
            bool(row.export),
            row.transactions,
            row.sqlpp,
        )
        rows.append(f"| {kind.word.replace('_', ' ')} | {' | '.join(map(_aspect, aspects))} |")
    return rows


def _aspect(value: object) -> str:
    """Format the value of an aspect: words, yes or no."""
    if not value:
        return "–"
    if value is True:
        return "yes"
    words = value if isinstance(value, tuple) else (value,)
    return ", ".join(each if each == "any" else f"`{each}`" for each in words)


def _describe_rule(rule: Rule) -> str:
    """Return the privileges in a rule, without those of use, and then the owners in it."""
    words = dict.fromkeys(re.findall(r"<Privilege\.(\w+)", repr(rule)))
    owners = sorted(set(re.findall(r"<Kind\.(\w+)", repr(rule))), key=lambda name: -Kind[name])
    owned = ", ".join(kind_word(Kind[name]).lower().replace("_", " ") for name in owners)
    other = [word for word in words if not word.startswith("USE_")] or list(words)[-1:]
    return f"{' or '.join(other)}, or owner of: {owned}"


def privilege_rows() -> list[str]:
    """Return one row per privilege: the kinds on which it is granted, and the actions whose rule names it."""
    rows = ["| privilege | granted on | actions |", "|---|---|---|"]
    for privilege in Privilege:
        kinds = ", ".join(kind.word.replace("_", " ") for kind in sorted(BINDS[privilege]))
        actions = [action.word for action, rule in POLICY.items() if f"<Privilege.{privilege.name}:" in repr(rule)]
        if privilege in _USE:
            actions = [word for word in actions if word.startswith(_USE[privilege])]
        rows.append(f"| `{privilege.name}` | {kinds} | {', '.join(f'`{word}`' for word in actions) or '–'} |")
    return rows


_USE: Final = {Privilege.USE_CATALOG: "catalog_", Privilege.USE_SCHEMA: "namespace_"}
"""Privileges that nearly every action requires, with the prefix of the actions whose rows name them."""


def pages() -> dict[Path, str]:
    """Return each page with its current table."""
    parsed = trees(ROOT / "src" / "limnos")
    tables = {
        "reference/errors.md": error_rows(parsed),
        "reference/metrics.md": ["| metric | kind | labels | meaning |", "|---|---|---|---|", *metric_rows(parsed)],
    }
    tables["reference/pipeline-file.md"] = key_rows(FILE)
    tables["reference/object-kinds.md"] = kind_rows()
    tables["reference/privileges.md"] = privilege_rows()
    tables["reference/routes.md"] = ["| route | does | needs |", "|---|---|---|", *declared_route_rows()]
    tables["reference/sqlpp.md"] = [
        "| statement | does to the tree | which takes |",
        "|---|---|---|",
        *statement_rows(),
        "",
        "## Functions",
        "",
        "Those of AsterixDB that are built in here, under all their names; `_` and `-` are one in names.",
        "",
        "| family | functions, with the number of their arguments |",
        "|---|---|",
        *function_rows(),
        "",
        "`current_date`, `current_time`, `current_datetime` and `now` (0) are the statement's own moment.",
        "Functions of AsterixDB that are not built in:",
        "",
        "| about | functions |",
        "|---|---|",
        *(f"| {family} | {', '.join(sorted(names))} |" for family, names in ABSENT.items()),
    ]
    tables["reference/settings.md"] = reference().rstrip("\n").split("\n")
    docs = ROOT / "docs"
    page_texts = {docs / name: _head(docs / name) + "\n".join(["", *rows, ""]) for name, rows in tables.items()}
    helpers = ROOT / "tests" / "README.md"
    page_texts[helpers] = _head(helpers) + "\n".join(["", "| folder | helpers |", "|---|---|", *helper_rows(), ""])
    command_page = with_exit_codes((docs / "reference" / "cli.md").read_text("utf-8"))
    page_texts[docs / "reference" / "cli.md"] = with_declared_commands(command_page)
    return page_texts | {ROOT / "src" / "limnos" / "pipeline" / "schema.json": build_schema_text()}


def helper_rows() -> list[str]:
    """Return one row per folder of tests/ that has helpers: each module that has no tests, with the first paragraph of
    its docstring.
    """
    rows: dict[str, list[str]] = {}
    for file in sorted((ROOT / "tests").rglob("*.py")):
        if file.name.startswith("test_") or file.name == "__init__.py":
            continue
        about = (ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or "").partition("\n\n")[0]
        folder = file.parent.relative_to(ROOT / "tests").as_posix()
        rows.setdefault(folder, []).append(f"`{file.name}`: {_cell(' '.join(about.split()))}")
    return [f"| `{folder}` | {'<br>'.join(entries)} |" for folder, entries in sorted(rows.items())]


def with_exit_codes(page: str) -> str:
    """Return the page of the command line with the current table of exit codes in the place of the one it has."""
    rows = [f"| {row.numbers} | {row.meaning} | {row.errors} |".replace("|  |", "| |") for row in EXIT_CODES]
    return _with_table(page, "| exit code | meaning | codes of errors |\n|---|---|---|\n", rows)


def with_declared_commands(page: str) -> str:
    """Return the page of the command line with the current table of declared kinds: commands and client resources."""
    head = "| command of a declared kind | effect | resource |\n|---|---|---|\n"
    return _with_table(page, head, [_declared_command_row(each) for each in DECLARED])


def _with_table(page: str, head: str, rows: list[str]) -> str:
    before, separator, after = page.partition(head)
    if not separator:
        message = f"cli.md has lost the head of a table that the code writes: {head}"
        raise SystemExit(message)
    return f"{before}{head}" + "\n".join([*rows, ""]) + after[after.index("\n\n") + 1 :]


def _declared_command_row(declared: DeclaredKind) -> str:
    words = declared.kind.word.replace("_", " ")
    flags = [
        f"`--{field.name.replace('_', '-')}`{' (repeatable)' if field.default == () else ''}: {_description(field)}"
        for field in _own_fields(declared)
    ]
    common = "Also `--comment` and `--property KEY=VALUE` (repeatable)."
    effect = " ".join([f"Creates a {words}: {declared.about}", *flags, common])
    return f"| `create {declared.kind.word} PATH` | {_cell(effect)} | `client.{declared.plural}` |"


def _description(field: msgspec.structs.FieldInfo) -> str:
    """Return what a declaration says about one of the own fields of its kind."""
    return next(
        each.description for each in get_args(field.type) if isinstance(each, msgspec.Meta) and each.description
    )


def declared_route_rows() -> list[str]:
    """Return the rows of the routes of each declared kind."""
    rows = []
    for declared in DECLARED:
        words, names = declared.kind.word.replace("_", " "), [field.encode_name for field in _own_fields(declared)]
        above = f"/api/limnos/v1/metalakes/{{m}}/catalogs/{{c}}/{declared.plural}/{{namespace}}"
        one = f"{above}/{{{declared.kind.word}}}"
        stamps = ("created_by", "created_at", "modified_by", "modified_at")
        objects = f'{{"{declared.plural}": [{_body("name", "path", "comment", "properties", *names, *stamps)}]}}'
        lists = (
            f"lists the {declared.plural.replace('_', ' ')} of a namespace that are visible to the caller: `{objects}`"
        )
        creates = f"creates a {words}, which the caller owns: `{_body('name', 'comment', 'properties', *names)}`"
        alters = f"changes a {words}: `{_body('name', 'comment', 'clears_comment', 'sets', 'removes', *names)}`"
        rows += [
            f"| `GET {above}` | {lists} | as loading the namespace |",
            f"| `POST {above}` | {creates} | {declared.create_right} or owner of the namespace |",
            f"| `GET {one}` | loads one {words} | as loading the namespace |",
            f"| `PUT {one}` | {alters}; an omitted field stays unchanged | owner |",
            f"| `DELETE {one}` | drops a {words} into the trash | owner |",
        ]
    return rows


def _own_fields(declared: DeclaredKind) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(declared.fields)


def _body(*names: str) -> str:
    return "{" + ", ".join(f'"{each}"' for each in names) + "}"


def function_rows() -> list[str]:
    """Return one row per family of SQL++'s functions."""
    named: dict[int, tuple[Function, list[str]]] = {}
    for name, function in FUNCTIONS.items():
        named.setdefault(id(function), (function, []))[1].append(name)
    families: dict[str, list[str]] = {}
    for function, names in named.values():
        most = "…" if function.most == ANY_NUMBER else str(function.most)
        count = most if str(function.least) == most else f"{function.least}–{most}"
        families.setdefault(function.family, []).append(f"{', '.join(names)} ({count})")
    return [f"| {family} | {'; '.join(sorted(entries))} |" for family, entries in sorted(families.items())]


def _head(page: Path) -> str:
    head, marker, _ = page.read_text(encoding="utf-8").partition(MARKER)
    if not marker:
        message = f"{page.name} has lost the line that tells where its table begins: {MARKER.strip()}"
        raise SystemExit(message)
    return head + marker


def main(*, check: bool) -> int:
    """Write the pages, or with `--check` only report the outdated ones; returns the exit code."""
    behind = [page for page, text in pages().items() if not page.exists() or page.read_text(encoding="utf-8") != text]
    for page in behind:
        print(f"{page.relative_to(ROOT)}: {'behind the code; run `make docs`' if check else 'written'}")
        if not check:
            page.write_text(pages()[page], encoding="utf-8")
    return 1 if check and behind else 0


if __name__ == "__main__":
    sys.exit(main(check="--check" in sys.argv[1:]))
