"""How results are shown: a table for people, JSON for programs.

May import rich (when a table is wanted) and msgspec. Must not know any command. JSON goes out as one document and its
keys are stable; tables may change.
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
"""Commands without `--output`: what they print is read in a terminal or a log."""

WIDTH_PLAIN = 500
"""Columns of a table that does not go to a terminal, so that nothing wraps there."""


def format_of(tokens: Sequence[str], environ: Mapping[str, str], *, terminal: bool) -> Format:
    """Choose the format before the command line is understood, because its errors come in the same one."""
    chosen = environ.get("LIMNOS_OUTPUT", "")
    for word, following in itertools.zip_longest(tokens, tokens[1:], fillvalue=""):
        if word == "--output":
            chosen = following
        elif word.startswith("--output="):
            chosen = word.partition("=")[2]
    if chosen == "json":
        return "json"
    told = " ".join([*tokens[:2], ""]).startswith(_FOR_PEOPLE)
    return "table" if chosen == "table" or terminal or told else "json"


def to_json(value: object, *, indent: int = 2) -> str:
    """Render a value as JSON, indented unless told; what JSON does not know is shown as text."""
    text = msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=indent).decode()
    return text if text.isprintable() else "".join(map(_in_json, text))


def _in_json(char: str) -> str:
    r"""Spell what no terminal should see as JSON's own escape, which reads back as the same character."""
    return char if char in "\n\t" or _is_harmless(char) else json.dumps(char)[1:-1]


def show_rows(
    rows: Sequence[Row], columns: Sequence[str], *, shape: Format, empty: str = "nothing", verbatim: bool = False
) -> None:
    """Show a list; `columns` are the keys of a table's columns, JSON has every key.

    `verbatim`: the keys are somebody's names, and stand over the columns as they are.
    """
    if shape == "json":
        print(to_json(rows))
    elif not rows:
        print(empty, file=sys.stderr)
    else:
        _print_table(rows, {column: column if verbatim else column.replace("_", " ") for column in columns})


def show_fields(fields: Row, *, shape: Format, hidden: Sequence[str] = ()) -> None:
    """Show one thing; a table leaves out the keys in `hidden` and fields without a value."""
    if shape == "json":
        print(to_json(fields))
        return
    shown = [(key, text) for key, value in fields.items() if key not in hidden and (text := cell(value))]
    width = max((len(key) for key, _ in shown), default=0)
    for key, text in shown:
        print(f"{visible(key):<{width}}  {visible(text).replace(chr(10), chr(10) + ' ' * (width + 2))}")


def show_done(message: str, result: Row, *, shape: Format) -> None:
    """Tell that something was done."""
    print(to_json(result) if shape == "json" else visible(message))


def visible(text: str) -> str:
    """Show characters that would steer a terminal, or turn the text around, as escapes; line breaks stay.

    Names and properties are other people's: ESC can repaint a screen or fill its clipboard, marks of direction make a
    name read as another one.
    """
    if text.isprintable():  # which no control, format or surrogate character is
        return text
    return "".join(char if char == "\n" or _is_harmless(char) else _escape_char(char) for char in text)


def _is_harmless(char: str) -> bool:
    return char.isprintable() or unicodedata.category(char) == "Zs"


def _escape_char(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")


def cell(value: object) -> str:
    """Render one value for people: lists with commas, maps one pair per line."""
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
    """Keep what is one entry of a list on one line, so that none can look like two."""
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
