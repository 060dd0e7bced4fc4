# SPDX-License-Identifier: Apache-2.0
"""`Path`: the absolute name of an object of the tree, as a list of parts.

Must not know any encoding. It re-exports the checks of `parts`, so that callers need one import.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import total_ordering

from limnos.names.display import render
from limnos.names.errors import InvalidName
from limnos.names.parts import (
    PART_BYTES_MAX,
    PARTS_MAX,
    Levels,
    check_catalog_name,
    check_gravitino_name,
    check_levels,
    check_metalake_name,
    check_part,
)

__all__ = [
    "PARTS_MAX",
    "PART_BYTES_MAX",
    "Levels",
    "Path",
    "check_catalog_name",
    "check_gravitino_name",
    "check_levels",
    "check_metalake_name",
    "check_part",
]


@total_ordering
@dataclass(frozen=True, slots=True)
class Path:
    """The name of a metalake, a catalog, or an object in a catalog, whose parts below the catalog are `levels`.

    The constructor does not check names, because stored and decoded names are checked already; `Path.of` does. Paths
    are sorted by code point, part by part, so that objects below a name follow it directly.
    """

    metalake: str
    catalog: str | None = None
    levels: Levels = ()

    def __post_init__(self) -> None:
        if self.catalog is None and self.levels:
            raise InvalidName("too-few-parts", "A path below a metalake starts with a catalog. Name the catalog.")

    @classmethod
    def of(cls, metalake: str, catalog: str | None = None, levels: Iterable[str] = ()) -> Path:
        """Build a path from names after checking them. Raises InvalidName for an invalid name."""
        catalog_name = None if catalog is None else check_catalog_name(catalog)
        return cls(check_metalake_name(metalake), catalog_name, check_levels(levels))

    @property
    def parts(self) -> tuple[str, ...]:
        """All parts, the metalake first."""
        return (self.metalake,) if self.catalog is None else (self.metalake, self.catalog, *self.levels)

    @property
    def name(self) -> str:
        """The last part."""
        if self.levels:
            return self.levels[-1]
        return self.metalake if self.catalog is None else self.catalog

    @property
    def parent(self) -> Path | None:
        """The path of the parent, without the last part; None for a metalake."""
        if self.levels:
            return Path(self.metalake, self.catalog, self.levels[:-1])
        return None if self.catalog is None else Path(self.metalake)

    def child(self, part: str) -> Path:
        """Return the path of a child: a catalog below a metalake, else an object in the catalog.

        Raises InvalidName for an invalid name.
        """
        if self.catalog is None:
            return Path(self.metalake, check_catalog_name(part))
        if len(self.levels) >= PARTS_MAX:
            raise InvalidName("too-many-parts", f"{self} has {PARTS_MAX} parts below its catalog, which is the limit.")
        return Path(self.metalake, self.catalog, (*self.levels, check_part(part)))

    def __lt__(self, other: object) -> bool:
        return self.parts < other.parts if isinstance(other, Path) else NotImplemented

    def __str__(self) -> str:
        return render(self.parts)
