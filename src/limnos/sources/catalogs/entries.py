# SPDX-License-Identifier: Apache-2.0
"""Catalogs that store a name and the location of a metadata file for each table, as a migration reads and ends them.

Must not read metadata files. A commit to such a catalog replaces the location if it is still the expected one; whoever
asks here does the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, Protocol

from limnos.names.path import Levels

METADATA: Final = "metadata_location"
PREVIOUS: Final = "previous_metadata_location"
TABLE_TYPE: Final = "table_type"
ICEBERG: Final = "iceberg"
NOTE_MAX: Final = 60
"""The maximum number of characters of a foreign catalog's word in a message."""

EntryKind = Literal["table", "view", "other"]
"""An Iceberg table, an Iceberg view, or an object that has no Iceberg metadata."""


class CatalogEntry(NamedTuple):
    """The object that a catalog stores under a name: its kind and its metadata file."""

    kind: EntryKind
    metadata_location: str = ""
    note: str = ""
    """The word for an object of the kind `other`, for a message."""
    is_closed: bool = False
    """Whether `retire` has closed the entry, so that no client takes it for a table."""


class PointerCatalog(Protocol):
    """A catalog whose entries point to metadata files.

    Methods block until a deadline of their own, and are thread-safe. Besides the errors of each method all raise
    SourceFailed (no answer; a retry may help) and SourceRefused (the sign-in or the operation is refused). No message
    has a password.
    """

    label: str
    """The catalog's address for messages, without user and password."""

    def namespaces(self) -> list[Levels]:
        """Return all namespaces, parents before children."""

    def namespace_properties(self, namespace: Levels) -> dict[str, str]:
        """Return a namespace's properties, with its description as `comment`. Raises NotFound."""

    def names(self, namespace: Levels) -> list[tuple[str, EntryKind]]:
        """Return the names in a namespace with their kinds, sorted. Raises NotFound for the namespace."""

    def entry(self, path: Levels) -> CatalogEntry:
        """Read one entry. Raises NotFound, and InvalidTable if it names no metadata file."""

    def replace(self, path: Levels, location: str, *, expected: str, properties: Mapping[str, str]) -> None:
        """Point a table to another metadata file if it still points to the expected one: a commit.

        Args:
            path: The table.
            location: The new metadata file.
            expected: The metadata file to which the table must point, as `entry` returned it.
            properties: Properties that the new file sets, for catalogs that repeat them in the entry.

        Raises:
            CommitConflict: The table points elsewhere; nothing was changed.
            NotFound: There is no such table.
            StateUnknown: The catalog did not answer, and may have made the change.
        """

    def retire(self, path: Levels, *, name: str) -> str:
        """Make later commits to a table fail: rename its entry, or close it where catalogs cannot rename.

        Returns the name under which the entry is read from then on. A commit that came before is in the entry.
        Raises NotFound, AlreadyExists (an object has the new name), UnsupportedOperation.
        """

    def close(self) -> None:
        """Close the connections."""


def quote_word(kind: str) -> str:
    """Return a word of a foreign catalog for a message: shortened, without control characters."""
    printable_text = "".join(each if each.isprintable() else "?" for each in kind)
    return printable_text if len(printable_text) <= NOTE_MAX else f"{printable_text[:NOTE_MAX]}…"
