# SPDX-License-Identifier: Apache-2.0
"""Output of results: a table for terminals, JSON or CSV for programs.

Must not know any command. JSON is one document with stable keys; tables may change.
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import json
import os
import shutil
import sys
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Literal

from limnos.cli import tables
from limnos.cli.errors import UsageError

Format = Literal["table", "json", "csv"]
Row = Mapping[str, object]
_FOR_PEOPLE = ("server start ", "server migrate ", "demo ")
"""Commands without `--output`. Their output is read in a terminal or a log."""


@dataclass(frozen=True, slots=True)
class TableOptions:
    """The options of a list: `columns` selects and orders its columns, `wide` leaves out and cuts nothing."""

    columns: tuple[str, ...] = ()
    wide: bool = False


table_options: ContextVar[TableOptions] = ContextVar("table_options", default=TableOptions())  # noqa: B039 - frozen
"""The options of the command that runs. `main` sets them before the command starts."""


def take_options(tokens: Sequence[str]) -> tuple[list[str], TableOptions]:
    """Take the options `--columns` and `--wide` from a command line. Returns the other tokens, and the options.

    Raises UsageError for `--columns` without a value.
    """
    rest: list[str] = []
    columns: list[str] = []
    remaining = iter(tokens)
    for token in remaining:
        name, sign, value = token.partition("=")
        if name == "--columns":
            names = value if sign else next(remaining, "")
            if not names or names.startswith("-"):
                path = next((word for word in tokens[1:] if "." in word and not word.startswith("-")), "")
                shows = f"; 'limnos show {path}' has the columns of the table" if path and "'" not in path else ""
                raise UsageError(
                    "--columns needs names of columns", hint=f"write for example --columns name,owner{shows}"
                )
            columns += [each.strip() for each in names.split(",") if each.strip()]
        elif token == "--":  # noqa: S105 - the end of options
            rest += [token, *remaining]
        elif token != "--wide":  # noqa: S105 - a flag
            rest.append(token)
    return rest, TableOptions(tuple(columns), wide="--wide" in tokens)


def flag_values(tokens: Sequence[str], flag: str) -> Iterator[str]:
    """Yield the values of a flag, in the order of the command line."""
    for word, following in itertools.zip_longest(tokens, tokens[1:], fillvalue=""):
        if word == flag:
            yield following
        elif word.startswith(f"{flag}="):
            yield word.partition("=")[2]


def format_of(tokens: Sequence[str], environ: Mapping[str, str], *, terminal: bool) -> Format:
    """Return the output format before the command line is parsed, because parse errors use it, too."""
    typed_formats = [each for each in flag_values(tokens, "--output") if each in {"table", "json", "csv"}]
    chosen_format = [environ.get("LIMNOS_OUTPUT", ""), *typed_formats][-1]
    if chosen_format == "json":
        return "json"
    if chosen_format == "csv":
        return "csv"
    is_reported = " ".join([*tokens[:2], ""]).startswith(_FOR_PEOPLE)
    return "table" if chosen_format == "table" or terminal or is_reported else "json"


def to_json(value: object, *, indent: int = 2) -> str:
    """Format a value as JSON. Types that JSON lacks become strings."""
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=indent).decode()
    return text if text.isprintable() else "".join(map(_in_json, text))


def _in_json(char: str) -> str:
    """Replace a character that is unsafe on a terminal by its JSON escape."""
    return char if char in "\n\t" or _is_harmless(char) else json.dumps(char)[1:-1]


def show_rows(
    rows: Sequence[Row],
    columns: Sequence[str],
    *,
    output_format: Format,
    empty: str = "nothing",
    verbatim: bool = False,
    beside: Collection[str] = (),
    keeps_columns: bool = False,
) -> None:
    """Print a list. `columns` are the keys of the table's columns; JSON has all keys. `--columns` selects others.

    `verbatim`: the keys are user-defined names and are shown unchanged. `beside` are keys of other lists of the same
    command: `--columns` may name them, and a list that has none of the named ones is not printed. `keeps_columns`: the
    caller chose the columns, so that none is left out where the terminal is narrow.
    """
    chosen_columns = _chosen_columns(rows, columns, beside=beside)
    if beside and not chosen_columns:
        return
    if output_format == "json":
        print(
            to_json(
                [{key: row.get(key) for key in chosen_columns} for row in rows] if table_options.get().columns else rows
            )
        )
    elif output_format == "csv":
        _print_csv([chosen_columns, *([cell(row.get(column)) for column in chosen_columns] for row in rows)])
    elif not rows:
        print(empty, file=sys.stderr)
    else:
        headings = {column: column if verbatim else column.replace("_", " ") for column in chosen_columns}
        _print_table(rows, headings, keeps_columns=keeps_columns)


def show_fields(fields: Row, *, output_format: Format, hidden: Sequence[str] = ()) -> None:
    """Print one object. The table omits the keys in `hidden` and empty fields."""
    if output_format == "json":
        print(to_json(fields))
        return
    entries = [(key, text) for key, value in fields.items() if key not in hidden and (text := cell(value))]
    if output_format == "csv":
        _print_csv([("field", "value"), *entries])
        return
    width = max((len(key) for key, _ in entries), default=0)
    for key, text in entries:
        print(f"{visible(key):<{width}}  {visible(text).replace(chr(10), chr(10) + ' ' * (width + 2))}")


def show_done(message: str, result: Row, *, output_format: Format) -> None:
    """Print the result of a change: `message` in a table format, `result` as JSON or CSV."""
    if output_format == "csv":
        _print_csv([("field", "value"), *((key, cell(value)) for key, value in result.items())])
        return
    print(to_json(result) if output_format == "json" else visible(message))


def visible(text: str) -> str:
    """Replace characters that would control a terminal or change the text's direction by escapes; line breaks are not
    replaced.

    Names and properties are user input: ESC can repaint a screen or fill its clipboard, and direction marks make a name
    look like another name.
    """
    if text.isprintable():  # printable text has no control, format or surrogate characters
        return text
    return "".join(char if char == "\n" or _is_harmless(char) else _escape_char(char) for char in text)


def _is_harmless(char: str) -> bool:
    return char.isprintable() or unicodedata.category(char) == "Zs"


def _escape_char(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def cell(value: object) -> str:
    """Format one value as human-readable text: lists with commas, maps with one pair per line, maps within in one."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return "\n".join(_in_line(f"{key} = {_inner_cell(item)}") for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(cell(item) for item in value)
    return str(value)


