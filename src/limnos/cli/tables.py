# SPDX-License-Identifier: Apache-2.0
"""The layout of tables on a terminal: which columns fit, and how wide each one is.

Must not know the commands or the output formats. Ids, times and names are never wrapped or cut. Long texts are cut,
then columns are left out, those with one value and those of low priority first, and those of them return that fit after
all. If even the necessary columns do not fit, each row is printed as a block of lines.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

GAP: Final = "  "
TEXT_MIN: Final = 16
"""The least width to which a text is cut; below it, columns are left out."""

TEXTS: Final = frozenset(
    {
        "comment",
        "detail",
        "error",
        "expression",
        "filter",
        "found_in",
        "hint",
        "last_error",
        "masks",
        "message",
        "next",
        "note",
        "privileges",
        "problem",
        "progress",
        "reason",
        "reasons",
        "result",
        "right",
        "sample",
        "setting",
        "text",
        "value",
        "why",
    }
)
"""Columns whose texts may be cut to fit the terminal."""

NECESSARY: Final = frozenset(
    {
        "action",
        "did",
        "error",
        "id",
        "job",
        "may",
        "name",
        "note",
        "object",
        "path",
        "privileges",
        "problem",
        "receiver",
        "result",
        "run",
        "setting",
        "state",
        "status",
        "user",
        "value",
    }
)
"""Columns that are left out last; the first column of a table is never left out."""

STATES: Final = {
    "denied by": "",
    "enabled": "yes",
    "ended": "",
    "expired": "no",
    "outcome": "done",
    "protected": "no",
    "restricted": "no",
    "revoked": "no",
}
"""Columns that are necessary where a row has another value than the ordinary one: without them, a refusal would look
like a success.
"""

SPARE: Final = frozenset({"comment", "created_at", "created_by", "format", "set_at", "set_by", "trust", "uuid"})
"""Columns that are left out first."""

Cells = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TableText:
    """The lines of a table, and the names of the columns that did not fit."""

    lines: tuple[str, ...]
    left_out: tuple[str, ...] = ()


def layout(
    rows: Sequence[Cells],
    columns: Mapping[str, str],
    *,
    width: int | None,
    ellipsis: str = "…",
    keeps_columns: bool = False,
) -> TableText:
    """Arrange rows as a table. `columns` has the heading of each column; `width` is None for an unlimited width. With
    `keeps_columns` no column is left out.
    """
    natural = {
        column: max([text_width(heading), *(text_width(row[column]) for row in rows)])
        for column, heading in columns.items()
    }
    shown_columns = list(columns)
    left_out: list[str] = []
    necessary = NECESSARY | {
        column
        for column in STATES.keys() & columns.keys()
        if any(row[column] not in {"", STATES[column]} for row in rows)
    }
    while (widths := _fit(shown_columns, natural, width=width)) is None:
        candidates = [column for column in shown_columns[1:] if column not in necessary and not keeps_columns]
        if not candidates:
            return TableText(tuple(_blocks(rows, columns, width=width or 0)))
        same = {column for column in candidates if len({row[column] for row in rows}) == 1} if len(rows) > 1 else set()
        order = {column: (column in same, column in SPARE, at) for at, column in enumerate(candidates)}
        left_out.append(max(candidates, key=order.__getitem__))
        shown_columns.remove(left_out[-1])
    for column in reversed(left_out):  # a narrow column fits where a wider one of higher priority did not
        restored = [each for each in columns if each in {*shown_columns, column}]
        if (fitting := _fit(restored, natural, width=width)) is not None:
            shown_columns, widths = restored, fitting
    lines = [_line(columns, widths, ellipsis=ellipsis)]
    lines += [_line(row, widths, ellipsis=ellipsis) for row in rows]
    return TableText(tuple(lines), tuple(column for column in columns if column not in shown_columns))


def text_width(text: str) -> int:
    """Return the number of a terminal's cells that a text takes."""
    if text.isascii():
        return len(text)
    return sum(_char_width(char) for char in text)


def cut(text: str, width: int, *, ellipsis: str = "…") -> str:
    """Return the text, cut to a width and ended by `ellipsis` if it is wider."""
    if text_width(text) <= width:
        return text
    done, left = "", width - len(ellipsis)
    for char in text:
        left -= _char_width(char)
        if left < 0:
            break
        done += char
    return done.rstrip() + ellipsis


def _char_width(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1


def _fit(shown_columns: Sequence[str], natural: Mapping[str, int], *, width: int | None) -> dict[str, int] | None:
    """Return the widths of columns, with texts cut if necessary; None if the columns do not fit."""
    widths = {column: natural[column] for column in shown_columns}
    if width is None:
        return widths
    excess = sum(widths.values()) + len(GAP) * (len(shown_columns) - 1) - width
    for column in sorted((each for each in shown_columns if each in TEXTS), key=natural.__getitem__, reverse=True):
        saved = min(max(excess, 0), max(widths[column] - TEXT_MIN, 0))
        widths[column] -= saved
        excess -= saved
    return None if excess > 0 else widths


def _line(cells: Cells, widths: Mapping[str, int], *, ellipsis: str) -> str:
    texts = [cut(cells[column], width, ellipsis=ellipsis) for column, width in widths.items()]
    return GAP.join(
        text + " " * (width - text_width(text)) for text, width in zip(texts, widths.values(), strict=True)
    ).rstrip()


def _blocks(rows: Sequence[Cells], columns: Mapping[str, str], *, width: int) -> list[str]:
    """Return the rows as blocks of lines, one line for each value, with an empty line between rows."""
    label = max(text_width(heading) for heading in columns.values())
    lines: list[str] = []
    for row in rows:
        lines += [""] if lines else []
        for column, heading in columns.items():
            if row[column]:
                room = max(width - label - len(GAP), TEXT_MIN)
                first, *more = wrap_text(row[column], room) if column in TEXTS else [row[column]]
                lines.append(heading + " " * (label - text_width(heading)) + GAP + first)
                lines += [" " * label + GAP + text for text in more]
    return lines


def wrap_text(text: str, width: int) -> list[str]:
    """Break a text between words into lines of at most `width`; a longer word has a line of its own."""
    lines = [""]
    for word in text.split(" "):
        extended = f"{lines[-1]} {word}".lstrip() if lines[-1] else word
        if lines[-1] and text_width(extended) > width:
            lines.append(word)
        else:
            lines[-1] = extended
    return lines
