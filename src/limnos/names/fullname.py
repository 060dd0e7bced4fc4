# SPDX-License-Identifier: Apache-2.0
"""Gravitino's `fullName`: catalog, schema, object and column joined by dots, although names may contain dots.

Must not know the store: callers pass `exists`. The catalog ends at the first dot, as its name has none. Every way to
split the rest is a candidate, and the candidate whose object exists is chosen. A component in back-quotes is taken
literally; a doubled back-quote inside is one back-quote.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, combinations, pairwise

from limnos.names.errors import InvalidName
from limnos.names.logical import LogicalCodec
from limnos.names.parts import Levels, check_catalog_name, check_part, quote_for_message

CATALOG, SCHEMA, OBJECT, COLUMN = 1, 2, 3, 4
"""The number of components in a full name of that kind, passed as `kind_levels`."""

PIECES_MAX = 33
"""The maximum number of dotted pieces below the catalog; more must be quoted. It limits the candidates (496 for a
column).
"""

_PIECE = re.compile(r"`(?P<quoted>(?:[^`]|``)*)`(?=\.|\Z)|(?P<bare>[^`.][^.]*)")


@dataclass(frozen=True, slots=True)
class FullName:
    """One interpretation of a full name: catalog, `levels` of the schema, `name` of the object, `column`."""

    catalog: str
    levels: Levels = ()
    name: str | None = None
    column: str | None = None

    @property
    def parent(self) -> FullName | None:
        """The name of the parent: the object of a column, the schema of an object, the parent schema or catalog of a
        schema; None for a catalog.
        """
        if self.column is not None:
            return FullName(self.catalog, self.levels, self.name)
        if self.name is not None:
            return FullName(self.catalog, self.levels)
        return FullName(self.catalog, self.levels[:-1]) if self.levels else None

    @property
    def parents(self) -> tuple[FullName, ...]:
        """The names of all ancestors, the innermost first, the catalog last."""
        above: list[FullName] = []
        parent = self.parent
        while parent is not None:
            above.append(parent)
            parent = parent.parent
        return tuple(above)


@dataclass(frozen=True, slots=True)
class _Piece:
    text: str
    quoted: bool


def catalog_of(text: str) -> str:
    """Return the catalog of a full name, so that a caller can choose the codec of that catalog.

    Raises InvalidName for an invalid catalog name or an unclosed quote.
    """
    return _split_catalog(text)[0]


def candidates(text: str, kind_levels: int, *, codec: LogicalCodec, at_root: bool = False) -> Iterator[FullName]:
    """Yield every interpretation of a full name with `kind_levels` components, the shortest schema first. With
    `at_root`, the last one is an object directly in the catalog.

    Raises InvalidName if the full name has too few or too many components, is badly quoted, or has no interpretation
    with valid names.
    """
    catalog, rest = _split_catalog(text)
    if kind_levels == CATALOG:
        if rest is not None:
            raise InvalidName(
                "too-many-parts", f"The full name {quote_for_message(text)} of a catalog must be its name alone."
            )
        yield FullName(catalog)
        return
    if rest is None:
        raise _too_few(text, kind_levels)
    refusal: InvalidName | None = None
    legal = False
    pieces = _pieces(rest, text)
    readings = ((components, False) for components in _readings(pieces, kind_levels - 1))
    for components, is_root in chain(readings, ((each, True) for each in _readings(pieces, 1) if at_root)):
        try:
            reading = FullName(catalog, (), check_part(components[0])) if is_root else _read(catalog, components, codec)
        except InvalidName as error:
            refusal = refusal or error
        else:
            legal = True
            yield reading
    if not legal:
        raise refusal or _too_few(text, kind_levels)


def resolve(
    text: str, exists: Callable[[FullName], bool], *, kind_levels: int, codec: LogicalCodec, at_root: bool = False
) -> FullName | None:
    """Return the only interpretation of a full name whose object exists; None if there is none. `at_root` as in
    `candidates`.

    Raises InvalidName with the reason `ambiguous` if several exist, and for a malformed full name.
    """
    return choose(text, filter(exists, candidates(text, kind_levels, codec=codec, at_root=at_root)), codec=codec)


def choose(text: str, live: Iterable[FullName], *, codec: LogicalCodec) -> FullName | None:
    """Return the only element of `live`, the interpretations whose objects exist; None if it is empty.

    Raises InvalidName with the reason `ambiguous` for several. For callers that check existence themselves; see
    `resolve`.
    """
    hits = list(live)
    if len(hits) <= 1:
        return hits[0] if hits else None
    spellings = " or ".join(render_quoted(hit, codec=codec) for hit in hits)
    raise InvalidName(
        "ambiguous",
        f"The full name {quote_for_message(text)} fits {len(hits)} objects. Write one of: {spellings}.",
    )


def render(name: FullName, *, codec: LogicalCodec) -> str:
    """Return the full name in the form of Gravitino's clients: only components with a back-quote are quoted."""
    return ".".join(_quote(c) if "`" in c else c for c in _components(name, codec))


