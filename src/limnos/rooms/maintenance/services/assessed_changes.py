# SPDX-License-Identifier: Apache-2.0
"""Assessment before an expiry: assesses the tables that changed since the last round, so that the checkpoints of
readers are up to date.

Must not know any wire format.
"""

from __future__ import annotations

from typing import Final

import msgspec

from limnos.rooms.maintenance.services.assessing import (
    ASSESS_TABLES,
    AssessmentPosition,
    AssessmentRound,
    CurrentState,
    current_read,
)
from limnos.services.request.node_services import ComponentKey, NodeServices
from limnos.store.activity.tasks import task_payload_read
from limnos.store.sql import Load

TABLES_PER_REQUEST: Final = 2_000
"""The approximate maximum number of tables that are assessed before one expiry."""


async def assess_changes(services: NodeServices) -> bool:
    """Assess the tables that changed since the task's last round, so that the checkpoints of readers are up to date.

    Returns whether all changes are assessed; False while the first assessment of all tables runs, or if too many tables
    changed.
    """
    assessed = ASSESSED_CHANGES.of(services)
    payload, current = await services.gate.look_up(_changes_read)
    at = AssessmentPosition() if payload is None else msgspec.json.decode(payload, type=AssessmentPosition)
    round_ = AssessmentRound(services, tables_max=TABLES_PER_REQUEST)
    position = await round_.run(assessed.position_from(at, epoch=current.epoch), current=current, only_changes=True)
    assessed.position = position if position.after is None else None
    return position.after is None and round_.tables < TABLES_PER_REQUEST


class AssessedChanges:
    """The position up to which this node has assessed changes for expiries.

    Between two rounds of the task, each expiry assesses only the changes since the previous expiry.
    """

    def __init__(self) -> None:
        self.position: AssessmentPosition | None = None

    def position_from(self, at: AssessmentPosition, *, epoch: int) -> AssessmentPosition:
        """Return the position at which an expiry begins: for each catalog the later one of this node's and the
        task's.
        """
        last_position = self.position
        if last_position is None or last_position.epoch != epoch:
            return at
        task = at.positions if at.epoch == epoch and at.after is None else {}
        positions = {
            zone: max(last_position.positions.get(zone, 0), task.get(zone, 0))
            for zone in last_position.positions.keys() | task.keys()
        }
        return msgspec.structs.replace(last_position, positions=positions)


ASSESSED_CHANGES: ComponentKey[AssessedChanges] = ComponentKey("assessed changes", lambda _: AssessedChanges())


def _changes_read() -> Load[tuple[str | None, CurrentState]]:
    payload = yield from task_payload_read(ASSESS_TABLES)
    return payload, (yield from current_read())
