# SPDX-License-Identifier: Apache-2.0
"""URL paths of objects in the console: one path segment for each part of a name, so that any name can be encoded.

Pure. The kind is part of a path, because a namespace and a table may have the same name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import urlencode

from limnos.model.errors import NotFound
from limnos.model.kinds import NAMESPACE_OBJECTS, Kind
from limnos.names.path import Levels
from limnos.names.percent import quote, unquote_strict
from limnos.services.request.request_scope import RequestScope

_TREE: Final = (Kind.CATALOG, Kind.NAMESPACE, *NAMESPACE_OBJECTS)
KINDS: Final = {kind.word: kind for kind in _TREE}
"""The kinds of objects that have a page, by name."""
_DOTS: Final = (".", "..")
_PLAIN: Final = re.compile("[A-Za-z0-9_-]+")
"""A pattern for parts that need no quoting; nearly all match, so it is checked first."""


class ObjectAddress(NamedTuple):
    """A catalog or an object in it: its kind, metalake and catalog, and the levels below the catalog (none for the
    catalog itself).
    """

    kind: Kind
    metalake: str
    catalog: str
    levels: Levels

    @property
    def scope(self) -> RequestScope:
        """The metalake and catalog in which the object's path is resolved."""
        return RequestScope(self.metalake, self.catalog)

    @property
    def name(self) -> str:
        """The last part of the object's path: its name without its containers."""
        return self.levels[-1] if self.levels else self.catalog

    @property
    def parent(self) -> ObjectAddress | None:
        """The container: a namespace or the catalog; None for a catalog."""
        if not self.levels:
            return None
        return ObjectAddress(_container(self.levels[:-1]), self.metalake, self.catalog, self.levels[:-1])

    @property
    def path(self) -> str:
        """The URL path of the object's page, below the console's root."""
        return f"/o/{self.kind.word}/{quote_path((self.metalake, self.catalog, *self.levels))}"

    def child(self, kind: Kind, name: str) -> ObjectAddress:
        """Return the object address of a direct child."""
        return ObjectAddress(kind, self.metalake, self.catalog, (*self.levels, name))


def catalog_address(metalake: str, catalog: str) -> ObjectAddress:
    """Return the object address of a catalog."""
    return ObjectAddress(Kind.CATALOG, metalake, catalog, ())


def _container(levels: Levels) -> Kind:
    return Kind.NAMESPACE if levels else Kind.CATALOG


def quote_path(parts: Sequence[str]) -> str:
    """Join the parts of a name as percent-encoded path segments."""
    return "/".join(segment_of(part) for part in parts)


def segment_of(part: str) -> str:
    """Percent-encode one part of a name as a path segment. `.` and `..`, which browsers resolve, get a tilde as
    prefix.
    """
    if _PLAIN.fullmatch(part):
        return part
    return f"~{quote(part)}" if part in _DOTS or part.startswith("~") else quote(part)


def part_of(segment: bytes) -> str:
    """Decode a path segment into the part of a name. Raises InvalidName for a malformed segment."""
    text = unquote_strict(segment)
    return text[1:] if segment.startswith(b"~") else text


def parse_address(params: Sequence[bytes]) -> ObjectAddress:
    """Parse path segments into an object address: the kind, the metalake, the catalog, the levels.

    Raises NotFound for an unknown kind or an incomplete path, and InvalidName for an invalid name.
    """
    kind = KINDS.get(unquote_strict(params[0]))
    parts = tuple(part_of(segment) for segment in params[1:])
    if kind is None or len(parts) < 2 or (len(parts) == 2) is not (kind is Kind.CATALOG):
        raise NotFound("This page does not exist", kind="route")
    return ObjectAddress(kind, parts[0], parts[1], parts[2:])


def run_path(metalake: str, *, run: str) -> str:
    """Return the path of a run's page below the console's root."""
    return f"/run?{urlencode({'metalake': metalake, 'id': run})}"