def _inner_cell(value: object) -> str:
    return ", ".join(cell(value).split("\n")) if isinstance(value, Mapping) else cell(value)


def human_size(size: int) -> str:
    """Format a number of bytes for a table, as `1.5 MiB`."""
    number = float(size)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if number < 1024 or unit == "TiB":
            break
        number /= 1024
    return f"{number:.0f} {unit}" if unit == "B" or number >= 100 else f"{number:.1f} {unit}"


def _in_line(text: str) -> str:
    """Replace line breaks in a cell or list entry, so that it cannot look like two."""
    return text.replace("\n", "\\n")


def _chosen_columns(rows: Sequence[Row], columns: Sequence[str], *, beside: Collection[str]) -> list[str]:
    """Return the keys of the columns to print. Raises UsageError if `--columns` names a key that neither the rows nor
    `beside` have.
    """
    requested = table_options.get().columns
    column_names = dict.fromkeys([*columns, *(key for row in rows for key in row)])
    if not requested or not rows:
        return [*columns]
    spelled = {key.replace("_", " ").casefold(): key for key in column_names}
    chosen_columns = [spelled.get(each.replace("_", " ").replace("-", " ").casefold()) for each in requested]
    others = {key.replace("_", " ").casefold() for key in beside}
    missing = [
        each
        for each, key in zip(requested, chosen_columns, strict=True)
        if key is None and each.replace("_", " ").replace("-", " ").casefold() not in others
    ]
    if missing:
        names = ", ".join(key for key in column_names)
        raise UsageError(f"this list has no column '{missing[0]}'", hint=f"--columns takes some of: {names}")
    return [key for key in chosen_columns if key is not None]


def _print_csv(lines: Sequence[Sequence[str]]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([[visible(each) for each in line] for line in lines])
    print(text.getvalue(), end="")


def _print_table(rows: Sequence[Row], columns: Mapping[str, str], *, keeps_columns: bool) -> None:
    options = table_options.get()
    width = None if options.wide or options.columns else terminal_width()  # columns that were chosen are shown whole
    texts = [{column: visible(_in_line(cell(row.get(column)))) for column in columns} for row in rows]
    headings = {column: visible(_in_line(heading)) for column, heading in columns.items()}
    ellipsis = drawable("…", "...")
    table = tables.layout(texts, headings, width=width, ellipsis=ellipsis, keeps_columns=keeps_columns)
    print("\n".join(table.lines))
    if table.left_out:
        names = ", ".join(headings[column] for column in table.left_out)
        note = f"left out for want of space: {names} (--wide shows all, --columns a,b chooses)"
        print("\n".join(tables.wrap_text(note, width or len(note))), file=sys.stderr)


def terminal_width() -> int | None:
    """Return the width of the terminal; None if standard output is none."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def drawable(text: str, plain: str) -> str:
    """Return `text` if standard output can show its characters, else the ASCII text `plain`."""
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        return plain
    return text if os.environ.get("TERM") != "dumb" else plain


def escape_unencodable() -> None:
    """Make standard output and error write characters that their encoding lacks as JSON's escapes, instead of failing
    in the middle of a line.
    """
    codecs.register_error("limnos-escape", _json_escape)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper) and not stream.encoding.casefold().startswith("utf"):
            stream.reconfigure(errors="limnos-escape")


def _json_escape(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end
