# SPDX-License-Identifier: Apache-2.0
"""Output of results: a table for terminals, JSON for programs.

May import rich (when a table is printed) and msgspec. Must not know any command. JSON is one document with stable keys;
tables may change.
"""

from __future__ import annotations

import itertools
import json
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

Format = Literal["table", "json"]
Row = Mapping[str, object]
_FOR_PEOPLE = ("server start ", "server migrate ", "demo ")
"""Commands without `--output`. Their output is read in a terminal or a log."""

WIDTH_PLAIN = 500
"""Width of a table that is not printed to a terminal, so that nothing wraps."""


def format_of(tokens: Sequence[str], environ: Mapping[str, str], *, terminal: bool) -> Format:
    """Return the output format before the command line is parsed, because parse errors use it, too."""
    chosen = environ.get("LIMNOS_OUTPUT", "")
    for word, following in itertools.zip_longest(tokens, tokens[1:], fillvalue=""):
        if word == "--output":
            chosen = following
        elif word.startswith("--output="):
            chosen = word.partition("=")[2]
    if chosen == "json":
        return "json"
    is_reported = " ".join([*tokens[:2], ""]).startswith(_FOR_PEOPLE)
    return "table" if chosen == "table" or terminal or is_reported else "json"


def to_json(value: object, *, indent: int = 2) -> str:
    """Format a value as JSON. Types that JSON lacks become strings."""
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
) -> None:
    """Print a list. `columns` are the keys of the table's columns; JSON has all keys.

    `verbatim`: the keys are user-defined names and are shown unchanged.
    """
    if output_format == "json":
        print(to_json(rows))
    elif not rows:
        print(empty, file=sys.stderr)
    else:
        _print_table(rows, {column: column if verbatim else column.replace("_", " ") for column in columns})


def show_fields(fields: Row, *, output_format: Format, hidden: Sequence[str] = ()) -> None:
    """Print one object. The table omits the keys in `hidden` and empty fields."""
    if output_format == "json":
        print(to_json(fields))
        return
    entries = [(key, text) for key, value in fields.items() if key not in hidden and (text := cell(value))]
    width = max((len(key) for key, _ in entries), default=0)
    for key, text in entries:
        print(f"{visible(key):<{width}}  {visible(text).replace(chr(10), chr(10) + ' ' * (width + 2))}")


def show_done(message: str, result: Row, *, output_format: Format) -> None:
    """Print the result of a change: `message` in a table format, `result` as JSON."""
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
    """Format one value as human-readable text: lists with commas, maps with one pair per line."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return "\n".join(_in_line(f"{key} = {cell(item)}") for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(cell(item) for item in value)
    return str(value)


def _in_line(text: str) -> str:
    """Replace line breaks in a cell or list entry, so that it cannot look like two."""
    return text.replace("\n", "\\n")


def _print_table(rows: Sequence[Row], columns: Mapping[str, str]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    terminal = sys.stdout.isatty()
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for head in columns.values():
        table.add_column(Text(visible(_in_line(head))), overflow="fold")
    for row in rows:
        table.add_row(*(Text(visible(_in_line(cell(row.get(column))))) for column in columns))
    Console(file=sys.stdout, width=None if terminal else WIDTH_PLAIN, highlight=False).print(table)
