# SPDX-License-Identifier: Apache-2.0
"""Tasks about orphan files: the recurring round over all tables, and the check of one table that a user requested.

Must not know any wire format. A request never shortens the time for which a file must have been an orphan.
"""

from __future__ import annotations

from typing import Final

import msgspec

from limnos.formats.gravitino.policies import ORPHAN_FILE_REMOVAL
from limnos.model.errors import LimnosError, ServiceUnavailable, StorageFailed
from limnos.model.number_texts import count_with_noun
from limnos.rooms.maintenance.services.acting import acting_as
from limnos.rooms.maintenance.services.assessing import AssessmentRound
from limnos.rooms.maintenance.services.operations import OperationPayload
from limnos.rooms.maintenance.services.orphans.rounds import DAY_MS, OFF, OrphanRound, orphan_terms
from limnos.rooms.maintenance.services.policies import policies_load, require_terms
from limnos.services.request.node_services import NodeServices
from limnos.services.request.task_context import TaskContext

REMOVE_ORPHANS: Final = "remove-orphan-files"
REMOVE_ORPHANS_EVERY_S: Final = 3600.0
CHECK_ORPHANS: Final = "check-orphan-files"
"""The kind of the task that executes a requested check."""
KEEP_DELETED_MS: Final = 30 * DAY_MS


class OrphanPosition(msgspec.Struct):
    """The progress of the rounds: the last checked table."""

    after: int = 0


async def remove_run(work: TaskContext, payload: OrphanPosition) -> tuple[OrphanPosition, str]:
    """Check tables that are due, and remove their old orphan files. Returns the next position, and a summary."""
    services = work.services
    if services is None or services.defaults.maintenance.orphans == OFF:
        return OrphanPosition(), "off (setting maintenance.orphan_files)"
    await work.submit(lambda tx: tx.orphan_files.tidy(keep_ms=KEEP_DELETED_MS))
    round_ = OrphanRound(work, services)
    after = await work.await_with_lease(round_.run(payload.after))
    return OrphanPosition(after), f"checked {round_.checked} tables, deleted {round_.files} files"


async def orphans_run(work: TaskContext, payload: OperationPayload) -> None:
    """Execute a requested check, and store its result in the operation's row.

    Raises ServiceUnavailable, StorageFailed, after which the task is retried.
    """
    services = work.services
    if services is None:
        raise ServiceUnavailable("This node runs no services: another node runs the task")
    state = "done"
    try:
        text = await work.await_with_lease(_check(work, services, payload=payload))
    except (ServiceUnavailable, StorageFailed):
        raise
    except LimnosError as error:
        state, text = "failed", error.message
    await work.submit(lambda tx: tx.maintenance.end(payload.operation, state=state, result=text[:2000]))


async def _check(work: TaskContext, services: NodeServices, *, payload: OperationPayload) -> str:
    """Check a table, and delete old orphan files. Returns the result as human-readable text."""
    round_ = OrphanRound(work, services, operation=payload.operation)
    async with acting_as(
        work,
        services,
        user=payload.user,
        table_id=payload.table_id,
        name=f"maintenance-{payload.operation}",
        trust=payload.trust,
        root_id=payload.root_id,
    ) as request:
        if request is None:
            return "the table was dropped"
        lookup = AssessmentRound(services, tables_max=0)
        chain = await lookup.chain_of(payload.table_id)
        policies = (await services.gate.look_up(policies_load)).effective(chain)
        require_terms(payload.policy, policies.get(ORPHAN_FILE_REMOVAL))
        terms = orphan_terms(services, policies.get(ORPHAN_FILE_REMOVAL))
        if terms is None:
            return "no policy or setting requires the removal of this table's orphan files"
        check = await round_.check(
            request, node_id=payload.table_id, catalog_id=chain[-1], terms=terms, user=payload.user
        )
    if check.blocked is not None:
        return f"nothing is removed: {check.blocked}"
    result = (await round_.remove()).get(payload.table_id)
    if not terms.removes:
        return (
            f"dry run: {count_with_noun(check.candidates, 'orphan file')} {'was' if check.candidates == 1 else 'were'}"
            " found"
        )
    waiting = check.candidates - (0 if result is None else result.files)
    summary = "deleted no files" if result is None else result.text
    return f"{summary}; {_waiting_text(waiting, age_ms=terms.age_ms)}"


def _waiting_text(waiting: int, *, age_ms: int) -> str:
    verbs = "waits until it is" if waiting == 1 else "wait until they are"
    return f"{count_with_noun(waiting, 'orphan file')} {verbs} {count_with_noun(age_ms // DAY_MS, 'day')} old"
