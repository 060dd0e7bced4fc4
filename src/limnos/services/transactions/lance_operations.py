# SPDX-License-Identifier: Apache-2.0
"""Lance operations of a transaction: the commit of a staged version of a Lance table, beside other operations.

Must not know any wire format. The version's row is the commit, as for a single request; its manifest gets its final
name afterwards (decision record 0052).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

from limnos.access.actions import Action
from limnos.model.errors import BadRequest, CommitConflict, LimnosError
from limnos.model.kinds import Kind
from limnos.model.lance import LanceVersion
from limnos.model.object_errors import name_object_in_error
from limnos.model.permits import Permit
from limnos.model.records import TableRecord
from limnos.names.iceberg import render
from limnos.names.path import Levels
from limnos.services.lance.commits import NewVersion, VersionDraft, publish_manifest, version_draft_of, version_insert
from limnos.services.lance.tables import lance_find, lance_load
from limnos.services.request.context import Context
from limnos.services.request.request_scope import RequestScope
from limnos.services.transactions.operations import OperationMutation, OperationStep, TransactionOperation
from limnos.services.transactions.transaction_view import TransactionView


class CheckedVersion(NamedTuple):
    """A staged version whose manifest was checked, for the table with this id."""

    table_id: int
    draft: VersionDraft


class LanceVersionOperation(NamedTuple):
    """The operation that commits a staged version of a table whose versions the server keeps.

    `checked` is None until the staged manifest was checked: then the operation only decides.
    """

    path: Levels
    new_version: NewVersion
    checked: CheckedVersion | None = None

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
                f"The versions of {render(self.path)} are in its files and not in the server, so a transaction cannot include them: the table needs managed_versioning"
            )
        request_view.note_changed(node)
        permit: Permit[object] = request_view.permit(None, decision)
        step = OperationStep(permit=permit, path=self.path, queue_id=node.id)
        if self.checked is None:
            return step
        if self.checked.table_id != node.id:
            raise CommitConflict("The table was replaced by another one concurrently: read the table again")
        draft = self.checked.draft
        if draft.done:
            return step
        return step._replace(
            permit=permit.about(draft.command(node)), mutation=cast("OperationMutation", version_insert)
        )


async def with_checked_versions(
    ctx: Context, scopes: Sequence[RequestScope], *, operations: Sequence[TransactionOperation]
) -> tuple[TransactionOperation, ...]:
    """Check the staged manifests of the operations that commit versions, and complete earlier commits of their tables.

    `scopes` has the catalog of each operation. The caller must be in the queues of the tables. Raises the errors of a
    single commit, with the table's name.
    """
    ready: list[TransactionOperation] = []
    for scope, each in zip(scopes, operations, strict=True):
        ready.append(await _check(ctx, scope, each) if isinstance(each, LanceVersionOperation) else each)
    return tuple(ready)


async def _check(ctx: Context, scope: RequestScope, operation: LanceVersionOperation) -> LanceVersionOperation:
    try:
        table = await ctx.read(
            scope, lambda request_view: lance_load(request_view, operation.path, action=Action.TABLE_COMMIT)
        )
        draft = await version_draft_of(ctx, table, new_version=operation.new_version)
    except LimnosError as error:
        raise name_object_in_error(error, operation.path) from error
    return operation._replace(checked=CheckedVersion(table.node.id, draft))


async def publish_manifests(operations: Sequence[TransactionOperation], results: Mapping[int, object]) -> None:
    """Give the manifests of committed versions their final names. `results` are those of the transaction."""
    for number, each in enumerate(operations):
        if isinstance(each, LanceVersionOperation) and each.checked is not None:
            draft, row = each.checked.draft, results.get(number)
            await publish_manifest(draft._replace(row=row) if isinstance(row, LanceVersion) else draft)
