# SPDX-License-Identifier: Apache-2.0
"""Finds the tables and views that a view's SQL text references, as far as possible without the engine's parser.

Must not know rights. It may miss names, but reports none wrongly: a reported name is in the position of a relation,
outside of comments, strings and column names, and is not a common table expression (WITH). Names in unknown syntax are
not found, so they give no rights.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec

TEXT_CHARS_MAX = 64 << 10
"""The maximum number of characters that are scanned, of one text and of all texts of a request, because scanning blocks
the event loop.
"""

_BACKSLASHED = frozenset(("spark", "hive", "databricks", "impala", "bigquery", "mysql"))
"""Dialects with backslash escapes, in which double quotes delimit strings and back quotes delimit names."""
_SPACE = r"\s++|--[^\n]*+|/\*[\s\S]*?(?:\*/|\Z)"
"""White space and comments. No possessive group has a lookahead: Python before 3.11.4 matches those wrongly."""
_PLAIN = re.compile(
    rf"""(?:{_SPACE})|(?P<string>'(?:[^']|'')*+'?)|(?P<name>"(?:[^"]|"")*+"?)|(?P<word>[\w$]++)|(?P<sign>.)""",
    re.DOTALL,
)
_SLASHED = re.compile(
    rf"""(?:{_SPACE})|(?P<string>'(?:[^'\\]|\\.)*+'?|"(?:[^"\\]|\\.)*+"?)|(?P<name>`(?:[^`]|``)*+`?)|(?P<word>[\w$]++)|(?P<sign>.)""",
    re.DOTALL,
)
_ENDS_FROM = frozenset(
    [
        "where",
        "group",
        "order",
        "having",
        "union",
        "intersect",
        "except",
        "minus",
        "limit",
        "window",
        "qualify",
        "fetch",
        "offset",
        "select",
    ]
)


class _ViewText(msgspec.Struct):
    type: str = ""
    dialect: str = ""
    sql: str = ""


class _MetadataVersion(msgspec.Struct, rename="kebab"):
    version_id: int
    representations: list[_ViewText] = []
    default_catalog: str | None = None
    default_namespace: list[str] = []


class _ViewMetadata(msgspec.Struct, rename="kebab"):
    current_version_id: int
    versions: list[_MetadataVersion] = []


class _SqlToken(msgspec.Struct):
    kind: str
    text: str


@dataclass(slots=True)
class _BracketFrame:
    """The scanner's state for one open parenthesis, or for the top level of a text."""

    has_select: bool = False
    in_from: bool = False
    expects_relation: bool = False
    """Whether a relation may come next."""
    opened: int = 0


@dataclass(slots=True)
class _SqlReader:
    """The scanner's state for one SQL text: tokens, open parentheses, relations found, and names of common table
    expressions.
    """

    tokens: list[_SqlToken]
    frames: list[_BracketFrame] = field(default_factory=lambda: [_BracketFrame()])
    relations: list[tuple[str, ...]] = field(default_factory=list)
    cte_names: set[str] = field(default_factory=set)
    """The names of the text's common table expressions (WITH)."""


def names(document: bytes, path: tuple[str, ...], catalog: str, *, room: TextBudget | None = None) -> bool:
    """Return whether the current version of a view reads the object at a path, in any of its dialects.

    Args:
        document: The view's metadata.
        path: The object's path below the catalog.
        catalog: The catalog's name.
        room: The remaining budget of text for this and other views; a text that exceeds it is not scanned.
    """
    view = msgspec.json.decode(document, type=_ViewMetadata)
    version = next((one for one in view.versions if one.version_id == view.current_version_id), None)
    if version is None:
        return False
    catalogs = {catalog} if version.default_catalog is None else {catalog, version.default_catalog}
    is_near = _is_namespace(tuple(version.default_namespace), path[:-1])
    room = TextBudget() if room is None else room
    return any(
        _refers_to(parts, path, catalogs=catalogs, is_near=is_near)
        for text in version.representations
        if _may_name(text.sql, path[-1]) and room.takes(text.sql)
        for parts in relations(text.sql, text.dialect)
    )


class TextBudget:
    """The number of characters of SQL text that one request may scan, over all views.

    The budget is limited because scanning blocks the event loop.
    """

    def __init__(self) -> None:
        self.chars = TEXT_CHARS_MAX

    def takes(self, sql: str) -> bool:
        """Subtract a text's length if it fits into the remaining budget. Returns whether it fits."""
        if len(sql) > self.chars:
            return False
        self.chars -= len(sql)
        return True


def _may_name(sql: str, name: str) -> bool:
    """Return whether a text may contain a name, as a quick check before the scan.

    Always True for a name with quotes, which may be escaped in several ways.
    """
    return '"' in name or "`" in name or name in sql or name in sql.lower()


