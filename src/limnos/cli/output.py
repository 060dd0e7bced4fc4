"""How results are shown: a table for people, JSON for programs.

May import rich (when a table is wanted) and msgspec. Must not know any command. JSON goes out as one document and its
keys are stable; tables may change.
"""

from __future__ import annotations

import itertools
import sys
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


def to_json(value: object) -> str:
    """Render a value as indented JSON; what JSON does not know is shown as text."""
    return msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2).decode()


def show_rows(rows: Sequence[Row], columns: Sequence[str], *, shape: Format, empty: str = "nothing") -> None:
    """Show a list; `columns` are the keys of a table's columns, JSON has every key."""
    if shape == "json":
        print(to_json(rows))
    elif not rows:
        print(empty, file=sys.stderr)
    else:
        _print_table(rows, columns)


def show_fields(fields: Row, *, shape: Format, hidden: Sequence[str] = ()) -> None:
    """Show one thing; a table leaves out the keys in `hidden` and fields without a value."""
    if shape == "json":
        print(to_json(fields))
        return
    shown = [(key, text) for key, value in fields.items() if key not in hidden and (text := cell(value))]
    width = max((len(key) for key, _ in shown), default=0)
    for key, text in shown:
        print(f"{key:<{width}}  {text.replace(chr(10), chr(10) + ' ' * (width + 2))}")


def show_done(message: str, result: Row, *, shape: Format) -> None:
    """Tell that something was done."""
    print(to_json(result) if shape == "json" else message)


def cell(value: object) -> str:
    """Render one value for people: lists with commas, maps one pair per line."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return "\n".join(f"{key} = {cell(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(cell(item) for item in value)
    return str(value)


def _print_table(rows: Sequence[Row], columns: Sequence[str]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    terminal = sys.stdout.isatty()
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column.replace("_", " "), overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell(row.get(column))) for column in columns))
    Console(file=sys.stdout, width=None if terminal else WIDTH_PLAIN, highlight=False).print(table)
