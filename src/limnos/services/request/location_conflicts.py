"""Objects and catalogs whose places break a rule of places, as this node knows them: their files are given out to nobody.

May import `model`. They were stored before the rules were kept (`services.storage.place_settling`), and lie where another one's files are.
"""

from __future__ import annotations

from limnos.model.errors import PermissionDenied


class LocationConflicts:
    """The owners of places that break a rule; known at the start, and read again at each round of upkeep."""

    __slots__ = ("ids", "seen_id")

    def __init__(self) -> None:
        self.ids: frozenset[int] = frozenset()
        self.seen_id = 0
        """Up to which id documents were found in the register."""

    def refuse(self, owner_id: int, *, what: str) -> None:
        """Raise Forbidden for an object, or a catalog, whose place is another one's as well."""
        if owner_id in self.ids:
            raise PermissionDenied(
                f"The files of this {what} are given to nobody: another object's files lie at, above or below its location since before that was "
                "refused. Whoever runs the server learns from 'limnos server check' how to mend it"
            )