def relations(sql: str, dialect: str) -> list[tuple[str, ...]]:
    """Return the names in a text that are used as relations, in order, each as its parts.

    Empty for a text with more than `TEXT_CHARS_MAX` characters.
    """
    if len(sql) > TEXT_CHARS_MAX:
        return []
    reading = _SqlReader(list(_tokens(sql, dialect)))
    at = 0
    while at < len(reading.tokens):
        at = _step(reading, at)
    return [parts for parts in reading.relations if len(parts) > 1 or parts[0].lower() not in reading.cte_names]


def _tokens(sql: str, dialect: str) -> Iterator[_SqlToken]:
    pattern = _SLASHED if dialect.lower() in _BACKSLASHED else _PLAIN
    for match in pattern.finditer(sql):
        kind = match.lastgroup
        if kind == "name":
            quote = match[0][0]
            yield _SqlToken("name", match[0][1:-1].replace(quote * 2, quote))
        elif kind is not None:
            yield _SqlToken(kind, match[0])


def _step(reading: _SqlReader, at: int) -> int:
    """Process the token at the index `at`. Returns the index of the next token to process."""
    token, frame = reading.tokens[at], reading.frames[-1]
    if token.text == "(" and token.kind == "sign":
        reading.frames.append(
            _BracketFrame(
                in_from=frame.expects_relation,
                expects_relation=frame.expects_relation,
                has_select=frame.expects_relation,
                opened=at,
            )
        )
        frame.expects_relation = False
    elif token.text == ")" and token.kind == "sign":
        _close(reading, at)
    elif token.text == "," and token.kind == "sign":
        frame.expects_relation = frame.in_from
    elif token.kind in ("name", "word") and not (token.kind == "word" and _keyword(reading, frame, at)):
        return _name(reading, frame, at)
    return at + 1


def _close(reading: _SqlReader, at: int) -> None:
    closed_frame = reading.frames.pop() if len(reading.frames) > 1 else _BracketFrame()
    if _is_cte_definition(reading.tokens, at + 1) and closed_frame.opened:
        reading.cte_names.add(
            reading.tokens[closed_frame.opened - 1].text.lower()
        )  # the name of a WITH query stands before its column list


def _is_cte_definition(tokens: list[_SqlToken], at: int) -> bool:
    """Return whether the tokens at `at` are `AS (`, so that the preceding name is that of a common table expression."""
    following = [token.text.lower() for token in tokens[at : at + 2]]
    return following == ["as", "("]


def _keyword(reading: _SqlReader, frame: _BracketFrame, at: int) -> bool:
    """Process the token at `at` if it is a keyword. Returns whether it is one."""
    word = reading.tokens[at].text.lower()
    if word in ("from", "join"):
        earlier_word = reading.tokens[at - 1].text.lower() if at else ""
        frame.expects_relation = frame.in_from = (frame.has_select or frame.in_from) and earlier_word != "distinct"
    elif word in _ENDS_FROM:
        frame.has_select = frame.has_select or word == "select"
        frame.in_from = frame.expects_relation = False
    elif word == "on":
        frame.expects_relation = False
    else:
        return word in ("lateral", "table", "only") and frame.expects_relation
    return True


def _name(reading: _SqlReader, frame: _BracketFrame, at: int) -> int:
    """Read a dotted name, and record it if it is a relation (a name before a parenthesis is a function).

    Returns the index after it.
    """
    tokens, parts = reading.tokens, [reading.tokens[at].text]
    end = at + 1
    while end + 1 < len(tokens) and tokens[end].text == "." and tokens[end + 1].kind in ("name", "word"):
        parts.append(tokens[end + 1].text)
        end += 2
    if _is_cte_definition(tokens, end):
        reading.cte_names.add(parts[0].lower())
    is_call = end < len(tokens) and tokens[end].text == "("
    if frame.expects_relation and not is_call:
        reading.relations.append(tuple(parts))
    frame.expects_relation = False
    return end


def _refers_to(parts: tuple[str, ...], path: tuple[str, ...], *, catalogs: set[str], is_near: bool) -> bool:
    """Return whether a name may refer to the object at a path: relative to the catalog, qualified with the catalog's
    name, or unqualified in the default namespace.

    `is_near`: the path is in the default namespace.
    """
    if not _is_same_name(parts[-1], path[-1]):
        return False
    if len(parts) == 1:
        return is_near
    if _is_namespace(parts[:-1], path[:-1]):
        return True
    return parts[0] in catalogs and _is_namespace(parts[1:-1], path[:-1])


def _is_namespace(levels: tuple[str, ...], namespace: tuple[str, ...]) -> bool:
    """Return whether levels refer to a namespace.

    Engines with flat schemas write a nested namespace as a single part with dots.
    """
    if len(levels) > len(namespace):
        return False
    if len(levels) < len(namespace):
        levels = tuple(".".join(levels).split(".")) if levels else levels
    return len(levels) == len(namespace) and all(map(_is_same_name, levels, namespace))


def _is_same_name(text: str, called: str) -> bool:
    """Return whether the name in a text refers to the object `called`: equal, or equal in lower case, as
    case-insensitive engines store names.
    """
    return called in (text, text.lower())
