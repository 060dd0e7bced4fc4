# SPDX-License-Identifier: Apache-2.0
"""Functions with regular expressions. RE2 matches in time linear in the length of the string.

Must not know plans. The library is loaded with the first pattern. Patterns have RE2's syntax, which is Java's without
backreferences and lookaround; character classes may have Java's intersections. Flags are letters of `imsx`; positions
count code points.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Final, Protocol, cast

from limnos.rooms.sqlpp.language.errors import SqlppError, compilation, shorten, visible
from limnos.rooms.sqlpp.language.functions.character_classes import UnreadableClass, compute_intersections, plain_until
from limnos.rooms.sqlpp.language.functions.costs import unbounded_cost
from limnos.rooms.sqlpp.language.functions.numbers import to_integer
from limnos.rooms.sqlpp.language.functions.strings import require_length
from limnos.rooms.sqlpp.language.functions.table import scalar
from limnos.rooms.sqlpp.language.values.model import Value

FLAGS: Final = frozenset("imsx")
_POSIX: Final = {
    "Lower": "lower",
    "Upper": "upper",
    "Alpha": "alpha",
    "Digit": "digit",
    "Alnum": "alnum",
    "Punct": "punct",
    "Graph": "graph",
    "Print": "print",
    "Blank": "blank",
    "Cntrl": "cntrl",
    "XDigit": "xdigit",
    "Space": "space",
    "ASCII": "ascii",
    "javaLowerCase": "lower",
    "javaUpperCase": "upper",
    "javaWhitespace": "space",
}
"""Java's names of character classes, with RE2's names."""
MEMORY_MAX: Final = 8 << 20
"""The maximum size of a compiled pattern in bytes; larger ones are an error."""
PATTERNS_KEPT: Final = 256
_NAMED_CLASS: Final = re.compile(r"\\([pP])\{(\w+)\}", re.ASCII)


class _Match(Protocol):
    def start(self) -> int: ...

    def end(self) -> int: ...

    def group(self, number: int) -> str | None: ...


class _Pattern(Protocol):
    groups: int

    def search(self, text: str) -> _Match | None: ...

    def fullmatch(self, text: str) -> _Match | None: ...

    def finditer(self, text: str) -> Iterator[_Match]: ...


@lru_cache(PATTERNS_KEPT)
def compile_pattern(pattern: str, flags: str) -> _Pattern:
    """Compile a pattern. Raises SqlppError for a malformed pattern or unknown flags."""
    import re2  # noqa: PLC0415 - parsing statements does not need it

    if not set(flags) <= FLAGS:
        raise compilation(f"Invalid flags '{visible(shorten(flags))}': they must be letters of imsx")
    try:
        text = translate_pattern(pattern, has_comments="x" in flags)
    except UnreadableClass as error:
        text = f"Invalid pattern {visible(shorten(pattern))}: {visible(shorten(str(error)))}"
        raise SqlppError(INVALID_PATTERN, text) from None
    flags = flags.replace("x", "")
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MEMORY_MAX
    flag_prefix = f"(?{''.join(sorted(set(flags)))})" if flags else ""
    try:
        return cast("_Pattern", re2.compile(flag_prefix + text, options))
    except re2.error as error:
        result = error.args[0] if error.args else ""
        why = result.decode("utf-8", "replace") if isinstance(result, bytes) else str(result)
        text = f"Invalid pattern {visible(shorten(pattern))}: {visible(shorten(why))}"
        raise SqlppError(INVALID_PATTERN, text) from None


INVALID_PATTERN: Final = 1113


def translate_pattern(pattern: str, *, has_comments: bool) -> str:
    r"""Convert Java's character classes in a pattern (`\p{XDigit}`, `[a-z&&[^bc]]`) to RE2's syntax.

    With `has_comments`, white space and comments from `#` to the end of the line are removed, except within brackets.

    Raises:
        UnreadableClass: A class with an intersection has a part whose code points are not listed in
            `character_classes`.
    """
    parts: list[str] = []
    at, inside, plain = 0, False, 0
    while at < len(pattern):
        class_match = _NAMED_CLASS.match(pattern, at)
        if class_match is not None and class_match[2] in _POSIX:
            posix = f"[:{'^' if class_match[1] == 'P' else ''}{_POSIX[class_match[2]]}:]"
            parts.append(posix if inside else f"[{posix}]")
            at = class_match.end()
            continue
        char = pattern[at]
        if char == "\\":
            parts.append(pattern[at : at + 2])
            at += 2
            continue
        if char == "[" and not inside and at >= plain:
            end = plain_until(pattern, at)
            if end is None:
                computed = compute_intersections(pattern, at)
                parts.append(computed.text)
                at = computed.end
                continue
            plain = end
        at += 1
        if has_comments and not inside and char == "#":
            line = pattern.find("\n", at)
            at = len(pattern) if line < 0 else line
        elif not has_comments or inside or not char.isspace():
            parts.append(char)
        inside = char == "[" or (inside and char != "]")
    return "".join(parts)


def _function(*names: str, run: Callable[[_Pattern, str], Value]) -> None:
    """Register a function whose arguments are a string, a pattern and optional flags."""

    def work(text: Value, pattern: Value, *more: Value) -> Value:
        flags = more[0] if more else ""
        if not (isinstance(text, str) and isinstance(pattern, str) and isinstance(flags, str)):
            return None
        return run(compile_pattern(pattern, flags), text)

    scalar(*names, least=2, most=3, cost=unbounded_cost)(work)


def _contains(pattern: _Pattern, text: str) -> Value:
    return pattern.search(text) is not None


def _like(pattern: _Pattern, text: str) -> Value:
    return pattern.fullmatch(text) is not None


def _position(pattern: _Pattern, text: str, *, first: int) -> Value:
    match = pattern.search(text)
    return -1 if match is None else match.start() + first


def _matches(pattern: _Pattern, text: str) -> Value:
    return tuple(text[match.start() : match.end()] for match in pattern.finditer(text))


def _split(pattern: _Pattern, text: str) -> Value:
    """Split a string at matches, without trailing empty parts; an empty match splits between characters."""
    parts, at = [], 0
    for match in pattern.finditer(text):
        if match.end() > 0 and (match.start(), match.end()) != (len(text), len(text)):
            parts.append(text[at : match.start()])
            at = match.end()
    if not parts:
        return (text,)
    parts.append(text[at:])
    while parts and not parts[-1]:
        parts.pop()
    return tuple(parts)


_function("regexp_contains", "regex_contains", "contains_regexp", "contains_regex", "matches", run=_contains)
_function("regexp_like", "regex_like", run=_like)
_function(
    "regexp_position",
    "regexp_position0",
    "regexp_pos",
    "regexp_pos0",
    "regex_position",
    "regex_position0",
    "regex_pos",
    "regex_pos0",
    run=partial(_position, first=0),
)
_function("regexp_position1", "regexp_pos1", "regex_position1", "regex_pos1", run=partial(_position, first=1))
_function("regexp_matches", "regex_matches", run=_matches)
_function("regexp_split", "regex_split", run=_split)


@scalar("regexp_replace", "regex_replace", least=3, most=4, cost=unbounded_cost)
def replace(text: Value, pattern: Value, *rest: Value) -> Value:
    r"""Replace matches in a string. The last argument is the maximum number of replacements, or flags; by default all
    matches are replaced.

    Raises SqlppError for an invalid pattern or replacement, and for a result that is too long. In the replacement `$1`
    is a group and `\$` a dollar sign.
    """
    new, more = rest[0], rest[1] if len(rest) > 1 else ""
    if not (isinstance(text, str) and isinstance(pattern, str) and isinstance(new, str)):
        return None
    most = to_integer(more)
    if most is None and not isinstance(more, str):
        return None
    result = compile_pattern(pattern, more if isinstance(more, str) else "")
    pieces = _pieces(new, result)
    names, at, length = [], 0, 0
    for count, match in enumerate(result.finditer(text)):
        if most is not None and 0 <= most <= count:
            break
        put = "".join(piece if isinstance(piece, str) else match.group(piece) or "" for piece in pieces)
        names += [text[at : match.start()], put]
        length += len(names[-2]) + len(put)
        require_length(length)
        at = match.end()
    require_length(length + len(text) - at)
    return "".join((*names, text[at:]))


def _pieces(new: str, pattern: _Pattern) -> list[str | int]:
    """Split a replacement into strings and group numbers. Raises SqlppError for an unknown group."""
    pieces: list[str | int] = []
    at = 0
    while at < len(new):
        char, following = new[at], new[at + 1 : at + 2]
        if char == "\\" and following:
            pieces.append(following)
            at += 2
        elif char == "$" and following.isdecimal() and following.isascii():
            if int(following) > pattern.groups:
                raise compilation(f"Invalid replacement '{visible(shorten(new))}': there is no group {following}")
            pieces.append(int(following))
            at += 2
        else:
            pieces.append(char)
            at += 1
    return pieces
