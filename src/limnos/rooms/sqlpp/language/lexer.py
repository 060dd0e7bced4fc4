# SPDX-License-Identifier: Apache-2.0
r"""The lexer: splits a text into tokens, in one pass and in linear time.

Must not know the grammar. Comments are `//`, `--` and nested `/* */`; one that begins with `/*+` is a hint. `}}` is a
token only if `{{` is the innermost open brace, so that `{'x': {'y': 1}}` contains no multiset. There are two
differences from AsterixDB, both stricter: an unclosed comment is an error, and `\uXXXX` is an escape only inside
quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from limnos.names.sqlpp import KEYWORDS
from limnos.rooms.sqlpp.language.errors import SqlppError, TextPosition, compilation, lexical, syntax
from limnos.rooms.sqlpp.language.tokens import (
    DOUBLE,
    END,
    FLOAT,
    IDENTIFIER,
    INTEGER,
    NUMBERED,
    PARAMETER,
    PRESORTED,
    QUOTED,
    STRING,
    Hint,
    Token,
)

START = TextPosition(1, 1)
SIZE_MAX = 1 << 20
"""The maximum length of a text, in bytes of UTF-8."""

_TOKEN = re.compile(
    r"""
      (?P<space>   [ \t\r\n]+ )
    | (?P<remark>  (?: // | -- ) [^\r\n]* )
    | (?P<comment> /\* )
    | (?P<presorted> [Pp][Rr][Ee]-[Ss][Oo][Rr][Tt][Ee][Dd] )
    | (?P<extended> E ["'] )
    | (?P<word>    [A-Za-z_][A-Za-z0-9_$]* )
    | (?P<quote>   \$?` | ["'] )
    | (?P<float>   [0-9]+ (?: \.[0-9]+ )? [fF] | \.[0-9]+ [fF] )
    | (?P<double>  [0-9]+ (?: \.[0-9]+ (?: [eE][+-]?[0-9]+ )? | [eE][+-]?[0-9]+ ) | \.[0-9]+ (?: [eE][+-]?[0-9]+ )? )
    | (?P<integer> [0-9]+ )
    | (?P<named>   \$[A-Za-z_][A-Za-z0-9_$]* )
    | (?P<numbered> \$[0-9]+ )
    | (?P<open>    \{\{? )
    | (?P<close>   \} )
    | (?P<sign>    \|\| | <= | >= | != | <> | ~= | [-+*/^()\[\]@:,.%?;\#<>=] )
    """,
    re.VERBOSE,
)
_BODY = {
    '"': re.compile(r"(?:[^\"\\]|\\[\"\\/bfnrt`]|\\u[0-9A-Fa-f]{4})*"),
    "'": re.compile(r"(?:[^'\\]|\\['\\/bfnrt`]|\\u[0-9A-Fa-f]{4})*"),
    "`": re.compile(r"(?:[^`\\]|\\[`\"\\/bfnrt]|\\u[0-9A-Fa-f]{4})*"),
}
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))", re.DOTALL)
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_SURROGATE = re.compile("[\ud800-\udfff]")
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_LINE_END = re.compile(r"\r\n|\r|\n")
_NUMBERS = {"float": FLOAT, "double": DOUBLE, "integer": INTEGER}


class TokenizedText:
    """The tokens of a text with a final END, its hints, and the text itself for messages."""

    __slots__ = ("_ends", "hints", "origin", "text", "tokens")

    def __init__(self, text: str, origin: TextPosition = START) -> None:
        """Tokenize a text. `origin` is its position in a longer text, from which positions are counted.

        Raises SqlppError if it is too long or has an illegal character.
        """
        check_size(text)
        self.text = text
        self.origin = origin
        self._ends = [match.end() for match in _LINE_END.finditer(text)]
        self.hints: list[Hint] = []
        self.tokens: list[Token] = []
        _Lexer(self).run()

    def line(self, number: int) -> str:
        """Return a line of the text by its 1-based number, without its newline."""
        number -= self.origin.line - 1
        begin = self._ends[number - 2] if number > 1 else 0
        end = self._ends[number - 1] if number <= len(self._ends) else len(self.text)
        return self.text[begin:end].rstrip("\r\n")

    def line_starts(self) -> Iterator[int]:
        """Yield the offset of the first character of each line except the first line."""
        return iter(self._ends)


def check_size(text: str) -> None:
    """Raise SqlppError if a text is longer than SIZE_MAX bytes."""
    if len(text) * 4 <= SIZE_MAX:
        return
    if len(text) > SIZE_MAX or len(text.encode("utf-8", "surrogatepass")) > SIZE_MAX:
        raise compilation(f"The request's statements are longer than {SIZE_MAX} bytes. Send them in several requests")


