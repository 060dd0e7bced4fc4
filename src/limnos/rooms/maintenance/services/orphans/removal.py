# SPDX-License-Identifier: Apache-2.0
"""Removal of orphan files of one table: marks files, waits until all nodes have read the marks, searches again, and
deletes.

Must not know the schedule. A file is marked first, and from then on no commit of the table may name it
(`services.iceberg.orphan_fence`). After `FENCE_WAIT_S` every node has read the mark. Only then the table is searched
again, and files that are still orphans are deleted. A killed process leaves marked files: the next removal decides on
them again. The row of a file and its audit record are written after the deletion, so that each deleted file has both.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, NamedTuple

import msgspec

from limnos.model.audit import AuditContext, AuditedDecision, audit_context_of
from limnos.model.entities import Node
from limnos.model.number_texts import count_with_noun
from limnos.model.permits import Permit
from limnos.rooms.maintenance.services.acting import ActingRequest
from limnos.rooms.maintenance.services.metadata_files import DELETED as DELETED_FILES
from limnos.rooms.maintenance.services.orphans.references import FOREIGN_REFERENCES
from limnos.rooms.maintenance.services.orphans.search import TableSearch, orphans_search, removal_refusal
from limnos.rooms.maintenance.services.table_access import maintained_table
from limnos.rooms.maintenance.services.table_storage import MaintainedFiles
from limnos.services.request.node_services import NodeServices
from limnos.services.request.request_view import RequestView
from limnos.services.request.task_context import TaskContext
from limnos.store.activity.orphan_files import CANDIDATE, DELETED, REMOVING, OrphanFileRow, orphan_files_read
from limnos.store.faults import fault_point
from limnos.store.tx import Tx
from limnos.telemetry.logs import get_logger

log = get_logger("limnos.maintenance")
AT_ONCE: Final = 100
"""The number of files that are deleted before their rows and audit records are written."""
ACTION: Final = "remove_orphan_file"
NO_METADATA: Final = "no snapshot and no metadata of the table refers to it"


class OrphansMark(msgspec.Struct, frozen=True):
    """The command to mark files of a table for deletion, by name below its location."""

    table: Node
    names: tuple[str, ...]
    reason: str


class RemovalAccount(NamedTuple):
    """The data of a removal for the audit: the user on whose behalf files are deleted, the request and the catalog."""

    actor: str
    request_id: str
    catalog_id: int
    context: AuditContext | None
    """The context of the audit records; None if audit is disabled."""


class RemovalResult(NamedTuple):
    """The result of a removal: the count and total size of deleted files, and the reason why no file was deleted.

    `files` includes marked files that no longer existed.
    """

    files: int = 0
    bytes: int = 0
    refusal: str | None = None

    @property
    def text(self) -> str:
        """The result as human-readable text, for the response and for the operation's row."""
        return self.refusal or f"deleted {count_with_noun(self.files, 'orphan file')} ({self.bytes} bytes)"


async def orphans_mark(request: ActingRequest, names: Sequence[str], *, reason: str) -> RemovalAccount:
    """Mark files of a table for deletion, on behalf of a user who may maintain it.

    Raises as `maintained_table`, and ServiceUnavailable.
    """

    def decide(request_view: RequestView) -> Permit[OrphansMark]:
        node, _, decision = maintained_table(request_view, request.path)
        request_view.defaults.location_conflicts.refuse(node.id, what="table")
        return request_view.permit(OrphansMark(node, tuple(names), reason), decision)

    return await request.ctx.write(request.scope, decide, mark_files)


def mark_files(tx: Tx, permit: Permit[OrphansMark]) -> RemovalAccount:
    """Mark the files. Returns the data for the audit of their deletion."""
    command = permit.command
    table = tx.nodes.confirm(command.table)
    tx.orphan_files.mark(table.id, command.names, state=REMOVING, reason=command.reason)
    context = None if permit.account is None else audit_context_of(permit.account)
    return RemovalAccount(permit.actor, permit.request_id, table.zone, context)


