"""Proof that a decision was made: what a mutation takes, and the transaction checks against the clock it commits on.

May import only `model` and msgspec. A permit is made by `services` from an allowed decision, never by `store`; a mutation cannot be
submitted without one, so an unchecked write does not type-check.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import msgspec

if TYPE_CHECKING:
    from limnos.model.decisions import Decision

C_co = TypeVar("C_co", covariant=True)
D = TypeVar("D")


class Permit(msgspec.Struct, Generic[C_co], frozen=True):
    """A command that was allowed, and the access revisions it was allowed at.

    `zone` is the zone the mutation writes to; `stamps` are (zone, access revision) pairs of every zone the decision
    looked at, in lock order: the server's, the metalake's, the catalog's.
    """

    command: C_co
    decisions: tuple[Decision, ...]
    zone: int
    stamps: tuple[tuple[int, int], ...]
    actor: str
    actor_id: int | None
    request_id: str
    account: str | None = None
    """What the audit keeps of the request, spelled already; None where none is kept."""

    @property
    def zones(self) -> tuple[int, ...]:
        """The zone that is written to, and those that were decided in: what is locked."""
        return (self.zone, *[zone for zone, _ in self.stamps])

    def about(self, command: D) -> Permit[D]:
        """The same permission for a command that was worked out after the decision."""
        return Permit(
            command, self.decisions, self.zone, self.stamps, self.actor, self.actor_id, self.request_id, self.account
        )


def upkeep_permit(actor: str, *, zone: int = 0) -> Permit[None]:
    """The proof for the server's own upkeep, which changes nothing that anybody's rights are about: tasks, old feed, what became of a job.

    `zone` is on whose clock it leaves changes, if it does.
    """
    return Permit(None, (), zone, (), actor, None, "upkeep")