class _Lexer:
    """One pass over a text. Offsets only grow, so lines are counted in the same pass.

    Its methods raise SqlppError for an illegal character.
    """

    def __init__(self, lexed: TokenizedText) -> None:
        self.lexed = lexed
        self.text = lexed.text
        self.starts = lexed.line_starts()
        self.next_start = next(self.starts, None)
        self.line = lexed.origin.line
        self.line_start = 1 - lexed.origin.column
        self.bags: list[bool] = []  # for each open brace, the innermost last: whether it opens a bag

    def place(self, offset: int) -> TextPosition:
        """Return the position (line and column) of an offset. Offsets of successive calls must not decrease."""
        while self.next_start is not None and self.next_start <= offset:
            self.line += 1
            self.line_start = self.next_start
            self.next_start = next(self.starts, None)
        return TextPosition(self.line, offset - self.line_start + 1)

    def run(self) -> None:
        """Append all tokens of the text, with a final END. Raises SqlppError for an illegal character."""
        text, match, offset, size = self.text, _TOKEN.match, 0, len(self.text)
        while offset < size:
            token_match = match(text, offset)
            if token_match is None:
                raise self.error(offset, offset)
            kind = token_match.lastgroup
            if kind in ("space", "remark"):
                offset = token_match.end()
            elif kind == "comment":
                offset = self.comment(offset)
            else:
                offset = self.token(token_match, kind or "")
        self.add(END, size, size, place=self.last_place())

    def last_place(self) -> TextPosition:
        """Return the position of the text's last character, for errors at the end of the text."""
        return self.place(max(0, len(self.text) - 1))

    def add(self, kind: str, start: int, end: int, *, value: str = "", place: TextPosition | None = None) -> int:
        """Append a token. Returns its end offset."""
        image = self.text[start:end]
        self.lexed.tokens.append(
            Token(kind=kind, image=image, value=value or image, place=place or self.place(start), start=start, end=end)
        )
        return end

    def token(self, match: re.Match[str], group: str) -> int:
        """Append the token whose beginning `match` has. Returns its end offset."""
        start, end, image = match.start(), match.end(), match[0]
        if group == "word":
            word = image.upper()
            return self.add(word if word in KEYWORDS else IDENTIFIER, start, end)
        if group == "sign":
            return self.add(image, start, end)
        if group in _NUMBERS:
            return self.add(_NUMBERS[group], start, end)
        if group in ("quote", "extended"):
            return self.add_quoted(start, end)
        if group in ("open", "close"):
            return self.brace(start, image)
        if group == "presorted":
            return self.add(PRESORTED, start, end)
        return self.add(PARAMETER if group == "named" else NUMBERED, start, end, value=image[1:])

    def brace(self, start: int, image: str) -> int:
        """Append a single or double brace as one token. Returns its end offset.

        Raises SqlppError for a closing brace that does not match an open one.
        """
        if image[0] == "{":
            self.bags.append(image == "{{")
            return self.add(image, start, start + len(image))
        if not self.bags:
            place = self.place(start)
            where = f"Lexical error at line {place.line}, column {place.column}."
            raise syntax(f'{where} Encountered "}}" but state stack is empty.', place, has_position=True)
        if not self.bags.pop():
            return self.add("}", start, start + 1)
        if not self.text.startswith("}}", start):
            raise self.error(start, start + 1)
        return self.add("}}", start, start + 2)

    def add_quoted(self, start: int, body: int) -> int:
        """Append a string or a quoted identifier; `body` is the offset after the opening quote. Returns its end offset.

        Raises SqlppError if the end or an escape is invalid.
        """
        quote = self.text[body - 1]
        extended = self.text[start] == "E"
        end, pieces = body, []
        while True:
            match = _BODY[quote].match(self.text, end)
            stop = match.end() if match else end
            if not self.text.startswith(quote, stop):
                raise self.error(start, stop + (self.text[stop : stop + 1] == "\\"))
            pieces.append(self.text[end:stop])
            end = stop + 1
            if extended or not self.text.startswith(quote, end):
                break
            end += 1  # a doubled quote is an escaped quote
        place = self.place(start)
        value = self.unescape(pieces, quote, place)
        kind = STRING if quote != "`" else PARAMETER if self.text[start] == "$" else QUOTED
        self.lexed.tokens.append(
            Token(kind=kind, image=self.text[start:end], value=value, place=place, start=start, end=end)
        )
        return end

    def unescape(self, pieces: list[str], quote: str, place: TextPosition) -> str:
        """Join the parts of a literal that doubled quotes separate, and resolve escapes. Raises SqlppError."""
        value = quote.join(_ESCAPE.sub(_character, piece) if "\\" in piece else piece for piece in pieces)
        if value.isascii() or not _SURROGATE.search(value):
            return value
        try:
            return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
        except UnicodeDecodeError:
            raise syntax("Invalid string literal", place) from None

    def comment(self, start: int) -> int:
        """Skip a comment with the comments nested in it; record it if it is a hint. Returns its end offset.

        Raises SqlppError for an unclosed comment.
        """
        place, depth, offset = self.place(start), 1, start + 2
        while depth:
            match = _COMMENT_EDGE.search(self.text, offset)
            if match is None:
                raise self.error(start, len(self.text))
            depth += 1 if match[0] == "/*" else -1
            offset = match.end()
        if self.text.startswith("+", start + 2):
            self.lexed.hints.append(Hint(place, self.text[start + 3 : offset - 2].strip()))
        return offset

    def error(self, start: int, offset: int) -> SqlppError:
        """Return the error for a character that cannot continue the token that began at `start`."""
        if offset >= len(self.text):
            last = self.last_place()
            return lexical("", self.text[start:], TextPosition(last.line, last.column + 1))
        return lexical(self.text[offset], self.text[start:offset], self.place(offset))


def _character(match: re.Match[str]) -> str:
    if match[1]:
        return chr(int(match[1], 16))
    return _ESCAPES.get(match[2], match[2])