class OrphanRemoval:
    """The removal of the marked files of one table."""

    def __init__(self, work: TaskContext, services: NodeServices, *, node_id: int, account: RemovalAccount) -> None:
        self.work = work
        self.services = services
        self.node_id = node_id
        self.account = account

    async def run(self) -> RemovalResult:
        """Search again for the marked files, and delete those that are still orphans.

        Call it `FENCE_WAIT_S` seconds after the files were marked. Raises StorageFailed, ServiceUnavailable.
        """
        # Take the table's lock once. A commit that began before every node knew the marks has ended when this returns.
        await self.work.submit(lambda tx: tx.snapshot_pins.version(self.node_id))
        fault_point("orphans-fenced")
        search = await orphans_search(self.work, self.services, node_id=self.node_id)
        refusal = search.blocked or await self.work.submit(
            lambda tx: removal_refusal(tx, self.node_id, snapshots=search.snapshots)
        )
        rows = [
            row
            for row in await self.services.gate.look_up(lambda: orphan_files_read(self.node_id))
            if row.state == REMOVING
        ]
        if refusal is None and rows and search.files is not None:
            locations = {self.node_id: search.files.location}
            if await FOREIGN_REFERENCES.of(self.services).find(self.services, locations):
                refusal = "another table refers to files below its location"
        if refusal is not None or search.files is None:
            await self._unmark(rows)
            return RemovalResult(refusal=refusal)
        return await self._delete(rows, search, table_files=search.files)

    async def _unmark(self, rows: Sequence[OrphanFileRow]) -> None:
        names = [row.name for row in rows]
        await self.work.submit(lambda tx: tx.orphan_files.mark(self.node_id, names, state=CANDIDATE, reason=""))

    async def _delete(
        self, rows: Sequence[OrphanFileRow], search: TableSearch, *, table_files: MaintainedFiles
    ) -> RemovalResult:
        """Delete marked files that the search found again and unchanged, and record those that no longer exist."""
        candidates = {each.name: each for each in search.candidates}
        same = [
            row
            for row in rows
            if row.name in candidates and tuple(candidates[row.name]) == (row.name, row.size, row.modified_ms)
        ]
        vanished = [row for row in rows if row.name not in search.names]
        recorded_names = {row.name for row in (*same, *vanished)}
        others = [row.name for row in rows if row.name not in recorded_names]
        if others:
            await self.work.submit(lambda tx: tx.orphan_files.drop(self.node_id, others))
        await self._record(vanished)
        files = size = 0
        for first in range(0, len(same), AT_ONCE):
            part = same[first : first + AT_ONCE]
            names = set(
                await self.work.run_in_thread(
                    partial(table_files.delete_unchanged, [(row.name, row.size, row.modified_ms) for row in part])
                )
            )
            deleted = [row for row in part if row.name in names]
            await self._record(deleted)
            changed_names = [row.name for row in part if row.name not in names]
            if changed_names:
                await self.work.submit(lambda tx, changed=changed_names: tx.orphan_files.drop(self.node_id, changed))  # type: ignore[misc]
            files += len(deleted)
            size += sum(row.size for row in deleted)
        log.info("orphan files deleted", table=self.node_id, count=files, gone=len(vanished))
        return RemovalResult(files + len(vanished), size)

    async def _record(self, rows: Sequence[OrphanFileRow]) -> None:
        """Record deleted files, each with an audit record."""
        if not rows:
            return
        account = self.account
        texts = [] if account.context is None else [audit_text(account.context, row) for row in rows]

        def record(tx: Tx) -> None:
            reason = rows[0].reason
            tx.orphan_files.mark(self.node_id, [row.name for row in rows], state=DELETED, reason=reason)
            tx.orphan_files.audit(
                account.catalog_id, actor=account.actor, request_id=account.request_id, accounts=texts
            )

        await self.work.submit(record)
        DELETED_FILES["orphan",] += len(rows)
        fault_point("orphans-recorded")


def audit_text(context: AuditContext, row: OrphanFileRow) -> str:
    """Encode the context for the audit record of a deleted file."""
    table_right = next((right for right in context.rights if right.object_id == row.node_id), None)
    right = (
        AuditedDecision(action=ACTION, object_id=row.node_id, kind="table", name="")
        if table_right is None
        else msgspec.structs.replace(table_right, action=ACTION)
    )
    detail = f"{row.name} ({row.size} bytes): {row.reason}"
    return msgspec.json.encode(msgspec.structs.replace(context, rights=(right,), detail=detail)).decode()
