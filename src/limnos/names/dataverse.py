# SPDX-License-Identifier: Apache-2.0
"""`DataverseName`: the name of a SQL++ dataverse, a list of parts that also has one canonical string.

Must not know statements, nor existing dataverses. A dataverse is a namespace, so its parts obey the rules of all names
and AsterixDB's stricter limits: at most 251 bytes per part and 1004 in all, no leading white space in a part, no
leading `^` in the first part. `/` is allowed (decision record 0003).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import total_ordering
from typing import ClassVar

from limnos.names import canonical
from limnos.names.display import render
from limnos.names.errors import InvalidName
from limnos.names.parts import Levels, check_part, check_some_levels, quote_for_message

PART_BYTES_MAX = 251
"""Longest part of a dataverse's name, and longest name of a dataset, type or function, in bytes of UTF-8."""

NAME_BYTES_MAX = 4 * PART_BYTES_MAX
"""Longest name of a dataverse: the bytes of all its parts, separators not counted."""

METADATA_NAME = "Metadata"
"""The dataverse in which SQL++ shows its own metadata. Nothing can be created with that name or below it."""


def check_object_name(name: str) -> str:
    """Return a name if a SQL++ object can have it: a part of a dataverse's name, or a dataset, type or function.

    Raises InvalidName otherwise.
    """
    check_part(name)
    if name[0].isspace():
        raise InvalidName(
            "forbidden-character",
            f"The name {quote_for_message(name)} begins with white space. Begin it with another character.",
        )
    if (size := len(name.encode())) > PART_BYTES_MAX:
        raise InvalidName(
            "part-too-long",
            f"The name {quote_for_message(name)} has {size} bytes in UTF-8; SQL++ allows {PART_BYTES_MAX}. Shorten it.",
        )
    return name


def _check_parts(parts: Iterable[str]) -> Levels:
    """Return the parts if they can name a dataverse. Raises InvalidName otherwise."""
    levels = check_some_levels(parts)
    for part in levels:
        check_object_name(part)
    if levels[0].startswith("^"):
        raise InvalidName(
            "forbidden-character",
            f"The dataverse name {quote_for_message(levels[0])} begins with '^'. Begin it with another character.",
        )
    if (size := sum(len(part.encode()) for part in levels)) > NAME_BYTES_MAX:
        raise InvalidName(
            "part-too-long",
            f"The parts of the dataverse name have {size} bytes together; the limit is {NAME_BYTES_MAX}. Shorten them.",
        )
    return levels


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class DataverseName:
    """The name of a dataverse.

    Equality, hash and order are those of the canonical form, as in AsterixDB's API (design document "seed 4"). The
    order is by UTF-16 code units, so a child need not follow its parent directly: `a-b` comes between `a` and `a.a`.
    The constructor does not check its arguments; the class methods do.
    """

    DEFAULT: ClassVar[DataverseName]
    METADATA: ClassVar[DataverseName]
    ASTERIX: ClassVar[DataverseName]
    ALGEBRICKS: ClassVar[DataverseName]

    parts: Levels
    canonical_form: str = field(repr=False)

    @classmethod
    def create(cls, parts: Iterable[str]) -> DataverseName:
        """Return the name with these parts, outermost first.

        Raises InvalidName if `parts` is empty, a part is invalid, or the parts are too long together.
        """
        levels = _check_parts(parts)
        return cls(levels, canonical.encode(levels))

    @classmethod
    def create_single_part(cls, part: str) -> DataverseName:
        """Return the name with this single part, which is never split. Raises InvalidName if the part is invalid."""
        return cls.create((part,))

    @classmethod
    def create_builtin(cls, part: str) -> DataverseName:
        """Return the name of a built-in dataverse: a single part that equals its canonical form.

        Raises InvalidName if it is invalid or contains `.` or `@`.
        """
        name = cls.create((part,))
        if name.canonical_form != part:
            raise InvalidName(
                "reserved-name", f"A built-in dataverse cannot be called {quote_for_message(part)}. Avoid '.' and '@'."
            )
        return name

    @classmethod
    def from_canonical_form(cls, text: str) -> DataverseName:
        """Return the name with this canonical form. Raises InvalidName for a malformed form, or an invalid name of a
        dataverse.
        """
        return cls(_check_parts(canonical.decode(text)), text)

    @property
    def is_multi_part(self) -> bool:
        """Whether the name has more than one part."""
        return len(self.parts) > 1

    def __eq__(self, other: object) -> bool:
        return self.canonical_form == other.canonical_form if isinstance(other, DataverseName) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.canonical_form)

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, DataverseName):
            return NotImplemented
        return self.canonical_form.encode("utf-16-be") < other.canonical_form.encode("utf-16-be")

    def __str__(self) -> str:
        return render(self.parts)


DataverseName.DEFAULT = DataverseName.create_builtin("Default")
DataverseName.METADATA = DataverseName.create_builtin("Metadata")
DataverseName.ASTERIX = DataverseName.create_builtin("asterix")
DataverseName.ALGEBRICKS = DataverseName.create_builtin("algebricks")
