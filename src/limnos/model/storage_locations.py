"""Storage locations in the register of places: what lies there, and in which state. Numbers are stored: never change or reuse one.

May import nothing but the standard library.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple


class LocationKind(IntEnum):
    """What a location is used for."""

    TABLE = 1
    """An Iceberg table's location."""
    DATA_PATH = 2
    """A location outside its table's own to which the table's properties send writers."""
    VIEW = 3
    LANCE_TABLE = 4
    LANCE_DIRECTORY = 5
    """The directory that a catalog shows (`lance-directory`)."""
    FILESET = 6
    """A location of a managed fileset."""
    EXTERNAL_FILESET = 7
    WAREHOUSE = 8
    """Where a catalog's tables go."""
    ALLOWED_LOCATION = 9
    """Another root of a catalog: `allowed-locations`, and the locations of a catalog of filesets."""
    STAGED_TABLE = 10
    """The location of a staged create whose table is not committed yet."""
    RESTRICTED_READS = 11
    """Files that the server rewrote for restricted users, in a warehouse."""


class LocationState(IntEnum):
    """How far the owner of a place is gone. In every state the place is taken."""

    LIVE = 0
    DROPPED = 1
    """In the trash: it can be brought back."""
    RELEASED = 2
    """Dropped for good, and its files stand."""
    DELETING = 3
    """Dropped for good, and a task deletes its files."""


ROOTS: Final = frozenset({LocationKind.WAREHOUSE, LocationKind.ALLOWED_LOCATION})
"""Kinds that cover the places of objects."""
OF_CATALOGS: Final = frozenset({*ROOTS, LocationKind.LANCE_DIRECTORY, LocationKind.RESTRICTED_READS})
"""Kinds whose owner is a catalog; the owner of the others is an object in one."""


class LocationClaim(NamedTuple):
    """Who uses a place, and for what."""

    kind: LocationKind
    owner_id: int
    catalog_id: int
    metalake_id: int
    state: LocationState = LocationState.LIVE
    is_conflicting: bool = False
    """It was stored before the rules were kept, and breaks one: it keeps nobody else out."""
