# SPDX-License-Identifier: Apache-2.0
"""Permits: the proof of an allowed decision, which a mutation requires and its transaction checks against the zones'
clocks.

Must not know access rules. `services` makes a permit from an allowed decision, `store` never does. A mutation cannot be
submitted without one, so an unchecked write does not type-check.
"""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

from limnos.model.decisions import Decision

C_co = TypeVar("C_co", covariant=True)
D = TypeVar("D")


class Permit(msgspec.Struct, Generic[C_co], frozen=True, kw_only=True):
    """An allowed command, and the access revisions at which it was allowed.

    `zone` is the zone that the mutation writes to. `stamps` are (zone, access revision) pairs of every zone that the
    decision depends on, in lock order: the server, the metalake, the catalog.
    """

    command: C_co
    decisions: tuple[Decision, ...]
    zone: int
    stamps: tuple[tuple[int, int], ...]
    actor: str
    actor_id: int | None
    request_id: str
    account: str | None = None
    """The encoded `AuditContext` of the request; None without audit."""
    writes_metalake: bool = False
    """Whether the mutation of a catalog may write to the metalake's zone, too, with the metalake's lock."""
    more_zones: tuple[int, ...] = ()
    """The zones of more catalogs of the same metalake that the mutation writes to, in ascending order. Each is greater
    than `zone`, and is locked after it.
    """

    @property
    def zones(self) -> tuple[int, ...]:
        """The zones to lock: the zone that is written to, and those that the decision depends on."""
        return (self.zone, *[zone for zone, _ in self.stamps])

    def about(self, command: D) -> Permit[D]:
        """Return a permit with the same decisions and revisions for another command, which was computed after the
        decision.
        """
        return Permit(
            command=command,
            decisions=self.decisions,
            zone=self.zone,
            stamps=self.stamps,
            actor=self.actor,
            actor_id=self.actor_id,
            request_id=self.request_id,
            account=self.account,
            writes_metalake=self.writes_metalake,
            more_zones=self.more_zones,
        )

    def within(self, zone: int, command: D) -> Permit[D]:
        """Return the permit of a mutation that is a part of this one, and writes to one of its zones only."""
        return self.about(command) if zone == self.zone else msgspec.structs.replace(self.about(command), zone=zone)


def upkeep_permit(actor: str, *, zone: int = 0) -> Permit[None]:
    """Return a permit for the server's own upkeep, which needs no right: tasks, pruning of the feed, outcomes of jobs.

    `zone` is the zone in which the mutation writes change rows, if any.
    """
    return Permit(command=None, decisions=(), zone=zone, stamps=(), actor=actor, actor_id=None, request_id="upkeep")
