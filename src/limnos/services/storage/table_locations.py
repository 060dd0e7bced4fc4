# SPDX-License-Identifier: Apache-2.0
"""The locations of one table: decides, by its name alone, whether a file may be read as a file of the table.

Must not read files. Every reader in the server asks here before it opens a file that the metadata of a table names,
because the writers of a table choose these names.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from limnos.files import AllowedStorage, is_local, normalise, place_key
from limnos.formats.iceberg.current_files import is_plainly_below
from limnos.model.errors import BadRequest
from limnos.names.hidden_segments import has_dot_segments

_PREFIXES_MAX: Final = 4096
"""The maximum number of locations whose prefixes are cached."""
_ALIASES: Final = {"s3": ("s3", "s3a", "s3n"), "gs": ("gs", "gcs"), "abfs": ("abfs", "abfss")}


class TableLocations:
    """The locations below which the files of one table lie: its own, earlier ones and data paths."""

    __slots__ = ("_allowed", "_keys", "_prefixes", "roots")

    def __init__(self, roots: Iterable[str], allowed: AllowedStorage) -> None:
        self.roots = tuple(dict.fromkeys(roots))
        self._allowed = allowed
        self._keys: tuple[str, ...] | None = None
        self._prefixes: tuple[str, ...] | None = None

    def covers(self, location: str) -> bool:
        """Return whether a file lies below one of the table's locations, in storage that the server may use.

        The file's name is compared in normal form and with its percent signs decoded; any spelling that a reader could
        follow out of the location is refused.
        """
        if is_plainly_below(location, self.prefixes):
            return True
        if self._keys is None:
            self._keys = tuple([f"{place_key(each)}/" for each in self.roots])
        try:
            below = place_key(location).startswith(self._keys)
        except BadRequest:
            return False
        return below and not has_dot_segments(location) and self._allowed.covers(location)

    @property
    def prefixes(self) -> tuple[str, ...]:
        """The beginnings of usual spellings of files below these locations, each with a slash at its end."""
        if self._prefixes is None:
            prefixes = [prefix for root in self.roots for prefix in prefixes_of(root, self._allowed)]
            self._prefixes = tuple(dict.fromkeys(prefixes))
        return self._prefixes


@lru_cache(maxsize=_PREFIXES_MAX)
def prefixes_of(root: str, allowed: AllowedStorage) -> tuple[str, ...]:
    """Return the beginnings of usual spellings of files below a location, each with a slash at its end.

    Empty unless every file below the location is in storage that the server may use: then the location alone decides.
    """
    if not allowed.covers(root) or allowed.holds_server_files(root):
        return ()
    return tuple([f"{each}/" for each in _spellings(root)])


def _spellings(root: str) -> list[str]:
    """Return a location in the spellings of different clients: `file:///x`, `file:/x`, `/x`; `s3://b`, `s3a://b`."""
    normal = normalise(root).rstrip("/")
    if is_local(normal):
        path = normal.removeprefix("file://")
        return [normal, f"file:{path}", path]
    scheme, _, rest = normal.partition("://")
    return [f"{each}://{rest}" for each in _ALIASES.get(scheme, (scheme,))]
