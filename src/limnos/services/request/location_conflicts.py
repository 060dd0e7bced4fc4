"""Location conflicts: the objects and catalogs on this node whose locations break a location rule.

May import `model`. Nobody gets their files. They were stored before the server enforced the rules
(`services.storage.location_reconciliation`), and share files with another object.
"""

from __future__ import annotations

from limnos.model.errors import PermissionDenied


class LocationConflicts:
    """The owners of conflicting locations, read at the start and again in each round of upkeep."""

    __slots__ = ("ids", "seen_id")

    def __init__(self) -> None:
        self.ids: frozenset[int] = frozenset()
        self.seen_id = 0
        """The highest id whose document's locations are in the register."""

    def refuse(self, owner_id: int, *, what: str) -> None:
        """Raise PermissionDenied if an object's or a catalog's location overlaps another one's.

        `what` names its kind in the message.
        """
        if owner_id in self.ids:
            raise PermissionDenied(
                f"The files of this {what} are given to nobody: another object's files lie at, above or below its location since before that was "
                "refused. Whoever runs the server learns from 'limnos server check' how to mend it"
            )
