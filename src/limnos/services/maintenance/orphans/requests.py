"""Requests for a check of one table for orphan files: in the caller's name, as an operation and a task.

May import the rooms below. Must not know any wire format. A request never shortens the time for which a file must have
been an orphan.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from limnos.access.actions import Action
from limnos.formats.gravitino.policies import ORPHAN_FILE_REMOVAL
from limnos.model.errors import LimnosError, ServiceUnavailable, StorageFailed, UnsupportedOperation
from limnos.services.catalog.tables import table_find
from limnos.services.identity.tokens import worth_of
from limnos.services.maintenance.acting import acting_as
from limnos.services.maintenance.assessing import AssessmentRound
from limnos.services.maintenance.operations import OperationPayload, OperationRequest
from limnos.services.maintenance.orphans.task import OFF, ORPHANS, OrphanRound, orphan_terms
from limnos.services.maintenance.policies import policies_load

if TYPE_CHECKING:
    from limnos.model.permits import Permit
    from limnos.names.path import Levels
    from limnos.services.request.context import Context
    from limnos.services.request.node_services import NodeServices
    from limnos.services.request.request_scope import RequestScope
    from limnos.services.request.request_view import RequestView
    from limnos.services.request.task_context import TaskContext
    from limnos.store.tx import Tx

CHECK_ORPHANS: Final = "check-orphan-files"
"""The kind of the task that carries out a request."""


async def orphans_request(ctx: Context, scope: RequestScope, *, path: Levels) -> int:
    """Ask for a check of a table. Returns the operation's id; the same one while it has not ended.

    Raises:
        NotFound: The table is missing.
        PermissionDenied: The caller may not maintain it.
        UnsupportedOperation: The setting turns the removal off, or the catalog shows another catalog.
        BadRequest: The table has another format.
    """

    def decide(request_view: RequestView) -> Permit[OperationRequest]:
        node, _, decision = table_find(request_view, path[:-1], path[-1], Action.TABLE_MAINTAIN)
        if ctx.services.defaults.maintenance.orphans == OFF:
            raise UnsupportedOperation("This server removes no orphan files (setting maintenance.orphan_files)")
        trust, root_id = worth_of(ctx, request_view, user=request_view.user)
        return request_view.permit(OperationRequest(node, request_view.user, trust, root_id), decision)

    operation = await ctx.write(scope, decide, orphans_ask)
    ctx.services.wake_worker()
    return operation


def orphans_ask(tx: Tx, permit: Permit[OperationRequest]) -> int:
    """Leave an operation and its task, unless the table has one that waits or runs."""
    command = permit.command
    table = tx.nodes.confirm(command.table)
    known = tx.maintenance.open_of(table.id, kind=ORPHANS)
    if known is not None:
        return known
    operation = tx.maintenance.begin(
        catalog_id=table.zone, node_id=table.id, kind=ORPHANS, user=command.user, policy=None, state="waiting"
    )
    payload = OperationPayload(operation, table.id, command.user, command.trust, command.root_id)
    tx.tasks.create(CHECK_ORPHANS, msgspec.json.encode(payload).decode())
    return operation


async def orphans_run(work: TaskContext, payload: OperationPayload) -> None:
    """Carry out a request and end its row. Raises ServiceUnavailable, StorageFailed, after which it is tried again."""
    services = work.services
    if services is None:
        raise ServiceUnavailable("This node has no services: the task is another one's")
    state = "done"
    try:
        text = await work.kept(_check(work, services, payload))
    except (ServiceUnavailable, StorageFailed):
        raise
    except LimnosError as error:
        state, text = "failed", error.message
    await work.submit(lambda tx: tx.maintenance.end(payload.operation, state=state, result=text[:2000]))


async def _check(work: TaskContext, services: NodeServices, payload: OperationPayload) -> str:
    """Check a table, and delete what has waited long enough. Returns the result for people."""
    round_ = OrphanRound(work, services, operation=payload.operation)
    async with acting_as(
        work, services, user=payload.user, table_id=payload.table_id, name=f"maintenance-{payload.operation}",
        trust=payload.trust, root_id=payload.root_id,
    ) as request:  # fmt: skip
        if request is None:
            return "the table was dropped"
        lookup = AssessmentRound(services, tables_max=0)
        chain = await lookup.chain_of(payload.table_id)
        policies = (await services.gate.look_up(policies_load)).effective(chain)
        terms = orphan_terms(services, policies.get(ORPHAN_FILE_REMOVAL))
        if terms is None:
            return "no policy or setting has the orphan files of this table removed"
        found = await round_.check(
            request, node_id=payload.table_id, catalog_id=chain[-1], terms=terms, user=payload.user
        )
    if found.blocked is not None:
        return f"nothing is removed: {found.blocked}"
    result = (await round_.remove()).get(payload.table_id)
    waiting = found.candidates - (0 if result is None else result.files)
    done = "deleted no files" if result is None else result.text
    return f"{done}; {waiting} orphan files wait until they are {terms.age_ms // 86_400_000} days old"
