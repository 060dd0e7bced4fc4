# SPDX-License-Identifier: Apache-2.0
"""The logical name of a namespace, as in Gravitino's schema names: its parts joined by a configurable separator, such
as `A:B:C`.

Must not know the store: callers pass the stored names to check. Both policies for the separator of design document
"seed 1" are implemented. `restricted`: one of `: ; $`, reserved in every catalog. `unrestricted`: any safe character,
which is an ordinary character in catalogs without nested namespaces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from limnos.names.errors import InvalidName
from limnos.names.parts import Levels, check_part, check_some_levels, quote_for_message

Policy = Literal["restricted", "unrestricted"]

SEPARATOR_DEFAULT = ":"
SEPARATORS_ALLOWED = (":", ";", "$")
"""The separators that the policy `restricted` accepts, and that every refusal suggests."""

# Why a character can never separate parts. Other characters are refused only if stored names contain them.
_REFUSED = {
    ".": "it is reserved: identifiers are joined by it",
    "\x01": "it is reserved: stored physical names are joined by it",
    "/": "it conflicts with path parsing",
    "\\": "some HTTP clients turn it into '/'",
    "%": "it starts an escape in URLs",
    "+": "it stands for a space in URLs",
    "?": "it ends the path of a URL",
    "#": "it ends the query of a URL",
    "&": "it separates the parameters of a URL",
    "`": "it quotes identifiers",
    '"': "it quotes identifiers",
    "'": "it quotes text in SQL",
}


def check_separator(separator: str, *, policy: Policy = "restricted") -> str:
    """Return the separator if the policy allows it. Raises InvalidName otherwise, with alternatives in the message."""
    if why := _refusal_reason(separator, policy):
        raise InvalidName(
            "bad-separator", f"Delimiter {quote_for_message(separator)} is not allowed because {why}. {_suggest()}"
        )
    return separator


def separator_conflicts(separator: str, names: Iterable[str]) -> list[str]:
    """Return the stored namespace parts that contain the separator, in the given order.

    Each of these would be parsed as two parts.
    """
    return [name for name in names if separator in name]


def check_separator_free(separator: str, names: Iterable[str]) -> None:
    """Check that no stored namespace part contains the separator, before it is configured or changed.

    Raises InvalidName with the first conflicting names and the allowed separators that no stored name contains.
    """
    stored_names = list(names)
    conflicts = separator_conflicts(separator, stored_names)
    if not conflicts:
        return
    text = ", ".join(quote_for_message(name) for name in conflicts[:5]) + (", …" if len(conflicts) > 5 else "")
    free = [other for other in SEPARATORS_ALLOWED if not separator_conflicts(other, stored_names)]
    choice = f"choose another separator ({_join_or(free)})" if free else "choose another separator"
    raise InvalidName(
        "separator-taken",
        f"Delimiter {quote_for_message(separator)} is not allowed because {len(conflicts)} stored namespace name(s)"
        f" hold it: {text}. Rename them, or {choice}.",
    )


@dataclass(frozen=True, slots=True)
class LogicalCodec:
    """Joins and splits namespace levels of one catalog.

    `nested`: whether the catalog has nested namespaces; in a flat catalog a name is always one part. The constructor
    raises InvalidName if the policy does not allow the separator.
    """

    separator: str = SEPARATOR_DEFAULT
    policy: Policy = "restricted"
    nested: bool = True

    def __post_init__(self) -> None:
        check_separator(self.separator, policy=self.policy)

    def check_namespace_part(self, part: str) -> str:
        """Return a part if a namespace can be created with it.

        Raises InvalidName for a part that is not allowed as a name, or contains a reserved separator.
        """
        self._check_free(check_part(part))
        return part

    @property
    def holds_separator(self) -> bool:
        """Whether names of the catalog may contain the separator as an ordinary character."""
        return not self.nested and self.policy == "unrestricted"

    def check_namespace(self, levels: Levels) -> Levels:
        """Validate a namespace path for a create or a move, and return it.

        Raises InvalidName for an invalid part, or several parts in a flat catalog.
        """
        for part in self._check_depth(levels):
            self.check_namespace_part(part)
        return levels

    def join(self, levels: Levels) -> str:
        """Join levels to a logical name, such as `A:B:C`.

        Raises InvalidName for empty `levels`, an invalid part, a part with a reserved separator, or several parts in a
        flat catalog.
        """
        check_some_levels(levels)
        for part in self._check_depth(levels):
            self._check_free(part)
        return self.separator.join(levels)

    def join_or_none(self, levels: Levels) -> str | None:
        """Return the logical name of levels, for lists; None for levels that no name can spell.

        External systems have such names, and stores of which another node uses another separator.
        """
        try:
            return self.join(levels)
        except InvalidName:
            return None

    def split(self, text: str, *, what: str = "SCHEMA name") -> Levels:
        """Split a logical name into levels. `what` names the field in messages, such as `parentSchema`.

        Raises InvalidName for an empty name or segment, a segment that is not allowed as a name, too many segments, or
        the separator in a flat catalog under `restricted`.
        """
        if not text:
            raise InvalidName("empty-part", f"The {what} is empty. Give at least one character.")
        segments = text.split(self.separator) if self.nested else [text]
        if "" in segments:
            raise InvalidName(
                "empty-part",
                f"The {what} '{_plain(text)}' contains an empty segment after splitting by '{self.separator}'.",
            )
        for segment in segments:
            self._check_segment(segment, text, what=what)
        return check_some_levels(segments)

    def ancestors(self, text: str) -> tuple[str, ...]:
        """Return the names of a namespace's ancestors, the outermost first: `A:B:C` gives `A`, `A:B`."""
        return tuple(self._prefixes(self.split(text)))[:-1]

    def parent_scopes(self, text: str) -> tuple[str, ...]:
        """Return the ancestors and the name itself, outermost first: `A`, `A:B`, `A:B:C` (design document "seed 1",
        snippet 3).
        """
        return tuple(self._prefixes(self.split(text)))

    def scopes(self, text: str) -> tuple[str, ...]:
        """Return the name itself and its ancestors, innermost first: the order of the privilege lookup."""
        return self.parent_scopes(text)[::-1]

    def _check_depth(self, levels: Levels) -> Levels:
        if not self.nested and len(levels) > 1:
            raise InvalidName(
                "not-nested",
                f"This catalog has no nested namespaces, but the name has {len(levels)} parts. Give one part.",
            )
        return levels

    def _prefixes(self, levels: Levels) -> Iterator[str]:
        for size in range(1, len(levels) + 1):
            yield self.separator.join(levels[:size])

    def _check_segment(self, segment: str, text: str, *, what: str) -> None:
        try:
            self.check_namespace_part(segment)
        except InvalidName as error:
            raise InvalidName(
                error.reason,
                f"The {what} {quote_for_message(text)} contains an illegal segment {quote_for_message(segment)}:"
                f" {error.message}",
            ) from None

    def _check_free(self, part: str) -> None:
        if self.separator not in part or self.holds_separator:
            return
        raise InvalidName(
            "separator-in-part",
            f"The namespace part {quote_for_message(part)} holds '{self.separator}', which separates the parts of a"
            " namespace. Leave it out, or have the administrator configure another separator.",
        )


def _refusal_reason(separator: str, policy: Policy) -> str | None:
    if len(separator) != 1:
        return "it is empty" if not separator else "it is more than one character"
    if why := _REFUSED.get(separator):
        return why
    if not separator.isprintable() or separator.isspace():
        return "it is invisible"
    if policy == "restricted" and separator not in SEPARATORS_ALLOWED:
        return "it is not in the allowed set of the policy 'restricted'"
    return None


def _suggest() -> str:
    return f"Try {_join_or(SEPARATORS_ALLOWED)}."


def _join_or(separators: Iterable[str]) -> str:
    *rest, last = (f"'{separator}'" for separator in separators)
    if not rest:
        return last
    return f"{', '.join(rest)}{',' if len(rest) > 1 else ''} or {last}"


def _plain(text: str) -> str:
    return quote_for_message(text)[1:-1]