def render_quoted(name: FullName, *, codec: LogicalCodec) -> str:
    """Return the full name with back-quotes where needed, so that it has exactly one interpretation."""
    return ".".join(_quote(c) if "`" in c or "." in c else c for c in _components(name, codec))


def _components(name: FullName, codec: LogicalCodec) -> Iterator[str]:
    yield name.catalog
    if name.levels:
        yield codec.join(name.levels)
    if name.name is not None:
        yield name.name
    if name.column is not None:
        yield name.column


def _quote(component: str) -> str:
    return "`" + component.replace("`", "``") + "`"


def _split_catalog(text: str) -> tuple[str, str | None]:
    if text.startswith("`"):
        match = _PIECE.match(text)
        if match is None:
            raise _bad_quotes(text)
        head, rest = match["quoted"].replace("``", "`"), text[match.end() + 1 :]
        return check_catalog_name(head), rest if match.end() < len(text) else None
    head, dot, rest = text.partition(".")
    return check_catalog_name(head), rest if dot else None


def _pieces(rest: str, text: str) -> tuple[_Piece, ...]:
    """Split a string at dots; a back-quoted piece may contain dots. Empty pieces occur in names such as `a..b`.

    Raises InvalidName for unbalanced quotes and for more than `PIECES_MAX` pieces.
    """
    pieces: list[_Piece] = []
    position = 0
    while position <= len(rest):
        match = _PIECE.match(rest, position)
        if match is None and rest.startswith("`", position):
            raise _bad_quotes(text)
        if match is None:
            pieces.append(_Piece("", quoted=False))
            position += 1
            continue
        body = match["quoted"]
        pieces.append(_Piece(match[0], quoted=False) if body is None else _Piece(body.replace("``", "`"), quoted=True))
        position = match.end() + 1
    if len(pieces) > PIECES_MAX:
        raise InvalidName(
            "too-many-parts",
            f"The full name {quote_for_message(text)} has more than {PIECES_MAX} dots. Put names with dots in"
            " back-quotes.",
        )
    return tuple(pieces)


def _readings(pieces: tuple[_Piece, ...], size: int) -> Iterator[list[str]]:
    """Yield every way to group the pieces into `size` components, in order.

    A quoted piece is always a whole component.
    """
    for cuts in combinations(range(1, len(pieces)), size - 1):
        bounds = (0, *cuts, len(pieces))
        groups = [pieces[start:end] for start, end in pairwise(bounds)]
        if all(len(group) == 1 or not any(piece.quoted for piece in group) for group in groups):
            yield [".".join(piece.text for piece in group) for group in groups]


def _read(catalog: str, components: list[str], codec: LogicalCodec) -> FullName:
    levels = codec.split(components[0])
    names = [check_part(component) for component in components[1:]]
    return FullName(catalog, levels, *names)


def _too_few(text: str, kind_levels: int) -> InvalidName:
    form = ".".join(("catalog", "schema", "object", "column")[:kind_levels])
    return InvalidName(
        "too-few-parts",
        f"The full name {quote_for_message(text)} does not have the form {form}. Put names with dots in back-quotes.",
    )


def _bad_quotes(text: str) -> InvalidName:
    return InvalidName(
        "bad-quotes",
        f"The full name {quote_for_message(text)} has a back-quote without its partner, or text beside a quoted name."
        " Close the quote, and double a back-quote that belongs to the name.",
    )
