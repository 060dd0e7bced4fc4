# SPDX-License-Identifier: Apache-2.0
"""Versions of Lance tables as operations of transactions.

Must not know any wire format, and reads no file. Staged manifests are checked before the commit and get their final
names after it, so that no reader sees them earlier; the room of Lance does both (`services.lance.table_files`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from limnos.access.actions import Action
from limnos.model.errors import BadRequest, CommitConflict, LimnosError
from limnos.model.kinds import Kind
from limnos.model.object_errors import name_object_in_error
from limnos.model.permits import Permit
from limnos.model.records import TableRecord
from limnos.names.iceberg import render
from limnos.names.path import Levels
from limnos.services.lance.table_files import LANCE_FILES, NewVersion, StagedVersion
from limnos.services.lance.tables import lance_find
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.transactions.operations import OperationStep, TransactionOperation
from limnos.services.transactions.transaction_view import TransactionView


class LanceVersionOperation(NamedTuple):
    """The operation that commits a staged version of a table whose versions the server keeps.

    `checked` is None until the staged manifest was checked: then the operation only decides.
    """

    path: Levels
    new_version: NewVersion
    checked: StagedVersion | None = None

    @property
    def targets(self) -> tuple[tuple[Kind, Levels], ...]:
        """The name of the table that the commit changes."""
        return ((Kind.TABLE, self.path),)

    def decide(self, request_view: TransactionView) -> OperationStep:
        """Decide whether the caller may commit to the table.

        Raises BadRequest for a table whose versions the storage keeps, CommitConflict if another table has replaced
        the one whose staged manifest was checked.
        """
        node, _, decision = lance_find(request_view, self.path, action=Action.TABLE_COMMIT)
        if not cast("TableRecord", node.record).managed:
            raise BadRequest(
                f"The versions of {render(self.path)} are in its files and not in the server, so a transaction cannot"
                " include them: the table needs managed_versioning"
            )
        request_view.note_changed(node)
        permit: Permit[object] = request_view.permit(None, decision)
        step = OperationStep(permit=permit, path=self.path, queue_id=node.id)
        if self.checked is None:
            return step
        if self.checked.table_id != node.id:
            raise CommitConflict("The table was replaced by another one concurrently: read the table again")
        if self.checked.is_committed:
            return step
        return step._replace(permit=permit.about(self.checked.command(node)), mutation=self.checked.mutation)


async def with_checked_versions(
    ctx: Context, scopes: Sequence[RequestScope], *, operations: Sequence[TransactionOperation]
) -> tuple[TransactionOperation, ...]:
    """Check the staged manifests of the operations that commit versions, and complete earlier commits of their tables.

    `scopes` has the catalog of each operation. The caller must be in the queues of the tables. Raises the errors of a
    single commit, with the table's name.
    """
    ready: list[TransactionOperation] = []
    for scope, each in zip(scopes, operations, strict=True):
        ready.append(await _check(ctx, scope, operation=each) if isinstance(each, LanceVersionOperation) else each)
    return tuple(ready)


async def _check(ctx: Context, scope: RequestScope, *, operation: LanceVersionOperation) -> LanceVersionOperation:
    files = LANCE_FILES.of(ctx.services)
    try:
        staged_version = await files.check_version(ctx, scope, levels=operation.path, new_version=operation.new_version)
    except LimnosError as error:
        raise name_object_in_error(error, operation.path) from error
    return operation._replace(checked=staged_version)


async def publish_manifests(operations: Sequence[TransactionOperation], results: Mapping[int, object]) -> None:
    """Give the manifests of committed versions their final names. `results` are those of the transaction."""
    for number, each in enumerate(operations):
        if isinstance(each, LanceVersionOperation) and each.checked is not None:
            await each.checked.publish(results.get(number))
