# SPDX-License-Identifier: Apache-2.0
"""Storage locations in the register of locations: their use and their state.

Must not know stores. Codes are stored: never change or reuse one.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple


class LocationKind(IntEnum):
    """The use of a registered location, such as a table, a fileset or a catalog's warehouse."""

    TABLE = 1
    """The location of an Iceberg table."""
    DATA_PATH = 2
    """A location outside the table's own, to which the table's properties direct writers."""
    VIEW = 3
    LANCE_TABLE = 4
    LANCE_DIRECTORY = 5
    """The directory that a catalog shows (`lance-directory`)."""
    FILESET = 6
    """A location of a managed fileset."""
    EXTERNAL_FILESET = 7
    WAREHOUSE = 8
    """The location below which a catalog's new tables are created."""
    ALLOWED_LOCATION = 9
    """Another root of a catalog: its `allowed-locations`, or the locations of a fileset catalog."""
    STAGED_TABLE = 10
    """The location of a staged create whose table is not committed yet."""
    RESTRICTED_READS = 11
    """Files that the server rewrote for restricted users, in a warehouse."""


class LocationState(IntEnum):
    """The state of a location's owner, such as dropped.

    The location is reserved in each of these states. Only a user who owned or dropped the object may reuse its
    location, and not while its files are being deleted.
    """

    LIVE = 0
    DROPPED = 1
    """In the trash: it can be restored."""
    RELEASED = 2
    """Dropped and not restorable, but its files still exist."""
    DELETING = 3
    """Dropped and not restorable, and a task is deleting its files."""


ROOTS: Final = frozenset({LocationKind.WAREHOUSE, LocationKind.ALLOWED_LOCATION})
"""The kinds of locations below which objects' locations lie."""
OF_CATALOGS: Final = frozenset({*ROOTS, LocationKind.LANCE_DIRECTORY, LocationKind.RESTRICTED_READS})
"""Kinds whose owner is a catalog. The owner of the other kinds is an object in a catalog."""


class LocationClaim(NamedTuple):
    """The owner of a location, and its use."""

    kind: LocationKind
    owner_id: int
    catalog_id: int
    metalake_id: int
    state: LocationState = LocationState.LIVE
    is_conflicting: bool = False
    """Whether it was stored before the rules existed and violates one. It does not block other claims."""
